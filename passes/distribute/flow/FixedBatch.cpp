//===- FixedBatch.cpp - A batch that the graph has as a number ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/FixedBatch.h"
#include <cmath>

using namespace mlir;

namespace distc {
namespace {

/// How far back rows are followed. Each step may take several operands.
constexpr int kMaxDepth = 24;

bool isElementwise(Operation *op) {
  return llvm::isa<dfg::ScalarInterface, dfg::CastOp, dfg::SelectV2Op>(op) || op->hasTrait<dfg::Forwards>();
}

bool makesSplat(Operation *op) {
  if (auto constant = llvm::dyn_cast<dfg::ConstOp>(op))
    return llvm::isa<SplatElementsAttr>(constant.getValue());
  return llvm::isa<dfg::FillOp, dfg::ZerosLikeOp, dfg::OnesLikeOp>(op);
}

/// Whether all elements of `value` are the same, which moving them does not change.
bool isSplat(Value value, const dfg::ShapeContext &shapes, int depth) {
  Operation *op = value.getDefiningOp();
  if (auto sizes = shapes.getShape(value); sizes && llvm::all_of(*sizes, [](dfg::Dim dim) { return dim == dfg::Dim(1); }))
    return true;
  if (!op || depth == 0)
    return false;
  if (makesSplat(op))
    return true;
  auto isSplatToo = [&](Value operand) { return isSplat(operand, shapes, depth - 1); };
  if (isElementwise(op))
    return llvm::all_of(op->getOperands(), isSplatToo);
  bool moves = op->hasTrait<dfg::Reshapes>() || llvm::isa<dfg::BroadcastToOp, dfg::TileOp, dfg::TransposeOp,
                                                           dfg::SliceOp, dfg::StridedSliceOp>(op);
  return moves && isSplatToo(op->getOperand(0));
}

/// Whether the rows of a constant along `axis` are alike.
bool areRowsAlike(DenseElementsAttr elements, int64_t axis) {
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

bool isAlike(Value value, int64_t axis, const dfg::ShapeContext &shapes, int depth) {
  auto sizes = shapes.getShape(value);
  if (!sizes)
    return false;
  const int64_t rank = sizes->size();
  if (axis < 0 || (axis < rank && (*sizes)[axis] == dfg::Dim(1)))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || axis >= rank || depth == 0)
    return false;
  if (isSplat(value, shapes, depth))
    return true;
  auto isOperandAlike = [&](unsigned operand, int64_t at) {
    return isAlike(op->getOperand(operand), at, shapes, depth - 1);
  };
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

std::optional<int64_t> countElements(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? std::optional<int64_t>(type.getNumElements()) : std::nullopt;
}

bool draws(Operation *op) { return op->hasTrait<dfg::DrawsNumbers>() && !llvm::isa<dfg::RandomPermutationOp>(op); }

} // namespace

bool FixedBatch::isAlikeAlong(Value value, int64_t axis, const dfg::ShapeContext &shapes) const {
  return isAlike(value, axis, shapes, kMaxDepth);
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
    if (count <= 0 || count % size || (count == 1 && !draws(op)))
      continue;
    auto isOneRow = [&](Value operand) {
      auto of = shapes.getShape(operand);
      return of && (of->size() < sizes->size() || of->front() == dfg::Dim(1));
    };
    bool makes = draws(op) || llvm::isa<dfg::FillOp>(op) ||
                 (llvm::isa<dfg::ConstOp>(op) && isAlikeAlong(rows, 0, shapes)) ||
                 (llvm::isa<dfg::TileOp, dfg::BroadcastToOp>(op) && isOneRow(op->getOperand(0)));
    if (makes)
      learned |= makers.insert(op).second;
    else if (isElementwise(op))
      for (Value operand : op->getOperands())
        if (auto of = shapes.getShape(operand); of && of->size() == sizes->size())
          worklist.push_back(operand);
  }
}

/// A number that is cast, or goes on unchanged, is the same number.
Operation *FixedBatch::getConstant(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && (op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::CastOp>(op)))
    op = op->getOperand(0).getDefiningOp();
  return llvm::isa_and_present<dfg::ConstOp>(op) ? op : nullptr;
}

bool FixedBatch::isMultiple(double number) const {
  const double rows = number / static_cast<double>(size);
  return rows > 0.5 && std::abs(rows - std::round(rows)) < 1e-5 * rows;
}

void FixedBatch::noteCount(Value divisor) {
  Operation *op = getConstant(divisor);
  if (auto number = getNumber(op); number && isMultiple(*number))
    learned |= counted.insert(op).second;
}

void FixedBatch::noteShare(Value factor) {
  Operation *op = getConstant(factor);
  if (auto number = getNumber(op); number && *number > 0 && isMultiple(1 / *number))
    learned |= shared.insert(op).second;
}

void FixedBatch::noteCopies(Value dividend, Value divisor, const dfg::ShapeContext &shapes) {
  Operation *copies = dividend.getDefiningOp(), *op = getConstant(divisor);
  while (copies && copies->hasTrait<dfg::Forwards>())
    copies = copies->getOperand(0).getDefiningOp();
  if (!llvm::isa_and_present<dfg::TileOp, dfg::BroadcastToOp>(copies))
    return;
  auto from = countElements(copies->getOperand(0)), to = countElements(copies->getResult(0));
  auto number = getNumber(op);
  if (from && to && *from > 0 && number && *number * *from == *to && *to / *from % size == 0)
    learned |= counted.insert(op).second;
}

} // namespace distc
