//===- LowerRandom.cpp - Random numbers: calls of the runtime's generators -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Generators.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "passes/lower/entries/EntryLowering.h"
#include "passes/lower/entries/SplitDraws.h"
#include "runtime/include/drt/drt.h"
#include <cmath>

using namespace mlir;

namespace distc::lower {
namespace {

enum Distribution : int32_t {
  Uniform = DRT_RANDOM_UNIFORM,
  Normal = DRT_RANDOM_NORMAL,
  TruncatedNormal = DRT_RANDOM_TRUNCATED_NORMAL,
  UniformInt = DRT_RANDOM_UNIFORM_INT
};

/// The type of the numbers; fails with a diagnostic where the runtime does not draw such.
template <Distribution distribution> FailureOr<RankedTensorType> getDrawnType(Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  Type element = type->getElementType();
  const bool isDrawn = distribution == UniformInt
                           ? element.isInteger(32) || element.isInteger(64)
                           : element.isF32() || element.isF64() || element.isF16() || element.isBF16();
  if (!isDrawn) {
    op->emitError() << "node '" << dfg::getNodeName(op) << "' draws numbers of type " << element
                    << ", which there is no code for; draw "
                    << (distribution == UniformInt ? "int32 or int64" : "float32 or float64") << " and cast them";
    return failure();
  }
  return type;
}

/// The type that the runtime draws for numbers of type `type`: narrow floats are made of float32.
RankedTensorType getWideType(RankedTensorType type) {
  Type element = type.getElementType();
  return element.isF16() || element.isBF16() ? type.clone(Float32Type::get(type.getContext())) : type;
}

/// Drawn numbers as ones of type `type`. TensorFlow's kernels round normal ones from float32. Uniform ones they make of
/// the lowest bits of the word that a float32 has more of, as many as the mantissa has.
template <Distribution distribution>
Value narrow(EntryLowering &lowering, Location loc, RankedTensorType type, Value drawn) {
  if (drawn.getType() == type)
    return drawn;
  constexpr int kFloatBits = 23;
  const int bits = type.getElementType().isF16() ? 10 : 7;
  return lowering.elementwise(loc, type, drawn, [&](dfg::ScalarBuilder &s, ValueRange x) {
    Value number = x[0];
    if (distribution == Uniform) {
      Value shifted = s.mul(number, s.constant(number.getType(), std::ldexp(1.0, kFloatBits - bits)));
      number = s.floorMod(shifted, s.constant(number.getType(), 1));
    }
    return s.cast(number, type.getElementType());
  });
}

/// Positions that go with the whole result; 0 where each element has its 256.
int64_t getReserved(Operation *op, RankedTensorType type) {
  auto perRow = op->getAttrOfType<IntegerAttr>(dfg::kReservedAttr);
  return perRow ? perRow.getInt() * type.getDimSize(0) : 0;
}

void keepPart(Operation *op, Operation *drawn) {
  for (StringRef name : {kDrawnWholeAttr, kDrawnFirstAttr})
    if (Attribute number = op->getAttr(name))
      drawn->setAttr(name, number);
}

template <Distribution distribution> LogicalResult lowerRandom(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getDrawnType<distribution>(op);
  if (failed(type))
    return failure();
  SmallVector<Value> bounds;
  for (Value bound : op->getOperands().drop_front())
    bounds.push_back(lowering.get(bound));
  auto seed = [&](StringRef name) {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  auto drawn = drt::RandomOp::create(lowering.builder, op->getLoc(), getWideType(*type), distribution, seed("seed"),
                                     seed("seed2"), bounds, op->hasAttr(dist::kSeedAttr), getReserved(op, *type),
                                     DenseI64ArrayAttr());
  if (Attribute generator = op->getAttr(dfg::kGeneratorAttr))
    drawn->setAttr(dfg::kGeneratorAttr, generator);
  keepPart(op, drawn);
  lowering.set(op->getResult(0), narrow<distribution>(lowering, op->getLoc(), *type, drawn));
  return success();
}

/// A seed as the runtime takes it: two int64.
Value getSeed(EntryLowering &lowering, Location loc, Value graphSeed) {
  Value seed = lowering.get(graphSeed);
  Type element = lowering.builder.getI64Type();
  auto type = RankedTensorType::get(llvm::cast<RankedTensorType>(seed.getType()).getShape(), element);
  if (seed.getType() == type)
    return seed;
  return lowering.elementwise(loc, type, seed,
                              [&](dfg::ScalarBuilder &s, ValueRange x) { return s.cast(x[0], element); });
}

/// Operands: shape, seed, bounds.
template <Distribution distribution> LogicalResult lowerStateless(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getDrawnType<distribution>(op);
  if (failed(type))
    return failure();
  Value seed = getSeed(lowering, op->getLoc(), op->getOperand(1));
  SmallVector<Value> bounds;
  for (Value bound : op->getOperands().drop_front(2))
    bounds.push_back(lowering.get(bound));
  auto drawn =
      drt::RandomStatelessOp::create(lowering.builder, op->getLoc(), getWideType(*type), distribution, seed, bounds,
                                     op->hasAttr(dist::kSeedAttr), /*keyed=*/false, DenseI64ArrayAttr());
  keepPart(op, drawn);
  lowering.set(op->getResult(0), narrow<distribution>(lowering, op->getLoc(), *type, drawn));
  return success();
}

/// A key and a counter of two words as the runtime takes them: three int64.
Value joinKeyed(EntryLowering &lowering, Location loc, Value graphKey, Value graphCounter) {
  Value key = lowering.get(graphKey), counter = lowering.get(graphCounter);
  auto type = RankedTensorType::get({3}, lowering.builder.getI64Type());
  return lowering.gather(loc, type, [&](dfg::ScalarBuilder &s, ValueRange indices) {
    Value zero = index(s, 0);
    Value isKey = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::eq, indices[0], zero);
    Value before = arith::SubIOp::create(s.builder, s.loc, indices[0], index(s, 1));
    Value at = arith::SelectOp::create(s.builder, s.loc, isKey, zero, before);
    return arith::SelectOp::create(s.builder, s.loc, isKey, EntryLowering::load(s, key, zero),
                                   EntryLowering::load(s, counter, at))
        .getResult();
  });
}

/// Version 2 takes key and counter: of an operation that makes them of a seed, or as a generator's state has them.
template <Distribution distribution> LogicalResult lowerStatelessV2(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getDrawnType<distribution>(op);
  if (failed(type))
    return failure();
  auto keyCounter = op->getOperand(1).getDefiningOp<dfg::StatelessRandomGetKeyCounterOp>();
  const bool seeded = keyCounter && op->getOperand(2).getDefiningOp() == keyCounter;
  if (!seeded && llvm::cast<RankedTensorType>(lowering.get(op->getOperand(2)).getType()).getNumElements() != 2)
    return op->emitError() << "node '" << dfg::getNodeName(op) << "' draws with a counter "
                           << op->getOperand(2).getType() << "; there is code for that of Philox, of two words";
  Value seed = seeded ? getSeed(lowering, op->getLoc(), keyCounter.getSeed())
                      : joinKeyed(lowering, op->getLoc(), op->getOperand(1), op->getOperand(2));
  // Operands: shape, key, counter, algorithm, bounds.
  SmallVector<Value> bounds;
  for (Value bound : op->getOperands().drop_front(4))
    bounds.push_back(lowering.get(bound));
  auto drawn =
      drt::RandomStatelessOp::create(lowering.builder, op->getLoc(), getWideType(*type), distribution, seed, bounds,
                                     op->hasAttr(dist::kSeedAttr), /*keyed=*/!seeded, DenseI64ArrayAttr());
  keepPart(op, drawn);
  lowering.set(op->getResult(0), narrow<distribution>(lowering, op->getLoc(), *type, drawn));
  return success();
}

/// Read through by its users.
LogicalResult lowerKeyCounter(EntryLowering &, Operation *) { return success(); }

} // namespace

void addRandomLowerings(LoweringTable &table, MLIRContext *context) {
  addLowering<dfg::RandomUniformOp>(table, context, lowerRandom<Uniform>);
  addLowering<dfg::RandomStandardNormalOp>(table, context, lowerRandom<Normal>);
  addLowering<dfg::TruncatedNormalOp>(table, context, lowerRandom<TruncatedNormal>);
  addLowering<dfg::RandomUniformIntOp>(table, context, lowerRandom<UniformInt>);
  addLowering<dfg::StatelessRandomUniformOp>(table, context, lowerStateless<Uniform>);
  addLowering<dfg::StatelessRandomNormalOp>(table, context, lowerStateless<Normal>);
  addLowering<dfg::StatelessTruncatedNormalOp>(table, context, lowerStateless<TruncatedNormal>);
  addLowering<dfg::StatelessRandomUniformIntOp>(table, context, lowerStateless<UniformInt>);
  addLowering<dfg::StatelessRandomUniformFullIntOp>(table, context, lowerStateless<UniformInt>);
  addLowering<dfg::StatelessRandomGetKeyCounterOp>(table, context, lowerKeyCounter);
  addLowering<dfg::StatelessRandomUniformV2Op>(table, context, lowerStatelessV2<Uniform>);
  addLowering<dfg::StatelessRandomNormalV2Op>(table, context, lowerStatelessV2<Normal>);
  addLowering<dfg::StatelessTruncatedNormalV2Op>(table, context, lowerStatelessV2<TruncatedNormal>);
  addLowering<dfg::StatelessRandomUniformIntV2Op>(table, context, lowerStatelessV2<UniformInt>);
  addLowering<dfg::StatelessRandomUniformFullIntV2Op>(table, context, lowerStatelessV2<UniformInt>);
}

} // namespace distc::lower
