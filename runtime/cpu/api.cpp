//===- api.cpp - drt.h's scopes, errors and synchronization ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/reduce.h"
#include "core/dtype.h"
#include "core/ranges.h"
#include "cpu/task.h"

#include <algorithm>
#include <cstring>
#include <string>

using namespace drt;

namespace {

const drt_bucket &bucketOf(const Replica &replica, int32_t bucket) { return replica.entry->buckets[bucket]; }

// Whether the bucket's result lies in replica 0's arena as it is.
bool isReduced(Replica &replica, int32_t bucket) {
  CpuTask &task = replica.task();
  if (replica.bucketStates[bucket] == Replica::BucketState::Reduced || task.reducedByCommunicator(replica, bucket))
    return true;
  return !task.exchange(replica, bucket) && replica.local_replicas == 1 && task.divisor(bucketOf(replica, bucket)) == 1;
}

// Elements of an update that are worth a core of their own.
constexpr int64_t updateGrain = 8192;

Contributions contributionsOf(const Replica &replica, const drt_bucket &plan) {
  return {replica.arena_base + plan.arena_offset, replica.arena_stride, replica.local_replicas};
}

// Where the gradients to combine lie, from element `begin` of the bucket on.
Contributions sourcesOf(Replica &replica, int32_t bucket, int64_t begin) {
  const drt_bucket &plan = bucketOf(replica, bucket);
  Contributions sources = contributionsOf(replica, plan);
  if (const Exchange *exchange = replica.task().exchange(replica, bucket))
    sources = exchange->sources(sources);
  sources.first += begin * dtypeSize(plan.dtype);
  return sources;
}

void combine(Replica &replica, int32_t bucket, void *out, Contributions sources, int64_t count) {
  const drt_bucket &plan = bucketOf(replica, bucket);
  if (const Exchange *exchange = replica.task().exchange(replica, bucket))
    exchange->combine(replica.local_index, out, sources, count);
  else
    reduce(static_cast<drt_dtype>(plan.dtype), out, sources, count, replica.task().divisor(plan));
}

// What is left to do for the bucket's result, of which each replica does a part.
void makeResult(Replica &replica, int32_t bucket) {
  const drt_bucket &plan = bucketOf(replica, bucket);
  char *first = replica.arena_base + plan.arena_offset;
  if (plan.kind == DRT_BUCKET_GATHER_ROWS) {
    if (replica.task().isApart() || replica.bucketStates[bucket] == Replica::BucketState::Reduced)
      return;
    const int64_t bytes = plan.count * dtypeSize(plan.dtype);
    std::memcpy(first + gatheredOffset(plan) + replica.local_index * bytes, replica.arena + plan.arena_offset,
                static_cast<size_t>(bytes));
  } else {
    if (isReduced(replica, bucket))
      return;
    const Range range = rangeOf(plan.count, replica.local_replicas, replica.local_index);
    replica.divide(range.size(), replica.task().exchange(replica, bucket) ? range.size() : updateGrain,
                   [&](Replica::Core &, Range part) {
                     const int64_t begin = range.begin + part.begin;
                     combine(replica, bucket, first + begin * dtypeSize(plan.dtype), sourcesOf(replica, bucket, begin),
                             part.size());
                   });
  }
  replica.bucketStates[bucket] = Replica::BucketState::Reduced;
}

// Elements `range` of a variable whose gradient begins at `offset` in the bucket; the kernel counts from `first` on.
void update(Replica &replica, int32_t bucket, int64_t offset, Range range, int64_t first, drt_range_kernel kernel,
            void *const *arguments) {
  if (range.empty())
    return;
  const int64_t size = dtypeSize(bucketOf(replica, bucket).dtype);
  if (isReduced(replica, bucket)) {
    const char *gradient = contributionsOf(replica, bucketOf(replica, bucket)).first;
    replica.divide(range.size(), updateGrain, [&](Replica::Core &, Range part) {
      kernel(range.begin + part.begin - first, range.begin + part.end - first,
             gradient + (offset + range.begin + part.begin) * size, arguments);
    });
    return;
  }
  const int64_t most = Replica::blockBytes / size;
  // How an exchange combines gradients is the replica's affair, not each core's.
  replica.divide(range.size(), replica.task().exchange(replica, bucket) ? range.size() : updateGrain,
                 [&](Replica::Core &core, Range part) {
                   const int64_t last = range.begin + part.end;
                   for (int64_t begin = range.begin + part.begin; begin < last; begin += most) {
                     const int64_t end = std::min(begin + most, last);
                     combine(replica, bucket, core.block.data(), sourcesOf(replica, bucket, offset + begin),
                             end - begin);
                     kernel(begin - first, end - first, core.block.data(), arguments);
                   }
                 });
}

// An update that reads no bucket; the kernel counts from `first` on.
void updateLocal(Replica &replica, Range range, int64_t first, drt_range_kernel kernel, void *const *arguments) {
  if (!range.empty())
    replica.divide(range.size(), updateGrain, [&](Replica::Core &, Range part) {
      kernel(range.begin + part.begin - first, range.begin + part.end - first, nullptr, arguments);
    });
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
  replica.delay();
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
  replica.delay();
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
  if (Exchange *exchange = replica.task().exchange(replica, bucket))
    exchange->encode(replica.local_index, replica.arena + bucketOf(replica, bucket).arena_offset);
  replica.task().startBucket(replica, bucket);
}

void drt_pull_rows(drt_replica *r, int32_t bucket, void *const *tensors) {
  Replica &replica = Replica::of(r);
  const RowRequest request = {tensors, tensors + bucketOf(replica, bucket).num_members};
  if (!replica.task().pullRows(replica, bucket, request))
    replica.escape();
}

void drt_push_rows(drt_replica *r, int32_t bucket, void *const *tensors) {
  Replica &replica = Replica::of(r);
  const drt_bucket &plan = bucketOf(replica, bucket);
  const int64_t tables = plan.members[plan.num_members - 1].variable + 1;
  const RowPush push = {tensors, tensors + tables, tensors + 2 * tables, tensors + 3 * tables};
  if (!replica.task().pushRows(replica, bucket, push))
    replica.escape();
}

void drt_all_reduce_wait(drt_replica *r, int32_t bucket) {
  Replica &replica = Replica::of(r);
  if (!replica.task().waitBucket(replica, bucket))
    replica.escape();
  if (Exchange *exchange = replica.task().exchange(replica, bucket)) {
    bool reduced = false;
    if (!exchange->finish(replica, contributionsOf(replica, bucketOf(replica, bucket)), reduced))
      replica.escape();
    if (reduced)
      replica.bucketStates[bucket] = Replica::BucketState::Reduced;
  }
}

const void *drt_all_reduce_result(drt_replica *r, int32_t bucket) {
  Replica &replica = Replica::of(r);
  const drt_bucket &plan = bucketOf(replica, bucket);
  char *result = replica.arena_base + plan.arena_offset;
  if (plan.kind == DRT_BUCKET_GATHER_ROWS)
    result += gatheredOffset(plan);
  makeResult(replica, bucket);
  // Replicas meet behind it, whoever has made it: plans count on that (AllReduceResultOp::meetsAfter).
  drt_barrier(r);
  return result;
}

void drt_update(drt_replica *r, int32_t bucket, int64_t offset, int64_t count, drt_range_kernel kernel,
                void *const *arguments) {
  Replica &replica = Replica::of(r);
  update(replica, bucket, offset, rangeOf(count, replica.local_replicas, replica.local_index), 0, kernel, arguments);
}

void drt_update_share(drt_replica *r, int32_t bucket, int64_t offset, int64_t count, int64_t share,
                      drt_range_kernel kernel, void *const *arguments) {
  Replica &replica = Replica::of(r);
  const int64_t first = replica.global_index * share;
  const Range range = {first, std::min(first + share, count)};
  if (bucket >= 0)
    update(replica, bucket, offset, range, first, kernel, arguments);
  else
    updateLocal(replica, range, first, kernel, arguments);
}

void drt_update_owned(drt_replica *r, int32_t owner, int32_t bucket, int64_t offset, int64_t count,
                      drt_range_kernel kernel, void *const *arguments) {
  Replica &replica = Replica::of(r);
  CpuTask &task = replica.task();
  if (!task.isTask(owner))
    return;
  if (bucket >= 0 && task.pipelined(replica, bucket)) {
    if (!task.updatePipelined(replica, bucket, offset, count,
                              [&](Range range) { update(replica, bucket, offset, range, 0, kernel, arguments); }))
      replica.escape();
    return;
  }
  if (bucket >= 0)
    drt_update(r, bucket, offset, count, kernel, arguments);
  else
    drt_update_local(r, count, kernel, arguments);
}

void drt_accumulate(drt_replica *r, int32_t accumulator, const drt_accumulate_desc *desc, const void *gradient) {
  Replica::of(r).accumulators[accumulator].keep(*desc, gradient);
}

void drt_accumulated(drt_replica *r, int32_t accumulator, const drt_accumulate_desc *desc, double scale,
                     const void *gradient, void *out) {
  Replica::of(r).accumulators[accumulator].take(*desc, scale, gradient, out);
}

void drt_update_local(drt_replica *r, int64_t count, drt_range_kernel kernel, void *const *arguments) {
  updateLocal(Replica::of(r), rangeOf(count, r->local_replicas, r->local_index), 0, kernel, arguments);
}

void drt_parallel_for(drt_replica *r, int64_t count, int64_t grain, drt_range_kernel kernel, void *const *arguments) {
  Replica::of(r).divide(count, grain,
                        [&](Replica::Core &, Range part) { kernel(part.begin, part.end, nullptr, arguments); });
}

} // extern "C"
