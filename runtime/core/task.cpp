//===- task.cpp - One task of a plan at work ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/task.h"
#include "core/shares.h"

#include <algorithm>
#include <cstdio>

namespace drt {

TaskRuntime::~TaskRuntime() = default;

const drt_entry *findEntry(const drt_program &program, std::string_view name) {
  for (int32_t i = 0; i < program.num_entries; ++i)
    if (name == program.entries[i].name)
      return &program.entries[i];
  return nullptr;
}

static Error noShares(const drt_program &program, int32_t variable) {
  return Error(std::string("the variable '") + program.variables[variable].name + "' lies in shares, which target " +
                   program.target + " has not: an internal error of the compiler",
               70);
}

void TaskRuntime::gatherPart(int32_t variable, Range, void *) { throw noShares(program_, variable); }
void TaskRuntime::scatterPart(int32_t variable, Range, const void *) { throw noShares(program_, variable); }

void TaskRuntime::gatherShares(int32_t variable, void *whole) {
  const int64_t all = wholeBytes(program_.variables[variable]);
  for (int64_t at = 0; at < all; at += partBytes)
    gatherPart(variable, {at, std::min(at + partBytes, all)}, whole ? static_cast<char *>(whole) + at : nullptr);
}

void TaskRuntime::scatterShares(int32_t variable, const void *whole) {
  const int64_t all = wholeBytes(program_.variables[variable]);
  for (int64_t at = 0; at < all; at += partBytes)
    scatterPart(variable, {at, std::min(at + partBytes, all)}, whole ? static_cast<const char *>(whole) + at : nullptr);
}

void TaskRuntime::serve(FeedReplica, int64_t) {
  throw Error(std::string("the program has servers that serve on their own, which target ") + program_.target +
                  " has not: an internal error of the compiler",
              70);
}

void TaskRuntime::fail(const std::string &message) noexcept {
  {
    std::lock_guard<std::mutex> lock(failureMutex_);
    if (failure_.empty())
      failure_ = message;
    stop_.store(true, std::memory_order_release);
  }
  if (communicator_)
    communicator_->abort(message);
}

void TaskRuntime::throwFailure() { throw Error(whyFailed()); }

std::string TaskRuntime::whyFailed() {
  std::lock_guard<std::mutex> lock(failureMutex_);
  return failure_;
}

void TaskRuntime::warn(const std::string &message) const {
  if (config_.warn)
    config_.warn(message);
  else
    std::fprintf(stderr, "warning: %s\n", message.c_str());
}

} // namespace drt
