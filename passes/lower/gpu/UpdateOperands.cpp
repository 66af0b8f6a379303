//===- UpdateOperands.cpp - Where the operands of an entry's updates lie ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/UpdateOperands.h"

#include "passes/lower/TensorType.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/program/ScopeNames.h"

using namespace mlir;

namespace distc {

UpdateOperands::UpdateOperands(drt::EntryOp entry, const SymbolTable &symbols, int64_t replicas)
    : entry(entry), symbols(symbols) {
  Block &body = entry.getBody().front();
  for (auto start : body.getOps<drt::AllReduceStartOp>()) {
    buckets[start.getBucket()] = start;
    bool isPlain = !start.getCompression() && !start.getAggregator() && !start.getGather();
    if (start.getMean() && isPlain && replicas > 1 && !start.getGradients().empty() &&
        isa<FloatType>(typeOf(start.getGradients().front()).getElementType()))
      scales[start.getBucket()] = 1.0 / static_cast<double>(replicas);
  }
  // What else reads the result needs the mean itself.
  for (auto result : body.getOps<drt::AllReduceResultOp>())
    scales.erase(result.getBucket());
}

void UpdateOperands::takeMeans() {
  for (auto [bucket, scale] : scales)
    buckets[bucket].setMean(false);
}

std::string UpdateOperands::getNode(drt::UpdateOp op) const { return getNodeNames(op.getLoc()); }

// ---- Places -----------------------------------------------------------------------------------

LogicalResult UpdateOperands::get(drt::UpdateOp op, SmallVectorImpl<UpdateOperand> &operands) {
  auto append = [&](FailureOr<UpdateOperand> operand) {
    if (succeeded(operand))
      operands.push_back(*operand);
    return LogicalResult(operand);
  };
  if (op.getBucket() && failed(append(getGradient(op, *op.getBucket(), op.getMember().value_or(0)))))
    return failure();
  for (auto variable : op.getVariables().getAsRange<FlatSymbolRefAttr>())
    if (failed(append(getVariable(op, variable.getValue()))))
      return failure();
  // One element serves a variable of any size, also of one.
  for (Value argument : op.getArguments())
    if (failed(append(typeOf(argument).getNumElements() == 1 ? UpdateOperand{UpdateOperand::Scalar, 0, argument}
                                                             : getStream(op, argument))))
      return failure();
  return success();
}

FailureOr<UpdateOperand> UpdateOperands::getGradient(drt::UpdateOp op, int32_t bucket, uint64_t member) {
  drt::AllReduceStartOp start = buckets.lookup(bucket);
  if (!start)
    return op.emitOpError("names bucket ") << bucket << ", which was not started before";
  if (member >= start.getGradients().size())
    return op.emitOpError("names member ")
           << member << " of bucket " << bucket << ", which has " << start.getGradients().size();
  if (!start.getAt())
    return start.emitOpError("has no place in the arena; run drt-plan-memory");
  if (typeOf(start.getGradients()[member]).getNumElements() != static_cast<int64_t>(op.getCount()))
    return op.emitOpError("updates ") << op.getCount() << " elements from a gradient of type "
                                      << start.getGradients()[member].getType();
  return UpdateOperand{UpdateOperand::Arena, (*start.getAt())[0] + getMemberOffsets(start)[member], {}, true};
}

FailureOr<UpdateOperand> UpdateOperands::getVariable(drt::UpdateOp op, StringRef name) {
  auto variable = symbols.lookup<drt::VariableOp>(name);
  if (!variable || !variable.getAt())
    return op.emitOpError("uses variable '")
           << name << "', which has no place in the block of variables; run drt-plan-memory{device}";
  return UpdateOperand{UpdateOperand::Variables, static_cast<int64_t>(*variable.getAt()), {}, !variable.getShares()};
}

/// A share has as many elements as the update makes; it may be as long as the whole variable.
static bool isWhole(drt::UpdateOp op, Value tensor) {
  auto read = getStorage(tensor).getDefiningOp<drt::ReadOp>();
  auto variable =
      read ? SymbolTable::lookupNearestSymbolFrom<drt::VariableOp>(op, read.getVariableAttr()) : drt::VariableOp();
  return (!variable || !variable.getShares()) && typeOf(tensor).getNumElements() == static_cast<int64_t>(op.getCount());
}

FailureOr<UpdateOperand> UpdateOperands::getStream(drt::UpdateOp op, Value tensor) {
  FailureOr<UpdateOperand> operand = findStream(op, tensor);
  if (succeeded(operand))
    operand->tensor = tensor, operand->isWhole = isWhole(op, tensor);
  return operand;
}

FailureOr<UpdateOperand> UpdateOperands::findStream(drt::UpdateOp op, Value tensor) {
  auto result = dyn_cast<OpResult>(getStorage(tensor));
  Operation *producer = result.getOwner();
  if (auto read = dyn_cast<drt::ReadOp>(producer))
    return getVariable(op, read.getVariable());
  // A bucket is reduced in its place.
  if (auto reduced = dyn_cast<drt::AllReduceResultOp>(producer);
      reduced && !buckets.lookup(reduced.getBucket()).getGather())
    return getGradient(op, reduced.getBucket(), result.getResultNumber());
  if (!isPlaced(producer))
    return UpdateOperand{UpdateOperand::Pointer, 0, tensor};
  auto places = producer->getAttrOfType<DenseI64ArrayAttr>("at");
  if (!places)
    return producer->emitOpError("has no place in the arena; run drt-plan-memory");
  return UpdateOperand{UpdateOperand::Arena, places[result.getResultNumber()]};
}

// ---- What is the same ---------------------------------------------------------------------------

void UpdateOperands::pass(Operation *op) {
  if (isa<drt::UpdateOp, drt::SparseUpdateOp>(op))
    for (auto variable : op->getAttrOfType<ArrayAttr>("variables").getAsRange<FlatSymbolRefAttr>())
      ++versions[variable.getValue()];
  if (auto copy = dyn_cast<drt::CopyOp>(op); copy && getStorage(copy.getInput()).getDefiningOp<drt::ReadOp>())
    copied[op] = identify(copy.getInput());
}

std::string UpdateOperands::identify(Value tensor) const {
  Operation *op = getStorage(tensor).getDefiningOp();
  if (auto read = dyn_cast_or_null<drt::ReadOp>(op))
    return ("@" + read.getVariable() + " " + Twine(versions.lookup(read.getVariable()))).str();
  if (auto feed = dyn_cast_or_null<drt::FeedOp>(op))
    return ("feed " + feed.getName()).str();
  if (auto known = copied.find(op); known != copied.end())
    return known->second;
  std::string text;
  llvm::raw_string_ostream(text) << getStorage(tensor).getAsOpaquePointer();
  return text;
}

std::string UpdateOperands::getKey(drt::UpdateOp op, ArrayRef<UpdateOperand> operands) const {
  std::string key = std::to_string(op.getVariables().size()) + " bucket " +
                    (op.getBucket() ? std::to_string(*op.getBucket()) : "none") + (op.getShare() ? " shares" : "");
  for (const UpdateOperand &operand : operands) {
    key += ", " + std::to_string(operand.kind) + (op.getShare() && operand.isWhole ? " of all" : "");
    if (operand.kind == UpdateOperand::Scalar)
      key += " " + identify(operand.tensor) + " " + std::to_string(typeOf(operand.tensor).getElementTypeBitWidth());
    else if (operand.kind == UpdateOperand::Pointer) // serves this update alone
      llvm::raw_string_ostream(key) << " " << op.getOperation();
  }
  return key;
}

} // namespace distc
