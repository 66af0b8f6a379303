//===- host_calls.cpp - Routines of the host in a device's work -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/host_calls.h"
#include "core/error.h"
#include "core/memory.h"
#include "cuda/errors.h"

#include <algorithm>

namespace drt::cuda {
namespace {

// As the arena's: a routine may use vectors.
constexpr int64_t alignment = 64;

} // namespace

void HostCalls::reserve(const std::vector<Tensor> &tensors) {
  int64_t bytes = 0;
  for (const Tensor &tensor : tensors)
    bytes += roundUp(tensor.bytes, alignment);
  bytes_ = std::max(bytes_, bytes);
  if (std::find(entries_.begin(), entries_.end(), entry_) == entries_.end())
    entries_.push_back(entry_);
}

int64_t HostCalls::enqueueRun(const drt_entry &entry) {
  return enqueued_ += std::find(entries_.begin(), entries_.end(), &entry) != entries_.end();
}

void HostCalls::begin(const drt_entry &entry) {
  entry_ = &entry;
  next_ = 0;
}

void HostCalls::enqueue(CUstream stream, int32_t scope, drt_routine routine, const int64_t *numbers,
                        const std::vector<Tensor> &tensors, size_t inputs) {
  auto own = std::find_if(calls_.begin(), calls_.end(), [&](const auto &each) { return each.first == entry_; });
  if (own == calls_.end()) {
    // Moved about, deques keep their elements where they are.
    calls_.emplace_back(entry_, std::deque<Call>());
    own = calls_.end() - 1;
  }
  if (next_ == own->second.size()) {
    Call call = {this, entry_, own->second.empty(), scope, routine, numbers, {}};
    char *place = memory_.data();
    for (const Tensor &tensor : tensors) {
      call.tensors.push_back(tensor.bytes ? place : tensor.address);
      place += roundUp(tensor.bytes, alignment);
    }
    own->second.push_back(std::move(call));
  }
  Call &call = own->second[next_++];
  for (size_t i = 0; i < inputs; ++i)
    if (tensors[i].bytes)
      drt::cuda::check(driver().cuMemcpyDtoHAsync(call.tensors[i], addressOf(tensors[i].address),
                                                  static_cast<size_t>(tensors[i].bytes), stream),
                       "cuMemcpyDtoHAsync");
  drt::cuda::check(driver().cuLaunchHostFunc(stream, run, &call), "cuLaunchHostFunc");
  for (size_t i = inputs; i < tensors.size(); ++i)
    if (tensors[i].bytes)
      drt::cuda::check(driver().cuMemcpyHtoDAsync(addressOf(tensors[i].address), call.tensors[i],
                                                  static_cast<size_t>(tensors[i].bytes), stream),
                       "cuMemcpyHtoDAsync");
}

// A function of its own: nothing here has a destructor that leaving would pass over.
bool HostCalls::leaves(const Call &call) {
  Replica &replica = call.calls->hostSide_;
  if (setjmp(replica.wayOut) != 0)
    return true;
  call.routine(&replica, call.numbers, call.tensors.data());
  return false;
}

// In a thread of the driver's, which must neither call CUDA nor be thrown through.
void CUDA_CB HostCalls::run(void *data) {
  const Call &call = *static_cast<const Call *>(data);
  HostCalls &calls = *call.calls;
  calls.begun_ += call.isFirst;
  if (calls.failed_.load(std::memory_order_acquire))
    return;
  calls.hostSide_.entry = call.entry;
  calls.hostSide_.scope = call.scope;
  if (leaves(call))
    calls.failed_.store(calls.begun_, std::memory_order_release);
}

void HostCalls::check(int64_t run) const {
  // A later run may be under way.
  if (const int64_t failed = failed_.load(std::memory_order_acquire); failed && failed <= run)
    throw Error(hostSide_.failure);
}

} // namespace drt::cuda
