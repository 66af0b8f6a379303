//===- row_buckets.h - Members of buckets of rows -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_ROW_BUCKETS_H
#define DRT_CORE_ROW_BUCKETS_H

#include "drt/drt.h"

namespace drt {

/// DRT_BUCKET_PULL_ROWS: how many of a replica's indices are the member's.
inline int64_t countPulled(const drt_bucket &bucket, int32_t member) {
  const int64_t end = member + 1 < bucket.num_members ? bucket.members[member + 1].offset : bucket.count;
  return end - bucket.members[member].offset;
}

/// DRT_BUCKET_PUSH_ROWS: whether another table begins with the member.
inline bool isFirstShard(const drt_bucket &bucket, int32_t member) {
  return member == 0 || bucket.members[member].variable != bucket.members[member - 1].variable;
}

} // namespace drt

#endif // DRT_CORE_ROW_BUCKETS_H
