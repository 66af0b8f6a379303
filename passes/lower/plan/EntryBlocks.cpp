//===- EntryBlocks.cpp - What an entry has in the arena, and from when to when -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/EntryBlocks.h"

#include "passes/lower/plan/Addresses.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace distc {

// What is fetched, and what other replicas, which are ahead or behind, read of this one's arena.
static bool isReadByOthers(Operation *op, Value operand) {
  if (auto update = dyn_cast<drt::MatmulUpdateOp>(op))
    return operand == update.getA() || operand == update.getB();
  return isa<drt::FetchOp>(op);
}

EntryBlocks::EntryBlocks(drt::EntryOp entry) : body(entry.getBody().front()) {
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

void EntryBlocks::use(Value operand, int64_t position, bool readByOthers) {
  auto found = positions.find(getStorage(operand));
  if (found == positions.end())
    return;
  LiveBlock &block = blocks[found->second.block];
  block.end = readByOthers ? INT64_MAX : std::max(block.end, position);
}

int64_t EntryBlocks::getPlace(Value value) {
  const Position &position = positions.at(value);
  return blocks[position.block].place + position.offset;
}

} // namespace distc
