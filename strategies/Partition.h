//===- Partition.h - How a variable is split into shards ----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The one place that knows what a partitioner ("1,4,1") means: builders, checks and passes ask here.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_PARTITION_H
#define DISTC_STRATEGIES_PARTITION_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace distc::strategies {

/// The shards of a variable: slices along one axis.
struct Partition {
  int axis = 0;
  std::vector<int64_t> sizes;   // of each shard along the axis
  std::vector<int64_t> offsets; // where it begins

  int64_t getCount() const { return sizes.size(); }

  /// `count` shards of an axis of `size`, as TensorFlow cuts them: the first size mod count are larger by one.
  static Partition make(int axis, int64_t size, int64_t count);

  /// The partitioner's text for a variable of this rank: "1,4,1".
  std::string print(int rank) const;
};

/// What `partitioner` makes of a variable of `shape`. An error says what does not fit: another number of axes, no axis
/// or more than one that is split, an axis whose size is unknown or smaller than the number of shards.
llvm::Expected<Partition> parsePartitioner(llvm::StringRef partitioner, llvm::ArrayRef<int64_t> shape);

/// "dense/kernel/part_3", as AutoDist and TensorFlow name shards.
std::string getShardName(llvm::StringRef variable, int64_t shard);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_PARTITION_H
