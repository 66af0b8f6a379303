//===- device_calls.cpp - What generated code asks of a replica -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/reduce.h"
#include "core/dtype.h"
#include "core/error.h"
#include "cuda/device_replica.h"
#include "random/state.h"

#include <algorithm>

namespace drt::cuda {

void DeviceReplica::beginScope(int32_t index) {
  scope = index;
  if (preparing)
    ++numSpans_[static_cast<size_t>(entry - program_.entries)];
  if (!spans_)
    return;
  const drt_scope &named = entry->scopes[index];
  open_.push_back(spans_->begin(&timeline_->compute, named.name, named.category, stream));
}

void DeviceReplica::endScope() {
  if (!spans_ || open_.empty())
    return;
  spans_->end(open_.back(), stream);
  open_.pop_back();
}

void DeviceReplica::launch(int32_t kernel, void *const *arguments) {
  if (enqueues())
    kernels_.launch(kernel, arguments, stream);
}

void DeviceReplica::copy(void *to, const void *from, int64_t bytes) {
  if (enqueues() && bytes > 0)
    check(driver().cuMemcpyDtoDAsync(addressOf(to), addressOf(from), static_cast<size_t>(bytes), stream),
          "cuMemcpyDtoDAsync");
}

void DeviceReplica::callOnHost(drt_routine routine, const int64_t *numbers, void *const *tensors, const int64_t *bytes,
                               int32_t inputs, int32_t count) {
  std::vector<HostCalls::Tensor> all;
  for (int32_t i = 0; i < count; ++i)
    all.push_back({tensors[i], bytes[i]});
  if (preparing)
    hostCalls_.reserve(all);
  else if (enqueues())
    hostCalls_.enqueue(stream, scope, routine, numbers, all, static_cast<size_t>(inputs));
}

void *DeviceReplica::randomState(int32_t state, int64_t seed, int64_t seed2) {
  const auto index = static_cast<size_t>(state);
  if (!prepared_.at(index)) {
    if (!preparing)
      throw Error("random operation " + std::to_string(state) +
                      " was not there when the entry was prepared: an internal error of the compiler",
                  70);
    const std::array<uint32_t, 6> generator = initialGenerator(state, seed, seed2, config_.entropy).state();
    std::copy(generator.begin(), generator.end(), randomStates_[index].begin());
    randomStates_[index].back() = static_cast<uint32_t>(global_index);
    prepared_[index] = true;
    seeded_[index] = seed != 0 || seed2 != 0;
  }
  return states_.data() + index * deviceAlignment;
}

namespace {

const char *categoryOf(const drt_bucket &plan) {
  return plan.kind == DRT_BUCKET_GATHER || plan.kind == DRT_BUCKET_GATHER_ROWS ? "all_gather"
         : plan.kind == DRT_BUCKET_REDUCE_SCATTER                              ? "reduce_scatter"
                                                                               : "all_reduce";
}

// Whether devices have code for it. Shares are in place: their members have room for them.
bool isKnown(const drt_bucket &plan) {
  if (plan.exchange)
    return false;
  if (plan.kind == DRT_BUCKET_ALL_REDUCE || plan.kind == DRT_BUCKET_GATHER_ROWS)
    return true;
  return (plan.kind == DRT_BUCKET_REDUCE_SCATTER || plan.kind == DRT_BUCKET_GATHER) &&
         std::all_of(plan.members, plan.members + plan.num_members,
                     [](const drt_member &member) { return member.room > 0 || member.count == 0; });
}

} // namespace

// What another replica's part of the bucket goes to, and comes from.
void DeviceReplica::communicate(const drt_bucket &plan, CUstream on) {
  char *const data = arena_.data() + plan.arena_offset;
  if (plan.kind == DRT_BUCKET_ALL_REDUCE)
    return nccl.allReduce(data, plan.count, plan.dtype, plan.reduction, on);
  if (plan.kind == DRT_BUCKET_GATHER_ROWS)
    return nccl.gather(data, data + gatheredOffset(plan), plan.count * dtypeSize(plan.dtype), on);
  NcclGroup group;
  for (int32_t i = 0; i < plan.num_members; ++i) {
    const drt_member &member = plan.members[i];
    const int64_t share = member.room / num_replicas;
    if (share == 0)
      continue;
    if (plan.kind == DRT_BUCKET_REDUCE_SCATTER)
      nccl.reduceScatter(data + member.offset * dtypeSize(plan.dtype), share, plan.dtype, plan.reduction, on);
    else
      nccl.allGather(variablePointers_[static_cast<size_t>(member.variable)],
                     share * dtypeSize(program_.variables[member.variable].type.dtype), on);
  }
  group.end();
}

// Of a sum, who wants a share of it only is given all.
void DeviceReplica::communicateShared(const drt_bucket &plan) {
  const CUdeviceptr data = arena_.address() + static_cast<size_t>(plan.arena_offset);
  if (plan.kind == DRT_BUCKET_GATHER_ROWS)
    return shared->gather(local_index, data, data + static_cast<size_t>(gatheredOffset(plan)),
                          plan.count * dtypeSize(plan.dtype), stream);
  if (plan.kind != DRT_BUCKET_GATHER)
    return shared->allReduce(local_index, data, plan.count, plan.dtype, plan.reduction, stream);
  for (int32_t i = 0; i < plan.num_members; ++i) {
    const drt_member &member = plan.members[i];
    shared->allGather(local_index, addressOf(variablePointers_[static_cast<size_t>(member.variable)]),
                      member.room / num_replicas * dtypeSize(program_.variables[member.variable].type.dtype), stream);
  }
}

// The communication stream waits until this replica's part is written, and goes on beside what follows here.
void DeviceReplica::startBucket(int32_t index) {
  const drt_bucket &plan = bucket(index);
  if (!isKnown(plan))
    throw Error(
        std::string(plan.name) +
            " is neither just summed nor in equal shares, which devices cannot: an internal error of the compiler",
        70);
  if (num_replicas == 1) {
    if (plan.kind == DRT_BUCKET_GATHER_ROWS)
      copy(const_cast<void *>(bucketResult(index)), arena_.data() + plan.arena_offset,
           plan.count * dtypeSize(plan.dtype));
    return;
  }
  if (preparing) {
    ++numSpans_[static_cast<size_t>(entry - program_.entries)];
    return;
  }
  if (!enqueues())
    return;
  if (shared)
    return communicateShared(plan);
  const auto at = static_cast<size_t>(index);
  record(ready_[at], stream);
  waitFor(communication_.get(), ready_[at]);
  size_t span = 0;
  if (spans_)
    span = spans_->begin(&timeline_->communication, plan.name, categoryOf(plan), communication_.get());
  communicate(plan, communication_.get());
  if (spans_)
    spans_->end(span, communication_.get());
  record(reduced_[at], communication_.get());
  lastReduced_ = &reduced_[at];
}

void DeviceReplica::waitBucket(int32_t index) {
  if (num_replicas > 1 && enqueues() && !shared)
    waitFor(stream, reduced_[static_cast<size_t>(index)]);
}

const void *DeviceReplica::bucketResult(int32_t index) const {
  const drt_bucket &plan = bucket(index);
  return arena_.data() + plan.arena_offset + (plan.kind == DRT_BUCKET_GATHER_ROWS ? gatheredOffset(plan) : 0);
}

} // namespace drt::cuda

using namespace drt::cuda;

extern "C" {

void drt_scope_begin(drt_replica *replica, int32_t scope) {
  guarded(replica, [&](Replica &) { DeviceReplica::of(replica).beginScope(scope); });
}

void drt_scope_end(drt_replica *replica, int32_t) {
  guarded(replica, [&](Replica &) { DeviceReplica::of(replica).endScope(); });
}

void drt_fail(drt_replica *replica, const char *message) {
  Replica::of(replica).keepFailure(message);
  Replica::of(replica).escape();
}

void drt_launch(drt_replica *replica, int32_t kernel, void *const *arguments) {
  guarded(replica, [&](Replica &) { DeviceReplica::of(replica).launch(kernel, arguments); });
}

void drt_copy(drt_replica *replica, void *to, const void *from, int64_t bytes) {
  guarded(replica, [&](Replica &) { DeviceReplica::of(replica).copy(to, from, bytes); });
}

void drt_call_on_host(drt_replica *replica, drt_routine routine, const int64_t *p, void *const *tensors,
                      const int64_t *bytes, int32_t inputs, int32_t count) {
  guarded(replica,
          [&](Replica &) { DeviceReplica::of(replica).callOnHost(routine, p, tensors, bytes, inputs, count); });
}

void *drt_random_state(drt_replica *replica, int32_t state, int64_t seed, int64_t seed2) {
  void *address = nullptr;
  guarded(replica, [&](Replica &) { address = DeviceReplica::of(replica).randomState(state, seed, seed2); });
  return address;
}

void *drt_replica_index(drt_replica *replica) { return DeviceReplica::of(replica).indexAddress(); }

// Replicas share nothing but what is reduced.
void drt_barrier(drt_replica *) {}

void drt_all_reduce_start(drt_replica *replica, int32_t bucket) {
  guarded(replica, [&](Replica &) { DeviceReplica::of(replica).startBucket(bucket); });
}

void drt_all_reduce_wait(drt_replica *replica, int32_t bucket) {
  guarded(replica, [&](Replica &) { DeviceReplica::of(replica).waitBucket(bucket); });
}

const void *drt_all_reduce_result(drt_replica *replica, int32_t bucket) {
  return DeviceReplica::of(replica).bucketResult(bucket);
}

} // extern "C"
