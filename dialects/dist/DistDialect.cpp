//===- DistDialect.cpp - The dialect of distribution plans ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;

#include "dialects/dist/DistDialect.cpp.inc"
#include "dialects/dist/DistEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"

namespace distc::dist {

namespace {
/// Sizes that the batch says, of values that are no gradients of variables. Attached, as its results' types are
/// inferred by MLIR's own interface.
struct AllReduceShapes : dfg::ShapeInterface::ExternalModel<AllReduceShapes, AllReduceOp> {
  llvm::LogicalResult inferShapes(Operation *op, dfg::ShapeContext &context) const {
    for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults()))
      if (auto sizes = context.getShape(operand))
        context.setShape(result, std::move(*sizes));
    return success();
  }
};
} // namespace

void DISTDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
  AllReduceOp::attachInterface<AllReduceShapes>(*getContext());
}

void DISTDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dist/DistAttrs.cpp.inc"
      >();
}

LogicalResult DISTDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  auto expect = [&](ArrayRef<llvm::StringRef> values) -> LogicalResult {
    auto text = llvm::dyn_cast<StringAttr>(attribute.getValue());
    if (text && (values.empty() || llvm::is_contained(values, text.getValue())))
      return success();
    InFlightDiagnostic error = op->emitOpError() << "attribute '" << attribute.getName().getValue() << "' is not ";
    if (values.empty())
      return error << "a string";
    llvm::interleave(
        values, [&](llvm::StringRef value) { error << '"' << value << '"'; }, [&] { error << " or "; });
    return error;
  };
  if (attribute.getName() == kShareAttr)
    return expect({kSharded, kWhole});
  if (attribute.getName() == kSeedAttr || attribute.getName() == kCouplingAttr)
    return expect({"replica"});
  if (attribute.getName() == kStrategyAttr)
    return expect({});
  return success();
}

FailureOr<TopologyOp> getTopology(ModuleOp module) {
  if (auto topology = module.lookupSymbol<TopologyOp>(kCluster))
    return topology;
  return module.emitError("has no topology; run dist-apply-strategy first");
}

int64_t CompressionAttr::getMatrixRank() const { return getRank() > 0 ? getRank() : 1; }

int64_t CompressionAttr::getKept(int64_t count) const {
  double ratio = getRatio() ? getRatio().getValueAsDouble() : 0;
  auto kept = static_cast<int64_t>(std::ceil((ratio > 0 ? ratio : 0.01) * static_cast<double>(count)));
  return std::clamp<int64_t>(kept, std::min<int64_t>(1, count), count);
}

bool isCollective(Operation *op) {
  return llvm::isa<AllReduceOp, AllGatherOp, AllGatherSlicesOp, ReduceScatterOp, AllGatherVariablesOp>(op);
}

int64_t getReplicas(ModuleOp module) {
  auto topology = module.lookupSymbol<TopologyOp>(kCluster);
  return topology ? topology.getReplicas() : 1;
}

LogicalResult TopologyOp::verify() {
  int64_t next = 0;
  for (auto task : getTasks().getAsRange<TaskAttr>()) {
    if (task.getNumReplicas() == 0)
      continue;
    if (task.getFirstReplica() != next)
      return emitOpError() << "task " << task.getJob() << ":" << task.getIndex() << " begins with replica "
                           << task.getFirstReplica() << " where " << next << " is next";
    if (task.getNumReplicas() != static_cast<int64_t>(task.getDevices().size()))
      return emitOpError() << "task " << task.getJob() << ":" << task.getIndex() << " has " << task.getNumReplicas()
                           << " replicas on " << task.getDevices().size() << " devices";
    next += task.getNumReplicas();
  }
  if (next != static_cast<int64_t>(getReplicas()))
    return emitOpError() << "has tasks for " << next << " replicas of " << getReplicas();
  return success();
}

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *, std::optional<Location>, ValueRange operands, DictionaryAttr,
                                            OpaqueProperties, RegionRange, SmallVectorImpl<Type> &results) {
  llvm::append_range(results, operands.getTypes());
  return success();
}

/// What the buckets' operations have in common: values of one element type, each for a variable.
static LogicalResult verifyBucket(Operation *op, OperandRange gradients, ArrayAttr variables) {
  if (gradients.empty())
    return op->emitOpError("reduces nothing");
  if (variables.size() != gradients.size())
    return op->emitOpError() << "has " << gradients.size() << " values for " << variables.size() << " variables";
  Type elementType = getElementTypeOrSelf(gradients.front().getType());
  for (auto [index, gradient] : llvm::enumerate(gradients))
    if (getElementTypeOrSelf(gradient.getType()) != elementType)
      return op->emitOpError() << "value " << index << " has element type " << getElementTypeOrSelf(gradient.getType())
                               << " in a bucket of " << elementType << "; it needs a bucket of its own";
  return success();
}

/// A sparse gradient: indices of rank 1, and as many rows of values.
static LogicalResult verifySlices(Operation *op, Type indices, Type values) {
  auto indexType = llvm::dyn_cast<RankedTensorType>(indices), valueType = llvm::dyn_cast<RankedTensorType>(values);
  if (!indexType || !valueType)
    return success();
  if (indexType.getRank() != 1 || !indexType.getElementType().isInteger())
    return op->emitOpError() << "has indices " << indexType << "; a sparse gradient's are integers of rank 1";
  if (valueType.getRank() == 0 ||
      failed(verifyCompatibleShape(indexType.getShape(), valueType.getShape().take_front())))
    return op->emitOpError() << "has values " << valueType << " for indices " << indexType
                             << "; there must be a row for each";
  return success();
}

LogicalResult AllReduceOp::verify() { return verifyBucket(*this, getGradients(), getVariables()); }

static LogicalResult verifyOwners(Operation *op, std::optional<ArrayRef<int64_t>> owners, size_t members) {
  if (!owners)
    return success();
  if (owners->size() != members)
    return op->emitOpError() << "has " << owners->size() << " owners of " << members << " members";
  for (int64_t owner : *owners)
    if (owner < 0)
      return op->emitOpError() << "names worker " << owner << " as an owner; workers are numbered from 0 on";
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  if (failed(verifyBucket(*this, getGradients(), getVariables())) ||
      failed(verifyOwners(*this, getOwners(), getGradients().size())))
    return failure();
  if (getShares().size() != getGradients().size())
    return emitOpError() << "has " << getShares().size() << " shares of " << getGradients().size() << " values";
  if (getOwners())
    for (auto [index, gradient, owned] : llvm::enumerate(getGradients(), getShares()))
      if (gradient.getType() != owned.getType())
        return emitOpError() << "gives " << owned.getType() << " of value " << index
                             << ", but its owner has it whole: " << gradient.getType();
  return success();
}

LogicalResult AllGatherVariablesOp::verify() { return verifyOwners(*this, getOwners(), getHandles().size()); }

LogicalResult AccumulateOp::inferShapes(dfg::ShapeContext &context) {
  for (auto [operand, result] : llvm::zip(getGradients(), getAccumulated()))
    if (auto sizes = context.getShape(operand)) {
      // Rows of all batches lie one behind the other.
      if (getSlices() && !sizes->empty())
        sizes->front() = sizes->front() * dfg::Dim(getSteps());
      context.setShape(result, std::move(*sizes));
    }
  return success();
}

LogicalResult AllGatherOp::inferShapes(dfg::ShapeContext &context) {
  if (auto sizes = context.getShape(getRows()); sizes && !sizes->empty()) {
    sizes->front() = context.joinReplicas(sizes->front());
    context.setShape(getAllRows(), std::move(*sizes));
  }
  return success();
}

LogicalResult TakeRowsOp::inferShapes(dfg::ShapeContext &context) {
  auto sizes = context.getShape(getAllRows());
  if (!sizes || sizes->empty())
    return success();
  if (sizes->front().isConstant() && sizes->front().getConstant() % context.getReplicas())
    return emitOpError() << "takes a replica's part of " << sizes->front().getConstant() << " rows, which "
                         << context.getReplicas() << " replicas do not divide";
  sizes->front() = context.shareOf(sizes->front());
  context.setShape(getRows(), std::move(*sizes));
  return success();
}

LogicalResult WholeSizeOp::inferShapes(dfg::ShapeContext &context) {
  if (auto sizes = context.getShape(getShare()))
    context.setShape(getWhole(), std::move(*sizes));
  auto elements = context.getElements(getShare());
  if (!elements)
    return success();
  if (elements->size() != getFactors().size())
    return emitOpError() << "has " << getFactors().size() << " factors for " << elements->size() << " sizes";
  for (auto [element, factor] : llvm::zip(*elements, getFactors()))
    if (factor != 1)
      element = element.isMultipleOfBatch() ? dfg::Dim::wholeBatch(element.getScale()) : element * dfg::Dim(factor);
  context.setElements(getWhole(), std::move(*elements));
  return success();
}

LogicalResult RescaleOp::inferShapes(dfg::ShapeContext &context) {
  if (auto sizes = context.getShape(getShare()))
    context.setShape(getWhole(), std::move(*sizes));
  return success();
}

/// Both have an axis of rows, and what lies behind it is alike.
static LogicalResult verifyRows(Operation *op) {
  auto from = llvm::dyn_cast<RankedTensorType>(op->getOperand(0).getType()),
       to = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!from || !to)
    return success();
  if (from.getRank() == 0 || from.getRank() != to.getRank() || from.getElementType() != to.getElementType() ||
      failed(verifyCompatibleShape(from.getShape().drop_front(), to.getShape().drop_front())))
    return op->emitOpError() << "makes " << to << " of " << from << "; they differ in their numbers of rows alone";
  return success();
}

LogicalResult AllGatherOp::verify() { return verifyRows(*this); }
LogicalResult TakeRowsOp::verify() { return verifyRows(*this); }

LogicalResult AllGatherSlicesOp::inferShapes(dfg::ShapeContext &context) {
  for (auto [operand, result] : llvm::zip(getOperands(), getResults()))
    if (auto sizes = context.getShape(operand); sizes && !sizes->empty()) {
      sizes->front() = sizes->front() * dfg::Dim(context.getReplicas());
      context.setShape(result, std::move(*sizes));
    }
  return success();
}

LogicalResult AllGatherSlicesOp::verify() {
  if (failed(verifySlices(*this, getIndices().getType(), getValues().getType())))
    return failure();
  return verifySlices(*this, getAllIndices().getType(), getAllValues().getType());
}

LogicalResult OwnRowsOp::inferShapes(dfg::ShapeContext &context) {
  for (auto [operand, result] : llvm::zip(getOperands(), getResults()))
    if (auto sizes = context.getShape(operand); sizes && !sizes->empty()) {
      sizes->front() = context.getBoundedSize(sizes->front());
      context.setShape(result, std::move(*sizes));
    }
  return success();
}

LogicalResult OwnRowsOp::verify() {
  if (failed(verifySlices(*this, getIndices().getType(), getValues().getType())))
    return failure();
  return verifySlices(*this, getOwnIndices().getType(), getOwnValues().getType());
}

LogicalResult PushOp::verify() {
  if (getGradient().empty() || getGradient().size() > 2)
    return emitOpError() << "has " << getGradient().size() << " values; a gradient is one value, or indices and values";
  if (getRequired() < 1)
    return emitOpError() << "waits for " << getRequired() << " gradients; at least one is needed";
  return getGradient().size() == 2 ? verifySlices(*this, getGradient()[0].getType(), getGradient()[1].getType())
                                   : success();
}

} // namespace distc::dist
