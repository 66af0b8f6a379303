//===- Equivalence.cpp - Operations that do the same ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/kernels/Equivalence.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;

namespace distc {
namespace {

class Hasher {
public:
  void add(Operation *op) {
    addHash(llvm::hash_combine(op->getName().getAsOpaquePointer(), op->getRawDictionaryAttrs().getAsOpaquePointer(),
                               op->hashProperties(), op->getNumOperands()));
    // Where operands may be exchanged, MLIR's comparison exchanges them.
    const bool commutes = op->hasTrait<OpTrait::IsCommutative>();
    size_t sum = 0;
    for (Value operand : op->getOperands()) {
      auto inside = numbers.find(operand);
      llvm::hash_code own =
          inside == numbers.end() ? llvm::hash_value(operand.getAsOpaquePointer()) : llvm::hash_value(inside->second);
      if (commutes)
        sum += static_cast<size_t>(own);
      else
        addHash(own);
    }
    if (commutes)
      addHash(llvm::hash_value(sum));
    for (Type type : op->getResultTypes())
      addHash(llvm::hash_value(type.getAsOpaquePointer()));
    number(op->getResults());
    for (Region &region : op->getRegions())
      add(region);
  }

  void add(Region &region) {
    for (Block &block : region) {
      number(block.getArguments());
      for (Type type : block.getArgumentTypes())
        addHash(llvm::hash_value(type.getAsOpaquePointer()));
      for (Operation &op : block)
        add(&op);
    }
  }

  llvm::hash_code hash = 0;

private:
  void addHash(llvm::hash_code part) { hash = llvm::hash_combine(hash, part); }
  void number(ValueRange values) {
    for (Value value : values)
      numbers.try_emplace(value, numbers.size());
  }

  llvm::DenseMap<Value, size_t> numbers;
};

} // namespace

llvm::hash_code hashOperation(Operation *op) {
  Hasher hasher;
  hasher.add(op);
  return hasher.hash;
}

llvm::hash_code hashRegion(Region &region) {
  Hasher hasher;
  hasher.add(region);
  return hasher.hash;
}

bool isEquivalent(Operation *a, Operation *b) {
  return OperationEquivalence::isEquivalentTo(a, b, OperationEquivalence::IgnoreLocations);
}

} // namespace distc
