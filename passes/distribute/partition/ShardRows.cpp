//===- ShardRows.cpp - Rows of split variables, by index ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Gathers.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/partition/ShardRewriter.h"

using namespace mlir;

namespace distc {

LogicalResult ShardRewriter::splitRows(dfg::UpdateInterface update, const ShardedVariable &variable, Parts &indices,
                                       Parts &values) {
  Operation *op = update;
  Value index = op->getOperand(update.getIndicesOperand()), value = op->getOperand(update.getGradientOperand());
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  auto indexType = llvm::dyn_cast<RankedTensorType>(index.getType());
  if (!type || !indexType || indexType.getRank() != 1 || type.getRank() != variable.type.getRank())
    return op->emitError() << "node '" << dfg::getNodeName(op) << "' updates slices of variable '" << variable.name
                           << "' by indices " << index.getType() << " and values " << value.getType()
                           << ", which cannot be split; only rows by a list of indices can: leave its partitioner out";
  if (variable.partition.axis > 0) {
    // Every shard has a part of each row.
    indices.assign(variable.getCount(), index);
    values = split(value, variable.partition.axis, variable);
    return success();
  }
  auto anyNumber = [](RankedTensorType of) {
    SmallVector<int64_t> shape(of.getShape());
    shape[0] = ShapedType::kDynamic;
    return RankedTensorType::get(shape, of.getElementType());
  };
  builder.setInsertionPoint(op);
  for (int64_t shard = 0; shard < variable.getCount(); ++shard) {
    auto own = dist::OwnRowsOp::create(builder, getSuffixed(op->getLoc(), "/part_" + llvm::Twine(shard) + "/rows"),
                                       anyNumber(indexType), anyNumber(type), index, value,
                                       variable.partition.offsets[shard], variable.partition.sizes[shard]);
    indices.push_back(own.getOwnIndices());
    values.push_back(own.getOwnValues());
  }
  return success();
}

namespace {

/// Builds element-wise nodes on indices, named NAME/part_K/....
class IndexBuilder {
public:
  IndexBuilder(OpBuilder &builder, Location loc, RankedTensorType type)
      : builder(builder), loc(loc), type(type), mask(RankedTensorType::get(type.getShape(), builder.getI1Type())) {}

  Value constant(int64_t value) {
    auto scalar = RankedTensorType::get({}, type.getElementType());
    auto elements = DenseElementsAttr::get(scalar, builder.getIntegerAttr(type.getElementType(), value));
    return dfg::ConstOp::create(builder, loc, scalar, elements);
  }

  /// Whether each index is in [begin, end).
  Value isInside(Value indices, int64_t begin, int64_t end) {
    Value from = dfg::GreaterEqualOp::create(builder, loc, mask, indices, constant(begin));
    Value to = dfg::LessOp::create(builder, loc, mask, indices, constant(end));
    return dfg::LogicalAndOp::create(builder, loc, mask, from, to);
  }

  /// The indices from `begin` on, 0 for those that are not inside: a row that is there.
  Value getLocal(Value indices, Value inside, int64_t begin) {
    Value local = dfg::SubOp::create(builder, loc, type, indices, constant(begin));
    return dfg::SelectV2Op::create(builder, loc, type, inside, local, constant(0));
  }

  /// The indices, 0 for those in [begin, end), which are other shards' rows. What is outside of the whole variable
  /// stays as it is, so that this shard's gather refuses it: nobody else would.
  Value getLocalOfFirst(Value indices, int64_t begin, int64_t end) {
    return dfg::SelectV2Op::create(builder, loc, type, isInside(indices, begin, end), constant(0), indices);
  }

  /// `rows` where `inside`, else `others`.
  Value choose(Value inside, Value rows, Value others) {
    auto rowsType = llvm::cast<RankedTensorType>(rows.getType());
    SmallVector<int64_t> shape(type.getShape());
    auto axisType = RankedTensorType::get({}, builder.getI32Type());
    while (static_cast<int64_t>(shape.size()) < rowsType.getRank()) {
      shape.push_back(1);
      Value last = dfg::ConstOp::create(builder, loc, axisType, DenseElementsAttr::get(axisType, int32_t(-1)));
      inside = dfg::ExpandDimsOp::create(builder, loc, RankedTensorType::get(shape, builder.getI1Type()), inside, last);
    }
    return dfg::SelectV2Op::create(builder, loc, rowsType, inside, rows, others);
  }

private:
  OpBuilder &builder;
  Location loc;
  RankedTensorType type, mask;
};

} // namespace

LogicalResult ShardRewriter::splitGather(dfg::ResourceGatherOp gather, const ShardedVariable &variable) {
  Value indices = gather.getIndices();
  if (!llvm::isa<RankedTensorType>(indices.getType()) || gather.getBatchDimsAttr().getInt() != 0)
    return gather.emitError() << "node '" << dfg::getNodeName(gather) << "' reads rows of variable '" << variable.name
                              << "' by indices " << indices.getType() << " with " << gather.getBatchDimsAttr().getInt()
                              << " shared axes, which cannot be split; leave its partitioner out";
  Parts sources;
  for (int64_t shard = 0; shard < variable.getCount(); ++shard)
    sources.push_back(getShardHandle(gather.getHandle(), shard));
  takeRows(gather, sources, variable);
  return success();
}

void ShardRewriter::splitGathers(dfg::ReadVariableOp read, ArrayRef<Value> parts, const ShardedVariable &variable) {
  SmallVector<Value> same = {read.getValue()};
  SmallVector<Operation *> gathers;
  for (size_t i = 0; i < same.size(); ++i)
    for (OpOperand &use : same[i].getUses()) {
      Operation *user = use.getOwner();
      if (auto identity = llvm::dyn_cast<dfg::IdentityOp>(user))
        same.push_back(identity.getResult());
      else if (llvm::isa<dfg::GatherOp, dfg::GatherV2Op>(user) && use.getOperandNumber() == 0 && dfg::takesRows(user) &&
               llvm::isa<RankedTensorType>(user->getOperand(1).getType()))
        gathers.push_back(user);
    }
  for (Operation *gather : gathers) {
    takeRows(gather, parts, variable);
    replaced.insert(gather);
  }
}

void ShardRewriter::takeRows(Operation *gather, ArrayRef<Value> sources, const ShardedVariable &variable) {
  Value indices = gather->getOperand(1);
  auto type = llvm::cast<RankedTensorType>(indices.getType());
  int64_t axis = variable.partition.axis;
  auto gatherFrom = [&](int64_t shard, Value rows) -> Value {
    Operation *clone = cloneForShard(gather, variable, shard);
    clone->setOperand(0, sources[shard]);
    clone->setOperand(1, rows);
    SmallVector<int64_t> shape(type.getShape());
    llvm::append_range(shape, variable.getShardType(shard).getShape().drop_front());
    clone->getResult(0).setType(RankedTensorType::get(shape, variable.type.getElementType()));
    return clone->getResult(0);
  };
  builder.setInsertionPoint(gather);
  Value all;
  if (axis > 0) {
    // Every shard has a part of each row.
    Parts parts;
    for (int64_t shard = 0; shard < variable.getCount(); ++shard)
      parts.push_back(gatherFrom(shard, indices));
    parts.push_back(getConstant(DenseElementsAttr::get(RankedTensorType::get({}, builder.getI32Type()),
                                                       static_cast<int32_t>(axis - 1 + type.getRank()))));
    all = dfg::ConcatV2Op::create(builder, gather->getLoc(), TypeRange(gather->getResultTypes()), parts);
  } else {
    for (int64_t shard = 0; shard < variable.getCount(); ++shard) {
      int64_t begin = variable.partition.offsets[shard], end = begin + variable.partition.sizes[shard];
      IndexBuilder inner(builder, getSuffixed(gather->getLoc(), "/part_" + llvm::Twine(shard) + "/rows"), type);
      if (shard == 0) {
        all = gatherFrom(shard, inner.getLocalOfFirst(indices, end, variable.type.getDimSize(0)));
        continue;
      }
      Value inside = inner.isInside(indices, begin, end);
      Value rows = gatherFrom(shard, inner.getLocal(indices, inside, begin));
      IndexBuilder outer(builder, getSuffixed(gather->getLoc(), "/rows"), type);
      all = outer.choose(inside, rows, all);
    }
    // The last node alone has the name: others may wait for it.
    all.setLoc(gather->getLoc());
  }
  gather->getResult(0).replaceAllUsesWith(all);
}

} // namespace distc
