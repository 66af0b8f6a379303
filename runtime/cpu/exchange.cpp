//===- exchange.cpp - How a bucket's gradients become one, beyond a sum ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/exchange.h"
#include "core/dtype.h"
#include "cpu/task.h"

#include <algorithm>
#include <cstring>

namespace drt {
namespace {

float *floats(char *data) { return reinterpret_cast<float *>(data); }

} // namespace

std::unique_ptr<Exchange> Exchange::make(const drt_bucket &bucket, const Layout &layout) {
  if (!bucket.exchange)
    return nullptr;
  std::unique_ptr<Exchange> exchange(new Exchange(bucket, layout));
  return exchange->compressor_ || exchange->aggregation_ || exchange->powerSgd_ ? std::move(exchange) : nullptr;
}

Exchange::Exchange(const drt_bucket &bucket, const Layout &layout)
    : bucket_(bucket), layout_(layout), divisor_(bucket.reduction == DRT_REDUCE_MEAN ? layout.numReplicas : 1) {
  const int32_t replicas = layout.own().replicas;
  aggregation_ = Aggregation::make(bucket, layout.numReplicas, replicas);
  if (bucket.dtype == DRT_F32) {
    compressor_ = Compressor::make(bucket, replicas);
    if (bucket.exchange->compressor == DRT_COMPRESS_POWER_SGD)
      powerSgd_ = std::make_unique<PowerSgd>(bucket, replicas, divisor_);
  }
  if (layout.numTasks() > 1 && compressor_)
    wires_.resize(compressor_->wireBytes() * layout.mostReplicas());
}

void Exchange::encode(int32_t localReplica, char *contribution) {
  if (powerSgd_)
    powerSgd_->encode(localReplica, floats(contribution));
  else if (compressor_)
    compressor_->encode(localReplica, floats(contribution),
                        wires_.empty() ? nullptr : wires_.data() + localReplica * compressor_->wireBytes());
}

// ---- Between tasks ---------------------------------------------------------------

void Exchange::communicate(Communicator &communicator, Contributions contributions) {
  char *result = const_cast<char *>(contributions.first);
  if (powerSgd_) {
    powerSgd_->orthogonalize(&communicator, contributions);
    for (int32_t i = 0; i < contributions.parts; ++i)
      powerSgd_->project(i, floats(result + i * contributions.stride));
    powerSgd_->sumFactors(&communicator);
  } else if (aggregation_) {
    gatherAll(communicator, contributions);
  } else if (halfOf(bucket_.exchange->compressor)) {
    sumHalves(communicator, result);
  } else {
    sumSparse(communicator, result);
  }
}

// Every replica's gradients, in the order of replicas.
void Exchange::gatherAll(Communicator &communicator, Contributions contributions) {
  const int64_t bytes = bucket_.count * dtypeSize(bucket_.dtype);
  const int64_t each = compressor_ ? compressor_->wireBytes() : bytes;
  const int32_t most = layout_.mostReplicas();
  if (!compressor_) {
    wires_.resize(each * most);
    for (int32_t i = 0; i < contributions.parts; ++i)
      std::memcpy(wires_.data() + i * each, contributions.first + i * contributions.stride, bytes);
  }
  received_.resize(each * most * layout_.numTasks());
  communicator.all_gather(wires_.data(), each * most, received_.data());
  gathered_.resize(bytes * layout_.numReplicas);
  if (compressor_)
    std::fill(gathered_.begin(), gathered_.end(), 0);
  for (int32_t rank = 0; rank < layout_.numTasks(); ++rank)
    for (int32_t i = 0; i < layout_.tasks[rank].replicas; ++i) {
      const char *from = received_.data() + (rank * most + i) * each;
      char *to = gathered_.data() + (layout_.tasks[rank].firstReplica + i) * bytes;
      if (compressor_)
        compressor_->addTo(from, floats(to));
      else
        std::memcpy(to, from, bytes);
    }
}

// Each task sums some of the elements, in the order of replicas, and sends what it has rounded to all: twice a half an
// element and task on the way, where gathering would send one from every replica to every task.
void Exchange::sumHalves(Communicator &communicator, char *result) {
  const drt_dtype half = static_cast<drt_dtype>(halfOf(bucket_.exchange->compressor));
  const int64_t tasks = layout_.numTasks(), most = layout_.mostReplicas(), count = bucket_.count;
  const int64_t each = (count + tasks - 1) / tasks;
  const auto partOf = [&](int64_t rank) {
    return Range{std::min(rank * each, count), std::min((rank + 1) * each, count)};
  };
  std::vector<uint16_t> sent(each * most * tasks), halves(each * most * tasks);
  for (int64_t rank = 0; rank < tasks; ++rank)
    for (int64_t i = 0; i < layout_.own().replicas; ++i)
      std::memcpy(sent.data() + (rank * most + i) * each,
                  reinterpret_cast<const uint16_t *>(wires_.data() + i * compressor_->wireBytes()) + partOf(rank).begin,
                  partOf(rank).size() * sizeof(uint16_t));
  communicator.all_to_all(sent.data(), each * most * static_cast<int64_t>(sizeof(uint16_t)), halves.data());

  parts_.resize(each * layout_.numReplicas);
  for (int64_t rank = 0; rank < tasks; ++rank)
    for (int64_t i = 0; i < layout_.tasks[rank].replicas; ++i)
      fromHalf(half, halves.data() + (rank * most + i) * each,
               parts_.data() + (layout_.tasks[rank].firstReplica + i) * each, each);
  reduce(
      DRT_F32, parts_.data(),
      {reinterpret_cast<const char *>(parts_.data()), each * static_cast<int64_t>(sizeof(float)), layout_.numReplicas},
      each, divisor_);
  sent.resize(each);
  halves.resize(each * tasks);
  toHalf(half, parts_.data(), sent.data(), each);
  communicator.all_gather(sent.data(), each * static_cast<int64_t>(sizeof(uint16_t)), halves.data());
  fromHalf(half, halves.data(), floats(result), count);
}

void Exchange::sumSparse(Communicator &communicator, char *result) {
  const int64_t each = compressor_->wireBytes(), most = layout_.mostReplicas();
  received_.resize(each * most * layout_.numTasks());
  communicator.all_gather(wires_.data(), each * most, received_.data());
  std::memset(result, 0, bucket_.count * sizeof(float));
  for (int64_t rank = 0; rank < layout_.numTasks(); ++rank)
    for (int64_t i = 0; i < layout_.tasks[rank].replicas; ++i)
      compressor_->addTo(received_.data() + (rank * most + i) * each, floats(result));
  reduce(DRT_F32, result, {result, 0, 1}, bucket_.count, divisor_);
}

// ---- In a task ---------------------------------------------------------------------

bool Exchange::finish(Replica &replica, Contributions contributions, bool &reduced) {
  CpuTask &task = replica.task();
  const int32_t index = replica.local_index;
  const bool alone = layout_.numTasks() == 1;
  reduced = !alone && !isChoice();
  if (powerSgd_) {
    if (alone) {
      if (index == 0)
        powerSgd_->orthogonalize(nullptr, contributions);
      if (!task.barrier(replica))
        return false;
      powerSgd_->project(index, reinterpret_cast<const float *>(contributions.first + index * contributions.stride));
      if (!task.barrier(replica))
        return false;
      if (index == 0)
        powerSgd_->sumFactors(nullptr);
      if (!task.barrier(replica))
        return false;
    }
    powerSgd_->decode(contributions, index, replica.local_replicas);
    reduced = true;
    return task.barrier(replica);
  }
  for (int32_t pass = 0; aggregation_ && pass < aggregation_->passes(); ++pass) {
    aggregation_->measure(pass, index, replica.local_replicas, sources(contributions));
    if (!task.barrier(replica))
      return false;
    aggregation_->weigh(pass, index);
    // The next pass writes where this one's distances are read.
    if (pass + 1 < aggregation_->passes() && !task.barrier(replica))
      return false;
  }
  return true;
}

Contributions Exchange::sources(Contributions contributions) const {
  if (!isChoice() || layout_.numTasks() == 1)
    return contributions;
  return {gathered_.data(), bucket_.count * dtypeSize(bucket_.dtype), layout_.numReplicas};
}

void Exchange::combine(int32_t localReplica, void *out, Contributions contributions, int64_t count) const {
  if (aggregation_)
    return aggregation_->combine(localReplica, out, contributions, count);
  reduce(static_cast<drt_dtype>(bucket_.dtype), out, contributions, count, divisor_);
  if (compressor_)
    compressor_->roundResult(static_cast<float *>(out), count);
}

} // namespace drt
