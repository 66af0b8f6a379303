//===- PlanRows.cpp - Sparse gradients in an entry's plan --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/plan/PlanBuilder.h"

using namespace mlir;

namespace distc::lower {

LogicalResult PlanBuilder::gatherRows(dist::AllGatherOp node) {
  FailureOr<RankedTensorType> joined = getStaticType(node);
  if (failed(joined))
    return failure();
  Value own = get(node.getRows());
  auto type = llvm::cast<RankedTensorType>(own.getType());
  int64_t replicas = joined->getNumElements() / type.getNumElements();
  ArrayAttr names = builder.getStrArrayAttr(node.getName());
  int32_t bucket = startedBuckets++;
  drt::AllReduceStartOp::create(builder, node.getLoc(), bucket, /*mean=*/false, names, ValueRange(own),
                                /*gather=*/replicas);
  gatheredRows[node] = bucket;
  // Where rows couple replicas, what follows needs them at once, and threads meet in it.
  if (!isForDevices)
    receiveRows(node);
  return success();
}

Value PlanBuilder::receiveRows(dist::AllGatherOp node) {
  const int32_t bucket = gatheredRows.lookup(node);
  gatheredRows.erase(node);
  drt::AllReduceWaitOp::create(builder, node.getLoc(), bucket);
  auto result = drt::AllReduceResultOp::create(builder, node.getLoc(), node.getAllRows().getType(), bucket);
  set(node.getAllRows(), result.getResult(0));
  return result.getResult(0);
}

FailureOr<Value> PlanBuilder::getRowNumbers(dist::PullRowsOp node) {
  const int64_t rows = llvm::cast<RankedTensorType>(variable(variableName(node.getHandle())).getType()).getDimSize(0);
  if (failed(checkIndices(node, 1, rows)))
    return failure();
  Value indices = get(node.getIndices());
  auto indexType = llvm::cast<RankedTensorType>(indices.getType());
  if (!indexType.getElementType().isInteger(32) && !indexType.getElementType().isInteger(64)) {
    indexType = indexType.clone(builder.getI32Type());
    indices = elementwise(node.getLoc(), indexType, indices, [&](dfg::ScalarBuilder &s, ValueRange x) {
      return s.cast(x[0], indexType.getElementType());
    });
  }
  return indices;
}

LogicalResult PlanBuilder::pullRows(dist::PullRowsOp node) {
  FailureOr<RankedTensorType> type = getStaticType(node);
  FailureOr<Value> indices = failed(type) ? FailureOr<Value>(failure()) : getRowNumbers(node);
  if (failed(indices))
    return failure();
  drt::VariableOp table = variable(variableName(node.getHandle()));
  auto pulled = drt::PullRowsOp::create(builder, node.getLoc(), TypeRange(*type),
                                        builder.getArrayAttr(FlatSymbolRefAttr::get(table.getSymNameAttr())), *indices,
                                        builder.getDenseI64ArrayAttr(static_cast<int64_t>(*table.getOwner())),
                                        startedBuckets++, DenseI64ArrayAttr());
  set(node.getRows(), pulled.getRows().front());
  return success();
}

Value PlanBuilder::scaleRows(Location loc, Value rows, int64_t divisor) {
  auto type = llvm::cast<RankedTensorType>(rows.getType());
  return elementwise(loc, type, rows, [&](dfg::ScalarBuilder &s, ValueRange x) {
    return s.mul(x[0], s.constant(type.getElementType(), 1.0 / static_cast<double>(divisor)));
  });
}

LogicalResult PlanBuilder::gatherSlices(dist::AllGatherSlicesOp node) {
  FailureOr<RankedTensorType> indices = getStaticType(node, 0), values = getStaticType(node, 1);
  if (failed(indices) || failed(values))
    return failure();
  auto own = llvm::cast<RankedTensorType>(get(node.getValues()).getType());
  if (own.getNumElements() == 0)
    return node.emitError() << "gathers slices of no elements, of type " << own;
  int64_t replicas = values->getNumElements() / own.getNumElements();
  // The replica's own rows are scaled, not all of them.
  Value scaled = get(node.getValues());
  if (node.getReduction() == dist::Reduction::Mean)
    scaled = scaleRows(node.getLoc(), scaled, replicas);
  if (node.getShards()) {
    // A row that no shard has would reach nobody.
    int64_t rows = 0;
    for (size_t i = 0; i < node.getShards()->size(); i += 3)
      rows = std::max(rows, (*node.getShards())[i] + (*node.getShards())[i + 1]);
    if (failed(checkIndices(node, 0, rows)))
      return failure();
    auto push = drt::PushRowsOp::create(builder, node.getLoc(), TypeRange(*indices), TypeRange(*values),
                                        get(node.getIndices()), scaled, builder.getStrArrayAttr(node.getVariable()),
                                        builder.getArrayAttr(builder.getDenseI64ArrayAttr(*node.getShards())),
                                        startedBuckets++, DenseI64ArrayAttr());
    set(node.getAllIndices(), push.getAllIndices().front());
    set(node.getAllValues(), push.getAllValues().front());
    return success();
  }
  ArrayAttr names = builder.getStrArrayAttr(node.getVariable());
  SmallVector<std::pair<Value, RankedTensorType>> parts = {{get(node.getIndices()), *indices}, {scaled, *values}};
  int32_t first = startedBuckets;
  for (auto [part, type] : parts)
    drt::AllReduceStartOp::create(builder, node.getLoc(), startedBuckets++, /*mean=*/false, names, ValueRange(part),
                                  replicas);
  for (auto [i, part] : llvm::enumerate(parts)) {
    drt::AllReduceWaitOp::create(builder, node.getLoc(), first + i);
    auto result = drt::AllReduceResultOp::create(builder, node.getLoc(), TypeRange{part.second}, first + i);
    set(node->getResult(i), result.getResult(0));
  }
  return success();
}

FailureOr<std::pair<Value, Value>> PlanBuilder::getSlices(dfg::UpdateInterface node) {
  Operation *op = node;
  Value indices = get(op->getOperand(node.getIndicesOperand())),
        values = get(op->getOperand(node.getGradientOperand()));
  llvm::StringRef name = dfg::getVariableHandle(op->getOperand(node.getWrittenOperands().front())).getVariable();
  ArrayRef<int64_t> whole = llvm::cast<RankedTensorType>(variable(name).getType()).getShape();
  auto indexType = llvm::cast<RankedTensorType>(indices.getType()),
       valueType = llvm::cast<RankedTensorType>(values.getType());
  SmallVector<int64_t> shape(indexType.getShape());
  size_t depth = 1;
  if (node.hasIndexVectors()) {
    depth = shape.back();
    shape.pop_back();
  }
  if (depth > whole.size())
    return op->emitError() << "node '" << dfg::getNodeName(op) << "' updates slices of variable '" << name
                           << "' by indices of " << depth << " numbers, but it has " << whole.size() << " axes";
  if (failed(checkIndices(op, node.getIndicesOperand(), whole.take_front(depth))))
    return failure();
  shape.append(whole.begin() + depth, whole.end());
  // One value for all, or one a slice.
  if (valueType.getShape() != ArrayRef(shape)) {
    if (valueType.getNumElements() != 1)
      return op->emitError() << "node '" << dfg::getNodeName(op) << "' updates slices of variable '" << name
                             << "' with values of type " << valueType << " for indices of type " << indexType;
    auto type = RankedTensorType::get(shape, valueType.getElementType());
    values = elementwise(op->getLoc(), type, reshape(op->getLoc(), values, {}),
                         [](dfg::ScalarBuilder &, ValueRange x) { return x[0]; });
  }
  return std::pair(indices, values);
}

} // namespace distc::lower
