//===- WholeValues.cpp - Values instead of handles, in functions --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/partition/WholeValues.h"
#include "dialects/dfg/tensorflow/FunctionSignature.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;

namespace distc {
namespace {

constexpr llvm::StringLiteral kOutputs = "$outputs";

/// How an operation hands operands to its functions: from which operand on, whether results are the next operands, and
/// what the list of their types is called. None where it runs no functions.
struct Running {
  unsigned firstOperand;
  bool isLoop;
  llvm::StringRef types;
};

std::optional<Running> getRunning(Operation *op) {
  if (llvm::isa<dfg::CallOp>(op))
    return Running{0, false, ""};
  auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
  llvm::StringRef name = opaque ? opaque.getOp() : "";
  name.consume_front("Stateless");
  if (name == "While")
    return Running{0, true, "T"};
  if (name == "If" || name == "Case")
    return Running{1, false, "Tin"};
  return std::nullopt;
}

dfg::TensorShapeAttr getShape(TensorType type) {
  return dfg::TensorShapeAttr::get(type.getContext(), !type.hasRank(),
                                   type.hasRank() ? type.getShape() : ArrayRef<int64_t>());
}

} // namespace

WholeValues::WholeValues(ModuleOp module) : symbols(module), builder(module.getContext()) {}

/// What lets its first operand into a branch or a loop of version 1.
static bool letsIn(Operation *op) {
  auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
  return opaque && llvm::is_contained({"Switch", "Enter"}, opaque.getOp());
}

bool WholeValues::handsOn(Operation *op) { return letsIn(op) || getRunning(op).has_value(); }

bool WholeValues::onlyReads(OpOperand &operand) const {
  Seen seen;
  return onlyReads(operand, seen);
}

bool WholeValues::isOnlyRead(Value handle, Seen &seen) const {
  return !seen.insert(handle).second ||
         llvm::all_of(handle.getUses(), [&](OpOperand &use) { return onlyReads(use, seen); });
}

bool WholeValues::onlyReads(OpOperand &operand, Seen &seen) const {
  Operation *op = operand.getOwner();
  const unsigned number = operand.getOperandNumber();
  if (llvm::isa<dfg::ReadVariableOp, dfg::VariableShapeOp, dfg::ReturnOp>(op))
    return true;
  if (llvm::isa<dfg::IdentityOp>(op) || letsIn(op))
    return number == 0 && llvm::all_of(op->getResults(), [&](Value result) { return isOnlyRead(result, seen); });
  std::optional<Running> running = getRunning(op);
  if (!running || number < running->firstOperand)
    return false;
  auto isOnlyReadIn = [&](FlatSymbolRefAttr name) {
    auto function = symbols.lookup<dfg::FuncOp>(name.getAttr());
    const unsigned argument = number - running->firstOperand;
    return function && argument < function.getNumArguments() &&
           isOnlyRead(function.getBody().front().getArgument(argument), seen);
  };
  if (auto call = llvm::dyn_cast<dfg::CallOp>(op))
    return isOnlyReadIn(call.getCalleeAttr());
  bool found = true;
  dfg::getSourceAttributes(op).walk([&](dfg::FuncAttr function) { found &= isOnlyReadIn(function.getFunction()); });
  return found && (!running->isLoop || isOnlyRead(op->getResult(number), seen));
}

/// A condition or a loop of version 1 lets the value in.
LogicalResult WholeValues::letIn(Operation *op, Value value) {
  op->setOperand(0, value);
  NamedAttrList rest(dfg::getSourceAttributes(op));
  rest.erase("_output_shapes");
  rest.set("T", TypeAttr::get(getElementTypeOrSelf(value.getType())));
  dfg::setSourceAttributes(op, rest);
  for (Value result : op->getResults()) {
    result.setType(value.getType());
    if (failed(useValue(result)))
      return failure();
  }
  return success();
}

LogicalResult WholeValues::pass(Operation *op, const llvm::MapVector<unsigned, Value> &values) {
  if (letsIn(op))
    return letIn(op, values.front().second);
  Running running = *getRunning(op);
  Arguments arguments;
  for (const auto &[operand, value] : values) {
    if (operand < running.firstOperand)
      return op->emitError() << "node '" << dfg::getNodeName(op) << "' decides by a variable's handle";
    op->setOperand(operand, value);
    arguments.emplace_back(operand - running.firstOperand, llvm::cast<TensorType>(value.getType()));
  }
  if (auto call = llvm::dyn_cast<dfg::CallOp>(op)) {
    FailureOr<FlatSymbolRefAttr> function = specialize(op, call.getCalleeAttr(), arguments, false);
    if (failed(function))
      return failure();
    call.setCalleeAttr(*function);
    return success();
  }
  NamedAttrList rest(dfg::getSourceAttributes(op));
  // What TensorFlow knew of the handles.
  rest.erase("_read_only_resource_inputs");
  for (llvm::StringRef list : {running.types, llvm::StringRef("output_shapes"), llvm::StringRef("_output_shapes")}) {
    auto old = llvm::dyn_cast_or_null<ArrayAttr>(rest.get(list));
    if (!old || (list != running.types && !running.isLoop))
      continue;
    SmallVector<Attribute> entries(old.getValue());
    for (auto [argument, type] : arguments)
      if (argument < entries.size())
        entries[argument] =
            list == running.types ? Attribute(TypeAttr::get(type.getElementType())) : Attribute(getShape(type));
    rest.set(list, builder.getArrayAttr(entries));
  }
  auto retarget = [&](Attribute attribute) -> FailureOr<Attribute> {
    auto function = llvm::cast<dfg::FuncAttr>(attribute);
    FailureOr<FlatSymbolRefAttr> copy = specialize(op, function.getFunction(), arguments, running.isLoop);
    if (failed(copy))
      return failure();
    return Attribute(dfg::FuncAttr::get(op->getContext(), *copy, function.getAttributes()));
  };
  for (NamedAttribute entry : llvm::to_vector(rest)) {
    SmallVector<Attribute> functions;
    Attribute value = entry.getValue();
    auto list = llvm::dyn_cast<ArrayAttr>(value);
    for (Attribute item : list ? list.getValue() : ArrayRef(value))
      if (llvm::isa<dfg::FuncAttr>(item)) {
        FailureOr<Attribute> function = retarget(item);
        if (failed(function))
          return failure();
        functions.push_back(*function);
      }
    if (!functions.empty())
      rest.set(entry.getName(), list ? Attribute(builder.getArrayAttr(functions)) : functions.front());
  }
  dfg::setSourceAttributes(op, rest);
  if (running.isLoop)
    for (auto [argument, type] : arguments) {
      op->getResult(argument).setType(type);
      if (failed(useValue(op->getResult(argument))))
        return failure();
    }
  return success();
}

/// Makes users of what was a handle users of the value that it is now.
LogicalResult WholeValues::useValue(Value value) {
  for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
    Operation *user = use.getOwner();
    builder.setInsertionPoint(user);
    Operation *node = nullptr;
    if (llvm::isa<dfg::ReturnOp>(user)) {
      continue;
    } else if (llvm::isa<dfg::IdentityOp>(user)) {
      user->getResult(0).setType(value.getType());
      // They were a handle's.
      NamedAttrList rest(dfg::getSourceAttributes(user));
      rest.erase("_output_shapes");
      rest.erase("T");
      dfg::setSourceAttributes(user, rest);
      if (failed(useValue(user->getResult(0))))
        return failure();
      continue;
    } else if (llvm::isa<dfg::ReadVariableOp>(user)) {
      node = dfg::IdentityOp::create(builder, user->getLoc(), value.getType(), value);
    } else if (llvm::isa<dfg::VariableShapeOp>(user)) {
      node = dfg::ShapeOp::create(builder, user->getLoc(), user->getResult(0).getType(), value);
    } else if (handsOn(user)) {
      llvm::MapVector<unsigned, Value> values;
      values[use.getOperandNumber()] = value;
      if (failed(pass(user, values)))
        return failure();
      continue;
    } else {
      return user->emitError()
             << "node '" << dfg::getNodeName(user)
             << "' does more with a variable than reading it, in a function that is given the value of "
                "one that the strategy splits; leave the variable's partitioner out";
    }
    // The same node, with its name and what it waits for.
    if (Attribute control = user->getAttr(dfg::kControlAttr))
      node->setAttr(dfg::kControlAttr, control);
    if (dfg::getSourceAttribute(user, kOutputs)) {
      NamedAttrList rest;
      rest.set(kOutputs, builder.getStrArrayAttr({"output:0"}));
      dfg::setSourceAttributes(node, rest);
    }
    user->getResult(0).replaceAllUsesWith(node->getResult(0));
    gone.insert(user);
    user->erase();
  }
  return success();
}

FailureOr<FlatSymbolRefAttr> WholeValues::specialize(Operation *user, FlatSymbolRefAttr name,
                                                     const Arguments &arguments, bool isLoop) {
  SmallVector<std::pair<unsigned, void *>> key;
  for (auto [argument, type] : arguments)
    key.emplace_back(argument, const_cast<void *>(type.getAsOpaquePointer()));
  auto entry = std::pair(const_cast<void *>(name.getAsOpaquePointer()), key);
  if (auto it = known.find(entry); it != known.end())
    return it->second;
  auto original = symbols.lookup<dfg::FuncOp>(name.getAttr());
  if (!original ||
      llvm::any_of(arguments, [&](auto &argument) { return argument.first >= original.getNumArguments(); }))
    return user->emitError() << "node '" << dfg::getNodeName(user) << "' runs function '" << name.getValue()
                             << "', which is not in the library with such arguments";
  auto copy = llvm::cast<dfg::FuncOp>(original->clone());
  copy.setSymName((original.getSymName() + "_of_values").str());
  // As another where there is one of this name.
  FlatSymbolRefAttr result = FlatSymbolRefAttr::get(symbols.insert(copy));
  Block &body = copy.getBody().front();
  Operation *end = body.getTerminator();
  for (auto [argument, type] : arguments) {
    body.getArgument(argument).setType(type);
    if (failed(useValue(body.getArgument(argument))))
      return failure();
  }
  // A loop's condition has one result of its own.
  tf::setArgumentTypes(copy, arguments, isLoop && end->getNumOperands() == copy.getNumArguments());
  copy.setFunctionType(builder.getFunctionType(body.getArgumentTypes(), end->getOperandTypes()));
  known[entry] = result;
  return result;
}

} // namespace distc
