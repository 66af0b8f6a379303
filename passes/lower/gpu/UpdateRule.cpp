//===- UpdateRule.cpp - What an update does to one element --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/UpdateRule.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace distc {
namespace {

constexpr unsigned kFirstBuffer = 2; // behind begin and end

/// Takes the loop and the memory out of a range kernel.
class RuleWriter {
public:
  RuleWriter(drt::KernelOp kernel, func::FuncOp rule)
      : kernel(kernel), rule(rule), b(kernel.getLoc(), OpBuilder::atBlockBegin(&rule.getBody().front())),
        stored(rule.getNumArguments()) {}

  /// The values that the kernel stores, by buffer.
  FailureOr<SmallVector<Value>> write() {
    // The element's number: nothing but addresses may depend on it.
    Value number = arith::ConstantIndexOp::create(b, 0), bound = arith::ConstantIntOp::create(b, 0, 64);
    mapping.map(kernel.getArgument(0), bound);
    mapping.map(kernel.getArgument(1), bound);
    for (Operation &op : kernel.getBody().front().without_terminator()) {
      auto loop = dyn_cast<scf::ForOp>(op);
      if (!loop) {
        if (failed(take(op)))
          return failure();
        continue;
      }
      mapping.map(loop.getInductionVar(), number);
      for (Operation &inner : loop.getBody()->without_terminator())
        if (failed(take(inner)))
          return failure();
    }
    SmallVector<Value> live;
    llvm::copy_if(stored, std::back_inserter(live), [](Value value) { return value != nullptr; });
    func::ReturnOp::create(b, live);
    // Those two are the block's first.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(rule.getBody().front())))
      if (&op != number.getDefiningOp() && &op != bound.getDefiningOp() && isOpTriviallyDead(&op))
        op.erase();
    for (Value place : {number, bound}) {
      if (!place.use_empty())
        return kernel.emitError("updates an element by its number, which has no code for GPUs");
      place.getDefiningOp()->erase();
    }
    return stored;
  }

private:
  LogicalResult take(Operation &op) {
    auto buffer = [&](Value memory) -> std::optional<unsigned> {
      auto argument = dyn_cast<BlockArgument>(memory);
      if (!argument || argument.getOwner() != &kernel.getBody().front())
        return std::nullopt;
      return argument.getArgNumber() - kFirstBuffer;
    };
    auto load = dyn_cast<memref::LoadOp>(op);
    auto store = dyn_cast<memref::StoreOp>(op);
    if (!load && !store) {
      b.clone(op, mapping);
      return success();
    }
    std::optional<unsigned> number = buffer(load ? load.getMemref() : store.getMemref());
    if (!number)
      return op.emitOpError("in a range kernel reads what is no buffer of the update; there is no code for it on GPUs");
    if (load)
      mapping.map(load.getResult(), rule.getArgument(*number));
    else
      stored[*number] = mapping.lookupOrDefault(store.getValueToStore());
    return success();
  }

  drt::KernelOp kernel;
  func::FuncOp rule;
  ImplicitLocOpBuilder b;
  IRMapping mapping;
  SmallVector<Value> stored;
};

} // namespace

FailureOr<UpdateRule> UpdateRule::get(drt::KernelOp kernel, bool hasGradient, size_t variables) {
  SmallVector<Type> types;
  for (Type buffer : kernel.getArgumentTypes().drop_front(kFirstBuffer))
    types.push_back(cast<MemRefType>(buffer).getElementType());
  UpdateRule rule;
  rule.function = func::FuncOp::create(kernel.getLoc(), "rule", FunctionType::get(kernel.getContext(), types, {}));
  rule.function->addEntryBlock();
  FailureOr<SmallVector<Value>> stored = RuleWriter(kernel, *rule.function).write();
  if (failed(stored))
    return failure();
  for (auto [i, value] : llvm::enumerate(*stored))
    if ((value != nullptr) != (i >= hasGradient && i < hasGradient + variables))
      return kernel.emitError("does not write its variables and nothing else");
  llvm::raw_string_ostream os(rule.text);
  rule.function->getFunctionType().print(os);
  for (Operation &op : rule.function->getBody().front())
    op.print(os, OpPrintingFlags().useLocalScope());
  return rule;
}

ArrayRef<Type> UpdateRule::getTypes() const { return function.get().getArgumentTypes(); }

SmallVector<Value> UpdateRule::write(ImplicitLocOpBuilder &b, ValueRange elements) const {
  Block &body = function.get().getBody().front();
  IRMapping mapping;
  mapping.map(body.getArguments(), elements);
  for (Operation &op : body.without_terminator())
    b.clone(op, mapping);
  return llvm::map_to_vector(body.getTerminator()->getOperands(), [&](Value value) { return mapping.lookup(value); });
}

} // namespace distc
