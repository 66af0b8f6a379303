//===- Partition.cpp - How a variable is split into shards -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Partition.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/Twine.h"

namespace distc::strategies {

Partition Partition::make(int axis, int64_t size, int64_t count) {
  Partition partition{axis, {}, {}};
  partition.sizes.reserve(count);
  partition.offsets.reserve(count);
  for (int64_t i = 0, offset = 0; i < count; ++i) {
    partition.sizes.push_back(size / count + (i < size % count));
    partition.offsets.push_back(offset);
    offset += partition.sizes.back();
  }
  return partition;
}

std::string Partition::print(int rank) const {
  std::string text;
  for (int i = 0; i < rank; ++i)
    text += (i ? "," : "") + std::to_string(i == axis ? getCount() : 1);
  return text;
}

llvm::Expected<Partition> parsePartitioner(llvm::StringRef partitioner, llvm::ArrayRef<int64_t> shape) {
  std::string what = ("partitioner \"" + partitioner + "\"").str();
  llvm::SmallVector<llvm::StringRef> numbers;
  partitioner.split(numbers, ',');
  if (numbers.size() != shape.size())
    return llvm::createStringError(what + " is for " + llvm::Twine(numbers.size()) + " axes, but the variable has " +
                                   llvm::Twine(shape.size()) + "; give one number an axis");
  int axis = -1;
  int64_t count = 1;
  for (auto [i, text] : llvm::enumerate(numbers)) {
    int64_t shards;
    if (text.trim().getAsInteger(10, shards) || shards < 1)
      return llvm::createStringError(what + " has '" + text + "', which is not a number of shards");
    if (shards == 1)
      continue;
    if (axis >= 0)
      return llvm::createStringError(what + " splits axes " + llvm::Twine(axis) + " and " + llvm::Twine(i) +
                                     "; one axis can be split");
    axis = i;
    count = shards;
  }
  if (axis < 0)
    return llvm::createStringError(what + " splits no axis; leave it out");
  if (shape[axis] < count)
    return llvm::createStringError(
        what + " makes " + llvm::Twine(count) + " shards of axis " + llvm::Twine(axis) + ", which has " +
        (shape[axis] < 0 ? llvm::Twine("an unknown size") : "only " + llvm::Twine(shape[axis]) + " entries"));
  return Partition::make(axis, shape[axis], count);
}

std::string getShardName(llvm::StringRef variable, int64_t shard) {
  return (variable + "/part_" + llvm::Twine(shard)).str();
}

} // namespace distc::strategies
