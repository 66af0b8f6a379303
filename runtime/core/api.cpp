//===- api.cpp - drt.h's scopes, errors and synchronization ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "core/ranges.h"
#include "core/reduce.h"
#include "core/task.h"

#include <algorithm>
#include <string>

using namespace drt;

namespace {

const drt_bucket &bucketOf(const Replica &replica, int32_t bucket) { return replica.entry->buckets[bucket]; }

// Whether the bucket's result lies in replica 0's arena as it is.
bool isReduced(Replica &replica, int32_t bucket) {
  return replica.task().reducedByCommunicator() || replica.bucketStates[bucket] == Replica::BucketState::Reduced ||
         (replica.local_replicas == 1 && replica.task().divisor(bucketOf(replica, bucket)) == 1);
}

// A function of its own, so that the string is gone when the replica escapes.
void recordFailure(Replica &replica, const char *message) {
  std::string text = message;
  const int32_t scope = replica.scope.load(std::memory_order_relaxed);
  if (replica.entry && scope >= 0 && scope < replica.entry->num_scopes)
    text = std::string(replica.entry->scopes[scope].name) + ": " + text;
  replica.task().fail(text);
}

} // namespace

extern "C" {

void drt_scope_begin(drt_replica *r, int32_t scope) {
  Replica &replica = Replica::of(r);
  replica.scope.store(scope, std::memory_order_relaxed);
  if (replica.timeline) {
    const drt_scope &named = replica.entry->scopes[scope];
    replica.timeline->begin(named.name, named.category, replica.step);
  }
}

void drt_scope_end(drt_replica *r, int32_t) {
  Replica &replica = Replica::of(r);
  if (replica.timeline)
    replica.timeline->end();
}

void drt_fail(drt_replica *r, const char *message) {
  Replica &replica = Replica::of(r);
  recordFailure(replica, message);
  replica.escape();
}

void drt_barrier(drt_replica *r) {
  Replica &replica = Replica::of(r);
  if (!replica.task().barrier(replica))
    replica.escape();
}

void drt_all_reduce_start(drt_replica *r, int32_t bucket) {
  Replica &replica = Replica::of(r);
  replica.task().startBucket(replica, bucket);
}

void drt_all_reduce_wait(drt_replica *r, int32_t bucket) {
  Replica &replica = Replica::of(r);
  if (!replica.task().waitBucket(replica, bucket))
    replica.escape();
}

const void *drt_all_reduce_result(drt_replica *r, int32_t bucket) {
  Replica &replica = Replica::of(r);
  const drt_bucket &plan = bucketOf(replica, bucket);
  char *first = replica.arena_base + plan.arena_offset;
  if (isReduced(replica, bucket))
    return first;
  // An update of this bucket may still be reading the contributions in another replica.
  if (replica.bucketStates[bucket] == Replica::BucketState::Updated)
    drt_barrier(r);
  const int64_t size = dtypeSize(plan.dtype);
  const Range range = rangeOf(plan.count, replica.local_replicas, replica.local_index);
  char *begin = first + range.begin * size;
  reduce(static_cast<drt_dtype>(plan.dtype), begin, {begin, replica.arena_stride, replica.local_replicas}, range.size(),
         replica.task().divisor(plan));
  replica.bucketStates[bucket] = Replica::BucketState::Reduced;
  drt_barrier(r);
  return first;
}

void drt_update(drt_replica *r, int32_t bucket, int64_t offset, int64_t count, drt_range_kernel kernel,
                void *const *arguments) {
  Replica &replica = Replica::of(r);
  const drt_bucket &plan = bucketOf(replica, bucket);
  const Range range = rangeOf(count, replica.local_replicas, replica.local_index);
  const int64_t size = dtypeSize(plan.dtype);
  const char *gradient = replica.arena_base + plan.arena_offset + offset * size;
  if (isReduced(replica, bucket)) {
    if (!range.empty())
      kernel(range.begin, range.end, gradient + range.begin * size, arguments);
    return;
  }
  replica.bucketStates[bucket] = Replica::BucketState::Updated;
  const int64_t most = Replica::blockBytes / size;
  const int64_t divisor = replica.task().divisor(plan);
  for (int64_t begin = range.begin; begin < range.end; begin += most) {
    const int64_t end = std::min(begin + most, range.end);
    reduce(static_cast<drt_dtype>(plan.dtype), replica.block.data(),
           {gradient + begin * size, replica.arena_stride, replica.local_replicas}, end - begin, divisor);
    kernel(begin, end, replica.block.data(), arguments);
  }
}

void drt_update_local(drt_replica *r, int64_t count, drt_range_kernel kernel, void *const *arguments) {
  const Range range = rangeOf(count, r->local_replicas, r->local_index);
  if (!range.empty())
    kernel(range.begin, range.end, nullptr, arguments);
}

} // extern "C"
