//===- team.cpp - The threads that compute one replica's step together ----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/team.h"

#include <algorithm>
#include <utility>

namespace drt {
namespace {
const std::atomic<bool> never{false};
}

Team::Team(int members, int spins, std::function<void(int)> begin) : spins_(spins), errors_(std::max(1, members)) {
  for (int member = 1; member < size(); ++member)
    threads_.emplace_back([this, member, begin] {
      begin(member);
      serve(member);
    });
}

Team::~Team() {
  quit_.store(true);
  begun_.add(1);
  for (std::thread &thread : threads_)
    thread.join();
}

Range Team::part(int64_t count, int64_t grain, int members, int member) {
  const int64_t most = std::max<int64_t>(1, count / std::max<int64_t>(1, grain));
  const auto parts = std::min<int64_t>(members, most);
  if (member >= parts)
    return {count, count};
  // Whole cache lines where there are enough elements, so that neighbours do not write the same one.
  return rangeOf(count, parts, member, count >= parts * 16 * rangeGrain ? rangeGrain : 1);
}

void Team::attempt(int member) noexcept {
  try {
    call_(work_, member);
  } catch (...) {
    errors_[member] = std::current_exception();
  }
}

void Team::serve(int member) {
  for (uint32_t piece = 1;; ++piece) {
    if (!begun_.wait(piece, {never, spins_}) || quit_.load())
      return;
    attempt(member);
    done_.add(1);
  }
}

void Team::run(Call call, const void *work) {
  call_ = call;
  work_ = work;
  ++pieces_;
  begun_.add(1);
  attempt(0);
  done_.wait(pieces_ * static_cast<uint32_t>(size() - 1), {never, spins_});
  for (std::exception_ptr &error : errors_)
    if (error) {
      const std::exception_ptr first = error;
      std::fill(errors_.begin(), errors_.end(), nullptr);
      std::rethrow_exception(first);
    }
}

} // namespace drt
