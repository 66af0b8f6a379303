//===- LowerRoutines.cpp - Nodes that are routines of the runtime's library --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Generators.h"
#include "dialects/drt/Drt.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/lower/entries/EntryLowering.h"
#include "passes/lower/program/ProgramTables.h"
#include "runtime/include/drt/drt.h"
#include "runtime/include/drt/random_state.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace distc::lower {
namespace {

SmallVector<Value> callRoutine(EntryLowering &lowering, Location loc, StringRef name, ArrayRef<int64_t> parameters,
                               ValueRange operands, TypeRange results) {
  auto routine =
      drt::RoutineOp::create(lowering.builder, loc, results, name, parameters, operands, DenseI64ArrayAttr());
  return SmallVector<Value>(routine->result_begin(), routine->result_end());
}

LogicalResult refuseElements(Operation *op, Type element) {
  op->emitError() << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect()
                  << ") has no code for elements of type " << element;
  return failure();
}

// ---- Sorting ----------------------------------------------------------------------------------

LogicalResult lowerTopK(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> values = getStaticType(op, 0), indices = getStaticType(op, 1);
  if (failed(values) || failed(indices))
    return failure();
  Location loc = op->getLoc();
  if (isEmpty(*values)) {
    lowering.set(op->getResult(0), lowering.empty(loc, *values));
    lowering.set(op->getResult(1), lowering.empty(loc, *indices));
    return success();
  }
  Type element = values->getElementType(), index = indices->getElementType();
  if (!index.isInteger(32) && !index.isInteger(64))
    return refuseElements(op, index);
  // Of narrow types what they are in wider ones: the order is the same.
  Type wide = element;
  if (isNarrowFloat(element))
    wide = lowering.builder.getF32Type();
  else if (element.isInteger() && !element.isInteger(64))
    wide = lowering.builder.getI32Type();
  Value input = lowering.cast(loc, lowering.get(op->getOperand(0)), wide);
  int64_t columns = typeOf(input).getShape().back(), rows = typeOf(input).getNumElements() / columns;
  auto results =
      callRoutine(lowering, loc, "top_k", {getDtype(wide), rows, columns, values->getShape().back(), getDtype(index)},
                  input, {values->clone(wide), *indices});
  lowering.set(op->getResult(0), lowering.cast(loc, results[0], element));
  lowering.set(op->getResult(1), results[1]);
  return success();
}

// ---- Matrices ------------------------------------------------------------------------------------

bool isSet(Operation *op, StringRef name) {
  auto attribute = op->getAttrOfType<BoolAttr>(name);
  return attribute && attribute.getValue();
}

/// A routine on matrices: dtype and number of matrices, then `parameters`. Results that the node leaves without
/// elements are none of the routine's.
LogicalResult lowerMatrices(EntryLowering &lowering, Operation *op, ArrayRef<int64_t> parameters) {
  Location loc = op->getLoc();
  Type element = getElementTypeOrSelf(op->getOperand(0).getType()),
       wide = isNarrowFloat(element) ? Type(lowering.builder.getF32Type()) : element;
  if (!wide.isF32() && !wide.isF64())
    return refuseElements(op, element);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Value value = lowering.get(operand);
    if (isEmpty(typeOf(value))) {
      op->emitError() << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect()
                      << ") has no code for tensors without elements";
      return failure();
    }
    operands.push_back(typeOf(value).getElementType() == element ? lowering.cast(loc, value, wide) : value);
  }
  SmallVector<Type> types;
  SmallVector<OpResult> written;
  for (OpResult result : op->getResults()) {
    FailureOr<RankedTensorType> type = getStaticType(op, result.getResultNumber());
    if (failed(type))
      return failure();
    if (isEmpty(*type)) {
      lowering.set(result, lowering.empty(loc, *type));
      continue;
    }
    types.push_back(type->getElementType() == element ? type->clone(wide) : *type);
    written.push_back(result);
  }
  SmallVector<int64_t> numbers = {getDtype(wide), llvm::product_of(typeOf(operands[0]).getShape().drop_back(2))};
  llvm::append_range(numbers, parameters);
  auto results = callRoutine(lowering, loc, op->getName().stripDialect(), numbers, operands, types);
  for (auto [result, value] : llvm::zip(written, results))
    lowering.set(result, lowering.cast(loc, value, getElementTypeOrSelf(result.getType())));
  return success();
}

int64_t sizeAt(EntryLowering &lowering, Operation *op, unsigned operand, int64_t fromBack) {
  ArrayRef<int64_t> shape = typeOf(lowering.get(op->getOperand(operand))).getShape();
  return shape[shape.size() - fromBack];
}

LogicalResult lowerSquare(EntryLowering &lowering, Operation *op) {
  SmallVector<int64_t> parameters = {sizeAt(lowering, op, 0, 1)};
  if (llvm::isa<dfg::MatrixInverseOp>(op))
    parameters.push_back(isSet(op, "adjoint"));
  return lowerMatrices(lowering, op, parameters);
}

LogicalResult lowerSolve(EntryLowering &lowering, Operation *op) {
  SmallVector<int64_t> parameters = {sizeAt(lowering, op, 1, 2), sizeAt(lowering, op, 1, 1)};
  if (llvm::isa<dfg::MatrixTriangularSolveOp>(op))
    parameters.push_back(isSet(op, "lower"));
  parameters.push_back(isSet(op, "adjoint"));
  return lowerMatrices(lowering, op, parameters);
}

/// Of matrices that need not be square: rows and columns, then `parameters`.
LogicalResult lowerRectangular(EntryLowering &lowering, Operation *op, ArrayRef<int64_t> parameters = {}) {
  SmallVector<int64_t> numbers = {sizeAt(lowering, op, 0, 2), sizeAt(lowering, op, 0, 1)};
  llvm::append_range(numbers, parameters);
  return lowerMatrices(lowering, op, numbers);
}

LogicalResult lowerTridiagonalSolve(EntryLowering &lowering, Operation *op) {
  if (isSet(op, "perturb_singular")) {
    op->emitError() << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect()
                    << ") has no code for perturb_singular";
    return failure();
  }
  return lowerMatrices(lowering, op, {sizeAt(lowering, op, 1, 2), sizeAt(lowering, op, 1, 1)});
}

LogicalResult lowerQr(EntryLowering &lowering, Operation *op) {
  return lowerRectangular(lowering, op, isSet(op, "full_matrices"));
}

LogicalResult lowerSelfAdjointEig(EntryLowering &lowering, Operation *op) {
  return lowerMatrices(lowering, op, {sizeAt(lowering, op, 0, 1), isSet(op, "compute_v")});
}

LogicalResult lowerSvd(EntryLowering &lowering, Operation *op) {
  return lowerRectangular(lowering, op, {isSet(op, "compute_uv"), isSet(op, "full_matrices")});
}

LogicalResult lowerLu(EntryLowering &lowering, Operation *op) {
  Type index = getElementTypeOrSelf(op->getResult(1).getType());
  if (!index.isInteger(32) && !index.isInteger(64))
    return refuseElements(op, index);
  return lowerRectangular(lowering, op, getDtype(index));
}

LogicalResult lowerHouseholder(EntryLowering &lowering, Operation *op) {
  if (llvm::isa<dfg::HouseholderFactorsOp>(op))
    return lowerRectangular(lowering, op);
  return lowerRectangular(lowering, op, sizeAt(lowering, op, 1, 1));
}

LogicalResult lowerSolveLs(EntryLowering &lowering, Operation *op) {
  return lowerRectangular(lowering, op, {sizeAt(lowering, op, 1, 1), isSet(op, "fast")});
}

// ---- Boxes --------------------------------------------------------------------------------------

LogicalResult lowerNonMaxSuppression(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> indices = getStaticType(op, 0);
  if (failed(indices))
    return failure();
  Location loc = op->getLoc();
  Type f32 = lowering.builder.getF32Type();
  // Of narrow types TensorFlow computes overlaps in them.
  if (Type element = getElementTypeOrSelf(op->getOperand(0).getType()); element != f32)
    return refuseElements(op, element);
  const int64_t boxes = typeOf(lowering.get(op->getOperand(1))).getNumElements();
  if (isEmpty(*indices) || boxes == 0) {
    op->emitError() << "node '" << dfg::getNodeName(op) << "' selects none of " << boxes << " boxes";
    return failure();
  }
  auto number = [&](unsigned operand, double otherwise) -> Value {
    if (operand < op->getNumOperands())
      return lowering.cast(loc, lowering.get(op->getOperand(operand)), f32);
    auto type = RankedTensorType::get({}, f32);
    return arith::ConstantOp::create(lowering.builder, loc,
                                     DenseElementsAttr::get(type, static_cast<float>(otherwise)));
  };
  auto threshold = op->getAttrOfType<FloatAttr>("iou_threshold");
  auto i32 = RankedTensorType::get({}, lowering.builder.getI32Type());
  auto results = callRoutine(lowering, loc, "non_max_suppression",
                             {boxes, indices->getNumElements(), llvm::isa<dfg::NonMaxSuppressionWithOverlapsOp>(op),
                              isSet(op, "pad_to_max_output_size")},
                             {lowering.get(op->getOperand(0)), lowering.get(op->getOperand(1)),
                              number(3, threshold ? threshold.getValueAsDouble() : 0.5),
                              number(4, std::numeric_limits<float>::lowest()), number(5, 0)},
                             {*indices, indices->clone(f32), i32});
  lowering.set(op->getResult(0), results[0]);
  const unsigned count = op->getNumResults();
  if (count == 3)
    lowering.set(op->getResult(1), results[1]);
  if (count > 1)
    lowering.set(op->getResult(count - 1), results[2]);
  return success();
}

/// The types of all results. Fails with a diagnostic where a size is not known.
FailureOr<SmallVector<Type>> getStaticTypes(Operation *op) {
  SmallVector<Type> types;
  for (OpResult result : op->getResults()) {
    FailureOr<RankedTensorType> type = getStaticType(op, result.getResultNumber());
    if (failed(type))
      return failure();
    types.push_back(*type);
  }
  return types;
}

bool isNone(Type type) { return isEmpty(llvm::cast<RankedTensorType>(type)); }

/// The types of all results, which the routine writes. Fails with a diagnostic where one has no elements, or an
/// operand.
FailureOr<SmallVector<Type>> getRoutineTypes(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getStaticTypes(op);
  if (failed(types))
    return failure();
  if (llvm::any_of(*types, isNone) ||
      llvm::any_of(op->getOperands(), [&](Value operand) { return isNone(lowering.get(operand).getType()); }))
    return op->emitError() << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect()
                           << ") has no code for tensors without elements";
  return types;
}

void setResults(EntryLowering &lowering, Operation *op, ArrayRef<Value> values) {
  for (auto [result, value] : llvm::zip(op->getResults(), values))
    lowering.set(result, lowering.cast(op->getLoc(), value, getElementTypeOrSelf(result.getType())));
}

LogicalResult lowerCombinedNonMaxSuppression(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getRoutineTypes(lowering, op);
  if (failed(types))
    return failure();
  ArrayRef<int64_t> scores = typeOf(lowering.get(op->getOperand(1))).getShape();
  IntegerAttr perClass = llvm::dyn_cast_or_null<IntegerAttr>(EntryLowering::getSplat(lowering.get(op->getOperand(2))));
  if (!perClass)
    return op->emitError() << "node '" << dfg::getNodeName(op)
                           << "' selects a number of boxes of a class that depends on the data";
  const int64_t classes = typeOf(lowering.get(op->getOperand(0))).getShape()[2];
  const SmallVector<int64_t> parameters = {scores[0],
                                           scores[1],
                                           classes,
                                           scores[2],
                                           perClass.getInt(),
                                           llvm::cast<RankedTensorType>((*types)[1]).getShape()[1],
                                           isSet(op, "clip_boxes")};
  setResults(lowering, op,
             callRoutine(lowering, op->getLoc(), "combined_non_max_suppression", parameters,
                         {lowering.get(op->getOperand(0)), lowering.get(op->getOperand(1)),
                          lowering.get(op->getOperand(4)), lowering.get(op->getOperand(5))},
                         *types));
  return success();
}

// ---- Sequences --------------------------------------------------------------------------------

LogicalResult lowerCtcGreedyDecoder(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getRoutineTypes(lowering, op);
  if (failed(types))
    return failure();
  Value inputs = lowering.get(op->getOperand(0));
  Type element = typeOf(inputs).getElementType();
  if (!element.isF32() && !element.isF64())
    return refuseElements(op, element);
  SmallVector<int64_t> parameters = {getDtype(element)};
  llvm::append_range(parameters, typeOf(inputs).getShape());
  const int64_t blank = op->getAttrOfType<IntegerAttr>("blank_index").getInt();
  parameters.append({isSet(op, "merge_repeated"), blank < 0 ? parameters.back() + blank : blank});
  setResults(lowering, op,
             callRoutine(lowering, op->getLoc(), "ctc_greedy_decoder", parameters,
                         {inputs, lowering.get(op->getOperand(1))}, *types));
  return success();
}

LogicalResult lowerEditDistance(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getRoutineTypes(lowering, op);
  if (failed(types))
    return failure();
  SmallVector<Value> operands;
  for (unsigned operand : {0, 1, 3, 4}) {
    Value value = lowering.get(op->getOperand(operand));
    if (Type element = typeOf(value).getElementType(); !element.isSignlessInteger())
      return refuseElements(op, element);
    operands.push_back(lowering.cast(op->getLoc(), value, lowering.builder.getI64Type()));
  }
  ArrayRef<int64_t> sizes = llvm::cast<RankedTensorType>(types->front()).getShape();
  SmallVector<int64_t> parameters = {static_cast<int64_t>(sizes.size()), typeOf(operands[1]).getNumElements(),
                                     typeOf(operands[3]).getNumElements(), isSet(op, "normalize")};
  llvm::append_range(parameters, sizes);
  setResults(lowering, op, callRoutine(lowering, op->getLoc(), "edit_distance", parameters, operands, *types));
  return success();
}

LogicalResult lowerIsotonicRegression(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getRoutineTypes(lowering, op);
  if (failed(types))
    return failure();
  auto type = llvm::cast<RankedTensorType>(types->front());
  if (!type.getElementType().isF32() && !type.getElementType().isF64())
    return refuseElements(op, type.getElementType());
  Value rows = lowering.cast(op->getLoc(), lowering.get(op->getOperand(0)), type.getElementType());
  const int64_t columns = type.getShape().back();
  setResults(lowering, op,
             callRoutine(lowering, op->getLoc(), "isotonic_regression",
                         {getDtype(type.getElementType()), type.getNumElements() / columns, columns}, rows, *types));
  return success();
}

// ---- Rows of sparse tensors -------------------------------------------------------------------------

LogicalResult lowerSparseBlock(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getRoutineTypes(lowering, op);
  if (failed(types))
    return failure();
  SmallVector<Value> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return lowering.get(operand); });
  SmallVector<int64_t> parameters(typeOf(operands[0]).getShape());
  if (llvm::isa<dfg::SparseBlockRowsOp>(op))
    parameters.push_back(typeOf(operands[2]).getDimSize(0));
  setResults(lowering, op,
             callRoutine(lowering, op->getLoc(), op->getName().stripDialect(), parameters, operands, *types));
  return success();
}

// ---- Pools of windows that are drawn -------------------------------------------------------------------

/// Parameters of both: dtype, images, their rows, columns and channels, rows and columns of windows.
SmallVector<int64_t> getWindows(RankedTensorType images, RankedTensorType pooled) {
  ArrayRef<int64_t> sizes = images.getShape(), windows = pooled.getShape();
  return {getDtype(images.getElementType()), sizes[0], sizes[1], sizes[2], sizes[3], windows[1], windows[2]};
}

LogicalResult lowerFractionalWindows(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getRoutineTypes(lowering, op);
  if (failed(types))
    return failure();
  auto type = llvm::cast<RankedTensorType>(types->front());
  if (!type.getElementType().isF32() && !type.getElementType().isF64())
    return refuseElements(op, type.getElementType());
  SmallVector<Value> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return lowering.get(operand); });
  const bool isMaxGradient = llvm::isa<dfg::FractionalMaxPoolGradOp>(op),
             isGradient = isMaxGradient || llvm::isa<dfg::FractionalAvgGradOp>(op);
  if (isMaxGradient)
    operands.erase(operands.begin() + 1); // the result of the pool, which the routine computes again
  auto windows = isGradient ? typeOf(operands[isMaxGradient ? 1 : 0]) : type;
  SmallVector<int64_t> parameters = getWindows(isGradient ? type : typeOf(operands[0]), windows);
  parameters.push_back(isSet(op, "overlapping"));
  setResults(lowering, op,
             callRoutine(lowering, op->getLoc(), op->getName().stripDialect(), parameters, operands, *types));
  return success();
}

// ---- Losses of sequences --------------------------------------------------------------------------------

LogicalResult lowerCtcLoss(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> losses = getStaticType(op, 0), gradients = getStaticType(op, 1);
  if (failed(losses) || failed(gradients))
    return failure();
  if (!losses->getElementType().isF32() && !losses->getElementType().isF64())
    return refuseElements(op, losses->getElementType());
  if (isEmpty(*gradients)) {
    lowering.set(op->getResult(0), lowering.empty(op->getLoc(), *losses));
    lowering.set(op->getResult(1), lowering.empty(op->getLoc(), *gradients));
    return success();
  }
  SmallVector<Value> operands = {lowering.get(op->getOperand(0))};
  for (Value whole : op->getOperands().drop_front())
    operands.push_back(lowering.cast(op->getLoc(), lowering.get(whole), lowering.builder.getI32Type()));
  SmallVector<int64_t> parameters = {getDtype(losses->getElementType())};
  llvm::append_range(parameters, gradients->getShape());
  parameters.push_back(typeOf(operands[1]).getShape().back());
  for (StringRef flag : {"preprocess_collapse_repeated", "ctc_merge_repeated", "ignore_longer_outputs_than_inputs"})
    parameters.push_back(isSet(op, flag));
  setResults(lowering, op,
             callRoutine(lowering, op->getLoc(), "ctc_loss", parameters, operands, {*losses, *gradients}));
  return success();
}

// ---- Candidates and permutations -----------------------------------------------------------------

/// Where the generator of `op`, which goes on by `positions` then, is.
Value reservePositions(EntryLowering &lowering, Operation *op, int64_t positions) {
  OpBuilder &builder = lowering.builder;
  auto number = [&](StringRef name) { return op->getAttrOfType<IntegerAttr>(name).getInt(); };
  auto scalar = RankedTensorType::get({}, builder.getI64Type());
  Value reserved = arith::ConstantOp::create(builder, op->getLoc(),
                                             DenseElementsAttr::get(scalar, builder.getI64IntegerAttr(positions)));
  auto state = drt::RandomOp::create(builder, op->getLoc(), RankedTensorType::get({6}, builder.getI32Type()),
                                     DRT_RANDOM_STATE, number("seed"), number("seed2"), reserved,
                                     /*per_replica=*/false, /*reserved=*/0, DenseI64ArrayAttr());
  if (Attribute generator = op->getAttr(dfg::kGeneratorAttr))
    state->setAttr(dfg::kGeneratorAttr, generator);
  return state;
}

/// What the classes of a fixed distribution weigh: those of this shard, behind the reserved ones, which are never
/// drawn.
FailureOr<SmallVector<float>> getUnigramWeights(Operation *op) {
  auto fail = [&](const Twine &why) {
    op->emitError() << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect() << ") " << why;
    return failure();
  };
  auto sampler = llvm::cast<dfg::FixedUnigramCandidateSamplerOp>(op);
  if (!sampler.getVocabFile().empty())
    return fail("takes its weights of the file " + sampler.getVocabFile() + "; give them as unigrams");
  const int64_t shards = sampler.getNumShards(), shard = sampler.getShard(), classes = sampler.getRangeMax();
  if (shards <= 0 || shard < 0 || shard >= shards)
    return fail("is shard " + Twine(shard) + " of " + Twine(shards));
  SmallVector<float> weights;
  for (int64_t word = 0, reserved = sampler.getNumReservedIds(); word < reserved; ++word)
    if (word % shards == shard)
      weights.push_back(0);
  // As TensorFlow counts them: behind those reserved ones that are the shard's.
  int64_t word = weights.size(), drawn = 0;
  for (Attribute unigram : sampler.getUnigrams()) {
    if (word++ % shards != shard)
      continue;
    const auto weight = static_cast<float>(llvm::cast<FloatAttr>(unigram).getValueAsDouble());
    weights.push_back(std::pow(weight, sampler.getDistortion().convertToFloat()));
    if (!(weights.back() >= 0) || std::isinf(weights.back()))
      return fail("has a weight of " + std::to_string(weight));
    drawn += weights.back() > 0;
  }
  if (static_cast<int64_t>(weights.size()) != classes)
    return fail("has weights of " + Twine(weights.size()) + " classes, and a range of " + Twine(classes));
  if (drawn < (sampler.getUnique() ? static_cast<int64_t>(sampler.getNumSampled()) : 1))
    return fail("has " + Twine(drawn) + " classes that may be drawn");
  return weights;
}

template <int64_t distribution> LogicalResult lowerSampler(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getStaticTypes(op);
  if (failed(types))
    return failure();
  if (llvm::any_of(*types, isNone))
    return op->emitError() << "node '" << dfg::getNodeName(op) << "' draws no candidates";
  Location loc = op->getLoc();
  auto number = [&](StringRef name) { return op->getAttrOfType<IntegerAttr>(name).getInt(); };
  // TensorFlow's kernel reserves 2048 words for a candidate, whatever it uses.
  Value state = reservePositions(lowering, op, number("num_sampled") * (2048 / 4));
  Value classes = lowering.get(op->getOperand(0));
  SmallVector<Value> operands = {state, classes};
  if (distribution == 2) {
    FailureOr<SmallVector<float>> weights = getUnigramWeights(op);
    if (failed(weights))
      return failure();
    auto type = RankedTensorType::get(static_cast<int64_t>(weights->size()), lowering.builder.getF32Type());
    operands.push_back(
        arith::ConstantOp::create(lowering.builder, loc, DenseElementsAttr::get(type, ArrayRef(*weights))));
  }
  setResults(lowering, op,
             callRoutine(lowering, loc, "sample_candidates",
                         {distribution, typeOf(classes).getNumElements(), number("num_sampled"), number("range_max"),
                          isSet(op, "unique")},
                         operands, *types));
  return success();
}

/// TensorFlow's kernel takes a word for each row but the last, and reserves whole positions.
LogicalResult lowerPermutation(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  const int64_t count = type->getNumElements();
  if (count == 1) { // there is nothing to draw
    lowering.set(op->getResult(0),
                 arith::ConstantOp::create(lowering.builder, op->getLoc(),
                                           DenseElementsAttr::get(*type, lowering.builder.getI32IntegerAttr(0))));
    return success();
  }
  Value state = reservePositions(lowering, op, llvm::divideCeil(count - 1, 4));
  lowering.set(op->getResult(0),
               callRoutine(lowering, op->getLoc(), "random_permutation", {count}, state, Type(*type)).front());
  return success();
}

LogicalResult lowerShuffledRows(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getRoutineTypes(lowering, op);
  if (failed(types))
    return failure();
  Value words = lowering.get(op->getOperand(0));
  setResults(lowering, op,
             callRoutine(lowering, op->getLoc(), "shuffled_rows", typeOf(words).getNumElements(), words, *types));
  return success();
}

/// Of rows, then of columns: TensorFlow's kernel takes two words, or one for each window, and reserves whole positions.
LogicalResult lowerFractionalSequences(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getRoutineTypes(lowering, op);
  if (failed(types))
    return failure();
  SmallVector<int64_t> parameters;
  for (Attribute size : op->getAttrOfType<ArrayAttr>("sizes"))
    parameters.push_back(llvm::cast<IntegerAttr>(size).getInt());
  const bool isPseudoRandom = isSet(op, "pseudo_random");
  auto positions = [&](int64_t windows) { return isPseudoRandom ? 1 : llvm::divideCeil(windows, 4); };
  const int64_t rows = positions(parameters[2]), columns = positions(parameters[3]);
  parameters.append({isPseudoRandom, rows});
  // Deterministic: the windows of the first step, always.
  Value state = reservePositions(lowering, op, isSet(op, "deterministic") ? 0 : rows + columns);
  setResults(lowering, op, callRoutine(lowering, op->getLoc(), "fractional_sequences", parameters, state, *types));
  return success();
}

LogicalResult lowerAccidentalHits(EntryLowering &lowering, Operation *op) {
  FailureOr<SmallVector<Type>> types = getStaticTypes(op);
  if (failed(types))
    return failure();
  Value classes = lowering.get(op->getOperand(0)), sampled = lowering.get(op->getOperand(1));
  setResults(
      lowering, op,
      callRoutine(lowering, op->getLoc(), "accidental_hits",
                  {typeOf(classes).getDimSize(0), typeOf(classes).getDimSize(1), typeOf(sampled).getNumElements(),
                   llvm::cast<RankedTensorType>(types->front()).getNumElements()},
                  {classes, sampled}, *types));
  return success();
}

// ---- Assertions ---------------------------------------------------------------------------------------

/// A message, and the tensors whose elements are put into it.
class Message {
public:
  Message(EntryLowering &lowering, std::string text) : text(std::move(text)), lowering(lowering) {}

  /// The elements of a tensor, or the text that is known.
  void put(Value value) {
    auto type = llvm::cast<TensorType>(value.getType());
    if (llvm::isa<dfg::StringType>(type.getElementType())) {
      putText(value);
    } else if (Value tensor = lowering.get(value); tensor && !isEmpty(typeOf(tensor))) {
      text += '\1';
      tensors.push_back(tensor);
    }
  }
  void emit(Operation *op, int64_t summarize, bool prints, Value condition) {
    drt::AssertOp::create(lowering.builder, op->getLoc(), text, summarize, prints, condition, tensors);
  }

  std::string text;

private:
  void putText(Value value) {
    if (auto constant = value.getDefiningOp<dfg::ConstOp>()) {
      if (auto strings = llvm::dyn_cast<DenseStringElementsAttr>(constant.getValue()))
        text += llvm::join(strings.getRawStringData(), " ");
    } else if (auto format = value.getDefiningOp<dfg::StringFormatOp>()) {
      auto given = dfg::getSourceAttribute<StringAttr>(format, "template");
      StringRef rest = given ? given.getValue() : format.getPlaceholder();
      for (Value input : format.getInputs()) {
        auto [before, behind] = rest.split(format.getPlaceholder());
        text += before;
        put(input);
        rest = behind;
      }
      text += rest;
    } else {
      text += "(a text that is computed)";
    }
  }

  EntryLowering &lowering;
  SmallVector<Value> tensors;
};

LogicalResult lowerAssert(EntryLowering &lowering, Operation *op) {
  auto assertion = llvm::cast<dfg::AssertOp>(op);
  Value condition = lowering.get(assertion.getCondition());
  TypedAttr known = EntryLowering::getSplat(condition);
  if (!lowering.asserts || (known && llvm::cast<IntegerAttr>(known).getValue().isOne()))
    return success();
  Message message(lowering, ("node '" + dfg::getNodeName(op) + "': assertion failed:").str());
  for (Value data : assertion.getData()) {
    message.text += " [";
    message.put(data);
    message.text += "]";
  }
  message.emit(op, assertion.getSummarize(), /*prints=*/false, condition);
  return success();
}

/// A step begins when all variables are initialized. Whether one is before another's initializer runs is for the graph
/// to say; initializers that ask take the initial value, which both have.
LogicalResult lowerIsInitialized(EntryLowering &lowering, Operation *op) {
  auto entry = op->getParentOfType<dfg::FuncOp>()->getAttrOfType<StringAttr>(dfg::kEntryAttr);
  const bool isStep = !entry || entry.getValue() != "init";
  lowering.set(op->getResult(0),
               lowering.constant(op->getLoc(), RankedTensorType::get({}, lowering.builder.getI1Type()), isStep));
  return success();
}

Value always(EntryLowering &lowering, Location loc) {
  return lowering.constant(loc, RankedTensorType::get({}, lowering.builder.getI1Type()), 1);
}

LogicalResult lowerPrint(EntryLowering &lowering, Operation *op) {
  auto print = llvm::cast<dfg::PrintOp>(op);
  Message message(lowering, print.getMessage().str());
  for (Value data : print.getData()) {
    message.text += "[";
    message.put(data);
    message.text += "]";
  }
  message.emit(op, print.getSummarize(), /*prints=*/true, always(lowering, op->getLoc()));
  lowering.set(op->getResult(0), lowering.get(print.getInput()));
  return success();
}

LogicalResult lowerPrintV2(EntryLowering &lowering, Operation *op) {
  auto format = op->getOperand(0).getDefiningOp<dfg::StringFormatOp>();
  Message message(lowering, "");
  message.put(op->getOperand(0));
  message.emit(op, format ? format.getSummarize() : 3, /*prints=*/true, always(lowering, op->getLoc()));
  return success();
}

/// Read through by those who print it.
LogicalResult lowerStringFormat(EntryLowering &, Operation *) { return success(); }

} // namespace

void addRoutineLowerings(LoweringTable &table, MLIRContext *context) {
  addLowering<dfg::TopKOp>(table, context, lowerTopK);
  addLowering<dfg::TopKV2Op>(table, context, lowerTopK);
  addLowering<dfg::CholeskyOp>(table, context, lowerSquare);
  addLowering<dfg::MatrixInverseOp>(table, context, lowerSquare);
  addLowering<dfg::MatrixDeterminantOp>(table, context, lowerSquare);
  addLowering<dfg::LogMatrixDeterminantOp>(table, context, lowerSquare);
  addLowering<dfg::MatrixSolveOp>(table, context, lowerSolve);
  addLowering<dfg::MatrixTriangularSolveOp>(table, context, lowerSolve);
  addLowering<dfg::TridiagonalSolveOp>(table, context, lowerTridiagonalSolve);
  addLowering<dfg::MatrixSolveLsOp>(table, context, lowerSolveLs);
  addLowering<dfg::MatrixSquareRootOp>(table, context, lowerSquare);
  addLowering<dfg::QrOp>(table, context, lowerQr);
  addLowering<dfg::SelfAdjointEigOp>(table, context, lowerSelfAdjointEig);
  addLowering<dfg::SvdOp>(table, context, lowerSvd);
  addLowering<dfg::LuOp>(table, context, lowerLu);
  addLowering<dfg::LuPivotsOp>(table, context, lowerLu);
  addLowering<dfg::HouseholderFactorsOp>(table, context, lowerHouseholder);
  addLowering<dfg::HouseholderProductOp>(table, context, lowerHouseholder);
  addLowering<dfg::NonMaxSuppressionOp>(table, context, lowerNonMaxSuppression);
  addLowering<dfg::NonMaxSuppressionV2Op>(table, context, lowerNonMaxSuppression);
  addLowering<dfg::NonMaxSuppressionV3Op>(table, context, lowerNonMaxSuppression);
  addLowering<dfg::NonMaxSuppressionV4Op>(table, context, lowerNonMaxSuppression);
  addLowering<dfg::NonMaxSuppressionV5Op>(table, context, lowerNonMaxSuppression);
  addLowering<dfg::NonMaxSuppressionWithOverlapsOp>(table, context, lowerNonMaxSuppression);
  addLowering<dfg::CombinedNonMaxSuppressionOp>(table, context, lowerCombinedNonMaxSuppression);
  addLowering<dfg::CTCGreedyDecoderOp>(table, context, lowerCtcGreedyDecoder);
  addLowering<dfg::EditDistanceOp>(table, context, lowerEditDistance);
  addLowering<dfg::IsotonicRegressionOp>(table, context, lowerIsotonicRegression);
  addLowering<dfg::SparseBlockOp>(table, context, lowerSparseBlock);
  addLowering<dfg::SparseBlockRowsOp>(table, context, lowerSparseBlock);
  addLowering<dfg::FractionalSequencesOp>(table, context, lowerFractionalSequences);
  addLowering<dfg::FractionalMaxOp>(table, context, lowerFractionalWindows);
  addLowering<dfg::FractionalAvgOp>(table, context, lowerFractionalWindows);
  addLowering<dfg::FractionalAvgGradOp>(table, context, lowerFractionalWindows);
  addLowering<dfg::FractionalMaxPoolGradOp>(table, context, lowerFractionalWindows);
  addLowering<dfg::ShuffledRowsOp>(table, context, lowerShuffledRows);
  addLowering<dfg::CtcLossRowsOp>(table, context, lowerCtcLoss);
  addLowering<dfg::UniformCandidateSamplerOp>(table, context, lowerSampler<0>);
  addLowering<dfg::LogUniformCandidateSamplerOp>(table, context, lowerSampler<1>);
  addLowering<dfg::FixedUnigramCandidateSamplerOp>(table, context, lowerSampler<2>);
  addLowering<dfg::RandomPermutationOp>(table, context, lowerPermutation);
  addLowering<dfg::ComputeAccidentalHitsOp>(table, context, lowerAccidentalHits);
  addLowering<dfg::AssertOp>(table, context, lowerAssert);
  addLowering<dfg::IsInitializedOp>(table, context, lowerIsInitialized);
  addLowering<dfg::PrintOp>(table, context, lowerPrint);
  addLowering<dfg::PrintV2Op>(table, context, lowerPrintV2);
  addLowering<dfg::StringFormatOp>(table, context, lowerStringFormat);
}

} // namespace distc::lower
