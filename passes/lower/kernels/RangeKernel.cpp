//===- RangeKernel.cpp - The kernel of an update on a range of elements ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/kernels/RangeKernel.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;

namespace distc::lower {

void RangeKernel::addVariable(unsigned operand, RankedTensorType type) {
  variables.push_back({operand, type});
  if (variables.size() == 1)
    count = type.getNumElements();
}

FailureOr<drt::KernelOp> RangeKernel::build(ModuleOp module, StringRef name) {
  Operation *op = update;
  ImplicitLocOpBuilder b(op->getLoc(), op->getContext());
  auto flat = [&](RankedTensorType type) { return MemRefType::get({type.getNumElements()}, type.getElementType()); };
  SmallVector<Type> types = {b.getI64Type(), b.getI64Type()};
  if (fromBucket)
    types.push_back(flat(variables.front().second));
  for (const SmallVector<Parameter> &group : {variables, arguments})
    for (auto [operand, type] : group) {
      if (type.getNumElements() != 1 && type.getNumElements() != count) {
        op->emitError() << "node '" << dfg::getNodeName(op) << "' updates a variable of " << count
                        << " elements from operand " << operand << " with " << type.getNumElements();
        return failure();
      }
      types.push_back(flat(type));
    }

  b.setInsertionPointToEnd(module.getBody());
  auto function = drt::KernelOp::create(b, name, b.getFunctionType(types, {}));
  function.setRange(true);
  Block *body = function.addEntryBlock();
  b.setInsertionPointToStart(body);
  auto index = [&](Value value) { return arith::IndexCastOp::create(b, b.getIndexType(), value).getResult(); };
  Value begin = index(body->getArgument(0)), end = index(body->getArgument(1));
  Value one = arith::ConstantIndexOp::create(b, 1), zero = arith::ConstantIndexOp::create(b, 0);

  unsigned first = fromBucket ? 3 : 2;
  llvm::DenseMap<unsigned, Value> scalars; // by operand: constants and hyper-parameters
  llvm::DenseMap<unsigned, Value> buffers; // by operand: what has an element for each of the variable's
  unsigned at = first;
  for (auto [operand, type] : variables)
    buffers[operand] = body->getArgument(at++);
  for (auto [operand, type] : arguments) {
    Value buffer = body->getArgument(at++);
    if (type.getNumElements() == 1 && count != 1)
      scalars[operand] = memref::LoadOp::create(b, buffer, zero);
    else
      buffers[operand] = buffer;
  }
  for (auto [operand, value] : constants)
    scalars[operand] = arith::ConstantOp::create(b, value);

  auto loop = scf::ForOp::create(b, begin, end, one);
  b.setInsertionPointToStart(loop.getBody());
  Value i = loop.getInductionVar();
  SmallVector<Value> elements;
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand) {
    if (static_cast<int>(operand) == update.getIndicesOperand())
      elements.push_back({});
    else if (fromBucket && static_cast<int>(operand) == update.getGradientOperand())
      elements.push_back(
          memref::LoadOp::create(b, body->getArgument(2), arith::SubIOp::create(b, i, begin).getResult()));
    else if (Value scalar = scalars.lookup(operand))
      elements.push_back(scalar);
    else
      elements.push_back(memref::LoadOp::create(b, buffers[operand], i));
  }
  dfg::ScalarBuilder s(b, op->getLoc());
  SmallVector<Value> results = update.emitUpdate(s, elements);
  // What a rule only reads (a slot that is updated by itself) is there already.
  for (auto [variable, value] : llvm::zip(variables, results))
    if (value != elements[variable.first])
      memref::StoreOp::create(b, value, buffers[variable.first], i);
  b.setInsertionPointToEnd(body);
  drt::ReturnOp::create(b);
  return function;
}

FailureOr<SmallVector<memref::LoadOp>> getElementLoads(drt::KernelOp kernel, unsigned argument) {
  SmallVector<memref::LoadOp> loads;
  for (Operation *user : kernel.getArgument(argument).getUsers()) {
    auto load = llvm::dyn_cast<memref::LoadOp>(user);
    auto loop = load ? llvm::dyn_cast<scf::ForOp>(load->getParentOp()) : scf::ForOp();
    if (!loop || load.getIndices().front() != loop.getInductionVar() || loop->getParentOp() != kernel)
      return failure();
    loads.push_back(load);
  }
  return loads;
}

drt::KernelOp takeGradient(drt::KernelOp kernel, unsigned argument, StringRef name) {
  if (failed(getElementLoads(kernel, argument)))
    return {};
  auto taking = llvm::cast<drt::KernelOp>(kernel->clone());
  taking.setName(name);
  ImplicitLocOpBuilder b(kernel.getLoc(), kernel.getContext());
  b.setInsertionPointAfter(kernel);
  b.insert(taking);
  Block &body = taking.getBody().front();
  const Value gradient = body.insertArgument(2u, body.getArgument(argument).getType(), taking.getLoc());
  ++argument;
  for (memref::LoadOp load : *getElementLoads(taking, argument)) {
    // Loops go over the range, or a part of it.
    b.setInsertionPoint(load->getParentOp());
    const Value begin = arith::IndexCastOp::create(b, b.getIndexType(), body.getArgument(0));
    b.setInsertionPoint(load);
    const Value index = arith::SubIOp::create(b, load.getIndices().front(), begin);
    load.getMemrefMutable().assign(gradient);
    load.getIndicesMutable().assign(index);
  }
  body.eraseArgument(argument);
  taking.setFunctionType(FunctionType::get(taking.getContext(), body.getArgumentTypes(), {}));
  return taking;
}

void eraseUnusedRangeKernels(ModuleOp module) {
  llvm::DenseSet<StringAttr> named;
  for (auto entry : module.getOps<drt::EntryOp>())
    for (Operation &op : entry.getBody().front())
      if (auto kernel = op.getAttrOfType<FlatSymbolRefAttr>("kernel"))
        named.insert(kernel.getAttr());
  for (auto function : llvm::make_early_inc_range(module.getOps<drt::KernelOp>()))
    if (function.getRange() && !named.contains(function.getSymNameAttr()))
      function.erase();
}

} // namespace distc::lower
