//===- DistDialect.cpp - The dialect of distribution plans ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/dist/DistDialect.cpp.inc"
#include "dialects/dist/DistEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dist/DistAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dist/DistOps.cpp.inc"

namespace distc::dist {

void DISTDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "dialects/dist/DistOps.cpp.inc"
      >();
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
  if (attribute.getName() == kSeedAttr)
    return expect({"replica"});
  if (attribute.getName() == kStrategyAttr)
    return expect({});
  return success();
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

LogicalResult AllReduceOp::verify() {
  if (getGradients().empty())
    return emitOpError("reduces nothing");
  if (getVariables().size() != getGradients().size())
    return emitOpError() << "has " << getGradients().size() << " values for " << getVariables().size() << " variables";
  Type elementType = getElementTypeOrSelf(getGradients().front().getType());
  for (auto [index, gradient] : llvm::enumerate(getGradients()))
    if (getElementTypeOrSelf(gradient.getType()) != elementType)
      return emitOpError() << "value " << index << " has element type " << getElementTypeOrSelf(gradient.getType())
                           << " in a bucket of " << elementType << "; it needs a bucket of its own";
  return success();
}

} // namespace distc::dist
