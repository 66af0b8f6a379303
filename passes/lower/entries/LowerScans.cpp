//===- LowerScans.cpp - Running sums, products and log-sums -------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/lower/entries/EntryLowering.h"

using namespace mlir;

namespace distc::lower {
namespace {

using dfg::ScalarBuilder;

enum class Join { Sum, Product, LogSum };

struct Scan {
  EntryLowering &lowering;
  Operation *op;
  RankedTensorType type;
  int64_t axis;
  /// Towards larger positions, or from the end.
  bool reverse;
  Join join;

  Value identity(ScalarBuilder &s) {
    if (join == Join::LogSum)
      return s.lowest(type.getElementType());
    return s.constant(type.getElementType(), join == Join::Product ? 1.0 : 0.0);
  }
  Value combine(ScalarBuilder &s, Value x, Value y) {
    switch (join) {
    case Join::Sum:
      return s.add(x, y);
    case Join::Product:
      return s.mul(x, y);
    case Join::LogSum:
      break;
    }
    // log(exp(x) + exp(y)) without leaving the range, as TensorFlow's kernel: what is added to nothing stays as it is.
    // NaN, which infinities together are as well, stays NaN.
    Value most = s.maximum(x, y), least = s.minimum(x, y);
    Value log = s.math<math::Log1pOp>(s.math<math::ExpOp>(s.sub(least, most)));
    return s.select(s.less(least, s.lowestFinite(type.getElementType())), most, s.add(log, most));
  }

  /// Every element with the one `distance` before it; `joined`: combined, else that one alone.
  Value step(Value input, int64_t distance, bool joined) {
    return lowering.gather(op->getLoc(), type, [&](ScalarBuilder &s, ValueRange at) -> Value {
      auto index = [&](int64_t value) -> Value { return arith::ConstantIndexOp::create(s.builder, s.loc, value); };
      SmallVector<Value> before(at);
      Value inside;
      if (reverse) {
        before[axis] = arith::AddIOp::create(s.builder, s.loc, at[axis], index(distance));
        inside = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ult, before[axis],
                                       index(type.getDimSize(axis)));
      } else {
        before[axis] = arith::SubIOp::create(s.builder, s.loc, at[axis], index(distance));
        inside = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::uge, at[axis], index(distance));
      }
      auto branch = scf::IfOp::create(
          s.builder, s.loc, inside,
          [&](OpBuilder &builder, Location loc) {
            ScalarBuilder inner(builder, loc);
            scf::YieldOp::create(builder, loc, EntryLowering::load(inner, input, before));
          },
          [&](OpBuilder &builder, Location loc) {
            ScalarBuilder inner(builder, loc);
            scf::YieldOp::create(builder, loc, identity(inner));
          });
      return joined ? combine(s, branch.getResult(0), EntryLowering::load(s, input, at)) : branch.getResult(0);
    });
  }
};

/// In log2(size) parallel steps, each of which joins spans of twice the length (Hillis and Steele, Data parallel
/// algorithms, 1986).
template <Join join> LogicalResult lowerScan(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  FailureOr<SmallVector<int64_t>> axis = lowering.getConstants(op, 1);
  if (failed(type) || failed(axis))
    return failure();
  auto flag = [&](StringRef name) {
    return op->getAttrOfType<BoolAttr>(name) && op->getAttrOfType<BoolAttr>(name).getValue();
  };
  int64_t along = axis->front() < 0 ? axis->front() + type->getRank() : axis->front();
  Scan scan{lowering, op, *type, along, flag("reverse"), join};
  Value spans = lowering.get(op->getOperand(0));
  if (flag("exclusive"))
    spans = scan.step(spans, 1, /*joined=*/false);
  for (int64_t distance = 1; distance < type->getDimSize(along); distance *= 2)
    spans = scan.step(spans, distance, /*joined=*/true);
  lowering.set(op->getResult(0), spans);
  return success();
}

} // namespace

void addScanLowerings(LoweringTable &table, MLIRContext *context) {
  addLowering<dfg::CumsumOp>(table, context, lowerScan<Join::Sum>);
  addLowering<dfg::CumprodOp>(table, context, lowerScan<Join::Product>);
  addLowering<dfg::CumulativeLogsumexpOp>(table, context, lowerScan<Join::LogSum>);
}

} // namespace distc::lower
