//===- InsertCopies.cpp - Values that their memory does not keep are copied --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_INSERTCOPIES
#include "passes/lower/Passes.h.inc"

namespace {

// Behind the value, where its memory holds it for sure.
drt::CopyOp createCopy(Value value) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  return drt::CopyOp::create(builder, value.getLoc(), value.getType(), value, DenseI64ArrayAttr());
}

class EntryCopies {
public:
  explicit EntryCopies(drt::EntryOp entry) : body(entry.getBody().front()) {}

  void insert() {
    unsigned position = 0;
    for (Operation &op : body) {
      positions[&op] = position++;
      for (Value operand : op.getOperands())
        lastUse[getStorage(operand)] = positions[&op];
    }
    // Copies that are inserted have no position: they are no read of a variable, and no bucket's but the one at hand.
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (auto read = dyn_cast<drt::ReadOp>(op))
        reads[read.getVariableAttr()].push_back(read);
      else if (isa<drt::AllReduceStartOp, drt::FetchOp>(op))
        keepInArena(&op);
      if (auto access = dyn_cast<drt::AccessInterface>(op))
        for (const drt::Access &made : access.getAccesses())
          if (made.writes && made.variable)
            keepOldValues(made.variable, &op);
    }
  }

private:
  // A bucket is reduced in place: it has its members for itself.
  void keepInArena(Operation *op) {
    const bool isBucket = isa<drt::AllReduceStartOp>(op);
    for (OpOperand &operand : op->getOpOperands()) {
      Value storage = getStorage(operand.get());
      Operation *producer = storage.getDefiningOp();
      bool needsCopy = !producer || !isPlaced(producer);
      if (isBucket)
        needsCopy = needsCopy || lastUse.lookup(storage) > positions.lookup(op) || !members.insert(storage).second;
      if (!needsCopy)
        continue;
      operand.set(createCopy(operand.get()));
      if (isBucket)
        members.insert(operand.get());
    }
  }

  // A variable's value is its memory, until the memory is written.
  void keepOldValues(FlatSymbolRefAttr variable, Operation *writer) {
    for (drt::ReadOp read : std::exchange(reads[variable], {})) {
      if (lastUse.lookup(read.getResult()) < positions.lookup(writer))
        continue;
      drt::CopyOp copy = createCopy(read.getResult());
      read.getResult().replaceAllUsesExcept(copy.getResult(), copy);
    }
  }

  Block &body;
  llvm::DenseMap<Operation *, unsigned> positions;
  llvm::DenseMap<Value, unsigned> lastUse;                   // of a tensor's memory, whatever shape it is used in
  llvm::DenseMap<Attribute, SmallVector<drt::ReadOp>> reads; // of each variable, since it was written
  llvm::DenseSet<Value> members;
};

struct InsertCopies : impl::InsertCopiesBase<InsertCopies> {
  void runOnOperation() override {
    for (drt::EntryOp entry : getEntries(getOperation()))
      EntryCopies(entry).insert();
  }
};

} // namespace
} // namespace distc
