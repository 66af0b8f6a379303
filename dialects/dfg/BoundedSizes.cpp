//===- BoundedSizes.cpp - Who may take a tensor that is longer than its data --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Where code is generated, a size that depends on data is its bound (Dim::isBound):
// the rows past the true size are padding. Indices there are -1, which sparse
// updates, scatters and segments skip. An operation that would see the padding as
// data, or the bound as the true size, is refused.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace distc::dfg {
namespace {

bool hasBound(const std::optional<Dims> &dims) {
  return dims && llvm::any_of(*dims, [](Dim dim) { return dim.isBound(); });
}

/// Whether padding in operand `number` of `op` ends as padding, or nowhere.
bool takesPadding(Operation *op, unsigned number) {
  // Element by element; shapes hand the bound on; gathered rows are not looked at by indices that name true rows.
  if (op->hasTrait<AsksShapes>() || op->hasTrait<Gathers>() || op->hasTrait<Reshapes>() ||
      llvm::isa<ScalarInterface, CheckNumericsOp>(op))
    return true;
  return op->getName().getDialectNamespace() == "dist" && number < op->getNumOperands();
}

/// The operand with the indices whose padding `op` skips; -1 where it has none.
int getSkippedIndices(Operation *op) {
  if (auto update = llvm::dyn_cast<UpdateInterface>(op))
    return update.getIndicesOperand();
  auto node = llvm::dyn_cast<NodeInterface>(op);
  return node ? node.getScatterIndices() : -1;
}

/// Whether padding of `indices` is -1: as what finds distinct values gives them, or in another shape or integer type.
/// What is computed from them, or looked up by them, has other numbers there.
bool hasMarkedPadding(Value indices, const ShapeContext &context) {
  Operation *op = indices.getDefiningOp();
  if (!op || !hasBound(context.getShape(indices)))
    return true;
  if (op->hasTrait<FindsDistinct>())
    return llvm::cast<OpResult>(indices).getResultNumber() == 0;
  if (op->hasTrait<Forwards>() || op->hasTrait<Reshapes>() || llvm::isa<CastOp>(op))
    return hasMarkedPadding(op->getOperand(0), context);
  // No row where a condition does not hold.
  if (auto select = llvm::dyn_cast<SelectV2Op>(op))
    if (auto condition = context.getShape(select->getOperand(0));
        condition && condition->empty() && context.getConstant(select->getOperand(2)) == -1)
      return hasMarkedPadding(select->getOperand(1), context);
  // A shard's own rows, and the rows of all replicas, are indices beside values, which may be anything.
  if (op->getName().getDialectNamespace() == "dist" && op->getNumOperands() == op->getNumResults())
    return hasMarkedPadding(op->getOperand(llvm::cast<OpResult>(indices).getResultNumber()), context);
  const bool joins = op->hasTrait<Joins>();
  if (!joins && (llvm::isa<ScalarInterface>(op) || op->hasTrait<Gathers>()))
    return false;
  // A place of several coordinates is no place where one of them is -1.
  auto isPadded = [&](Value operand) { return hasBound(context.getShape(operand)); };
  auto isMarked = [&](Value operand) { return isPadded(operand) && hasMarkedPadding(operand, context); };
  return llvm::none_of(op->getOperands(), isPadded) ||
         (joins ? llvm::any_of(op->getOperands(), isMarked) : llvm::all_of(op->getOperands(), [&](Value operand) {
           return !isPadded(operand) || isMarked(operand);
         }));
}

/// Whether padding in operand `number` of what looks at sparse tensors is at places of -1: its own, or those in front
/// of it.
bool isAtMarkedPlaces(Operation *op, unsigned number, const ShapeContext &context) {
  for (int operand = static_cast<int>(number); op->hasTrait<OfSparseTensors>() && operand >= 0; --operand) {
    auto sizes = context.getShape(op->getOperand(operand));
    if (sizes && sizes->size() == 2)
      return hasMarkedPadding(op->getOperand(operand), context);
  }
  return false;
}

/// Whether `op` slices other axes than those with padding, which it takes whole.
bool slicesBeside(StridedSliceOp op, Value operand, const ShapeContext &context) {
  auto strides = context.getConstants(op->getOperand(3));
  auto from = context.getShape(operand), to = context.getShape(op->getResult(0));
  if (operand != op->getOperand(0) || !strides || llvm::any_of(*strides, [](int64_t stride) { return stride <= 0; }) ||
      op.getEllipsisMask() || op.getNewAxisMask() || !from || !to)
    return false;
  size_t taken = 0;
  for (auto [axis, size] : llvm::enumerate(*from)) {
    // Of one element nothing is left of the axis.
    const bool isLeft = axis >= strides->size() || !(op.getShrinkAxisMask() >> axis & 1);
    if (size.isBound() && !(isLeft && taken < to->size() && (*to)[taken].isBound() && (*to)[taken] == size))
      return false;
    taken += isLeft;
  }
  return true;
}

/// Whether `op` multiplies matrices of which as many are padding as the result has.
bool multipliesBeside(Operation *op, Value operand, const ShapeContext &context) {
  if (!op->hasTrait<MultipliesMatrices>())
    return false;
  auto from = context.getShape(operand), to = context.getShape(op->getResult(0));
  if (!from || !to || from->size() != to->size() || from->size() < 2)
    return false;
  for (auto [axis, size] : llvm::enumerate(*from))
    if (size.isBound() && (axis + 2 >= from->size() || !(*to)[axis].isBound()))
      return false;
  return true;
}

/// Whether `op` joins, or cuts, along another axis than the one with padding.
bool worksBeside(Operation *op, Value operand, const ShapeContext &context) {
  if (multipliesBeside(op, operand, context))
    return true;
  if (auto slice = llvm::dyn_cast<StridedSliceOp>(op))
    return slicesBeside(slice, operand, context);
  if (!llvm::isa<ConcatV2Op, SplitOp, SplitVOp>(op))
    return false;
  std::optional<int64_t> axis =
      context.getConstant(op->getOperand(llvm::isa<SplitOp>(op) ? 0 : op->getNumOperands() - 1));
  std::optional<Dims> sizes = context.getShape(operand);
  if (!axis || !sizes)
    return false;
  int64_t along = *axis < 0 ? *axis + static_cast<int64_t>(sizes->size()) : *axis;
  return along >= 0 && along < static_cast<int64_t>(sizes->size()) && !(*sizes)[along].isBound();
}

/// Whether `op` takes some of a shape's sizes, all of them known, and leaves those that are bounds.
bool leavesBounds(Operation *op, const ShapeContext &context) {
  return op->hasTrait<TakesPart>() && llvm::all_of(op->getResults(), [&](Value result) {
           std::optional<Dims> sizes = context.getElements(result);
           return sizes && llvm::all_of(*sizes, [](Dim size) { return size.isKnown() && !size.isBound(); });
         });
}

} // namespace

LogicalResult ShapeContext::checkBounds(Operation *op) {
  const int indices = getSkippedIndices(op);
  if (indices >= 0 && !hasMarkedPadding(op->getOperand(indices), *this))
    return op->emitError() << "node '" << getNodeName(op) << "' (" << op->getName().stripDialect()
                           << ") takes indices that are computed from values of which there are fewer than room for "
                              "them, so that what is behind them would be taken for indices; compute them before "
                              "tf.unique, of all values";
  // Rows without an index are skipped.
  const bool skipsPadding = indices >= 0 && hasBound(getShape(op->getOperand(indices)));
  for (OpOperand &operand : op->getOpOperands()) {
    bool padded = hasBound(getShape(operand.get())) && !skipsPadding && !takesPadding(op, operand.getOperandNumber()) &&
                  !worksBeside(op, operand.get(), *this) && !isAtMarkedPlaces(op, operand.getOperandNumber(), *this);
    bool miscounted =
        hasBound(getElements(operand.get())) &&
        llvm::none_of(op->getResults(),
                      [&](Value result) { return hasBound(getShape(result)) || hasBound(getElements(result)); }) &&
        !leavesBounds(op, *this) && !op->hasTrait<OfSparseTensors>();
    if (!padded && !miscounted)
      continue;
    Operation *producer = operand.get().getDefiningOp();
    if (op->hasTrait<OpTrait::IsTerminator>() && producer)
      return producer->emitError() << "'" << getNodeName(producer)
                                   << (padded ? "' has as many rows as data say" : "' is a number that data say")
                                   << ", and cannot be fetched: it is only known when the program runs; fetch a sum or "
                                      "a mean over the rows";
    return op->emitError() << "node '" << getNodeName(op) << "' (" << op->getName().stripDialect() << ") needs "
                           << (padded ? "the true size of" : "the true value of") << " '"
                           << (producer ? getNodeName(producer) : "")
                           << "', which depends on the data and is only known when the program runs; code can be "
                              "generated where such a "
                              "tensor is used by gathers, segments, element-wise operations and sparse updates";
  }
  return success();
}

} // namespace distc::dfg
