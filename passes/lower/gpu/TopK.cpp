//===- TopK.cpp - The largest elements of rows, by kernels ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/TopK.h"
#include "passes/lower/gpu/DeviceKernel.h"

using namespace mlir;

namespace distc {
namespace {

/// Rows up to this length are not worth the launches of a sort: each element is compared with all of its row.
constexpr int64_t kShortRow = 256;

struct Rows {
  Type element;
  int64_t count, columns, k;

  int64_t elements() const { return count * columns; }
};

/// A number that is smaller where the element is larger: 0 where they are equal, the largest of NaNs. As wide as the
/// element.
Value getRank(ThreadWriter &w, Value x) {
  auto type = dyn_cast<FloatType>(x.getType());
  const unsigned width = x.getType().getIntOrFloatBitWidth();
  Type word = w.b.getIntegerType(width);
  auto invert = [&](Value value) { return arith::XOrIOp::create(w.b, value, w.constant(word, -1)).getResult(); };
  if (!type)
    return invert(x);
  Value isNan = arith::CmpFOp::create(w.b, arith::CmpFPredicate::UNO, x, x);
  // Zeros are equal whatever their sign.
  Value zero = arith::ConstantOp::create(w.b, w.b.getFloatAttr(type, 0.0));
  Value isZero = arith::CmpFOp::create(w.b, arith::CmpFPredicate::OEQ, x, zero);
  Value bits = arith::BitcastOp::create(w.b, word, w.select(isZero, zero, x));
  const APInt largest = APInt::getSignedMaxValue(width);
  // The bits of negative numbers grow with their distance from zero.
  Value sign = arith::ShRSIOp::create(w.b, bits, w.constant(word, width - 1));
  Value magnitude = arith::ConstantOp::create(w.b, w.b.getIntegerAttr(word, largest));
  Value ordered = arith::XOrIOp::create(w.b, bits, arith::AndIOp::create(w.b, sign, magnitude));
  return w.select(isNan, magnitude, invert(ordered));
}

/// Where an element goes is how many of its row come before it.
void writeCounting(ThreadWriter &w, const Rows &rows, ValueRange in, ValueRange out) {
  Value at = w.getNumber(), one = w.number(1), none = w.number(0);
  w.when(w.isInside(at, rows.elements()), [&] {
    Value column = w.rem(at, rows.columns), begin = w.sub(at, column);
    Value element = w.load(in[0], at), mine = getRank(w, element);
    Value place = w.loop(none, w.number(rows.columns), none, [&](Value other, ValueRange carried) {
      Value theirs = getRank(w, w.load(in[0], w.add(begin, other)));
      Value isBefore = w.either(w.less(theirs, mine), w.both(w.equal(theirs, mine), w.less(other, column)));
      return ThreadWriter::Values{w.add(carried[0], w.select(isBefore, one, none))};
    })[0];
    w.when(w.isInside(place, rows.k), [&] {
      Value to = w.add(w.mul(w.div(at, rows.columns), rows.k), place);
      w.store(element, out[0], to);
      w.store(w.fromIndex(cast<MemRefType>(out[1].getType()).getElementType(), column), out[1], to);
    });
  });
}

/// The first of each row of what is sorted by rows, and within them by elements.
void writeTaking(ThreadWriter &w, const Rows &rows, ValueRange in, ValueRange out) {
  Value at = w.getNumber();
  w.when(w.isInside(at, rows.count * rows.k), [&] {
    Value begin = w.mul(w.div(at, rows.k), rows.columns), sorted = w.add(begin, w.rem(at, rows.k));
    Value position = w.toIndex(w.load(in[1], w.add(sorted, rows.elements())));
    w.store(w.load(in[0], position), out[0], at);
    w.store(w.fromIndex(cast<MemRefType>(out[1].getType()).getElementType(), w.sub(position, begin)), out[1], at);
  });
}

} // namespace

void replaceTopK(drt::RoutineOp op, DeviceLaunches &launches) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<RankedTensorType> types;
  for (Type type : op.getResultTypes())
    types.push_back(cast<RankedTensorType>(type));
  Value x = op.getOperands()[0];
  const ArrayRef<int64_t> parameters = op.getParameters();
  const Rows rows{types[0].getElementType(), parameters[1], parameters[2], parameters[3]};
  // A row and an element have to fit one key.
  const bool fits = rows.element.getIntOrFloatBitWidth() <= 32 && rows.count < std::numeric_limits<int32_t>::max();
  SmallVector<Value> results;
  if (rows.columns <= kShortRow || !fits) {
    results = launches.launch(b, "top_k", {rows.columns, rows.k}, types, x, rows.elements(), kThreads,
                              [&](ThreadWriter &w, ValueRange in, ValueRange out) { writeCounting(w, rows, in, out); });
  } else {
    Type word = b.getI64Type();
    auto key = [&](ThreadWriter &w, Value elements, Value at) -> Value {
      Value rank = arith::ExtSIOp::create(w.b, word, getRank(w, w.load(elements, at)));
      Value row = arith::ShLIOp::create(w.b, w.fromIndex(word, w.div(at, rows.columns)), w.constant(word, 32));
      return arith::AddIOp::create(w.b, row, rank); // the rank is between -2^31 and 2^31
    };
    Sorted sorted = RowSorter(launches).sort(b, "elements", x, rows.elements(), word, {rows.columns}, key);
    results =
        launches.launch(b, "take", {rows.columns, rows.k}, types, {x, sorted.tensor}, rows.count * rows.k, kThreads,
                        [&](ThreadWriter &w, ValueRange in, ValueRange out) { writeTaking(w, rows, in, out); });
  }
  op.replaceAllUsesWith(results);
  op.erase();
}

} // namespace distc
