//===- LowerLosses.cpp - Softmax and cross entropy ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/entries/EntryLowering.h"

using namespace mlir;

namespace distc::lower {
namespace {

using dfg::ScalarBuilder;

/// Rows of logits, less their maximum, and the sum of their exponentials; the last axis is the classes.
struct ShiftedRows {
  Value shifted;      // as the logits
  Value sum, largest; // with a last axis of 1
};

Value keepLast(EntryLowering &lowering, Location loc, Value reduced) {
  SmallVector<int64_t> shape(typeOf(reduced).getShape());
  shape.push_back(1);
  return lowering.reshape(loc, reduced, shape);
}

Value sumRows(EntryLowering &lowering, Location loc, Value rows) {
  Type element = typeOf(rows).getElementType();
  return lowering.reduce(
      loc, rows, typeOf(rows).getRank() - 1, element, [&](ScalarBuilder &s) { return s.constant(element, 0.0); },
      [](ScalarBuilder &s, Value accumulator, Value next) { return s.add(accumulator, next); });
}

Value exponentials(EntryLowering &lowering, Location loc, Value rows) {
  return lowering.elementwise(loc, typeOf(rows), rows,
                              [](ScalarBuilder &s, ValueRange x) { return s.math<math::ExpOp>(x[0]); });
}

ShiftedRows shiftRows(EntryLowering &lowering, Location loc, Value logits) {
  RankedTensorType type = typeOf(logits);
  Type element = type.getElementType();
  Value largest = lowering.reduce(
      loc, logits, type.getRank() - 1, element, [&](ScalarBuilder &s) { return s.lowest(element); },
      [](ScalarBuilder &s, Value accumulator, Value next) { return s.maximum(accumulator, next); });
  largest = keepLast(lowering, loc, largest);
  Value shifted = lowering.elementwise(loc, type, {logits, largest},
                                       [](ScalarBuilder &s, ValueRange x) { return s.sub(x[0], x[1]); });
  Value sum = sumRows(lowering, loc, exponentials(lowering, loc, shifted));
  return {shifted, keepLast(lowering, loc, sum), largest};
}

LogicalResult lowerSoftmax(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  ShiftedRows rows = shiftRows(lowering, op->getLoc(), lowering.get(op->getOperand(0)));
  bool isLog = llvm::isa<dfg::LogSoftmaxOp>(op);
  lowering.set(op->getResult(0),
               lowering.elementwise(op->getLoc(), *type, {rows.shifted, rows.sum}, [&](ScalarBuilder &s, ValueRange x) {
                 return isLog ? s.sub(x[0], s.math<math::LogOp>(x[1])) : s.div(s.math<math::ExpOp>(x[0]), x[1]);
               }));
  return success();
}

/// loss = sum over classes of label * (log(sum) - shifted); backprop = exp(shifted) / sum - label.
LogicalResult lowerCrossEntropy(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op, 1);
  if (failed(type))
    return failure();
  Location loc = op->getLoc();
  Value labels = lowering.get(op->getOperand(1));
  ShiftedRows rows = shiftRows(lowering, loc, lowering.get(op->getOperand(0)));
  Value terms = lowering.elementwise(loc, *type, {rows.shifted, rows.sum, labels}, [](ScalarBuilder &s, ValueRange x) {
    return s.mul(x[2], s.sub(s.math<math::LogOp>(x[1]), x[0]));
  });
  lowering.set(op->getResult(0), sumRows(lowering, loc, terms));
  lowering.set(op->getResult(1),
               lowering.elementwise(loc, *type, {rows.shifted, rows.sum, labels}, [](ScalarBuilder &s, ValueRange x) {
                 return s.sub(s.div(s.math<math::ExpOp>(x[0]), x[1]), x[2]);
               }));
  return success();
}

LogicalResult lowerSparseCrossEntropy(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> lossType = getStaticType(op, 0), type = getStaticType(op, 1);
  if (failed(type) || failed(lossType))
    return failure();
  Location loc = op->getLoc();
  Value labels = lowering.get(op->getOperand(1));
  int64_t classes = type->getDimSize(1);
  if (failed(lowering.checkIndices(op, 1, classes)))
    return failure();
  Value logits = lowering.get(op->getOperand(0));
  ShiftedRows rows = shiftRows(lowering, loc, logits);
  Type element = type->getElementType();
  // Where it is not checked, a label that is no class makes NaN, as on TensorFlow's GPUs, and reads no foreign memory.
  lowering.set(op->getResult(0), lowering.gather(loc, *lossType, [&](ScalarBuilder &s, ValueRange at) {
    Value label =
        arith::IndexCastOp::create(s.builder, s.loc, s.builder.getIndexType(), EntryLowering::load(s, labels, at));
    Value count = arith::ConstantIndexOp::create(s.builder, s.loc, classes);
    Value zero = arith::ConstantIndexOp::create(s.builder, s.loc, 0);
    Value valid = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ult, label, count);
    Value row = at[0], column = s.select(valid, label, zero);
    // One shifted element a row is no reason to write all of them.
    Value shifted =
        s.sub(EntryLowering::load(s, logits, {row, column}), EntryLowering::load(s, rows.largest, {row, zero}));
    Value loss = s.sub(s.math<math::LogOp>(EntryLowering::load(s, rows.sum, {row, zero})), shifted);
    return s.select(valid, loss, s.constant(element, std::numeric_limits<double>::quiet_NaN()));
  }));
  MLIRContext *context = op->getContext();
  AffineExpr row = getAffineDimExpr(0, context), column = getAffineDimExpr(1, context),
             zero = getAffineConstantExpr(0, context);
  SmallVector<AffineMap> maps = {AffineMap::get(2, 0, {row, column}, context),
                                 AffineMap::get(2, 0, {row, zero}, context), AffineMap::get(2, 0, {row}, context)};
  lowering.set(op->getResult(1),
               lowering.mapped(loc, *type, {rows.shifted, rows.sum, labels}, maps, [&](ScalarBuilder &s, ValueRange x) {
                 Value at = arith::IndexCastOp::create(s.builder, s.loc, x[2].getType(),
                                                       linalg::IndexOp::create(s.builder, s.loc, 1));
                 Value hot = s.select(s.equal(at, x[2]), s.constant(element, 1.0), s.constant(element, 0.0));
                 return s.sub(s.div(s.math<math::ExpOp>(x[0]), x[1]), hot);
               }));
  return success();
}

} // namespace

void addLossLowerings(LoweringTable &table, MLIRContext *context) {
  addLowering<dfg::SoftmaxOp>(table, context, lowerSoftmax);
  addLowering<dfg::LogSoftmaxOp>(table, context, lowerSoftmax);
  addLowering<dfg::SoftmaxCrossEntropyWithLogitsOp>(table, context, lowerCrossEntropy);
  addLowering<dfg::SparseSoftmaxCrossEntropyWithLogitsOp>(table, context, lowerSparseCrossEntropy);
}

} // namespace distc::lower
