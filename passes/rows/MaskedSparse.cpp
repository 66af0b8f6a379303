//===- MaskedSparse.cpp - Sparse tensors whose elements were chosen from dense ones ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/rows/MaskedRows.h"

using namespace mlir;

namespace distc {

using dfg::Dim;
using dfg::Dims;

/// Where a bucketized column has its elements: [0, 0], [0, 1], ... [1, 0], ..., made of ranges that are repeated. The
/// sizes of the matrix; none of other values.
std::optional<Dims> RowMasker::getAllPlaces(Value value) const {
  // Numbers stay what they are.
  auto strip = [](Value value) {
    while (Operation *op = value.getDefiningOp()) {
      Type element = Builder::elementOf(value);
      if (!llvm::isa<dfg::IdentityOp>(op) &&
          !(llvm::isa<dfg::CastOp>(op) && (element.isInteger(32) || element.isInteger(64))))
        break;
      value = op->getOperand(0);
    }
    return value;
  };
  value = strip(value);
  if (auto transpose = value.getDefiningOp<dfg::TransposeOp>()) {
    if (shapes.getConstants(transpose->getOperand(1)) != SmallVector<int64_t>{1, 0})
      return std::nullopt;
    value = strip(transpose->getOperand(0));
    auto pack = value.getDefiningOp<dfg::PackOp>();
    if (!pack || pack.getAxis() != 0)
      return std::nullopt;
  }
  auto pack = value.getDefiningOp<dfg::PackOp>();
  const bool isTransposed = pack && pack.getAxis() == 0;
  if (!pack || pack->getNumOperands() != 2 || (!isTransposed && pack.getAxis() != 1))
    return std::nullopt;
  // Columns behind each other.
  auto tile = strip(pack->getOperand(1)).getDefiningOp<dfg::TileOp>();
  std::optional<Dims> width = tile ? shapes.getShape(tile->getOperand(0)) : std::nullopt;
  std::optional<Dims> times = tile ? shapes.getElements(tile->getOperand(1)) : std::nullopt;
  if (!width || width->size() != 1 || !width->front().isConstant() || !isRange(tile->getOperand(0), width->front()) ||
      !times || times->size() != 1)
    return std::nullopt;
  // Rows, each as often as there are columns.
  auto reshape = strip(pack->getOperand(0)).getDefiningOp<dfg::ReshapeOp>();
  auto repeat = reshape ? strip(reshape->getOperand(0)).getDefiningOp<dfg::TileOp>() : dfg::TileOp();
  std::optional<Dims> flat = reshape ? shapes.getShape(reshape->getResult(0)) : std::nullopt;
  std::optional<Dims> column = repeat ? shapes.getShape(repeat->getOperand(0)) : std::nullopt;
  std::optional<Dims> often = repeat ? shapes.getElements(repeat->getOperand(1)) : std::nullopt;
  auto expand = repeat ? strip(repeat->getOperand(0)).getDefiningOp<dfg::ExpandDimsOp>() : dfg::ExpandDimsOp();
  if (!flat || flat->size() != 1 || !column || column->size() != 2 || column->back() != Dim(1) || !often ||
      often->size() != 2 || often->front() != Dim(1) || often->back() != width->front() || !expand ||
      column->front() != times->front() || !isRange(expand->getOperand(0), column->front()))
    return std::nullopt;
  return Dims{column->front(), width->front()};
}

/// Operands: indices, the shape, the new shape; here the same one.
LogicalResult RowMasker::reshapeSparse(Operation *op) {
  const MaskedValue *at = getMasked(op->getOperand(0));
  auto from = shapes.getElements(op->getOperand(1)), to = shapes.getElements(op->getOperand(2));
  bool isSame = from && to && from->size() == to->size();
  unsigned open = 0;
  for (size_t axis = 0; isSame && axis < from->size(); ++axis) {
    bool isOpen = (*to)[axis] == Dim(-1);
    open += isOpen;
    isSame = isOpen || (*to)[axis] == (*from)[axis];
  }
  if (!isSame || open > 1)
    return at ? refuse(op, "sparse tensors keep their shape") : success();
  const MaskedValue rows = at ? *at : MaskedValue();
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  if (failed(replace(g, op->getResult(0), op->getOperand(0), rows)))
    return failure();
  return replace(g, op->getResult(1), op->getOperand(1));
}

/// Operands: indices, values, the shape, the value of rows that have none: a place more in each row, which is theirs.
LogicalResult RowMasker::fillEmptyRows(Operation *op) {
  Value indices = op->getOperand(0), values = op->getOperand(1);
  const MaskedValue *at = getMasked(indices), *of = getMasked(values);
  std::optional<Dims> sizes = shapes.getShape(values);
  if (!at || !of || at->rows != of->rows || at->axis != 0 || of->axis != 0 ||
      at->numbers.kind != RowNumbers::Coordinates || at->numbers.among || at->numbers.grid.size() != 2 ||
      at->rows->repeats || !at->numbers.grid.back().isConstant() || !sizes || sizes->size() != 1)
    return refuse(op, "its elements are not chosen from those of a matrix");
  if (std::optional<Dims> dense = shapes.getElements(op->getOperand(2));
      !dense || dense->empty() || dense->front() != at->numbers.grid.front())
    return refuse(op, "its shape has other rows than the matrix that its elements are chosen from");
  const Selection *rows = at->rows;
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  const Dims grid = at->numbers.grid;
  const Dim batch = grid.front(), width = grid.back() + Dim(1), all = batch * width;
  Value mask = onGrid(g, rows->mask, grid);
  Value empty = g.negate(g.reduce(dfg::AnyOp::getOperationName(), mask, {1}, false));
  const Selection *filling = nullptr;
  for (auto [of, known] : filled[rows])
    if (of == grid)
      filling = known;
  if (!filling) {
    filling = add({g.reshape(g.concat({mask, g.expandDims(empty, 1)}, 1), {all}),
                   all,
                   nullptr,
                   rows->origin,
                   {},
                   {},
                   false,
                   false,
                   false,
                   true});
    filled[rows].push_back({grid, filling});
  }
  Value dense = onGrid(g, values, grid);
  Value otherwise = g.select(g.expandDims(empty, 1), op->getOperand(3), g.slice(dense, 1, 0, 1));
  Value places = onGrid(g, indices, grid);
  const MaskedValue result{filling, 0, {RowNumbers::FirstCoordinate, 0, nullptr, {batch, width}}};
  if (failed(replace(g, op->getResult(0), g.reshape(g.concat({places, g.slice(places, 1, 0, 1)}, 1), {all, Dim(2)}),
                     result)) ||
      failed(replace(g, op->getResult(1), g.reshape(g.concat({dense, otherwise}, 1), {all}), {filling, 0, {}})) ||
      failed(replace(g, op->getResult(2), empty)))
    return failure();
  if (!op->getResult(3).use_empty())
    masked[op->getResult(3)] = {rows, 0, {}};
  return success();
}

/// Operands: the gradient of segments, the rows between them, their segments, how many rows there are. Results: rows,
/// and where each is to be added.
LogicalResult RowMasker::segmentsGrad(Operation *op) {
  Value dy = op->getOperand(0), indices = op->getOperand(1);
  const MaskedValue *at = getMasked(op->getOperand(2)), *named = getMasked(indices), *of = getMasked(dy);
  std::optional<Dims> sizes = shapes.getShape(dy);
  if (!at || !named || at->rows != named->rows || at->axis != 0 || named->axis != 0 ||
      at->numbers.kind != RowNumbers::Coordinate || at->numbers.column != 0 || at->rows->repeats || !sizes ||
      sizes->empty() || !(sizes->front() == at->numbers.grid.front()) ||
      (of && (of->axis != 0 || of->areTerms || !of->rows->isPrefix)))
    return refuse(op, "its segments are not the rows that they were chosen from");
  const Selection *rows = at->rows;
  const Dims grid = at->numbers.grid;
  OpBuilder builder(op);
  Builder g(builder, shapes, op);
  Type element = g.elementOf(dy);
  StringRef name = llvm::cast<dfg::OpaqueOp>(op).getOp();
  if (!name.contains("Sum")) {
    SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(1, static_cast<int64_t>(grid.size())));
    Value count = g.maximum(g.sum(onGrid(g, g.cast(rows->mask, element), grid), axes), g.scalar(element, 1));
    for (size_t axis = 1; axis < sizes->size(); ++axis)
      count = g.expandDims(count, -1);
    dy = g.div(dy, name.contains("SqrtN") ? g.make<dfg::SqrtOp>(count) : count);
  }
  // TensorFlow gives each row once, and the sum of what belongs to it.
  const Selection *terms = add({rows->mask, rows->rows, rows, rows->origin, {}, {}, true});
  if (failed(replace(g, op->getResult(0), spread(g, dy, grid), {terms, 0, {}, true})))
    return failure();
  return replace(g, op->getResult(1), g.cast(indices, g.elementOf(op->getResult(1))), {terms, 0, {}});
}

} // namespace distc
