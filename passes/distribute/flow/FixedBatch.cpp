//===- FixedBatch.cpp - A batch that the graph has as a number ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/FixedBatch.h"
#include "dialects/dfg/Numbers.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "dialects/dist/Dist.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/flow/AlikeRows.h"
#include "passes/distribute/flow/BatchAxis.h"
#include "passes/distribute/flow/TermCounts.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;

namespace distc {
namespace {

/// How far back the ranges of numbers are followed.
constexpr int kMaxDepth = 64;

bool isElementwise(Operation *op) { return llvm::isa<dfg::ScalarInterface>(op); }

/// The operands that the result's rows are made of, if rows they have.
SmallVector<unsigned> getRowOperands(Operation *op) {
  if (isElementwise(op) || op->hasTrait<dfg::Joins>())
    return llvm::to_vector(llvm::seq<unsigned>(0, op->getNumOperands()));
  if (llvm::isa<dfg::SplitOp>(op))
    return {1};
  const bool keepsRows =
      op->hasTrait<dfg::Reduces>() || op->hasTrait<dfg::Reshapes>() ||
      (op->hasTrait<dfg::TakesPart>() && !op->hasTrait<dfg::Gathers>()) ||
      llvm::isa<dfg::SoftmaxOp, dfg::LogSoftmaxOp, dfg::MatMulOp, dfg::TransposeOp, dist::RescaleOp>(op);
  return keepsRows ? SmallVector<unsigned>{0} : SmallVector<unsigned>();
}

/// Where op, the gradient of a slice, has the rows of its operand among zeros.
std::optional<int64_t> findBegin(Operation *op, const dfg::ShapeContext &shapes) {
  if (llvm::isa<dfg::PadOp>(op)) {
    auto paddings = shapes.getConstants(op->getOperand(1));
    return paddings && !paddings->empty() ? std::optional(paddings->front()) : std::nullopt;
  }
  if (!llvm::isa<dfg::StridedSliceGradOp>(op))
    return std::nullopt;
  auto sizes = shapes.getElements(op->getOperand(0)), begin = shapes.getElements(op->getOperand(1)),
       end = shapes.getElements(op->getOperand(2));
  auto strides = shapes.getConstants(op->getOperand(3));
  if (!sizes || !begin || !end || !strides)
    return std::nullopt;
  auto slice = dfg::shapes::resolveStridedSlice(op, *sizes, *begin, *end, *strides);
  if (!slice || slice->resultAxes.empty() || slice->resultAxes.front() != 0 || slice->stride[0] != 1 ||
      !slice->begin[0].isConstant())
    return std::nullopt;
  return slice->begin[0].getConstant();
}

/// The number that all elements of a constant are.
std::optional<double> getSplatNumber(dfg::ConstOp constant) {
  auto splat = llvm::dyn_cast<SplatElementsAttr>(constant.getValue());
  if (!splat)
    return std::nullopt;
  if (llvm::isa<FloatType>(splat.getElementType())) {
    APFloat value = splat.getSplatValue<APFloat>();
    bool loses = false;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &loses);
    return value.convertToDouble();
  }
  if (splat.getElementType().isInteger())
    return static_cast<double>(splat.getSplatValue<APInt>().getSExtValue());
  return std::nullopt;
}

/// Whether op's result is the number that its operand is: one that goes on unchanged, or as a type that holds it.
bool keepsNumber(Operation *op) {
  if (op->hasTrait<dfg::Forwards>())
    return true;
  if (!llvm::isa<dfg::CastOp>(op))
    return false;
  Type from = getElementTypeOrSelf(op->getOperand(0)), to = getElementTypeOrSelf(op->getResult(0));
  return !to.isInteger(1) && !(llvm::isa<FloatType>(from) && to.isInteger());
}

/// Whether op's result `number`, of elements of a constant, has the first of them, or of a shape the rows: what is
/// taken of a shape behind its first size is no number of rows.
bool takesFirst(Operation *op, unsigned number, const dfg::ShapeContext &shapes) {
  if (llvm::isa<dfg::UnpackOp, dfg::SplitOp, dfg::SplitVOp>(op))
    return number == 0;
  if (!op->hasTrait<dfg::TakesPart>())
    return true;
  auto from = shapes.getConstants(op->getOperand(1));
  return from && llvm::is_contained(*from, 0);
}

std::optional<int64_t> countElements(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? std::optional<int64_t>(type.getNumElements()) : std::nullopt;
}

/// What makes `value` of `number` copies of each element of something, if it does.
Operation *findCopies(Value value, std::optional<double> number) {
  Operation *copies = value.getDefiningOp();
  while (copies && copies->hasTrait<dfg::Forwards>())
    copies = copies->getOperand(0).getDefiningOp();
  if (!number || !copies || !copies->hasTrait<dfg::Repeats>())
    return nullptr;
  auto from = countElements(copies->getOperand(0)), to = countElements(copies->getResult(0));
  return from && to && *from > 0 && *number * *from == *to ? copies : nullptr;
}

} // namespace

bool FixedBatch::isAlikeAlong(Value value, int64_t axis, const dfg::ShapeContext &shapes,
                              ArrayRef<int64_t> segments) const {
  if (AlikeRows(shapes).isAlike(value, axis))
    return true;
  if (segments.size() < 2)
    return false;
  auto runs = llvm::map_to_vector(segments, [&](int64_t segment) { return segment * size; });
  return AlikeRows(shapes, runs).isAlike(value, axis);
}

dfg::Dim FixedBatch::asNumber(dfg::Dim rows) const {
  if (!rows.isKnown() || rows.dependsOnWholeBatch())
    return {};
  return rows.getScale() * size + rows.getOffset();
}

dfg::Dim FixedBatch::asRows(dfg::Dim rows) const {
  const dfg::Dim number = asNumber(rows);
  // Any number is a multiple of one row.
  if (size == 1 || !number.isKnown() || number.getConstant() % size)
    return {};
  return dfg::Dim::batch(number.getConstant() / size);
}

/// Where the rows are the batch's in segments, an operand's have those of its part of the axis: the labels of a batch
/// of real examples and one of made ones, concat([ones, zeros], 0). A part that begins or ends within a segment tells
/// examples from others by their position, which is another one in each share: nothing is noted of it.
void FixedBatch::noteRows(Value value, const dfg::ShapeContext &shapes, ArrayRef<int64_t> segments) {
  SmallVector<std::pair<Value, SmallVector<int64_t>>> worklist = {{value, llvm::to_vector(segments)}};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    auto [rows, parts] = worklist.pop_back_val();
    Operation *op = rows.getDefiningOp();
    auto sizes = shapes.getShape(rows);
    if (!op || !seen.insert(rows).second || !sizes || sizes->empty() || !sizes->front().isConstant())
      continue;
    const int64_t count = sizes->front().getConstant();
    // One row is that of all, but where a replica has one.
    if (count <= 0 || count % size || (count == 1 && !drawsRows(op)))
      continue;
    auto frontOf = [&](Value operand) {
      auto of = shapes.getShape(operand);
      return of && !of->empty() && of->front().isConstant() ? of->front().getConstant() : 0;
    };
    auto isOneRow = [&](Value operand) {
      auto of = shapes.getShape(operand);
      return of && (of->size() < sizes->size() || of->front() == dfg::Dim(1));
    };
    const bool isConstant = llvm::isa<dfg::ConstOp>(op), isAlike = isConstant && isAlikeAlong(rows, 0, shapes);
    // One row is alike in any segment.
    const bool isInSegments = isConstant && size > 1 && !isAlike && isAlikeAlong(rows, 0, shapes, parts);
    bool makes = drawsRows(op) || llvm::isa<dfg::FillOp>(op) || isAlike || isInSegments ||
                 (llvm::isa<dfg::TileOp, dfg::BroadcastToOp>(op) && isOneRow(op->getOperand(0)));
    if (makes) {
      if (makers.insert(op).second) {
        learned = true;
        if (isInSegments)
          segmented[op].assign(parts.begin(), parts.end());
      }
      continue;
    }
    if (llvm::isa<dfg::ConcatV2Op>(op) && shapes.getConstant(op->getOperands().back()) == 0) {
      auto joined = op->getOperands().drop_back();
      if (!llvm::all_of(joined, [&](Value operand) { return frontOf(operand) > 0 && frontOf(operand) % size == 0; }))
        continue;
      int64_t begin = 0;
      for (Value operand : joined) {
        const int64_t own = frontOf(operand) / size;
        if (auto of = cutRuns(parts, begin, own))
          worklist.emplace_back(operand, std::move(*of));
        begin += own;
      }
      continue;
    }
    if (llvm::isa<dfg::PadOp, dfg::StridedSliceGradOp>(op)) {
      Value sliced = op->getOperand(llvm::isa<dfg::PadOp>(op) ? 0 : 4);
      auto begin = findBegin(op, shapes);
      if (!begin || *begin % size || frontOf(sliced) <= 0 || frontOf(sliced) % size)
        continue;
      if (auto of = cutRuns(parts, *begin / size, frontOf(sliced) / size))
        worklist.emplace_back(sliced, std::move(*of));
      continue;
    }
    // Copies along other axes.
    if (llvm::isa<dfg::TileOp, dfg::BroadcastToOp>(op)) {
      auto of = shapes.getShape(op->getOperand(0));
      if (of && of->size() == sizes->size() && frontOf(op->getOperand(0)) == count)
        worklist.emplace_back(op->getOperand(0), parts);
      continue;
    }
    if (op->hasTrait<dfg::Reshapes>() && isRowsOfReshape(op->getOperand(0), shapes)) {
      const bool keepsRows = frontOf(op->getOperand(0)) == count;
      worklist.emplace_back(op->getOperand(0), keepsRows ? parts : SmallVector<int64_t>());
      continue;
    }
    for (unsigned operand : getRowOperands(op))
      if (frontOf(op->getOperand(operand)) == count)
        worklist.emplace_back(op->getOperand(operand), parts);
  }
}

/// Whether the first axis of what is reshaped to rows of the batch is the batch's: of all axes it alone may be.
bool FixedBatch::isRowsOfReshape(Value value, const dfg::ShapeContext &shapes) const {
  auto sizes = shapes.getShape(value);
  auto isMultiple = [&](dfg::Dim dim) { return dim.isConstant() && dim.getConstant() % size == 0; };
  return sizes && !sizes->empty() && llvm::all_of(*sizes, [](dfg::Dim dim) { return dim.isConstant(); }) &&
         isMultiple(sizes->front()) && llvm::none_of(ArrayRef(*sizes).drop_front(), isMultiple);
}

SmallVector<Operation *> FixedBatch::findUnseenDraws(Block &block, const dfg::ShapeContext &shapes) const {
  auto countRows = [&](Value value) -> int64_t {
    auto sizes = shapes.getShape(value);
    if (!sizes || sizes->empty() || !sizes->front().isConstant())
      return 0;
    const int64_t count = sizes->front().getConstant();
    // Any number is a multiple of one row.
    return count % size || (size == 1 && count != 1) ? 0 : count;
  };
  llvm::SetVector<Operation *> unseen;
  llvm::DenseMap<Value, SmallVector<Operation *, 2>> drawnFor; // the draws that the rows of a value are made of
  for (Operation &op : block) {
    if (drawsRows(&op) && !makesRows(&op) && countRows(op.getResult(0)) > 0) {
      unseen.insert(&op);
      drawnFor[op.getResult(0)] = {&op};
      continue;
    }
    // Something else that has these rows, as a variable or its gradient, where op combines them, element by element.
    auto meetsOthers = [&](Value drawn) {
      const int64_t rank = shapes.getShape(drawn)->size(), count = countRows(drawn);
      return isElementwise(&op) && llvm::any_of(op.getOperands(), [&](Value operand) {
               auto sizes = shapes.getShape(operand);
               const int64_t axis = sizes ? static_cast<int64_t>(sizes->size()) - rank : -1;
               return axis >= 0 && (*sizes)[axis] == dfg::Dim(count) && !drawnFor.contains(operand) &&
                      !isOfConstants(operand) && !isAlikeAlong(operand, axis, shapes);
             });
    };
    llvm::SetVector<Operation *> draws;
    for (unsigned number : getRowOperands(&op)) {
      Value operand = op.getOperand(number);
      auto it = drawnFor.find(operand);
      if (it == drawnFor.end())
        continue;
      if (meetsOthers(operand))
        for (Operation *draw : it->second)
          unseen.remove(draw);
      else if (op.getNumResults() > 0 && countRows(op.getResult(0)) == countRows(operand))
        draws.insert_range(it->second);
    }
    if (!draws.empty())
      drawnFor[op.getResult(0)].assign(draws.begin(), draws.end());
    // A random matrix by which features are multiplied: its rows are features.
    if (auto matmul = llvm::dyn_cast<dfg::MatMulOp>(op); matmul && !matmul.getTransposeA() && !matmul.getTransposeB())
      if (auto it = drawnFor.find(op.getOperand(1)); it != drawnFor.end())
        for (Operation *draw : it->second)
          unseen.remove(draw);
  }
  return unseen.takeVector();
}

void FixedBatch::noteSummedRows(Value divisor, const dfg::ShapeContext &shapes) {
  Operation *op = divisor.getDefiningOp();
  while (op && (op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::CastOp>(op)))
    op = op->getOperand(0).getDefiningOp();
  if (op && op->hasTrait<dfg::SumsRows>() && isAlikeAlong(op->getOperand(0), 0, shapes))
    noteRows(op->getOperand(0), shapes);
}

Value FixedBatch::getConstant(Value value) const {
  while (Operation *op = value.getDefiningOp()) {
    if (!keepsNumber(op))
      break;
    value = op->getOperand(0);
  }
  return isOfConstants(value) ? value : Value();
}

bool FixedBatch::isOfConstants(Value value) const {
  return value.getDefiningOp<dfg::ConstOp>() || computed.contains(value);
}

bool FixedBatch::mayBeRows(Value constant) const {
  auto it = computed.find(constant);
  return it == computed.end() || it->second.mayBeRows;
}

std::optional<double> FixedBatch::getNumber(Value constant) const {
  if (!constant)
    return std::nullopt;
  if (auto op = constant.getDefiningOp<dfg::ConstOp>())
    return getSplatNumber(op);
  return computed.lookup(constant).number;
}

/// Whether `op` takes the first number of a constant vector, a multiple of `size`: as of tf.shape of what has that many
/// rows, which TensorFlow writes as a constant.
static bool takesRows(Operation *op, int64_t size) {
  if (!op->hasTrait<dfg::TakesPart>())
    return false;
  auto shape = dfg::getWhole(op).getDefiningOp<dfg::ConstOp>();
  auto sizes = shape ? llvm::dyn_cast<DenseIntElementsAttr>(shape.getValue()) : DenseIntElementsAttr();
  if (!sizes || sizes.getType().getRank() != 1 || sizes.getNumElements() == 0)
    return false;
  const int64_t rows = (*sizes.value_begin<APInt>()).getSExtValue();
  return rows > 0 && rows % size == 0;
}

/// Whether the first element of a vector of constants may be a number of rows.
bool FixedBatch::hasRowsFirst(Value vector) const {
  if (auto it = computed.find(vector); it != computed.end())
    return it->second.hasRowsFirst;
  auto shape = vector.getDefiningOp<dfg::ConstOp>();
  auto sizes = shape ? llvm::dyn_cast<DenseIntElementsAttr>(shape.getValue()) : DenseIntElementsAttr();
  if (!sizes || sizes.getType().getRank() != 1 || sizes.getNumElements() == 0)
    return false;
  const int64_t rows = (*sizes.value_begin<APInt>()).getSExtValue();
  return rows > 0 && rows % size == 0;
}

/// Of constants alone, and of no size of the batch: that one is known to be one, or was found to be by what it meets.
void FixedBatch::noteComputed(Operation *op, const dfg::ShapeContext &shapes) {
  for (Value result : op->getResults())
    computed.erase(result);
  if (llvm::isa<dfg::ConstOp>(op) || op->getNumOperands() == 0 || op->getNumRegions() > 0 || !isMemoryEffectFree(op) ||
      op->hasTrait<dfg::DrawsNumbers>() || makesRows(op) || !llvm::all_of(op->getOperands(), [&](Value operand) {
        return isOfConstants(operand) && !makesRows(operand.getDefiningOp());
      }))
    return;
  bool mayHaveRows = false, isTaken = takesRows(op, size);
  const bool takes = op->hasTrait<dfg::TakesPart>();
  const bool ofVector = takes && hasRowsFirst(dfg::getWhole(op));
  bool isOfRows = isTaken || ofVector || (op->hasTrait<dfg::Reduces>() && hasRowsFirst(op->getOperand(0)));
  for (Value operand : op->getOperands())
    if (auto it = computed.find(operand); it != computed.end()) {
      isTaken |= it->second.isTaken;
      isOfRows |= it->second.isOfRows || (it->second.hasRowsFirst && !takes && !isElementwise(op));
    }
  const bool keepsFirst = !isOfRows && isElementwise(op) &&
                          llvm::any_of(op->getOperands(), [&](Value operand) { return hasRowsFirst(operand); });
  for (OpOperand &operand : op->getOpOperands())
    if (!isParameterOperand(op, operand.getOperandNumber()))
      mayHaveRows |= mayBeRows(operand.get());
  for (OpResult result : op->getResults()) {
    auto elements = shapes.getElements(result);
    if (elements && llvm::any_of(*elements, [](dfg::Dim element) { return element.dependsOnBatch(); }))
      continue;
    std::optional<double> number = dfg::evaluateNumber(result, shapes);
    const bool isSpread = op->hasTrait<dfg::Repeats>() || op->hasTrait<dfg::Reshapes>();
    if (!number && (isSpread || op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::FillOp>(op)))
      number = getNumber(op->getOperand(llvm::isa<dfg::FillOp>(op) ? 1 : 0));
    const bool isFirst = takesFirst(op, result.getResultNumber(), shapes);
    // Where a replica has one row, what counts it shows in nothing.
    // What is taken behind the first element of a shape is no number of rows.
    computed[result] = {number, size > 1 && mayHaveRows && isFirst, isTaken && isFirst,
                        isOfRows && (isFirst || !ofVector), keepsFirst};
  }
}

std::optional<int> FixedBatch::getScale(Value value) const {
  Value constant = getConstant(value);
  if (!constant)
    return 0;
  if (size > 1 && counted.contains(constant))
    return 1;
  if (shared.contains(constant))
    return -1;
  // What else is computed of such a number is of no power of it: rows - 1, a root.
  SmallVector<Value> worklist = {constant};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!seen.insert(next).second)
      continue;
    if (counted.contains(next) || shared.contains(next))
      return std::nullopt;
    Operation *op = next.getDefiningOp();
    auto it = computed.find(next);
    if (it == computed.end() || !it->second.mayBeRows)
      continue;
    for (OpOperand &operand : op->getOpOperands())
      if (!isParameterOperand(op, operand.getOperandNumber()))
        if (Value of = getConstant(operand.get()))
          worklist.push_back(of);
  }
  return 0;
}

/// The numbers that `value` is a product of, and whether it is divided by them.
void FixedBatch::collectFactors(Value value, bool divides, SmallVectorImpl<std::pair<Value, bool>> &factors) const {
  Value constant = getConstant(value);
  Operation *op = constant ? constant.getDefiningOp() : nullptr;
  constexpr size_t kMaxFactors = 16;
  if (factors.size() < kMaxFactors && llvm::isa_and_present<dfg::MulOp>(op)) {
    collectFactors(op->getOperand(0), divides, factors);
    collectFactors(op->getOperand(1), divides, factors);
  } else if (factors.size() < kMaxFactors && llvm::isa_and_present<dfg::RealDivOp, dfg::DivNoNanOp>(op)) {
    collectFactors(op->getOperand(0), divides, factors);
    collectFactors(op->getOperand(1), !divides, factors);
  } else if (llvm::isa_and_present<dfg::ReciprocalOp, dfg::InvOp>(op)) {
    collectFactors(op->getOperand(0), !divides, factors);
  } else {
    factors.emplace_back(constant, divides);
  }
}

/// Whether dividing `sum` by `constant` (`isShare`: multiplying) divides it by how many terms it has. Of a product one
/// factor has the batch's size in it, which the others have not: dividing by a product is dividing by one factor after
/// the other, of which that one counts. Either it counts by itself, and the others are numbers of their own, as the 2
/// of 2 * rows, or all of them together count, as steps * rows. Two that may be it leave open which one is, and so
/// does one that is on the other side of the fraction.
/// The factor is the batch's size wherever else it stands.
bool FixedBatch::countsTerms(Value constant, Value sum, bool isShare, AxisOf axisOf) {
  auto whole = getNumber(constant);
  if (!whole || *whole <= 0)
    return false;
  SmallVector<std::pair<Value, bool>> factors;
  collectFactors(constant, isShare, factors);
  auto isCounted = [&](double number) { return isCount(sum, number, axisOf); };
  const double number = isShare ? 1 / *whole : *whole;
  if (factors.size() == 1)
    return mayBeRows(constant) && isCounted(number);
  std::optional<double> rows;
  Value rowsFactor;
  for (auto [factor, divides] : factors) {
    auto of = getNumber(factor);
    if (!of || *of <= 0)
      return false;
    const double multiple = *of / static_cast<double>(size);
    const bool hasRows = std::round(multiple) >= 1 && isNear(multiple, std::round(multiple));
    const double inverse = 1 / (*of * static_cast<double>(size));
    const bool isInverse = isNear(inverse, std::round(inverse)) && std::round(inverse) >= 1;
    if (!mayBeRows(factor) || (!hasRows && !isInverse))
      continue;
    if (rows || isInverse || divides)
      return false;
    rows = *of;
    rowsFactor = factor;
  }
  if (!rows || (!isCounted(number) && !isCounted(*rows)))
    return false;
  learned |= counted.insert(rowsFactor).second;
  return true;
}

bool FixedBatch::isCount(Value sum, double number, AxisOf axisOf) const {
  TermCounts counts = TermCounter(size, axisOf).count(sum);
  counts.ofRows.insert(size);
  counts.others.erase(1);
  // As many classes, or pixels in a row, as there are examples: by which of them it divides cannot be seen.
  return counts.isOfRows(number);
}

void FixedBatch::noteCount(Value sum, Value divisor, AxisOf axisOf) {
  if (Value constant = getConstant(divisor); constant && countsTerms(constant, sum, /*isShare=*/false, axisOf))
    learned |= counted.insert(constant).second;
}

void FixedBatch::noteShare(Value sum, Value factor, AxisOf axisOf) {
  // A half is a factor of squares first, and then of two rows.
  Value constant = getConstant(factor);
  if (constant && getNumber(constant) != 0.5 && countsTerms(constant, sum, /*isShare=*/true, axisOf))
    learned |= shared.insert(constant).second;
}

void FixedBatch::noteCopies(Value dividend, Value divisor, const dfg::ShapeContext &shapes) {
  Value constant = getConstant(divisor);
  Operation *copies = findCopies(dividend, getNumber(constant));
  if (!copies || !mayBeRows(constant) || !makesRows(copies) ||
      !isAlongBatch(copies->getOperand(0), copies->getResult(0)))
    return;
  learned |= counted.insert(constant).second;
  learned |= ofCopies.insert(constant).second;
}

/// Whether 0.5, 1 or 2 may be computed of the size of a batch of a few rows: half of four, or one less than two.
/// Gradients begin with a factor of 1.
bool FixedBatch::isOfFewRows(Operation *op, double number) const {
  constexpr int64_t kFew = 4;
  return std::abs(number) == 1 ? size <= 2 && op->hasTrait<dfg::Divides>() : size <= kFew;
}

/// Whether `op` multiplies by the 2 of the gradient of a square, of which the other factor is the root or what arrives.
bool FixedBatch::isOfGradient(Operation *op, Value two) const {
  if (!llvm::isa<dfg::MulOp>(op))
    return false;
  Value other = op->getOperand(op->getOperand(0) == two ? 1 : 0);
  auto isSquared = [](Operation *user) { return llvm::isa<dfg::SquareOp>(user); };
  if (llvm::any_of(other.getUsers(), isSquared))
    return true;
  // The exponent itself.
  auto isExponent = [&](OpOperand &use) {
    return llvm::isa<dfg::PowOp>(use.getOwner()) && use.getOperandNumber() == 1;
  };
  if (llvm::any_of(two.getUses(), isExponent))
    return true;
  // Times a difference that is squared elsewhere.
  auto isDifference = [](Value value) {
    auto sub = value.getDefiningOp<dfg::SubOp>();
    return sub && llvm::any_of(sub->getOperand(0).getUsers(), [&](Operation *user) {
             return llvm::isa<dfg::SquaredDifferenceOp>(user) && user->getOperand(0) == sub->getOperand(0) &&
                    user->getOperand(1) == sub->getOperand(1);
           });
  };
  return llvm::any_of(op->getUsers(), [&](Operation *user) {
    return llvm::isa<dfg::MulOp>(user) && llvm::any_of(user->getOperands(), isDifference);
  });
}

bool FixedBatch::mayCount(Operation *op, Value value) const {
  Value constant = getConstant(value);
  if (!constant || counts(value) || isShare(value))
    return false;
  auto number = getNumber(constant);
  // Of what is computed of sizes these are as good as any other.
  const bool isGradients = number && (std::abs(*number) == 0.5 || std::abs(*number) == 1 || std::abs(*number) == 2);
  if (isGradients && !computed.contains(constant) && (!isOfFewRows(op, *number) || isOfGradient(op, value)))
    return false;
  return llvm::none_of(op->getOperands(), [&](Value other) { return findCopies(other, number); });
}

bool FixedBatch::isOfBatch(Value value) const {
  auto number = getNumber(getConstant(value));
  if (!number || *number == 0)
    return true;
  const double multiple = std::abs(*number) / static_cast<double>(size), inverse = 1 / (multiple * size * size);
  auto isMultiple = [](double x) { return std::round(x) >= 1 && isNear(x, std::round(x)); };
  return isMultiple(multiple) || isMultiple(inverse);
}

void FixedBatch::noteOtherTerms(Value sum, Value divisor, AxisOf axisOf) {
  Value constant = getConstant(divisor);
  if (auto number = getNumber(constant); number && TermCounter(size, axisOf).count(sum).contains(std::llround(*number)))
    learned |= ambiguous.insert(constant).second;
}

/// The constant that `value` is, if its magnitude `is` so and it was not seen to count terms.
Operation *FixedBatch::findNumber(Value value, llvm::function_ref<bool(double)> is, int64_t fewest) const {
  Value constant = getConstant(value);
  if (size < fewest || !constant || counted.contains(constant) || shared.contains(constant))
    return nullptr;
  auto number = getNumber(constant);
  return number && *number != 0 && is(std::abs(*number)) ? constant.getDefiningOp() : nullptr;
}

Operation *FixedBatch::findCount(Value value) const {
  Value constant = getConstant(value);
  return constant && counted.contains(constant) ? constant.getDefiningOp() : nullptr;
}

Operation *FixedBatch::findTaken(Value value) const {
  Value constant = getConstant(value);
  auto it = constant ? computed.find(constant) : computed.end();
  if (it == computed.end() || !it->second.isTaken || counted.contains(constant) || shared.contains(constant) ||
      ofCopies.contains(constant) || makesRows(constant.getDefiningOp()))
    return nullptr;
  return constant.getDefiningOp();
}

/// What `value`, which is computed of constants, may be where the first size of a shape is any number of times it.
dfg::NumberRange FixedBatch::getRange(Value value, int depth) const {
  Operation *op = value.getDefiningOp();
  auto it = computed.find(value);
  std::optional<double> number = getNumber(value);
  if (it == computed.end() || !it->second.isOfRows)
    return number && !hasRowsFirst(value) ? dfg::NumberRange::of(*number) : dfg::NumberRange();
  if (takesRows(op, size))
    return number && *number > 0 ? dfg::NumberRange{*number} : dfg::NumberRange();
  if (depth == 0)
    return {};
  return dfg::inferNumberRange(op, [&](Value operand) { return getRange(operand, depth - 1); });
}

Operation *FixedBatch::findDecision(Value predicate) const {
  Value constant = getConstant(predicate);
  auto it = constant ? computed.find(constant) : computed.end();
  return it != computed.end() && it->second.isOfRows && !getRange(constant, kMaxDepth).isOne()
             ? constant.getDefiningOp()
             : nullptr;
}

Operation *FixedBatch::findSize(Value value) const {
  const auto rows = static_cast<double>(size);
  return findNumber(value, [&](double x) { return isNear(x, rows) || isNear(1 / x, rows); });
}

Operation *FixedBatch::findRows(Operation *op, Value value) const {
  // Of two rows every square's gradient has their number.
  return isOfGradient(op, value)
             ? nullptr
             : findNumber(value, [&](double x) { return isNear(x, static_cast<double>(size)); }, /*fewest=*/2);
}

bool FixedBatch::addsCopies(Operation *op, const dfg::ShapeContext &shapes) const {
  constexpr int64_t kFewest = 4;
  if (size < kFewest || !llvm::isa<dfg::SumOp>(op) || isComputed(op))
    return false;
  Value terms = op->getOperand(0);
  auto sizes = shapes.getShape(terms);
  auto axes = shapes.getConstants(op->getOperand(1));
  if (!sizes || sizes->empty() || !sizes->front().isConstant() || !axes)
    return false;
  const int64_t rank = sizes->size(), rows = sizes->front().getConstant();
  return rows == size && llvm::any_of(*axes, [&](int64_t axis) { return axis == 0 || axis == -rank; }) &&
         isAlikeAlong(terms, 0, shapes);
}

Operation *FixedBatch::findSampleSize(Value value) const {
  if (Operation *taken = findTaken(value))
    return taken;
  const auto rows = static_cast<double>(size);
  return findNumber(value,
                    [&](double x) { return isNear(x, rows) || isNear(x, rows - 1) || isNear(x, rows / (rows - 1)); });
}

/// Whether `copies` has rows of the batch where `value` has one: as many features as there are examples are copied
/// along another axis.
bool FixedBatch::isAlongBatch(Value value, Value copies) const {
  ArrayRef<int64_t> from = llvm::cast<RankedTensorType>(value.getType()).getShape(),
                    to = llvm::cast<RankedTensorType>(copies.getType()).getShape();
  const size_t added = to.size() - from.size();
  auto isCopied = [&](size_t axis) { return axis < added || (from[axis - added] == 1 && to[axis] != 1); };
  if (to.empty())
    return false;
  // Rows are the first axis where they can be.
  if (to.front() % size == 0)
    return isCopied(0);
  bool along = false;
  for (size_t axis = 1; axis < to.size(); ++axis) {
    if (to[axis] % size)
      continue;
    if (!isCopied(axis))
      return false;
    along = true;
  }
  return along;
}

} // namespace distc
