//===- PlanMemory.cpp - Gives every tensor of an entry its place in the arena ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/Passes.h"
#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/ArenaPacking.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_PLANMEMORY
#include "passes/lower/Passes.h.inc"

namespace {

// Every allocation of CUDA's is aligned so.
constexpr int64_t kVariableAlignment = 256;

// A bucket has its members for itself, and what is fetched lies in the arena.
LogicalResult checkPlaced(func::FuncOp entry) {
  llvm::DenseSet<Value> members;
  for (Operation &op : entry.getBody().front()) {
    if (!isa<drt::AllReduceStartOp, drt::FetchOp>(op))
      continue;
    for (Value operand : op.getOperands()) {
      Value storage = getStorage(operand);
      Operation *producer = storage.getDefiningOp();
      if (!producer || !isPlaced(producer) || (isa<drt::AllReduceStartOp>(op) && !members.insert(storage).second))
        return op.emitOpError("needs a tensor in the arena that no other bucket has; run drt-insert-copies");
    }
  }
  return success();
}

// The blocks of one entry: one a tensor, one a bucket.
class EntryBlocks {
public:
  explicit EntryBlocks(func::FuncOp entry) : body(entry.getBody().front()) {
    int64_t position = 0;
    for (Operation &op : body) {
      if (isPlaced(&op))
        for (Value result : op.getResults())
          addBlock(result, position);
      else if (auto bucket = dyn_cast<drt::AllReduceStartOp>(op))
        addBucket(bucket);
      for (Value operand : op.getOperands())
        use(operand, position, isReadByOthers(&op, operand));
      ++position;
    }
  }

  int64_t pack() {
    SmallVector<LiveBlock> ownBlocks;
    for (LiveBlock &block : blocks)
      if (block.bytes >= 0)
        ownBlocks.push_back(block);
    int64_t bytes = packArena(ownBlocks);
    size_t next = 0;
    for (LiveBlock &block : blocks)
      if (block.bytes >= 0)
        block.place = ownBlocks[next++].place;
    return bytes;
  }

  void writePlaces() {
    Builder builder(body.getParentOp()->getContext());
    for (Operation &op : body) {
      SmallVector<int64_t> places;
      if (isPlaced(&op))
        for (Value result : op.getResults())
          places.push_back(getPlace(result));
      else if (isa<drt::AllReduceStartOp>(op) && op.getNumOperands())
        places.push_back(getPlace(getStorage(op.getOperand(0))));
      else
        continue;
      op.setAttr("at", builder.getDenseI64ArrayAttr(places));
    }
  }

private:
  struct Position {
    size_t block;
    int64_t offset = 0; // in the block
  };

  // What is fetched, and what other replicas, which are ahead or behind, read of this one's arena.
  static bool isReadByOthers(Operation *op, Value operand) {
    if (auto update = dyn_cast<drt::MatmulUpdateOp>(op))
      return operand == update.getA() || operand == update.getB();
    return isa<drt::FetchOp>(op);
  }

  void addBlock(Value value, int64_t position) {
    positions[value] = {blocks.size()};
    blocks.push_back({getTensorBytes(cast<RankedTensorType>(value.getType())), position, position});
  }

  // The members' own blocks give way to one that is in use from the first member's write to the end.
  void addBucket(drt::AllReduceStartOp bucket) {
    SmallVector<int64_t> offsets = getMemberOffsets(bucket);
    LiveBlock whole{offsets.back(), INT64_MAX, INT64_MAX};
    for (auto [offset, gradient] : llvm::zip(offsets, bucket.getGradients())) {
      Position &position = positions[getStorage(gradient)];
      LiveBlock &own = blocks[position.block];
      whole.begin = std::min(whole.begin, own.begin);
      own.bytes = -1;
      position = {blocks.size(), offset};
    }
    blocks.push_back(whole);
  }

  void use(Value operand, int64_t position, bool readByOthers) {
    auto found = positions.find(getStorage(operand));
    if (found == positions.end())
      return;
    LiveBlock &block = blocks[found->second.block];
    block.end = readByOthers ? INT64_MAX : std::max(block.end, position);
  }

  int64_t getPlace(Value value) {
    const Position &position = positions.at(value);
    return blocks[position.block].place + position.offset;
  }

  Block &body;
  llvm::DenseMap<Value, Position> positions;
  SmallVector<LiveBlock> blocks; // bytes < 0: the tensor lies in a bucket
};

// The places of the variables in a replica's block of them; returns its size.
int64_t placeVariables(ModuleOp module) {
  Builder builder(module.getContext());
  int64_t next = 0;
  for (auto variable : module.getOps<drt::VariableOp>()) {
    variable.setAtAttr(builder.getI64IntegerAttr(next));
    next += llvm::alignTo(getTensorBytes(cast<RankedTensorType>(variable.getType())), kVariableAlignment);
  }
  return next;
}

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  using Base::Base;

  void runOnOperation() override {
    int64_t bytes = 0;
    for (func::FuncOp entry : getEntries(getOperation())) {
      if (failed(checkPlaced(entry)))
        return signalPassFailure();
      EntryBlocks blocks(entry);
      bytes = std::max(bytes, blocks.pack());
      blocks.writePlaces();
    }
    Builder builder(&getContext());
    getOperation()->setAttr("drt.arena_bytes", builder.getI64IntegerAttr(bytes));
    if (device)
      getOperation()->setAttr(drt::kVariableBytesAttr, builder.getI64IntegerAttr(placeVariables(getOperation())));
  }
};

} // namespace
} // namespace distc
