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
  // Element by element; shapes hand the bound on; rows with the index -1 are skipped, gathered rows are not looked at
  // by indices that name true rows.
  if (op->hasTrait<AsksShapes>() || op->hasTrait<Gathers>() || op->hasTrait<Reshapes>() ||
      llvm::isa<ScalarInterface, ScatterNdOp, TensorScatterAddOp, TensorScatterSubOp, TensorScatterUpdateOp,
                CheckNumericsOp>(op))
    return true;
  if (auto update = llvm::dyn_cast<UpdateInterface>(op))
    return update.getIndicesOperand() >= 0;
  return op->getName().getDialectNamespace() == "dist" && number < op->getNumOperands();
}

/// Whether `op` joins along another axis than the one with padding.
bool joinsBeside(Operation *op, Value operand, const ShapeContext &context) {
  if (!llvm::isa<ConcatV2Op>(op))
    return false;
  std::optional<int64_t> axis = context.getConstant(op->getOperand(op->getNumOperands() - 1));
  std::optional<Dims> sizes = context.getShape(operand);
  if (!axis || !sizes)
    return false;
  int64_t along = *axis < 0 ? *axis + static_cast<int64_t>(sizes->size()) : *axis;
  return along >= 0 && along < static_cast<int64_t>(sizes->size()) && !(*sizes)[along].isBound();
}

} // namespace

LogicalResult ShapeContext::checkBounds(Operation *op) {
  for (OpOperand &operand : op->getOpOperands()) {
    bool padded = hasBound(getShape(operand.get())) && !takesPadding(op, operand.getOperandNumber()) &&
                  !joinsBeside(op, operand.get(), *this);
    bool miscounted = hasBound(getElements(operand.get())) && llvm::none_of(op->getResults(), [&](Value result) {
                        return hasBound(getShape(result)) || hasBound(getElements(result));
                      });
    if (!padded && !miscounted)
      continue;
    Operation *producer = operand.get().getDefiningOp();
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
