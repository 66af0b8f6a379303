//===- LowerShards.cpp - Rows that belong to a shard -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "passes/lower/entries/EntryLowering.h"
#include <cmath>

using namespace mlir;

namespace distc::lower {

/// All rows stay where they are; those of other shards have index -1, which updates pass over.
static LogicalResult lowerOwnRows(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  auto own = llvm::cast<dist::OwnRowsOp>(op);
  int64_t begin = own.getBegin(), count = own.getCount();
  Value local = lowering.elementwise(
      op->getLoc(), *type, lowering.get(own.getIndices()), [&](dfg::ScalarBuilder &s, ValueRange indices) -> Value {
        auto constant = [&](int64_t value) {
          return arith::ConstantOp::create(s.builder, s.loc, s.builder.getIntegerAttr(type->getElementType(), value));
        };
        Value index = arith::SubIOp::create(s.builder, s.loc, indices[0], constant(begin));
        Value inside = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ult, index, constant(count));
        return arith::SelectOp::create(s.builder, s.loc, inside, index, constant(-1));
      });
  lowering.set(own.getOwnIndices(), local);
  lowering.set(own.getOwnValues(), lowering.get(own.getValues()));
  return success();
}

static LogicalResult lowerTakeRows(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  lowering.set(op->getResult(0), drt::TakeRowsOp::create(lowering.builder, op->getLoc(), *type,
                                                         lowering.get(op->getOperand(0)), DenseI64ArrayAttr()));
  return success();
}

static LogicalResult lowerRescale(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  auto rescale = llvm::cast<dist::RescaleOp>(op);
  // The topology is gone when code is generated.
  FailureOr<drt::ProgramOp> program = drt::getProgram(op);
  if (failed(program))
    return failure();
  double factor =
      std::pow(static_cast<double>(program->getNumReplicas()), static_cast<double>(rescale.getPowerAttr().getInt()));
  lowering.set(rescale.getWhole(), lowering.elementwise(op->getLoc(), *type, lowering.get(rescale.getShare()),
                                                        [&](dfg::ScalarBuilder &s, ValueRange x) {
                                                          return s.mul(x[0],
                                                                       s.constant(type->getElementType(), factor));
                                                        }));
  return success();
}

void addShardLowerings(LoweringTable &table, MLIRContext *context) {
  addLowering<dist::OwnRowsOp>(table, context, lowerOwnRows);
  addLowering<dist::TakeRowsOp>(table, context, lowerTakeRows);
  addLowering<dist::RescaleOp>(table, context, lowerRescale);
}

} // namespace distc::lower
