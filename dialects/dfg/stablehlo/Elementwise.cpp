//===- Elementwise.cpp - Constants, and operations on each element -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Elementwise.h"
#include "dialects/dfg/BatchMultiple.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include <cmath>

using namespace mlir;

namespace distc::stablehlo {

// ---- Constants -----------------------------------------------------------------------------------------------------

Converter::Result Converter::constant(Operation *op, Values, Builder &g) {
  auto elements = op->getAttrOfType<ElementsAttr>("value");
  auto type = elements ? llvm::dyn_cast<RankedTensorType>(elements.getType()) : RankedTensorType();
  Type element = type ? getElementType(type.getElementType()) : Type();
  if (!element)
    return fail(g, "has a value that is no tensor of numbers");
  auto dense = llvm::dyn_cast<DenseElementsAttr>(elements);
  if (auto resource = llvm::dyn_cast<DenseResourceElementsAttr>(elements)) {
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    bool isSplat = false;
    if (!blob || !DenseElementsAttr::isValidRawBuffer(type, blob->getData(), isSplat))
      return fail(g, "has a value whose bytes are not in the file");
    dense = DenseElementsAttr::getFromRawBuffer(type, blob->getData());
  }
  if (!dense)
    return fail(g, "has a value that is no list of numbers");
  if (element != type.getElementType())
    dense = dense.bitcast(element);
  Value value = makeConstant(g, dense);
  if (dense.isSplat() && type.getRank() > 0)
    narrowed[value] = makeConstant(g, dense.resizeSplat(RankedTensorType::get({}, element)));
  return one(g, value);
}

Converter::Result Converter::identity(Operation *, Values operands, Builder &) { return operands; }

/// How many devices a step that JAX wrote is for, by the module's attributes.
static int64_t countDevices(ModuleOp module) {
  int64_t count = 1;
  for (StringRef name : {"mhlo.num_partitions", "mhlo.num_replicas"})
    if (auto devices = module->getAttrOfType<IntegerAttr>(name))
      count *= devices.getInt();
  return count;
}

Converter::Result Converter::ofOneDevice(Operation *op, Values operands, Builder &g) {
  StringRef name = op->getName().stripDialect();
  auto groups =
      op->getAttrOfType<DenseIntElementsAttr>(name == "collective_permute" ? "source_target_pairs" : "replica_groups");
  const bool isOne = countDevices(source) == 1 && groups &&
                     (name == "collective_permute" ? groups.getNumElements() == 2 : groups.getNumElements() == 1) &&
                     groups.isSplat() && groups.getSplatValue<APInt>().isZero() &&
                     op->getResultTypes() == op->getOperandTypes();
  if (!isOne)
    return fail(g, "is one of several devices (jax.pmap, shard_map over a mesh): export what one device does, with a "
                   "mesh of one; distc makes replicas of it");
  return operands;
}

Converter::Result Converter::numberOfDevice(Operation *op, Values, Builder &g) {
  if (countDevices(source) != 1)
    return fail(g, "asks which one of several devices it runs on: export what one device does");
  return one(g, g.scalar(elementOfResult(op), 0));
}

// ---- Broadcast operands ------------------------------------------------------------------------------------------

void Converter::narrow(Builder &, Values &operands) {
  // One must have the result's shape.
  auto isNarrow = [&](Value value) { return narrowed.contains(value); };
  bool isLast = llvm::all_of(operands, isNarrow);
  for (Value &operand : operands) {
    if (isLast && operand == operands.back())
      continue;
    if (auto it = narrowed.find(operand); it != narrowed.end())
      operand = it->second;
  }
}

// ---- What depends on the sign --------------------------------------------------------------------------------------

Value Converter::flipSign(Builder &g, Value x) {
  unsigned width = Builder::elementOf(x).getIntOrFloatBitWidth();
  auto sign = DenseElementsAttr::get(RankedTensorType::get({}, Builder::elementOf(x)), APInt::getSignMask(width));
  return g.make<dfg::BitwiseXorOp>({x, makeConstant(g, sign)});
}

Value Converter::orderKey(Builder &g, Value x, bool isUnsigned, bool joinsZeros) {
  Type element = Builder::elementOf(x);
  if (!element)
    return {};
  const unsigned width = element.getIntOrFloatBitWidth();
  Type wide = width == 64 ? g.builder.getI64Type() : g.builder.getI32Type();
  if (!llvm::isa<FloatType>(element)) {
    if (isUnsigned && width == 64)
      return flipSign(g, x);
    if (isUnsigned)
      return width == 32 ? flipSign(g, x) : widen(g, x, wide);
    return g.cast(x, wide);
  }
  if (width < 32)
    x = g.cast(x, element = g.builder.getF32Type());
  if (joinsZeros) {
    Value zero = g.scalar(element, 0);
    x = g.select(g.equal(x, zero), zero, x);
    x = g.select(g.make<dfg::IsNanOp>(x, {}, g.builder.getI1Type()), g.scalar(element, NAN), x);
  }
  // Of a negative number the larger bits are the smaller value.
  Value bits = g.make<dfg::BitcastOp>(x, {}, wide);
  APInt most = APInt::getSignedMaxValue(width == 64 ? 64 : 32);
  Value mask = makeConstant(g, DenseElementsAttr::get(RankedTensorType::get({}, wide), most));
  Value zero = makeConstant(g, DenseElementsAttr::get(RankedTensorType::get({}, wide), APInt(most.getBitWidth(), 0)));
  return g.select(g.less(bits, zero), g.make<dfg::BitwiseXorOp>({bits, mask}), bits);
}

Value Converter::widen(Builder &g, Value x, Type element) {
  unsigned from = Builder::elementOf(x).getIntOrFloatBitWidth(), to = element.getIntOrFloatBitWidth();
  Value wide = g.cast(x, element);
  if (from <= 1 || from >= to)
    return wide;
  auto mask = DenseElementsAttr::get(RankedTensorType::get({}, element), APInt::getLowBitsSet(to, from));
  return g.make<dfg::BitwiseAndOp>({wide, makeConstant(g, mask)});
}

FailureOr<Value> Converter::withSign(Operation *op, unsigned operand, Value value) {
  const unsigned width = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  if (!isUnsigned(op->getOperand(operand)) || width > 32)
    return value;
  Builder g(builder, shapes, op);
  Value wide = widen(g, value, builder.getIntegerType(width == 32 ? 64 : 32));
  if (g.failed())
    return op->emitError() << "operand " << operand << ": " << g.getReason();
  return wide;
}

Value Converter::widenOperand(Builder &g, Operation *op, unsigned operand, Value x, Type element) {
  Type own = Builder::elementOf(x);
  const bool widens = own.isInteger() && element.isInteger() && isUnsigned(op->getOperand(operand));
  return widens ? widen(g, x, element) : g.cast(x, element);
}

Value Converter::asIndices(Builder &g, Operation *op, unsigned operand, Value x) {
  Type own = Builder::elementOf(x);
  if (!own || own.isInteger(64))
    return x;
  // Of 32 bits without a sign no index is so large; where one is, it is as far outside as it was.
  return own.isInteger(32) ? x : widenOperand(g, op, operand, x, g.builder.getI32Type());
}

Converter::Result Converter::compare(Operation *op, Values operands, Builder &g) {
  StringRef direction = getKeyword(op, "comparison_direction");
  Value x = operands[0];
  Type element = Builder::elementOf(x);
  bool isOrder = direction != "EQ" && direction != "NE";
  narrow(g, operands);
  if (getKeyword(op, "compare_type") == "TOTALORDER" && llvm::isa<FloatType>(element)) {
    for (Value &operand : operands)
      operand = orderKey(g, operand, /*isUnsigned=*/false, /*joinsZeros=*/false);
    element = Builder::elementOf(operands[0]);
  }
  if (isOrder && element.isInteger(1))
    for (Value &operand : operands)
      operand = g.cast(operand, g.builder.getI32Type());
  else if (isOrder && isUnsigned(op->getOperand(0)))
    for (Value &operand : operands)
      operand = flipSign(g, operand);
  Type boolean = g.builder.getI1Type();
  Value a = operands[0], b = operands[1];
  if (direction == "EQ")
    return one(g, g.equal(a, b));
  if (direction == "NE")
    return one(g, g.make<dfg::NotEqualOp>({a, b}, {}, boolean));
  if (direction == "LT")
    return one(g, g.less(a, b));
  if (direction == "LE")
    return one(g, g.lessEqual(a, b));
  if (direction == "GT")
    return one(g, g.make<dfg::GreaterOp>({a, b}, {}, boolean));
  if (direction == "GE")
    return one(g, g.make<dfg::GreaterEqualOp>({a, b}, {}, boolean));
  return fail(g, "has no comparison_direction");
}

Converter::Result Converter::extremum(Operation *op, Values operands, Builder &g) {
  bool isMax = op->getName().getStringRef() == "stablehlo.maximum";
  narrow(g, operands);
  return one(g, combine(g, isMax ? Combination::Max : Combination::Min, operands[0], operands[1],
                        isUnsigned(op->getOperand(0))));
}

Value Converter::combine(Builder &g, Combination combination, Value x, Value y, bool isUnsigned) {
  Type element = Builder::elementOf(x);
  bool isBool = element && element.isInteger(1);
  switch (combination) {
  case Combination::Add:
    return isBool ? g.either(x, y) : g.add(x, y);
  case Combination::Mul:
    return isBool ? g.both(x, y) : g.mul(x, y);
  case Combination::Max:
  case Combination::Min: {
    bool isMax = combination == Combination::Max;
    if (isBool)
      return isMax ? g.either(x, y) : g.both(x, y);
    if (isUnsigned) {
      x = flipSign(g, x);
      y = flipSign(g, y);
    }
    Value result = isMax ? g.maximum(x, y) : g.minimum(x, y);
    return isUnsigned ? flipSign(g, result) : result;
  }
  case Combination::And:
    return isBool ? g.both(x, y) : g.make<dfg::BitwiseAndOp>({x, y});
  case Combination::Or:
    return isBool ? g.either(x, y) : g.make<dfg::BitwiseOrOp>({x, y});
  case Combination::Xor:
    return isBool ? g.make<dfg::NotEqualOp>({x, y}, {}, element) : g.make<dfg::BitwiseXorOp>({x, y});
  case Combination::Assign:
    return y;
  }
  return {};
}

Converter::Result Converter::bitwise(Operation *op, Values operands, Builder &g) {
  auto combination = llvm::StringSwitch<Combination>(op->getName().getStringRef())
                         .Case("stablehlo.add", Combination::Add)
                         .Case("stablehlo.multiply", Combination::Mul)
                         .Case("stablehlo.and", Combination::And)
                         .Case("stablehlo.or", Combination::Or)
                         .Default(Combination::Xor);
  narrow(g, operands);
  return one(g, combine(g, combination, operands[0], operands[1], false));
}

Converter::Result Converter::invert(Operation *, Values operands, Builder &g) {
  bool isBool = Builder::elementOf(operands[0]).isInteger(1);
  return one(g, isBool ? g.negate(operands[0]) : g.make<dfg::InvertOp>(operands[0]));
}

// ---- Quotients
// -------------------------------------------------------------------------------------------------------

std::optional<Converter::IntegerDivision> Converter::prepareDivision(Builder &g, Operation *op, Values operands) {
  Value x = operands[0], y = operands[1];
  if (isUnsigned(op->getOperand(0))) {
    if (g.elementOf(x).isInteger(64))
      return std::nullopt;
    x = widen(g, x, g.builder.getI64Type());
    y = widen(g, y, g.builder.getI64Type());
  }
  std::optional<APInt> divisor = getSplatInt(op->getOperand(1));
  if (divisor && !divisor->isZero())
    return IntegerDivision{x, y, {}};
  Value isZero = g.equal(y, g.scalar(g.elementOf(y), 0));
  return IntegerDivision{x, g.select(isZero, g.scalar(g.elementOf(y), 1), y), isZero};
}

std::pair<Value, Value> Converter::divideUnsigned(Builder &g, Value x, Value y) {
  Type element = Builder::elementOf(x);
  Value zero = g.scalar(element, 0), one = g.scalar(element, 1);
  auto isLess = [&](Value a, Value b) { return g.less(flipSign(g, a), flipSign(g, b)); };
  Value positive = g.select(g.equal(y, zero), one, y);
  // A divisor of the upper half goes in once or not at all.
  Value isUpper = g.less(y, zero), divisor = g.select(isUpper, one, positive);
  Value mask =
      makeConstant(g, DenseElementsAttr::get(RankedTensorType::get({}, element), APInt::getSignedMaxValue(64)));
  Value half = g.make<dfg::BitwiseAndOp>({g.make<dfg::RightShiftOp>({x, one}), mask});
  Value quotient = g.make<dfg::LeftShiftOp>({g.make<dfg::DivOp>({half, divisor}), one});
  Value isShort = isLess(g.sub(x, g.mul(quotient, divisor)), divisor);
  quotient = g.select(isShort, quotient, g.add(quotient, one));
  quotient = g.select(isUpper, g.select(isLess(x, y), zero, one), quotient);
  // What divides by zero gives the largest number and leaves all.
  Value isZero = g.equal(y, zero);
  Value rest = g.sub(x, g.mul(quotient, positive));
  return {g.select(isZero, g.scalar(element, -1), quotient), g.select(isZero, x, rest)};
}

Converter::Result Converter::divide(Operation *op, Values operands, Builder &g) {
  Type element = Builder::elementOf(operands[0]);
  narrow(g, operands);
  if (llvm::isa<FloatType>(element))
    return one(g, g.div(operands[0], operands[1]));
  std::optional<IntegerDivision> division = prepareDivision(g, op, operands);
  if (!division)
    return one(g, divideUnsigned(g, operands[0], operands[1]).first);
  Value quotient = g.make<dfg::DivOp>({division->x, division->y});
  if (division->isZero)
    quotient = g.select(division->isZero, g.scalar(Builder::elementOf(quotient), -1), quotient);
  return one(g, g.cast(quotient, element));
}

/// x % y of a shape's arithmetic where it is x: where |x| < y, for every batch or from some number of examples on,
/// which the batch must then have. So is what `jnp.roll` along the batch begins with.
bool Converter::isOwnRemainder(Value x, Value y) {
  auto a = shapes.getElements(x), b = shapes.getElements(y);
  if (!a || !b || a->size() != 1 || b->size() != 1)
    return false;
  const Dim of = a->front(), by = b->front();
  auto isLess = [](Dim less, Dim more) { return max(less + Dim(1), more) == more; };
  if (by.dependsOnBatch() && isLess(of, by) && isLess(Dim(0) - of, by))
    return true;
  if (!of.isConstant() || !by.dependsOnBatch() || by.getScale() < 0)
    return false;
  const APInt size = APInt(64, of.getConstant(), /*isSigned=*/true).abs();
  if (size.uge(INT32_MAX))
    return false;
  const int64_t missing = size.getSExtValue() + 1 - by.getOffset();
  if (graph)
    needExamples(graph, llvm::divideCeilSigned(missing, by.getScale()) * dfg::getBatchMultiple(graph));
  return true;
}

void Converter::needExamples(dfg::GraphOp of, int64_t count) {
  graph = of;
  if (graph && count > dfg::getSmallestBatch(graph))
    graph.setSmallestBatch(count);
}

Converter::Result Converter::remainder(Operation *op, Values operands, Builder &g) {
  Type element = Builder::elementOf(operands[0]);
  if (llvm::isa<IntegerType>(element) && isOwnRemainder(operands[0], operands[1]))
    return one(g, operands[0]);
  narrow(g, operands);
  if (llvm::isa<FloatType>(element))
    return one(g, g.make<dfg::ModOp>(operands));
  std::optional<IntegerDivision> division = prepareDivision(g, op, operands);
  if (!division)
    return one(g, divideUnsigned(g, operands[0], operands[1]).second);
  Value rest = g.make<dfg::ModOp>({division->x, division->y});
  if (division->isZero)
    rest = g.select(division->isZero, division->x, rest);
  return one(g, g.cast(rest, element));
}

Converter::Result Converter::countBits(Operation *op, Values operands, Builder &g) {
  Value x = operands[0];
  Type element = Builder::elementOf(x);
  if (!llvm::isa<IntegerType>(element) || element.isInteger(1))
    return fail(g, "counts the bits of what is no integer");
  const int64_t width = element.getIntOrFloatBitWidth();
  const bool leading = op->getName().getStringRef() == "stablehlo.count_leading_zeros";
  // Ones from the first one on; with a sign, which a shift to the right repeats, that is all of them.
  for (int64_t by = 1; leading && by < width; by *= 2)
    x = g.make<dfg::BitwiseOrOp>({x, g.make<dfg::RightShiftOp>({x, g.scalar(element, by)})});
  Type byte = g.builder.getIntegerType(8, /*isSigned=*/false);
  // Of bytes, too, the counts are other values than what they are cast to.
  Value counts = g.cast(g.make<dfg::PopulationCountOp>({x}, {}, byte), g.builder.getI32Type());
  Value ones = g.cast(counts, element);
  return one(g, leading ? g.sub(g.scalar(element, width), ones) : ones);
}

Converter::Result Converter::shift(Operation *op, Values operands, Builder &g) {
  Type element = Builder::elementOf(operands[0]);
  int64_t width = element.getIntOrFloatBitWidth();
  StringRef kind = op->getName().getStringRef();
  std::optional<APInt> known = getSplatInt(op->getOperand(1));
  narrow(g, operands);
  Value x = operands[0], by = operands[1];
  Value isInside;
  if (!known || known->uge(width)) {
    // By as many bits as there are, or more, nothing is left: for the processor that is no shift at all.
    isInside = g.both(g.lessEqual(g.scalar(element, 0), by), g.less(by, g.scalar(element, width)));
    by = g.select(isInside, by, g.scalar(element, 0));
  }
  Value shifted, beyond = g.scalar(element, 0);
  if (kind == "stablehlo.shift_left") {
    shifted = g.make<dfg::LeftShiftOp>({x, by});
  } else {
    shifted = g.make<dfg::RightShiftOp>({x, by});
    if (kind == "stablehlo.shift_right_arithmetic") {
      beyond = g.make<dfg::RightShiftOp>({x, g.scalar(element, width - 1)});
    } else {
      // Without the copies of the sign.
      Value sign =
          makeConstant(g, DenseElementsAttr::get(RankedTensorType::get({}, element), APInt::getSignMask(width)));
      Value copies = g.make<dfg::LeftShiftOp>({g.make<dfg::RightShiftOp>({sign, by}), g.scalar(element, 1)});
      shifted = g.make<dfg::BitwiseAndOp>({shifted, g.make<dfg::InvertOp>(copies)});
    }
  }
  return one(g, isInside ? g.select(isInside, shifted, beyond) : shifted);
}

// ---- Conversions ---------------------------------------------------------------------------------------------------

Value Converter::saturate(Builder &g, Value x, Type to, bool isUnsigned) {
  if (Builder::elementOf(x).getIntOrFloatBitWidth() < 32) // which hold no bound of wider integers
    x = g.cast(x, g.builder.getF32Type());
  Type from = Builder::elementOf(x), wide = g.builder.getI64Type();
  const int width = static_cast<int>(to.getIntOrFloatBitWidth());
  const double beyond = std::ldexp(1.0, isUnsigned ? width : width - 1), least = isUnsigned ? 0 : -beyond;
  Value held;
  if (width == 64) {
    APInt most = APInt::getSignedMaxValue(64);
    Value largest = makeConstant(g, DenseElementsAttr::get(RankedTensorType::get({}, wide), most));
    held = g.select(g.lessEqual(g.scalar(from, beyond), x), largest, g.cast(x, wide));
  } else {
    Value near = g.make<dfg::MinimumOp>({g.make<dfg::MaximumOp>({x, g.scalar(from, least)}), g.scalar(from, beyond)});
    held = g.cast(g.make<dfg::MinimumOp>({g.cast(near, wide), g.scalar(wide, beyond - 1)}), to);
  }
  return g.select(g.make<dfg::IsNanOp>(x, {}, g.builder.getI1Type()), g.scalar(to, 0), held);
}

Converter::Result Converter::convertElements(Operation *op, Values operands, Builder &g) {
  Value x = operands[0];
  Type from = Builder::elementOf(x), to = elementOfResult(op);
  if (auto it = narrowed.find(x); it != narrowed.end() && from != to) {
    // Made narrow as well, and wide again where it is asked for.
    Value narrow = g.cast(it->second, to), wide = g.cast(x, to);
    narrowed[wide] = narrow;
    if (!isUnsigned(op->getOperand(0)) && !isUnsigned(op->getResult(0)))
      return one(g, wide);
  }
  bool fromUnsigned = isUnsigned(op->getOperand(0)), toUnsigned = isUnsigned(op->getResult(0));
  bool fromFloat = llvm::isa<FloatType>(from), toFloat = llvm::isa<FloatType>(to);
  if (fromUnsigned && from.isInteger(64) && toFloat) {
    // Half of a number of 64 bits has a sign; its last bit still says to which side the number is rounded.
    Value one64 = g.scalar(from, 1);
    APInt most = APInt::getSignedMaxValue(64);
    Value mask = makeConstant(g, DenseElementsAttr::get(RankedTensorType::get({}, from), most));
    Value half = g.make<dfg::BitwiseAndOp>({g.make<dfg::RightShiftOp>({x, one64}), mask});
    Value sticky = g.make<dfg::BitwiseOrOp>({half, g.make<dfg::BitwiseAndOp>({x, one64})});
    Value large = g.mul(g.cast(sticky, to), g.scalar(to, 2));
    return one(g, g.select(g.less(x, g.scalar(from, 0)), large, g.cast(x, to)));
  }
  if (fromUnsigned && toFloat)
    return one(g, g.cast(widen(g, x, g.builder.getI64Type()), to));
  if (fromUnsigned)
    return one(g, widen(g, x, to));
  if (fromFloat && toUnsigned && to.isInteger(64))
    return fail(g, "converts floats to unsigned integers of 64 bits");
  if (fromFloat && to.isInteger() && !to.isInteger(1))
    return one(g, saturate(g, x, to, toUnsigned));
  return one(g, g.cast(x, to));
}

Converter::Result Converter::bitcastConvert(Operation *op, Values operands, Builder &g) {
  Type from = Builder::elementOf(operands[0]), to = elementOfResult(op);
  const auto as = [&](Value x, Type element) {
    return Builder::elementOf(x) == element ? x : g.make<dfg::BitcastOp>(x, {}, element);
  };
  const int64_t fromBits = from.getIntOrFloatBitWidth(), toBits = to.getIntOrFloatBitWidth();
  if (fromBits == toBits)
    return one(g, as(operands[0], to));
  if (std::min(fromBits, toBits) < 8 || std::max(fromBits, toBits) % std::min(fromBits, toBits))
    return fail(g, "takes elements for others whose size neither is a part nor a multiple of theirs");
  // The parts of the larger ones, lowest bits first, stand along a last axis of the smaller ones.
  FailureOr<Dims> shape = g.getShape(operands[0]);
  if (failed(shape))
    return failure();
  const auto axis = static_cast<int64_t>(shape->size()) - 1;
  Type smallInts = g.builder.getIntegerType(std::min(fromBits, toBits)),
       largeInts = g.builder.getIntegerType(std::max(fromBits, toBits));
  const int64_t bits = smallInts.getIntOrFloatBitWidth(), count = largeInts.getIntOrFloatBitWidth() / bits;
  if (fromBits > toBits) {
    Value whole = as(operands[0], largeInts);
    SmallVector<Value> parts;
    for (int64_t part = 0; part < count; ++part)
      parts.push_back(as(g.cast(g.make<dfg::RightShiftOp>({whole, g.scalar(largeInts, part * bits)}), smallInts), to));
    return one(g, g.pack(parts, axis + 1));
  }
  if (axis < 0 || (*shape)[axis] != Dim(count))
    return fail(g, "takes elements for larger ones, and has no last axis of their parts");
  Value wide = widen(g, as(operands[0], smallInts), largeInts);
  Value whole;
  for (int64_t part = 0; part < count; ++part) {
    Value number = g.make<dfg::SqueezeOp>(g.slice(wide, axis, part, 1),
                                          g.attribute("squeeze_dims", g.builder.getI64ArrayAttr({axis})));
    Value placed = part == 0 ? number : g.make<dfg::LeftShiftOp>({number, g.scalar(largeInts, part * bits)});
    whole = part == 0 ? placed : g.make<dfg::BitwiseOrOp>({whole, placed});
  }
  return one(g, as(whole, to));
}

// ---- Choices --------------------------------------------------------------------------------------------------------

Converter::Result Converter::select(Operation *, Values operands, Builder &g) {
  // The condition may be a scalar, which no broadcast made.
  Values values = {operands[1], operands[2]};
  narrow(g, values);
  FailureOr<Dims> condition = g.getShape(operands[0]);
  if (failed(condition))
    return failure();
  // Where nothing but the condition has the shape of the result, it must keep it.
  bool isWide = !narrowed.contains(operands[1]) || !narrowed.contains(operands[2]);
  Value chosen = operands[0];
  if (auto it = narrowed.find(chosen); it != narrowed.end() && isWide)
    chosen = it->second;
  if (!isWide && !condition->empty())
    values = {narrowed.lookup(operands[1]), narrowed.lookup(operands[2])};
  return one(g, g.select(chosen, values[0], values[1]));
}

Converter::Result Converter::clamp(Operation *op, Values operands, Builder &g) {
  const bool natural = isUnsigned(op->getOperand(1));
  Value low = operands[0], x = operands[1], high = operands[2];
  for (Value *bound : {&low, &high})
    if (auto it = narrowed.find(*bound); it != narrowed.end())
      *bound = it->second;
  return one(g, combine(g, Combination::Min, combine(g, Combination::Max, x, low, natural), high, natural));
}

// ---- Functions that no node computes alone ------------------------------------------------------------------------

Converter::Result Converter::cbrt(Operation *, Values operands, Builder &g) {
  Value x = operands[0];
  Value root = g.pow(g.make<dfg::AbsOp>(x), g.scalar(Builder::elementOf(x), 1.0 / 3.0));
  return one(g, g.mul(g.make<dfg::SignOp>(x), root));
}

Converter::Result Converter::roundAwayFromZero(Operation *, Values operands, Builder &g) {
  Value x = operands[0], size = g.make<dfg::AbsOp>(x);
  Value whole = g.make<dfg::FloorOp>(size);
  Value isUp = g.lessEqual(g.scalar(Builder::elementOf(x), 0.5), g.sub(size, whole));
  Value rounded = g.add(whole, g.cast(isUp, Builder::elementOf(x)));
  return one(g, g.mul(g.make<dfg::SignOp>(x), rounded));
}

/// Rounds to a format of fewer bits and back. `jax.checkpoint` with a policy rounds to the type's own, which changes
/// nothing. What the format has no normal number for is zero.
Converter::Result Converter::reducePrecision(Operation *op, Values operands, Builder &g) {
  Value x = operands[0];
  auto own = llvm::dyn_cast<FloatType>(Builder::elementOf(x));
  const int64_t exponentBits = getInt(op, "exponent_bits"), mantissaBits = getInt(op, "mantissa_bits");
  auto isFormat = [&](FloatType type) {
    const llvm::fltSemantics &format = type.getFloatSemantics();
    return APFloat::semanticsPrecision(format) == mantissaBits + 1 &&
           APFloat::semanticsMaxExponent(format) == (int64_t(1) << (exponentBits - 1)) - 1;
  };
  if (!own || exponentBits < 1 || exponentBits > 11)
    return fail(g, "reduces the precision of what is no float, or to no float's");
  if (isFormat(own))
    return one(g, g.make<dfg::IdentityOp>(x));
  FloatType narrow;
  for (FloatType type :
       {FloatType(g.builder.getBF16Type()), FloatType(g.builder.getF16Type()), FloatType(g.builder.getF32Type())})
    if (isFormat(type) && (own.isF32() || (own.isF64() && type.isF32())))
      narrow = type;
  if (!narrow)
    return fail(g, "rounds to another format than bfloat16's, half's or float32's");
  Value rounded = g.cast(g.cast(x, narrow), own);
  const int64_t least = APFloat::semanticsMinExponent(narrow.getFloatSemantics());
  if (least != APFloat::semanticsMinExponent(own.getFloatSemantics())) {
    Value isNormal = g.lessEqual(g.scalar(own, std::ldexp(1.0, least)), g.make<dfg::AbsOp>(rounded));
    Value isNumber = g.equal(rounded, rounded);
    rounded = g.select(g.both(isNumber, g.negate(isNormal)), g.mul(rounded, g.scalar(own, 0.0)), rounded);
  }
  return one(g, rounded);
}

Converter::Result Converter::customCall(Operation *op, Values operands, Builder &g) {
  StringRef target = getText(op, "call_target_name");
  // What a shape must be, shape inference has proven or refuses where it is used.
  if (target == "shape_assertion")
    return Values();
  if (target == "mhlo.erf")
    return one(g, g.make<dfg::ErfOp>(operands[0]));
  if (target == "mhlo.topk")
    return topK(op, std::move(operands), g);
  if (target == "ApproxTopK")
    return approximateTopK(op, std::move(operands), g);
  if (target == "stablehlo.dynamic_reduce_window")
    return cumulate(op, std::move(operands), g);
  if (target == "stablehlo.dynamic_rng_bit_generator")
    return operands.size() == 2 ? drawBits(op, std::move(operands), g) : fail(g, "lacks operands");
  if (Form form = findLibraryCall(target); form.handler) {
    // What follows are sizes of results.
    if (operands.size() < static_cast<size_t>(form.operands))
      return fail(g, "lacks operands");
    return (this->*form.handler)(op, std::move(operands), g);
  }
  // Indices that end the program where one is outside of [0, size): a gather from 0, 1, 2, ... gives and checks them.
  if (target == "distc.index") {
    int64_t size = 0;
    if (operands.size() != 1 || getText(op, "backend_config").getAsInteger(10, size) || size < 1)
      return fail(g, "does not say how many there are to choose from");
    Value indices = asIndices(g, op, 0, operands[0]);
    Value all = g.make<dfg::RangeOp>({g.integer(0), g.integer(size), g.integer(1)});
    return one(g, g.cast(g.gather(g.cast(all, Builder::elementOf(indices)), indices, 0), elementOfResult(op)));
  }
  // Where values should be kept, which the strategy says here.
  if (operands.size() == op->getNumResults())
    return operands;
  return fail(g, "calls '" + target + "', for which there is no code");
}

} // namespace distc::stablehlo
