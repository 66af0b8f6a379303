//===- EntryBlocks.cpp - What an entry has in the arena, and from when to when -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/EntryBlocks.h"

#include "passes/lower/plan/Addresses.h"
#include "passes/lower/plan/PlanOrder.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace distc {

// Whether other replicas, which are ahead or behind, read this one's tensor.
static bool isReadByOthers(drt::AccessInterface op, Value operand) {
  return llvm::any_of(op.getAccesses(),
                      [&](const drt::Access &access) { return access.ofOthers && access.tensor == operand; });
}

EntryBlocks::EntryBlocks(drt::EntryOp entry) : body(entry.getBody().front()) {
  PlanOrder order(entry);
  SmallVector<unsigned> met; // at each operation, as the order counts: from 1
  for (Operation &op : body) {
    met.push_back(order.getMetBefore(&op));
    order.advance(&op);
  }
  // The operation that is run when every replica is past the one at `position`.
  auto whenAllArePast = [&](int64_t position) {
    if (!order.replicasShareMemory())
      return position;
    auto first = llvm::partition_point(met, [&](unsigned before) { return before <= position + 1; });
    return first == met.end() ? INT64_MAX : first - met.begin();
  };
  int64_t position = 0;
  for (Operation &op : body) {
    if (isPlaced(&op))
      for (Value result : op.getResults())
        addBlock(result, position);
    else if (auto bucket = dyn_cast<drt::AllReduceStartOp>(op))
      addBucket(bucket);
    auto access = dyn_cast<drt::AccessInterface>(op);
    for (Value operand : op.getOperands()) {
      int64_t until = position;
      if (isa<drt::FetchOp>(op))
        until = INT64_MAX;
      else if (access && isReadByOthers(access, operand))
        until = whenAllArePast(position);
      use(operand, until);
    }
    ++position;
  }
}

const EntryBlock *EntryBlocks::find(Value storage) const {
  auto found = positions.find(storage);
  return found == positions.end() ? nullptr : &blocks[found->second.block];
}

int64_t EntryBlocks::pack() {
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

void EntryBlocks::writePlaces() {
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

SmallVector<EntryBlock> EntryBlocks::readPlaces() const {
  SmallVector<EntryBlock> read = blocks;
  for (Operation &op : body) {
    auto places = op.getAttrOfType<DenseI64ArrayAttr>("at");
    if (!places)
      continue;
    for (auto [i, place] : llvm::enumerate(places.asArrayRef())) {
      Value value = isPlaced(&op) ? op.getResult(i) : getStorage(op.getOperand(0));
      if (auto found = positions.find(value); found != positions.end())
        read[found->second.block].place = place - found->second.offset;
    }
  }
  llvm::erase_if(read, [](const EntryBlock &block) { return block.bytes < 0; });
  return read;
}

void EntryBlocks::addBlock(Value value, int64_t position) {
  positions[value] = {blocks.size()};
  const LiveBlock live{getTensorBytes(cast<RankedTensorType>(value.getType())), position, position};
  blocks.push_back({live, value.getDefiningOp(), cast<OpResult>(value).getResultNumber()});
}

// The members' own blocks give way to one that is in use from the first member's write to the end.
void EntryBlocks::addBucket(drt::AllReduceStartOp bucket) {
  SmallVector<int64_t> offsets = getMemberOffsets(bucket);
  EntryBlock whole{{offsets.back(), INT64_MAX, INT64_MAX}, bucket};
  for (auto [offset, gradient] : llvm::zip(offsets, bucket.getGradients())) {
    Position &position = positions[getStorage(gradient)];
    EntryBlock &own = blocks[position.block];
    whole.begin = std::min(whole.begin, own.begin);
    own.bytes = -1;
    position = {blocks.size(), offset};
  }
  blocks.push_back(whole);
}

void EntryBlocks::use(Value operand, int64_t until) {
  auto found = positions.find(getStorage(operand));
  if (found == positions.end())
    return;
  LiveBlock &block = blocks[found->second.block];
  block.end = std::max(block.end, until);
}

int64_t EntryBlocks::getPlace(Value value) {
  const Position &position = positions.at(value);
  return blocks[position.block].place + position.offset;
}

} // namespace distc
