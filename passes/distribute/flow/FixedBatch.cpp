//===- FixedBatch.cpp - A batch that the graph has as a number ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/FixedBatch.h"
#include "dialects/dist/Dist.h"
#include "passes/distribute/flow/BatchAxis.h"
#include <cmath>
#include <set>
#include <vector>

using namespace mlir;

namespace distc {
namespace {

/// How far back rows and terms are followed.
constexpr int kMaxDepth = 64;

bool isElementwise(Operation *op) {
  return llvm::isa<dfg::ScalarInterface, dfg::CastOp, dfg::SelectV2Op>(op) || op->hasTrait<dfg::Forwards>();
}

bool makesSplat(Operation *op) {
  if (auto constant = llvm::dyn_cast<dfg::ConstOp>(op))
    return llvm::isa<SplatElementsAttr>(constant.getValue());
  return llvm::isa<dfg::FillOp, dfg::ZerosLikeOp, dfg::OnesLikeOp>(op);
}

/// Answers about values, each found once.
class AlikeRows {
public:
  explicit AlikeRows(const dfg::ShapeContext &shapes) : shapes(shapes) {}

  /// Whether `value` has the same for every index along `axis`, or no such axis.
  bool isAlike(Value value, int64_t axis, int depth) {
    auto [it, isNew] = alike.try_emplace({value, axis}, false);
    if (!isNew)
      return it->second;
    bool found = findAlike(value, axis, depth);
    alike[{value, axis}] = found;
    return found;
  }

private:
  /// Whether all elements of `value` are the same, which moving them does not change.
  bool isSplat(Value value, int depth) {
    auto [it, isNew] = splats.try_emplace(value, false);
    if (!isNew)
      return it->second;
    bool found = findSplat(value, depth);
    splats[value] = found;
    return found;
  }

  bool findSplat(Value value, int depth);
  bool findAlike(Value value, int64_t axis, int depth);

  const dfg::ShapeContext &shapes;
  llvm::DenseMap<std::pair<Value, int64_t>, bool> alike;
  llvm::DenseMap<Value, bool> splats;
};

bool AlikeRows::findSplat(Value value, int depth) {
  Operation *op = value.getDefiningOp();
  if (auto sizes = shapes.getShape(value);
      sizes && llvm::all_of(*sizes, [](dfg::Dim dim) { return dim == dfg::Dim(1); }))
    return true;
  if (!op || depth == 0)
    return false;
  if (makesSplat(op))
    return true;
  auto isSplatToo = [&](Value operand) { return isSplat(operand, depth - 1); };
  if (isElementwise(op))
    return llvm::all_of(op->getOperands(), isSplatToo);
  bool moves = op->hasTrait<dfg::Reshapes>() ||
               llvm::isa<dfg::BroadcastToOp, dfg::TileOp, dfg::TransposeOp, dfg::SliceOp, dfg::StridedSliceOp>(op);
  return moves && isSplatToo(op->getOperand(0));
}

/// The operands that the result's rows are made of, if rows they have.
SmallVector<unsigned> getRowOperands(Operation *op) {
  if (isElementwise(op) || llvm::isa<dfg::PackOp, dfg::ConcatV2Op>(op))
    return llvm::to_vector(llvm::seq<unsigned>(0, op->getNumOperands()));
  if (llvm::isa<dfg::SplitOp>(op))
    return {1};
  bool keepsRows = op->hasTrait<dfg::Reduces>() || op->hasTrait<dfg::Reshapes>() ||
                   llvm::isa<dfg::ZerosLikeOp, dfg::OnesLikeOp, dfg::SoftmaxOp, dfg::LogSoftmaxOp, dfg::SliceOp,
                             dfg::StridedSliceOp, dfg::MatMulOp, dfg::TransposeOp, dfg::UnpackOp, dist::RescaleOp>(op);
  return keepsRows ? SmallVector<unsigned>{0} : SmallVector<unsigned>();
}

/// Whether the rows of a constant along `axis` are alike.
bool areRowsAlike(DenseElementsAttr elements, int64_t axis) {
  // What somebody typed; a table is not.
  constexpr int64_t kMaxElements = 1 << 16;
  if (elements.getNumElements() > kMaxElements)
    return false;
  ArrayRef<int64_t> sizes = elements.getType().getShape();
  int64_t inner = 1, rows = sizes[axis];
  for (int64_t size : sizes.drop_front(axis + 1))
    inner *= size;
  auto values = elements.getValues<Attribute>();
  for (int64_t i = 0, count = elements.getNumElements(); i < count; ++i)
    if (int64_t first = i / (inner * rows) * (inner * rows) + i % inner; values[i] != values[first])
      return false;
  return true;
}

std::optional<int64_t> normalize(std::optional<int64_t> axis, int64_t rank) {
  return axis && *axis < 0 ? *axis + rank : axis;
}

bool AlikeRows::findAlike(Value value, int64_t axis, int depth) {
  auto sizes = shapes.getShape(value);
  if (!sizes)
    return false;
  const int64_t rank = sizes->size();
  if (axis < 0 || (axis < rank && (*sizes)[axis] == dfg::Dim(1)))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || axis >= rank || depth == 0)
    return false;
  if (isSplat(value, depth))
    return true;
  auto isOperandAlike = [&](unsigned operand, int64_t at) { return isAlike(op->getOperand(operand), at, depth - 1); };
  auto rankOf = [&](unsigned operand) {
    auto of = shapes.getShape(op->getOperand(operand));
    return of ? std::optional<int64_t>(of->size()) : std::nullopt;
  };
  if (auto constant = llvm::dyn_cast<dfg::ConstOp>(op)) {
    auto elements = llvm::dyn_cast<DenseElementsAttr>(constant.getValue());
    return elements && elements.getType().getRank() == rank && areRowsAlike(elements, axis);
  }
  if (isElementwise(op) || llvm::isa<dfg::BroadcastToOp>(op)) {
    unsigned count = llvm::isa<dfg::BroadcastToOp>(op) ? 1 : op->getNumOperands();
    for (unsigned operand = 0; operand < count; ++operand)
      if (auto own = rankOf(operand); !own || !isOperandAlike(operand, axis - (rank - *own)))
        return false;
    return true;
  }
  if (llvm::isa<dfg::TileOp>(op))
    return isOperandAlike(0, axis);
  if (llvm::isa<dfg::ExpandDimsOp>(op)) {
    auto added = normalize(shapes.getConstant(op->getOperand(1)), rank);
    return added && *added != axis && isOperandAlike(0, axis - (*added < axis));
  }
  if (llvm::isa<dfg::TransposeOp>(op)) {
    auto permutation = shapes.getConstants(op->getOperand(1));
    if (!permutation || static_cast<int64_t>(permutation->size()) != rank)
      return false;
    auto from = normalize((*permutation)[axis], rank);
    return isOperandAlike(0, *from);
  }
  if (llvm::isa<dfg::ReshapeOp>(op)) {
    // The axes up to this one are as they were.
    auto from = shapes.getShape(op->getOperand(0));
    return from && static_cast<int64_t>(from->size()) > axis &&
           llvm::equal(ArrayRef(*from).take_front(axis + 1), ArrayRef(*sizes).take_front(axis + 1)) &&
           isOperandAlike(0, axis);
  }
  if (auto product = llvm::dyn_cast<dfg::MatMulOp>(op))
    return axis == 0 ? isOperandAlike(0, product.getTransposeA() ? 1 : 0)
                     : isOperandAlike(1, product.getTransposeB() ? 0 : 1);
  if (llvm::isa<dfg::SplitOp>(op))
    return isOperandAlike(1, axis);
  if (llvm::isa<dfg::ConcatV2Op>(op)) {
    for (unsigned operand = 0; operand + 1 < op->getNumOperands(); ++operand)
      if (!isOperandAlike(operand, axis))
        return false;
    return normalize(shapes.getConstant(op->getOperands().back()), rank).value_or(axis) != axis;
  }
  return false;
}

/// The number that all elements of a constant are.
std::optional<double> getNumber(Operation *op) {
  auto constant = llvm::dyn_cast_if_present<dfg::ConstOp>(op);
  auto splat = constant ? llvm::dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
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

/// Whether numbers differ by no more than how they are rounded.
bool isNear(double x, double y) { return std::abs(x - y) < 1e-5 * std::abs(y); }

std::optional<int64_t> countElements(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? std::optional<int64_t>(type.getNumElements()) : std::nullopt;
}

/// What makes `value` of `number` copies of each element of something, if it does.
Operation *findCopies(Value value, std::optional<double> number) {
  Operation *copies = value.getDefiningOp();
  while (copies && copies->hasTrait<dfg::Forwards>())
    copies = copies->getOperand(0).getDefiningOp();
  if (!number || !llvm::isa_and_present<dfg::TileOp, dfg::BroadcastToOp>(copies))
    return nullptr;
  auto from = countElements(copies->getOperand(0)), to = countElements(copies->getResult(0));
  return from && to && *from > 0 && *number * *from == *to ? copies : nullptr;
}

constexpr size_t kMaxCounts = 256;

/// The numbers that terms of a sum may be counted by: those of products of some of the axes along which they were
/// added.
struct TermCounts {
  std::set<int64_t> ofRows;       // with the batch's axis
  std::set<int64_t> others = {1}; // without it

  bool contains(int64_t count) const { return ofRows.count(count) || others.count(count); }
};

/// Every product of a number of `counts` and some of `sizes`.
void multiply(std::set<int64_t> &counts, ArrayRef<int64_t> sizes) {
  for (int64_t size : sizes)
    for (int64_t count : std::vector<int64_t>(counts.begin(), counts.end()))
      if (counts.size() < kMaxCounts)
        counts.insert(count * size);
}

bool isNumberOf(const std::set<int64_t> &counts, double number) {
  return llvm::any_of(counts, [&](int64_t count) { return isNear(number, static_cast<double>(count)); });
}

/// Counts the terms of sums, each once.
class TermCounter {
public:
  TermCounter(int64_t rows, FixedBatch::AxisOf axisOf) : rows(rows), axisOf(axisOf) {}

  TermCounts count(Value sum, int depth = kMaxDepth) {
    auto [it, isNew] = known.try_emplace(sum);
    if (!isNew)
      return it->second;
    TermCounts counts = find(sum, depth);
    known[sum] = counts;
    return counts;
  }

private:
  static SmallVector<int64_t> sizesOf(Value value) {
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() ? SmallVector<int64_t>(type.getShape()) : SmallVector<int64_t>();
  }

  TermCounts find(Value sum, int depth) {
    TermCounts counts;
    Operation *op = sum.getDefiningOp();
    if (!op || depth == 0 || llvm::isa<dfg::ConstOp>(op))
      return counts;
    if (op->hasTrait<dfg::SumsRows>() || llvm::isa<dfg::MatMulOp, dfg::L2LossOp>(op))
      return addAxes(op->getOperand(0), sum, depth);
    // What is computed of a sum otherwise is another number's terms.
    auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
    if (op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::Forwards>() ||
        (isElementwise(op) && node && node.getLinearity() != dfg::Linearity::None))
      for (Value operand : op->getOperands()) {
        TermCounts own = count(operand, depth - 1);
        counts.ofRows.insert(own.ofRows.begin(), own.ofRows.end());
        counts.others.insert(own.others.begin(), own.others.end());
      }
    return counts;
  }

  TermCounts addAxes(Value terms, Value sum, int depth) {
    // Sizes that the result has not.
    SmallVector<int64_t> sizes = sizesOf(terms), added = sizes;
    for (int64_t size : sizesOf(sum))
      if (auto *it = llvm::find(added, size); it != added.end())
        added.erase(it);
    const std::optional<int64_t> axis = axisOf(terms), kept = axisOf(sum);
    // A product of rows with a matrix adds up features.
    if (axis && kept && llvm::isa<dfg::MatMulOp>(sum.getDefiningOp()))
      return {};
    TermCounts counts = count(terms, depth - 1);
    const int64_t ofBatch = axis && !kept && *axis < static_cast<int64_t>(sizes.size()) ? sizes[*axis] : 0;
    if (auto *it = llvm::find(added, ofBatch); ofBatch > 0 && it != added.end()) {
      added.erase(it);
      // What lies in the batch's axis beside the examples are terms of each one.
      if (ofBatch != rows)
        multiply(counts.others, {ofBatch / rows});
      multiply(counts.others, added);
      for (int64_t other : counts.others)
        counts.ofRows.insert(other * rows);
      return counts;
    }
    multiply(counts.ofRows, added);
    // The batch's axis is there still, or was added before.
    if ((axis && kept) || !counts.ofRows.empty()) {
      multiply(counts.others, added);
      return counts;
    }
    // Which axis is the batch's is not known.
    for (int64_t size : added)
      if (size % rows == 0)
        counts.ofRows.insert(size);
    multiply(counts.ofRows, added);
    return counts;
  }

  int64_t rows;
  FixedBatch::AxisOf axisOf;
  llvm::DenseMap<Value, TermCounts> known;
};

} // namespace

bool FixedBatch::isAlikeAlong(Value value, int64_t axis, const dfg::ShapeContext &shapes) const {
  return AlikeRows(shapes).isAlike(value, axis, kMaxDepth);
}

void FixedBatch::noteRows(Value value, const dfg::ShapeContext &shapes) {
  SmallVector<Value> worklist = {value};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value rows = worklist.pop_back_val();
    Operation *op = rows.getDefiningOp();
    auto sizes = shapes.getShape(rows);
    if (!op || !seen.insert(rows).second || !sizes || sizes->empty() || !sizes->front().isConstant())
      continue;
    const int64_t count = sizes->front().getConstant();
    // One row is that of all, but where a replica has one.
    if (count <= 0 || count % size || (count == 1 && !drawsRows(op)))
      continue;
    auto isOneRow = [&](Value operand) {
      auto of = shapes.getShape(operand);
      return of && (of->size() < sizes->size() || of->front() == dfg::Dim(1));
    };
    bool makes = drawsRows(op) || llvm::isa<dfg::FillOp>(op) ||
                 (llvm::isa<dfg::ConstOp>(op) && isAlikeAlong(rows, 0, shapes)) ||
                 (llvm::isa<dfg::TileOp, dfg::BroadcastToOp>(op) && isOneRow(op->getOperand(0)));
    if (makes)
      learned |= makers.insert(op).second;
    else
      for (unsigned operand : getRowOperands(op))
        if (auto of = shapes.getShape(op->getOperand(operand)); of && !of->empty() && of->front() == sizes->front())
          worklist.push_back(op->getOperand(operand));
  }
}

void FixedBatch::noteSummedRows(Value divisor, const dfg::ShapeContext &shapes) {
  Operation *op = divisor.getDefiningOp();
  while (op && (op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::CastOp>(op)))
    op = op->getOperand(0).getDefiningOp();
  if (op && op->hasTrait<dfg::SumsRows>() && isAlikeAlong(op->getOperand(0), 0, shapes))
    noteRows(op->getOperand(0), shapes);
}

/// A number that is cast, or goes on unchanged, is the same number.
Operation *FixedBatch::getConstant(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && (op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::CastOp>(op)))
    op = op->getOperand(0).getDefiningOp();
  return llvm::isa_and_present<dfg::ConstOp>(op) ? op : nullptr;
}

bool FixedBatch::isCount(Value sum, double number, AxisOf axisOf) const {
  TermCounts counts = TermCounter(size, axisOf).count(sum);
  counts.ofRows.insert(size);
  counts.others.erase(1);
  // As many classes, or pixels in a row, as there are examples: by which of them it divides cannot be seen.
  return isNumberOf(counts.ofRows, number) && !isNumberOf(counts.others, number);
}

void FixedBatch::noteCount(Value sum, Value divisor, AxisOf axisOf) {
  Operation *op = getConstant(divisor);
  if (auto number = getNumber(op); number && isCount(sum, *number, axisOf))
    learned |= counted.insert(op).second;
}

void FixedBatch::noteShare(Value sum, Value factor, AxisOf axisOf) {
  // A half is a factor of squares first, and then of two rows.
  Operation *op = getConstant(factor);
  if (auto number = getNumber(op); number && *number > 0 && *number != 0.5 && isCount(sum, 1 / *number, axisOf))
    learned |= shared.insert(op).second;
}

void FixedBatch::noteCopies(Value dividend, Value divisor, const dfg::ShapeContext &shapes) {
  Operation *op = getConstant(divisor), *copies = findCopies(dividend, getNumber(op));
  if (!copies || !makesRows(copies) || !isAlongBatch(copies->getOperand(0), copies->getResult(0)))
    return;
  learned |= counted.insert(op).second;
  learned |= ofCopies.insert(op).second;
}

bool FixedBatch::mayCount(Operation *op, Value value) const {
  Operation *constant = getConstant(value);
  if (!constant || counts(value) || isShare(value))
    return false;
  auto number = getNumber(constant);
  if (number && (std::abs(*number) == 0.5 || std::abs(*number) == 1 || std::abs(*number) == 2))
    return false;
  return llvm::none_of(op->getOperands(), [&](Value other) { return findCopies(other, number); });
}

void FixedBatch::noteOtherTerms(Value sum, Value divisor, AxisOf axisOf) {
  Operation *op = getConstant(divisor);
  if (auto number = getNumber(op); number && TermCounter(size, axisOf).count(sum).contains(std::llround(*number)))
    learned |= ambiguous.insert(op).second;
}

/// The constant that `value` is, if its magnitude `is` so and it was not seen to count terms.
Operation *FixedBatch::findNumber(Value value, llvm::function_ref<bool(double)> is) const {
  // A batch of fewer has its size's number everywhere.
  constexpr int64_t kFewest = 4;
  Operation *op = getConstant(value);
  if (size < kFewest || !op || counted.contains(op) || shared.contains(op))
    return nullptr;
  auto number = getNumber(op);
  return number && *number != 0 && is(std::abs(*number)) ? op : nullptr;
}

Operation *FixedBatch::findSize(Value value) const {
  const auto rows = static_cast<double>(size);
  return findNumber(value, [&](double x) { return isNear(x, rows) || isNear(1 / x, rows); });
}

Operation *FixedBatch::findSampleSize(Value value) const {
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
