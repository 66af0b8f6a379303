//===- BatchAxisRows.cpp - The batch's axis where rows are found by index ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/BatchAxisRules.h"

using namespace mlir;

namespace distc::batchaxis {

BatchPlacement Rules::gather() {
  auto params = rankOf(0), indices = rankOf(1);
  if (!params || !indices)
    return unknown;
  auto batchDims = op->getAttrOfType<IntegerAttr>("batch_dims");
  int64_t lead = batchDims ? batchDims.getInt() : 0;
  lead = lead < 0 ? lead + *indices : lead;
  auto gathered = op->getNumOperands() > 2 ? normalize(constantOf(2), *params) : std::optional<int64_t>(lead);
  if (!gathered)
    return unknown;
  if (axes[0] && axes[1]) {
    Axis found = merge({*axes[0], *axes[1]});
    return found && found->axis < lead ? along(*found) : unknown;
  }
  if (axes[1])
    return axes[1]->axis < lead ? unknown : moved(*axes[1], *gathered + axes[1]->axis - lead);
  // Rows of the batch by number: a replica has only some of them.
  if (axes[0]->axis == *gathered || axes[0]->axis < lead)
    return unknown;
  return moved(*axes[0], axes[0]->axis < *gathered ? axes[0]->axis : axes[0]->axis - 1 + *indices - lead);
}

BatchPlacement Rules::gatherNd() {
  auto indices = sizesOf(1);
  if (!indices || indices->empty() || !indices->back().isConstant() || (axes[0] && axes[1]))
    return unknown;
  int64_t depth = indices->back().getConstant(), rank = indices->size();
  if (axes[1])
    return axes[1]->axis < rank - 1 ? along(*axes[1]) : unknown;
  return axes[0]->axis >= depth ? moved(*axes[0], rank - 1 + axes[0]->axis - depth) : unknown;
}

BatchPlacement Rules::segments(bool sums) {
  auto ids = rankOf(1);
  if (!ids)
    return unknown;
  if (axes[0] && axes[1])
    return sums && merge({*axes[0], *axes[1]}) && axes[0]->axis < *ids ? summed : unknown;
  return axes[0] && axes[0]->axis >= *ids ? moved(*axes[0], axes[0]->axis - *ids + 1) : unknown;
}

BatchPlacement Rules::scatterNd() {
  auto indices = sizesOf(0);
  if (!indices || indices->empty() || !indices->back().isConstant())
    return unknown;
  int64_t rank = indices->size();
  if (axes[0] && axes[1])
    return merge({*axes[0], *axes[1]}) && axes[1]->axis < rank - 1 ? summed : unknown;
  if (axes[1] && axes[1]->axis >= rank - 1)
    return moved(*axes[1], indices->back().getConstant() + axes[1]->axis - (rank - 1));
  return unknown;
}

/// Operands: a tensor, indices into its first axes, and updates.
BatchPlacement Rules::tensorScatter(bool sums) {
  auto indices = sizesOf(1);
  if (!indices || indices->empty() || !indices->back().isConstant() || !axes[2])
    return unknown;
  int64_t depth = indices->back().getConstant(), rank = indices->size();
  // Rows of the batch, added to what is no row: once a replica, which the caller looks at.
  if (axes[1])
    return sums && !axes[0] && merge({*axes[1], *axes[2]}) && axes[2]->axis < rank - 1 ? summed : unknown;
  if (!axes[0] || axes[0]->axis < depth || axes[2]->axis < rank - 1)
    return unknown;
  // The batch's axis lies behind those that are named.
  BatchAxis updates = *axes[2];
  updates.axis += depth - (rank - 1);
  Axis found = merge({*axes[0], updates});
  return found ? along(*found) : unknown;
}

} // namespace distc::batchaxis
