//===- LinalgShapes.cpp - Shapes of sorting, linear algebra, candidates --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace distc::dfg::shapes {

LogicalResult nothing(Operation *, ShapeContext &) { return success(); }

LogicalResult bitcast(Operation *op, ShapeContext &context) {
  auto widthOf = [](Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  };
  // Elements of another width are joined or cut along a last axis.
  unsigned from = widthOf(op->getOperand(0)), to = widthOf(op->getResult(0));
  auto sizes = context.getShape(op->getOperand(0));
  if (!sizes || !from || !to)
    return success();
  if (from > to)
    sizes->push_back(from / to);
  else if (from < to && (sizes->empty() || !fits(sizes->back(), Dim(to / from))))
    return op->emitOpError() << "takes elements of " << from << " bits in shape " << print(*sizes) << " for ones of "
                             << to;
  else if (from < to)
    sizes->pop_back();
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult topK(Operation *op, ShapeContext &context) {
  auto sizes = context.getShape(op->getOperand(0));
  if (!sizes)
    return success();
  if (sizes->empty())
    return op->emitOpError("needs a tensor with an axis, not a scalar");
  Dim k;
  if (auto attribute = op->getAttrOfType<IntegerAttr>("k"))
    k = attribute.getInt();
  else if (auto elements = context.getElements(op->getOperand(1)); elements && elements->size() == 1)
    k = elements->front();
  if (k.isConstant() &&
      (k.getConstant() < 0 || (sizes->back().isConstant() && k.getConstant() > sizes->back().getConstant())))
    return op->emitOpError() << "asks for the " << k.getConstant() << " largest along the last axis of shape "
                             << print(*sizes);
  sizes->back() = k;
  context.setShape(op->getResult(0), *sizes);
  context.setShape(op->getResult(1), *sizes);
  return success();
}

/// The sizes of an operand that has matrices along its last two axes; none where they are not known.
static FailureOr<std::optional<Dims>> getMatrices(Operation *op, ShapeContext &context, unsigned operand,
                                                  bool areSquare) {
  auto sizes = context.getShape(op->getOperand(operand));
  if (sizes && (sizes->size() < 2 || (areSquare && !fits((*sizes)[sizes->size() - 2], sizes->back()))))
    return op->emitOpError() << "takes " << (areSquare ? "square " : "") << "matrices, not a tensor of shape "
                             << print(*sizes);
  return sizes;
}

LogicalResult squareMatrices(Operation *op, ShapeContext &context) {
  auto sizes = getMatrices(op, context, 0, true);
  if (failed(sizes))
    return failure();
  if (*sizes)
    context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult determinant(Operation *op, ShapeContext &context) {
  auto sizes = getMatrices(op, context, 0, true);
  if (failed(sizes))
    return failure();
  if (*sizes)
    for (Value result : op->getResults())
      context.setShape(result, Dims((*sizes)->begin(), (*sizes)->end() - 2));
  return success();
}

/// The shapes of the matrices (operand 0) and of the sides that they are to be solved for (operand 1), which fit; none
/// where they are not known.
static FailureOr<std::optional<std::pair<Dims, Dims>>> getSystem(Operation *op, ShapeContext &context, bool square) {
  auto matrices = getMatrices(op, context, 0, square), sides = getMatrices(op, context, 1, false);
  if (failed(matrices) || failed(sides))
    return failure();
  if (!*matrices || !*sides)
    return std::optional<std::pair<Dims, Dims>>();
  if ((*matrices)->size() != (*sides)->size() || !fits(ArrayRef(**matrices).drop_back(), ArrayRef(**sides).drop_back()))
    return op->emitOpError() << "solves for sides of shape " << print(**sides) << " by matrices of shape "
                             << print(**matrices);
  return std::optional(std::pair(**matrices, **sides));
}

LogicalResult solve(Operation *op, ShapeContext &context) {
  auto system = getSystem(op, context, /*square=*/true);
  if (failed(system))
    return failure();
  if (*system)
    context.setShape(op->getResult(0), (*system)->second);
  return success();
}

LogicalResult qr(Operation *op, ShapeContext &context) {
  auto sizes = getMatrices(op, context, 0, false);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  Dims q = **sizes, r = **sizes;
  Dim rows = q[q.size() - 2], columns = q.back();
  bool full = llvm::cast<QrOp>(op).getFullMatrices();
  q.back() = full ? rows : min(rows, columns);
  r[r.size() - 2] = q.back();
  context.setShape(op->getResult(0), std::move(q));
  context.setShape(op->getResult(1), std::move(r));
  return success();
}

LogicalResult solveLs(Operation *op, ShapeContext &context) {
  if (auto regularizer = context.getShape(op->getOperand(2)); regularizer && !regularizer->empty())
    return op->emitOpError() << "takes one number for the regularizer, not a tensor of shape " << print(*regularizer);
  auto system = getSystem(op, context, /*square=*/false);
  if (failed(system))
    return failure();
  if (!*system)
    return success();
  auto [matrices, result] = **system;
  result[result.size() - 2] = matrices.back();
  context.setShape(op->getResult(0), std::move(result));
  return success();
}

LogicalResult tridiagonalSolve(Operation *op, ShapeContext &context) {
  auto diagonals = getMatrices(op, context, 0, false), sides = getMatrices(op, context, 1, false);
  if (failed(diagonals) || failed(sides))
    return failure();
  if (*diagonals && !fits((**diagonals)[(*diagonals)->size() - 2], Dim(3)))
    return op->emitOpError() << "takes three diagonals, not a tensor of shape " << print(**diagonals);
  if (!*diagonals || !*sides)
    return success();
  const size_t rank = (*sides)->size();
  if ((*diagonals)->size() != rank || !fits(ArrayRef(**diagonals).drop_back(2), ArrayRef(**sides).drop_back(2)) ||
      !fits((*diagonals)->back(), (**sides)[rank - 2]))
    return op->emitOpError() << "solves for sides of shape " << print(**sides) << " by diagonals of shape "
                             << print(**diagonals);
  context.setShape(op->getResult(0), **sides);
  return success();
}

/// Operands: boxes [n, 4] (or overlaps [n, n]), scores [n], how many are selected at most.
LogicalResult nonMaxSuppression(Operation *op, ShapeContext &context) {
  auto boxes = context.getShape(op->getOperand(0)), scores = context.getShape(op->getOperand(1));
  const bool ofOverlaps = llvm::isa<NonMaxSuppressionWithOverlapsOp>(op);
  if (scores && scores->size() != 1)
    return op->emitOpError() << "takes a vector of scores, not a tensor of shape " << print(*scores);
  if (boxes && (boxes->size() != 2 || !fits(boxes->back(), ofOverlaps ? boxes->front() : Dim(4)) ||
                (scores && !fits(boxes->front(), scores->front()))))
    return op->emitOpError() << "takes " << (ofOverlaps ? "overlaps" : "boxes") << " of shape " << print(*boxes)
                             << (scores ? " with scores of shape " + print(*scores) : std::string());
  for (Value count : op->getResults().drop_front())
    context.setShape(count, {});
  auto most = context.getElements(op->getOperand(2));
  if (!most || most->size() != 1)
    return success();
  if (most->front().isConstant() && most->front().getConstant() < 0)
    return op->emitOpError() << "selects " << most->front().getConstant() << " boxes at most";
  auto pads = op->getAttrOfType<BoolAttr>("pad_to_max_output_size");
  const bool isPadded = pads && pads.getValue();
  if (!isPadded && !scores)
    return success();
  const Dim selected = isPadded ? most->front() : context.getBoundedSize(min(most->front(), scores->front()));
  context.setShape(op->getResult(0), {selected});
  if (llvm::isa<NonMaxSuppressionV5Op>(op))
    context.setShape(op->getResult(1), {selected});
  return success();
}

/// Operands: boxes [example, n, class (or 1 for all), 4], scores [example, n, class], how many are selected of a class
/// and of all.
LogicalResult combinedNonMaxSuppression(Operation *op, ShapeContext &context) {
  auto boxes = context.getShape(op->getOperand(0)), scores = context.getShape(op->getOperand(1));
  if (boxes && (boxes->size() != 4 || !fits(boxes->back(), Dim(4))))
    return op->emitOpError() << "takes boxes of shape " << print(*boxes) << ": [example, box, class, 4]";
  if (scores && scores->size() != 3)
    return op->emitOpError() << "takes scores of shape " << print(*scores) << ": [example, box, class]";
  if (!boxes || !scores)
    return success();
  const Dim classes = scores->back();
  if (!fits(ArrayRef(*boxes).take_front(2), ArrayRef(*scores).take_front(2)) ||
      (!fits((*boxes)[2], Dim(1)) && !fits((*boxes)[2], classes)))
    return op->emitOpError() << "takes boxes of shape " << print(*boxes) << " with scores of shape " << print(*scores);
  auto perClass = context.getConstant(op->getOperand(2)), most = context.getConstant(op->getOperand(3));
  context.setShape(op->getResult(3), {scores->front()});
  if (!perClass || !most || !classes.isConstant())
    return success();
  if (*perClass <= 0 || *most <= 0)
    return op->emitOpError() << "selects " << *perClass << " boxes of a class and " << *most << " of all";
  const bool pads = llvm::cast<CombinedNonMaxSuppressionOp>(op).getPadPerClass();
  const Dim selected = pads ? min(Dim(*most), Dim(*perClass) * classes) : Dim(*most);
  context.setShape(op->getResult(0), {scores->front(), selected, Dim(4)});
  context.setShape(op->getResult(1), {scores->front(), selected});
  context.setShape(op->getResult(2), {scores->front(), selected});
  return success();
}

LogicalResult selfAdjointEig(Operation *op, ShapeContext &context) {
  auto sizes = getMatrices(op, context, 0, true);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  context.setShape(op->getResult(0), Dims((*sizes)->begin(), (*sizes)->end() - 1));
  context.setShape(op->getResult(1), llvm::cast<SelfAdjointEigOp>(op).getComputeV() ? **sizes : Dims{Dim(0)});
  return success();
}

LogicalResult svd(Operation *op, ShapeContext &context) {
  auto sizes = getMatrices(op, context, 0, false);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  auto svd = llvm::cast<SvdOp>(op);
  Dims u = **sizes;
  const Dim rows = u[u.size() - 2], columns = u.back(), values = min(rows, columns);
  Dims s(u.begin(), u.end() - 2), v = u;
  s.push_back(values);
  u.back() = svd.getFullMatrices() ? rows : values;
  v[v.size() - 2] = columns;
  v.back() = svd.getFullMatrices() ? columns : values;
  context.setShape(op->getResult(0), std::move(s));
  context.setShape(op->getResult(1), svd.getComputeUv() ? std::move(u) : Dims{Dim(0)});
  context.setShape(op->getResult(2), svd.getComputeUv() ? std::move(v) : Dims{Dim(0)});
  return success();
}

/// A matrix' own shape, and a vector of as many elements as its shorter axis.
static LogicalResult matrixAndDiagonal(Operation *op, ShapeContext &context, bool areSquare) {
  auto sizes = getMatrices(op, context, 0, areSquare);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  Dims diagonal((*sizes)->begin(), (*sizes)->end() - 2);
  diagonal.push_back(min((**sizes)[diagonal.size()], (*sizes)->back()));
  context.setShape(op->getResult(0), **sizes);
  context.setShape(op->getResult(1), std::move(diagonal));
  return success();
}

LogicalResult lu(Operation *op, ShapeContext &context) {
  return matrixAndDiagonal(op, context, /*areSquare=*/llvm::isa<LuOp>(op));
}

LogicalResult householderFactors(Operation *op, ShapeContext &context) { return matrixAndDiagonal(op, context, false); }

LogicalResult householderProduct(Operation *op, ShapeContext &context) {
  auto sizes = getMatrices(op, context, 0, false);
  auto taus = context.getShape(op->getOperand(1));
  if (failed(sizes))
    return failure();
  if (!*sizes || !taus)
    return success();
  const size_t front = (*sizes)->size() - 2;
  const Dim rows = (**sizes)[front], columns = (*sizes)->back();
  auto exceeds = [](Dim x, Dim y) { return x.isConstant() && y.isConstant() && x.getConstant() > y.getConstant(); };
  if (taus->size() != front + 1 || !fits(ArrayRef(**sizes).take_front(front), ArrayRef(*taus).drop_back()) ||
      exceeds(columns, rows) || exceeds(taus->back(), columns))
    return op->emitOpError() << "takes reflections of shape " << print(**sizes) << " with scales of shape "
                             << print(*taus);
  context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult ctcLossRows(Operation *op, ShapeContext &context) {
  auto inputs = context.getShape(op->getOperand(0)), labels = context.getShape(op->getOperand(1));
  if (inputs && inputs->size() != 3)
    return op->emitOpError() << "takes inputs of shape " << print(*inputs) << ": [example, step, class]";
  if (labels && (labels->size() != 2 || (inputs && !fits(labels->front(), inputs->front()))))
    return op->emitOpError() << "takes labels of shape " << print(*labels) << ": a row an example";
  if (!inputs)
    return success();
  context.setShape(op->getResult(0), {inputs->front()});
  context.setShape(op->getResult(1), std::move(*inputs));
  return success();
}

/// Operands: scores [step, example, class], steps of each example.
LogicalResult ctcGreedyDecoder(Operation *op, ShapeContext &context) {
  auto inputs = context.getShape(op->getOperand(0)), lengths = context.getShape(op->getOperand(1));
  if (inputs && (inputs->size() != 3 || (lengths && !fits(*lengths, ArrayRef(*inputs).slice(1, 1)))))
    return op->emitOpError() << "takes inputs of shape " << print(*inputs) << ": [step, example, class], with lengths "
                             << (lengths ? "of shape " + print(*lengths) : std::string("an example each"));
  context.setShape(op->getResult(2), {Dim(2)});
  if (!inputs)
    return success();
  const Dim steps = (*inputs)[0], examples = (*inputs)[1], classes = (*inputs)[2];
  const int64_t blank = llvm::cast<CTCGreedyDecoderOp>(op).getBlankIndex();
  if (classes.isConstant() && (blank >= classes.getConstant() || blank < -classes.getConstant()))
    return op->emitOpError() << "has class " << blank << " of " << classes.getConstant() << " as the blank";
  const Dim labels = context.getBoundedSize(steps * examples);
  context.setShape(op->getResult(0), {labels, Dim(2)});
  context.setShape(op->getResult(1), {labels});
  context.setShape(op->getResult(3), {examples, Dim(1)});
  context.setElements(op->getResult(2), {examples, context.getBoundedSize(steps)});
  return success();
}

/// Operands: places, values and shape of two sparse tensors. All axes but the last.
LogicalResult editDistance(Operation *op, ShapeContext &context) {
  for (unsigned places : {0, 3})
    if (auto sizes = context.getShape(op->getOperand(places)); sizes && sizes->size() != 2)
      return op->emitOpError() << "takes places of shape " << print(*sizes);
  auto hypothesis = context.getElements(op->getOperand(2)), truth = context.getElements(op->getOperand(5));
  if (!hypothesis || !truth)
    return success();
  if (hypothesis->size() != truth->size() || hypothesis->size() < 2)
    return op->emitOpError() << "compares sparse tensors of shapes " << print(*hypothesis) << " and " << print(*truth);
  Dims sizes;
  for (auto [a, b] : llvm::zip(ArrayRef(*hypothesis).drop_back(), ArrayRef(*truth).drop_back()))
    sizes.push_back(a == b ? a : max(a, b));
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult isotonicRegression(Operation *op, ShapeContext &context) {
  auto sizes = context.getShape(op->getOperand(0));
  if (!sizes)
    return success();
  if (sizes->empty())
    return op->emitOpError("takes rows, not a scalar");
  context.setShape(op->getResult(0), *sizes);
  context.setShape(op->getResult(1), *sizes);
  return success();
}

/// Operands: places, the block's first place and its size.
LogicalResult sparseBlock(Operation *op, ShapeContext &context) {
  auto places = context.getShape(op->getOperand(0));
  if (!places || places->size() != 2)
    return success();
  for (unsigned operand : {1, 2})
    if (auto sizes = context.getShape(op->getOperand(operand)); sizes && !fits(*sizes, ArrayRef(*places).drop_front()))
      return op->emitOpError() << "takes a block of " << print(*sizes) << " axes of places of shape " << print(*places);
  const Dim rows = context.getBoundedSize(places->front());
  context.setShape(op->getResult(0), {rows});
  context.setShape(op->getResult(1), {rows, places->back()});
  return success();
}

LogicalResult sparseBlockRows(Operation *op, ShapeContext &context) {
  auto places = context.getShape(op->getOperand(0)), start = context.getShape(op->getOperand(1)),
       block = context.getShape(op->getOperand(2));
  if (!places || places->size() != 2)
    return success();
  if ((start && !fits(*start, ArrayRef(*places).drop_front())) ||
      (block && (block->size() != 2 || !fits(block->back(), places->back()))))
    return op->emitOpError() << "takes places of shape " << print(*places) << " with other axes in their block";
  context.setShape(op->getResult(0), {places->front()});
  return success();
}

LogicalResult fractionalSequences(Operation *op, ShapeContext &context) {
  for (unsigned axis : {0, 1})
    context.setShape(op->getResult(axis), {Dim(getArrayEntry(op, "sizes", 2 + axis, 0) + 1)});
  return success();
}

/// Operands: images or a gradient, where rows and columns of windows begin.
LogicalResult fractionalWindows(Operation *op, ShapeContext &context) {
  auto images = context.getShape(op->getOperand(0));
  if (!images || images->size() != 4)
    return success();
  for (unsigned axis : {0, 1}) {
    if (op->hasAttr("sizes")) {
      (*images)[1 + axis] = getArrayEntry(op, "sizes", axis, 0);
      continue;
    }
    auto sequence = context.getShape(op->getOperand(1 + axis));
    if (!sequence || sequence->size() != 1)
      return success();
    (*images)[1 + axis] = sequence->front() - Dim(1);
  }
  context.setShape(op->getResult(0), std::move(*images));
  return success();
}

LogicalResult fractionalMaxPoolGrad(Operation *op, ShapeContext &context) {
  auto images = context.getShape(op->getOperand(0));
  if (images)
    context.setShape(op->getResult(0), std::move(*images));
  return success();
}

LogicalResult candidates(Operation *op, ShapeContext &context) {
  Dim sampled = op->getAttrOfType<IntegerAttr>("num_sampled").getInt();
  int64_t classes = op->getAttrOfType<IntegerAttr>("num_true").getInt();
  auto trueClasses = context.getShape(op->getOperand(0));
  if (trueClasses && (trueClasses->size() != 2 || !fits(trueClasses->back(), Dim(classes))))
    return op->emitOpError() << "takes true classes of shape " << print(*trueClasses) << ", " << classes << " a row";
  if (op->getAttrOfType<BoolAttr>("unique").getValue() &&
      op->getAttrOfType<IntegerAttr>("range_max").getInt() < sampled.getConstant())
    return op->emitOpError() << "draws " << sampled.getConstant() << " distinct candidates of "
                             << op->getAttrOfType<IntegerAttr>("range_max").getInt();
  context.setShape(op->getResult(0), {sampled});
  if (trueClasses)
    context.setShape(op->getResult(1), *trueClasses);
  context.setShape(op->getResult(2), {sampled});
  return success();
}

LogicalResult accidentalHits(Operation *op, ShapeContext &context) {
  auto trueClasses = context.getShape(op->getOperand(0)), sampled = context.getShape(op->getOperand(1));
  if (!trueClasses || !sampled || trueClasses->size() != 2 || sampled->size() != 1)
    return success();
  Dim most = (*trueClasses)[0] * (*trueClasses)[1];
  // Distinct candidates are one true class each at most.
  Operation *sampler = op->getOperand(1).getDefiningOp();
  while (llvm::isa_and_nonnull<IdentityOp, StopGradientOp>(sampler))
    sampler = sampler->getOperand(0).getDefiningOp();
  auto unique = sampler ? sampler->getAttrOfType<BoolAttr>("unique") : BoolAttr();
  if (!unique || !unique.getValue())
    most = most * (*sampled)[0];
  Dim hits = context.getBoundedSize(most);
  for (Value result : op->getResults())
    context.setShape(result, {hits});
  return success();
}

} // namespace distc::dfg::shapes
