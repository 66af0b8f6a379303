//===- LegalizeRows.cpp - A shard's rows for TensorFlow ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// TensorFlow's updates refuse an index that is not in the variable: rows of other
// shards are left out.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"

using namespace mlir;

namespace distc {

static void chooseRows(StockNodes &nodes, dist::OwnRowsOp own) {
  OpBuilder &builder = nodes.getBuilder();
  Type element = getElementTypeOrSelf(own.getIndices().getType());
  auto anyNumber = [](Type type) { return RankedTensorType::get(ShapedType::kDynamic, type); };
  auto bound = [&](llvm::StringRef name, int64_t value) {
    auto type = RankedTensorType::get({}, element);
    return nodes.constant(name, DenseElementsAttr::get(type, builder.getIntegerAttr(element, value)));
  };
  auto compare = [&](llvm::StringRef op, llvm::StringRef name, Value limit) {
    return nodes.get(op, name, {own.getIndices(), limit}, anyNumber(builder.getI1Type()),
                     nodes.attribute("T", element));
  };
  int64_t begin = own.getBegin();
  Value from = compare("GreaterEqual", "from", bound("begin", begin));
  Value to = compare("Less", "to", bound("end", begin + own.getCount()));
  Value inside = nodes.get("LogicalAnd", "inside", {from, to}, anyNumber(builder.getI1Type()));
  auto pairs = RankedTensorType::get({ShapedType::kDynamic, 1}, builder.getI64Type());
  Value where = nodes.get("Where", "where", inside, pairs, nodes.attribute("T", builder.getI1Type()));
  Value positions = nodes.reshape("positions", where, {-1});
  auto take = [&](llvm::StringRef name, Value rows, Type result) {
    Value axis = nodes.constant("axis", 0);
    return nodes.get("GatherV2", name, {rows, positions, axis}, result,
                     {nodes.attribute("Tparams", getElementTypeOrSelf(rows.getType())),
                      nodes.attribute("Tindices", builder.getI64Type()), nodes.attribute("Taxis", builder.getI32Type()),
                      nodes.attribute("batch_dims", int64_t(0))});
  };
  Value indices = take("indices", own.getIndices(), own.getOwnIndices().getType());
  own.getOwnIndices().replaceAllUsesWith(nodes.binary("Sub", "local", indices, bound("offset", begin)));
  own.getOwnValues().replaceAllUsesWith(take("values", own.getValues(), own.getOwnValues().getType()));
}

LogicalResult legalizeOwnRows(WorkerGraph &worker, const Issue &issue) {
  for (Operation *op : issue) {
    worker.nodes.setPlace(op, dfg::getNodeName(op));
    chooseRows(worker.nodes, llvm::cast<dist::OwnRowsOp>(op));
  }
  return success();
}

} // namespace distc
