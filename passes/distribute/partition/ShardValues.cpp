//===- ShardValues.cpp - Values of variables, split and joined ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/partition/ShardRewriter.h"

using namespace mlir;

namespace distc {

Value ShardRewriter::getConstant(DenseElementsAttr elements) {
  Value &known = constants[elements];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&block);
    Location loc = NameLoc::get(builder.getStringAttr("partition/const"));
    known = dfg::ConstOp::create(builder, loc, elements.getType(), elements);
  }
  return known;
}

static DenseElementsAttr getAxis(Builder &builder, int64_t axis) {
  return DenseElementsAttr::get(RankedTensorType::get({}, builder.getI32Type()), static_cast<int32_t>(axis));
}

Value ShardRewriter::join(Location loc, ArrayRef<Value> parts, const ShardedVariable &variable) {
  SmallVector<Value> operands(parts);
  operands.push_back(getConstant(getAxis(builder, variable.partition.axis)));
  return dfg::ConcatV2Op::create(builder, loc, TypeRange(variable.type), operands);
}

/// Where every element is the same, no whole value is needed.
ShardRewriter::Parts ShardRewriter::splitConstant(dfg::ConstOp constant, SplatElementsAttr splat,
                                                  ArrayRef<RankedTensorType> types, const ShardedVariable &variable) {
  Parts parts;
  for (auto [shard, type] : llvm::enumerate(types)) {
    Operation *clone = cloneForShard(constant, variable, shard);
    clone->setAttr("value", splat.resizeSplat(type));
    clone->getResult(0).setType(type);
    parts.push_back(clone->getResult(0));
  }
  return parts;
}

ShardRewriter::Parts ShardRewriter::split(Value value, int64_t axis, const ShardedVariable &variable) {
  const strategies::Partition &partition = variable.partition;
  auto &known = splits[value];
  for (const Split &split : known)
    if (split.axis == axis && split.partition->sizes == partition.sizes)
      return split.parts;
  // A copy of a variable that is split alike.
  if (auto read = reads.find(value); read != reads.end() && axis == partition.axis)
    if (const auto &other = read->second.variable->partition; other.axis == axis && other.sizes == partition.sizes)
      return read->second.parts;

  auto whole = llvm::dyn_cast<RankedTensorType>(value.getType());
  SmallVector<RankedTensorType> types;
  for (int64_t size : partition.sizes) {
    SmallVector<int64_t> shape(whole ? whole.getShape() : variable.type.getShape());
    shape[axis] = size;
    types.push_back(RankedTensorType::get(shape, variable.type.getElementType()));
  }
  // Right after it is made, so that every user can have it.
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(value);
  auto constant = value.getDefiningOp<dfg::ConstOp>();
  auto splat = constant ? llvm::dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  Parts parts;
  if (splat) {
    parts = splitConstant(constant, splat, types, variable);
  } else {
    Location loc = getSuffixed(value.getLoc(), "/split");
    SmallVector<Type> results(types.begin(), types.end());
    Value axisValue = getConstant(getAxis(builder, axis));
    if (llvm::all_equal(partition.sizes)) {
      parts = dfg::SplitOp::create(builder, loc, results, axisValue, value).getParts();
    } else {
      auto sizes = DenseElementsAttr::get(RankedTensorType::get(variable.getCount(), builder.getI64Type()),
                                          ArrayRef<int64_t>(partition.sizes));
      parts = dfg::SplitVOp::create(builder, loc, results, value, getConstant(sizes), axisValue).getParts();
    }
  }
  splits[value].push_back({axis, &partition, parts});
  return parts;
}

} // namespace distc
