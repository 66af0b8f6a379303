//===- Servers.cpp - What replicas and servers give each other -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Servers.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

#define GET_OP_CLASSES
#include "dialects/drt/ServerOps.cpp.inc"

namespace distc::drt {

bool isServed(EntryOp entry) { return llvm::any_of(entry.getBody().front(), llvm::IsaPred<PushOp, TakeOp>); }

// While no update runs, which the runtime sees to.
SmallVector<Access> PullOp::getAccesses() {
  SmallVector<Access> accesses = readWhole(getIndices());
  for (unsigned i = 0; i < getNumResults(); ++i)
    accesses.push_back({.variable = getPulled(i), .byRuntime = true});
  return accesses;
}

FlatSymbolRefAttr PullOp::getPulled(unsigned i) {
  const unsigned whole = getVariables().size();
  return llvm::cast<FlatSymbolRefAttr>(i < whole ? getVariables()[i] : (*getTables())[i - whole]);
}

LogicalResult PullOp::verify() {
  const size_t tables = getTables() ? getTables()->size() : 0;
  if (getVariables().size() + tables != getValues().size() || tables != getIndices().size())
    return emitOpError() << "has " << getValues().size() << " values of " << getVariables().size() << " variables and "
                         << tables << " tables, for which it has " << getIndices().size() << " tensors of indices";
  for (Value indices : getIndices())
    if (Type element = getElementTypeOrSelf(indices.getType()); !element.isInteger(32) && !element.isInteger(64))
      return emitOpError() << "has indices " << indices.getType() << "; they are of 32 or 64 bits";
  for (auto [variable, value] : llvm::zip(getVariables(), getValues())) {
    auto name = llvm::dyn_cast<FlatSymbolRefAttr>(variable);
    auto held = name ? SymbolTable::lookupNearestSymbolFrom<VariableOp>(*this, name) : VariableOp();
    if (!held || held.getType() != value.getType())
      return emitOpError() << "has a value " << value.getType() << " of " << variable
                           << ", which is no variable of that type";
  }
  return success();
}

RankedTensorType PushOp::getTakenType(unsigned i) {
  auto type = llvm::cast<RankedTensorType>(getGradients()[i].getType());
  if (!isJoined(i))
    return type;
  SmallVector<int64_t> shape(type.getShape());
  shape.front() *= static_cast<int64_t>(getRequired());
  return RankedTensorType::get(shape, type.getElementType());
}

Attribute PushOp::getAggregator(unsigned i) {
  return getAggregators() && !llvm::isa<UnitAttr>((*getAggregators())[i]) ? (*getAggregators())[i] : Attribute();
}

LogicalResult PushOp::verify() {
  if (getNames().size() != getGradients().size() || static_cast<size_t>(getMeans().size()) != getGradients().size() ||
      (getJoined() && getJoined()->size() != getMeans().size()))
    return emitOpError() << "has " << getGradients().size() << " gradients, " << getNames().size() << " names and "
                         << getMeans().size() << " reductions; they are one each";
  const auto required = static_cast<int64_t>(getRequired()), staleness = static_cast<int64_t>(getStaleness());
  if (getAsync() && required != 1)
    return emitOpError() << "is asynchronous, so that each gradient is an update, but " << required << " are required";
  if (required < 1 || required > INT32_MAX || staleness < 0 || staleness > INT32_MAX)
    return emitOpError() << "requires " << required << " gradients, " << staleness
                         << " updates late; at least 1, and at least 0";
  if (getAggregators() && getAggregators()->size() != getGradients().size())
    return emitOpError() << "has " << getGradients().size() << " gradients and " << getAggregators()->size()
                         << " aggregators; they are one each";
  for (unsigned i = 0; getAggregators() && i < getGradients().size(); ++i) {
    Type element = llvm::cast<RankedTensorType>(getGradients()[i].getType()).getElementType();
    if (Attribute rule = getAggregator(i); rule && rule.getAbstractAttribute().getName() != "dist.aggregator")
      return emitOpError() << "has " << rule << " for gradient " << i << ", which is neither an aggregator nor unit";
    if (getAggregator(i) && (isJoined(i) || getAsync() || !(element.isF32() || element.isF64())))
      return emitOpError() << "has an aggregator of gradient " << i
                           << ", which has no others beside it, or is no float32 or float64";
  }
  for (unsigned i = 0; i < getGradients().size(); ++i)
    if (isJoined(i) && (getMeans()[i] || llvm::cast<RankedTensorType>(getGradients()[i].getType()).getRank() == 0))
      return emitOpError() << "joins gradient " << i
                           << ", which is a scalar or asks for the mean; rows are joined as they are";
  return success();
}

LogicalResult TakeOp::verify() {
  if (getNames().size() != getGradients().size())
    return emitOpError() << "has " << getGradients().size() << " gradients and " << getNames().size() << " names";
  return success();
}

} // namespace distc::drt
