//===- References.cpp - The variables and tasks that a plan names ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What runs accesses memory by these names: a variable that is another, or smaller
// than the kernel takes it to be, would be written beyond its end.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Servers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace distc::drt {

namespace {

FailureOr<VariableOp> findVariable(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  if (auto variable = symbols.lookupNearestSymbolFrom<VariableOp>(op, name))
    return variable;
  return op->emitOpError() << "names " << name << ", which is no variable of the plan";
}

LogicalResult verifyNamed(Operation *op, ArrayAttr names, SymbolTableCollection &symbols) {
  for (auto name : names.getAsRange<FlatSymbolRefAttr>())
    if (failed(findVariable(op, name, symbols)))
      return failure();
  return success();
}

/// A variable keeps what integers its graph has; computations know their bits alone.
bool isSameMemory(Type one, Type another) {
  auto x = llvm::cast<RankedTensorType>(one), y = llvm::cast<RankedTensorType>(another);
  Type element = x.getElementType(), other = y.getElementType();
  return x.getShape() == y.getShape() &&
         (element == other || (llvm::isa<IntegerType>(element) && llvm::isa<IntegerType>(other) &&
                               element.getIntOrFloatBitWidth() == other.getIntOrFloatBitWidth()));
}

/// The variable has the shape of a tensor that is its memory, or a copy of it.
LogicalResult verifyTensor(Operation *op, FlatSymbolRefAttr name, Type tensor, SymbolTableCollection &symbols) {
  FailureOr<VariableOp> variable = findVariable(op, name, symbols);
  if (failed(variable))
    return failure();
  if (!isSameMemory(variable->getType(), tensor))
    return (op->emitOpError() << "takes variable " << name << " as " << tensor).attachNote(variable->getLoc())
           << "it is " << variable->getType();
  return success();
}

/// The variables have so many elements each; of those that are held in shares, the replica's has `share`.
LogicalResult verifyCount(Operation *op, ArrayAttr names, int64_t count, int64_t share,
                          SymbolTableCollection &symbols) {
  for (auto name : names.getAsRange<FlatSymbolRefAttr>()) {
    FailureOr<VariableOp> variable = findVariable(op, name, symbols);
    if (failed(variable))
      return failure();
    const int64_t needed = variable->getShares() ? share : count;
    if (llvm::cast<RankedTensorType>(variable->getType()).getNumElements() != needed)
      return (op->emitOpError() << "updates " << needed << " elements of variable " << name)
                 .attachNote(variable->getLoc())
             << "it is " << variable->getType();
  }
  return success();
}

LogicalResult verifyTasks(Operation *op, ArrayRef<int64_t> owners) {
  if (owners.empty())
    return success();
  FailureOr<ProgramOp> program = getProgram(op);
  if (failed(program))
    return failure();
  const auto tasks = static_cast<int64_t>(program->getTasks().size());
  for (int64_t owner : owners)
    if (owner >= tasks)
      return op->emitOpError() << "names task " << owner << " as an owner, and there are " << tasks;
  return success();
}

/// Whether the module is a program with its kernels, and not a part of one: then each that it runs is in it. Where all
/// have gone to a device's module, `convert-drt-to-llvm` asks that one.
bool hasKernels(Operation *op, bool range) {
  auto module = op->getParentOfType<ModuleOp>();
  return module && !module.getOps<ProgramOp>().empty() &&
         llvm::any_of(module.getOps<KernelOp>(), [&](KernelOp kernel) { return kernel.getRange() == range; });
}

/// The modules of devices' kernels, whatever their dialect.
bool isInInnerModule(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  for (Operation &inner : *op->getParentOfType<ModuleOp>().getBody())
    if (inner.hasTrait<OpTrait::SymbolTable>() && symbols.lookupSymbolIn(&inner, name))
      return true;
  return false;
}

/// The kernel, where it is one of the plan's still: null where it is a function for LLVM or in the devices' module, or
/// where a part of a plan has none.
FailureOr<KernelOp> findKernel(Operation *op, FlatSymbolRefAttr name, bool range, SymbolTableCollection &symbols) {
  Operation *found = symbols.lookupNearestSymbolFrom(op, name);
  auto kernel = llvm::dyn_cast_or_null<KernelOp>(found);
  if (!found && hasKernels(op, range) && !isInInnerModule(op, name, symbols))
    return op->emitOpError() << "runs " << name << ", which is no kernel of the program";
  if (found && !kernel && !llvm::isa<FunctionOpInterface>(found))
    return (op->emitOpError() << "runs " << name << ", which is no kernel").attachNote(found->getLoc()) << "it is this";
  if (kernel && kernel.getRange() != range)
    return (op->emitOpError() << "runs " << name << ", which "
                              << (range ? "takes no range of elements" : "takes a range of elements"))
               .attachNote(kernel->getLoc())
           << "it is this";
  return kernel;
}

bool isMemoryOf(Type buffer, int64_t count, Type element) {
  auto type = llvm::cast<MemRefType>(buffer);
  return type.getNumElements() == count && type.getElementType() == element;
}

/// The range kernel takes the gradient, then the variables, then the arguments. Of variables and arguments with
/// `count` elements each it takes `given` of them.
LogicalResult verifyRangeKernel(Operation *op, FlatSymbolRefAttr name, bool hasGradient, ArrayAttr variables,
                                ValueRange arguments, SymbolTableCollection &symbols) {
  FailureOr<KernelOp> kernel = findKernel(op, name, /*range=*/true, symbols);
  if (failed(kernel) || !*kernel)
    return kernel;
  ArrayRef<Type> buffers = kernel->getBufferTypes();
  auto refuse = [&](const Twine &what) -> LogicalResult {
    return (op->emitOpError() << "runs " << name << what).attachNote(kernel->getLoc()) << "it is this";
  };
  const size_t needed = hasGradient + variables.size() + arguments.size();
  if (buffers.size() != needed)
    return refuse(", which takes " + Twine(buffers.size()) + " buffers and not " + Twine(needed));
  for (auto [symbol, buffer] : llvm::zip(variables.getAsRange<FlatSymbolRefAttr>(), buffers.drop_front(hasGradient))) {
    FailureOr<VariableOp> variable = findVariable(op, symbol, symbols);
    if (failed(variable))
      return failure();
    Type element = llvm::cast<RankedTensorType>(variable->getType()).getElementType();
    Type of = llvm::cast<MemRefType>(buffer).getElementType();
    if (element.getIntOrFloatBitWidth() != of.getIntOrFloatBitWidth())
      return refuse(", which takes elements of another width than those of variable " + symbol.getValue());
  }
  for (auto [argument, buffer] : llvm::zip(arguments, buffers.take_back(arguments.size()))) {
    auto type = llvm::cast<RankedTensorType>(argument.getType());
    if (type.getElementType() != llvm::cast<MemRefType>(buffer).getElementType())
      return refuse(", which takes other elements than those of its arguments");
    if (type.getNumElements() < llvm::cast<MemRefType>(buffer).getNumElements())
      return refuse(", which takes more elements than an argument has");
  }
  return success();
}

ArrayRef<int64_t> toArray(const std::optional<uint64_t> &number) {
  return number ? ArrayRef(reinterpret_cast<const int64_t *>(&*number), 1) : ArrayRef<int64_t>();
}

} // namespace

LogicalResult ProgramOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FlatSymbolRefAttr step = getGlobalStepAttr();
  Operation *variable = step ? symbols.lookupNearestSymbolFrom(*this, step) : nullptr;
  // A variable of the graph before lowering, of the plan behind it.
  if (step && (!variable || llvm::isa<FunctionOpInterface>(variable)))
    return emitOpError() << "names the global step " << step << ", which is no variable of the program";
  return success();
}

LogicalResult VariableOp::verifySymbolUses(SymbolTableCollection &) { return verifyTasks(*this, toArray(getOwner())); }

LogicalResult ReadOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyTensor(*this, getVariableAttr(), getType(), symbols);
}

/// The table, of which there is a row for each index.
static FailureOr<VariableOp> verifyRows(Operation *op, FlatSymbolRefAttr name, Type indices, Type result,
                                        SymbolTableCollection &symbols) {
  FailureOr<VariableOp> variable = findVariable(op, name, symbols);
  if (failed(variable))
    return failure();
  auto table = llvm::cast<RankedTensorType>(variable->getType()), rows = llvm::cast<RankedTensorType>(result);
  const int64_t count = llvm::cast<RankedTensorType>(indices).getNumElements();
  if (table.getRank() == 0 || table.getElementType() != rows.getElementType() ||
      ShapedType::getNumElements(table.getShape().drop_front()) * count != rows.getNumElements())
    return (op->emitOpError() << "takes " << rows << " of variable " << name << ", as " << count << " rows")
               .attachNote(variable->getLoc())
           << "it is " << table;
  return variable;
}

LogicalResult PullOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto [name, value] : llvm::zip(getVariables().getAsRange<FlatSymbolRefAttr>(), getValues()))
    if (failed(verifyTensor(*this, name, value.getType(), symbols)))
      return failure();
  for (auto [i, indices] : llvm::enumerate(getIndices())) {
    const unsigned result = getVariables().size() + i;
    if (failed(verifyRows(*this, getPulled(result), indices.getType(), getValues()[result].getType(), symbols)))
      return failure();
  }
  return success();
}

LogicalResult PushRowsOp::verifySymbolUses(SymbolTableCollection &) {
  SmallVector<int64_t> owners;
  for (auto shards : getShards().getAsRange<DenseI64ArrayAttr>())
    for (int64_t i = 2; i < shards.size(); i += 3)
      owners.push_back(shards[i]);
  return verifyTasks(*this, owners);
}

LogicalResult PullRowsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto [name, indices, result, owner] :
       llvm::zip(getVariables().getAsRange<FlatSymbolRefAttr>(), getIndices(), getRows(), getOwners())) {
    FailureOr<VariableOp> variable = verifyRows(*this, name, indices.getType(), result.getType(), symbols);
    if (failed(variable))
      return failure();
    if (static_cast<int64_t>(variable->getOwner().value_or(-1)) != owner)
      return emitOpError() << "pulls rows from task " << owner << ", which does not alone hold variable " << name;
  }
  return verifyTasks(*this, llvm::to_vector(getOwners()));
}

// The runtime is told addresses alone: a kernel of other tensors would write beyond their end.
LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<KernelOp> kernel = findKernel(*this, getKernelAttr(), /*range=*/false, symbols);
  if (failed(kernel) || !*kernel)
    return kernel;
  ArrayRef<Type> buffers = kernel->getBufferTypes();
  SmallVector<Type> tensors(getOperandTypes());
  llvm::append_range(tensors, getResultTypes());
  bool fits = buffers.size() == tensors.size();
  for (auto [buffer, tensor] : llvm::zip(buffers, tensors)) {
    auto type = llvm::cast<RankedTensorType>(tensor);
    fits = fits && isMemoryOf(buffer, type.getNumElements(), type.getElementType());
  }
  if (!fits)
    return (emitOpError() << "runs " << getKernelAttr() << " on other tensors than it takes")
               .attachNote(kernel->getLoc())
           << "it takes " << kernel->getFunctionType();
  return success();
}

LogicalResult AllReduceStartOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyTasks(*this, getOwners().value_or(ArrayRef<int64_t>()));
}

LogicalResult GatherStartOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return success(succeeded(verifyNamed(*this, getVariables(), symbols)) &&
                 succeeded(verifyTasks(*this, getOwners().value_or(ArrayRef<int64_t>()))));
}

LogicalResult UpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  const auto count = static_cast<int64_t>(getCount());
  return success(succeeded(verifyCount(*this, getVariables(), count, getShare().value_or(count), symbols)) &&
                 succeeded(verifyTasks(*this, toArray(getOwner()))) &&
                 succeeded(verifyRangeKernel(*this, getKernelAttr(), getBucket().has_value(), getVariables(),
                                             getArguments(), symbols)));
}

LogicalResult UpdateGroupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(findKernel(*this, getKernelAttr(), /*range=*/false, symbols)))
    return failure();
  for (auto member : getVariables().getAsRange<ArrayAttr>())
    if (failed(verifyNamed(*this, member, symbols)))
      return failure();
  return success();
}

// An index names the first axes of each.
LogicalResult SparseUpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyTasks(*this, toArray(getOwner()))))
    return failure();
  const auto depth = static_cast<int64_t>(getDepth()), rows = getNumRows();
  for (auto name : getVariables().getAsRange<FlatSymbolRefAttr>()) {
    FailureOr<VariableOp> variable = findVariable(*this, name, symbols);
    if (failed(variable))
      return failure();
    auto type = llvm::cast<RankedTensorType>(variable->getType());
    auto values = llvm::cast<RankedTensorType>(getValues().getType());
    if (depth > type.getRank() ||
        (rows && ShapedType::getNumElements(type.getShape().drop_front(depth)) * rows != values.getNumElements()))
      return (emitOpError() << "updates rows of variable " << name << " by " << values << ", at indices of " << depth
                            << " numbers")
                 .attachNote(variable->getLoc())
             << "it is " << type;
  }
  return verifyRangeKernel(*this, getKernelAttr(), /*hasGradient=*/true, getVariables(), getArguments(), symbols);
}

LogicalResult MatmulUpdateOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto a = llvm::cast<RankedTensorType>(getA().getType()), b = llvm::cast<RankedTensorType>(getB().getType());
  const int64_t count = a.getDimSize(getTransposeA() ? 1 : 0) * b.getDimSize(getTransposeB() ? 0 : 1);
  return success(succeeded(verifyCount(*this, getVariables(), count, count, symbols)) &&
                 succeeded(verifyRangeKernel(*this, getKernelAttr(), /*hasGradient=*/true, getVariables(),
                                             getArguments(), symbols)));
}

} // namespace distc::drt
