//===- read_ahead.cpp - Batches that a thread makes before they are asked for ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/read_ahead.h"

#include <algorithm>

namespace drt {
namespace {

// Batches in memory: as many as these bytes hold, within bounds.
constexpr int64_t bufferBytes = int64_t{64} << 20, fewest = 3, most = 16;

} // namespace

ReadAhead::ReadAhead(Config config, Fill fill) : config_(std::move(config)), fill_(std::move(fill)) {
  const int64_t count = std::clamp(bufferBytes / std::max<int64_t>(config_.bytes, 1), fewest, most);
  for (int64_t i = 0; i < count; ++i)
    free_.push_back(std::make_unique<Batch>());
  thread_ = std::thread([this] { run(); });
}

ReadAhead::~ReadAhead() {
  {
    std::lock_guard lock(mutex_);
    quit_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

const char *ReadAhead::get(int64_t step) {
  std::unique_lock lock(mutex_);
  if (given_)
    free_.push_back(std::move(given_));
  if (!begun_ || step != expected_) {
    ++round_;
    begun_ = true;
    making_ = step;
    std::move(ready_.begin(), ready_.end(), std::back_inserter(free_));
    ready_.clear();
  }
  expected_ = config_.next(step);
  changed_.notify_all();
  changed_.wait(lock, [this] { return !ready_.empty(); });
  given_ = std::move(ready_.front());
  ready_.pop_front();
  if (given_->error)
    std::rethrow_exception(given_->error);
  return given_->bytes.data();
}

void ReadAhead::run() {
  if (config_.cores)
    sched_setaffinity(0, sizeof *config_.cores, &*config_.cores);
  const std::unique_ptr<Delays> delays = Delays::fromEnvironment(config_.delays);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return quit_ || (begun_ && !free_.empty()); });
    if (quit_)
      return;
    std::unique_ptr<Batch> batch = std::move(free_.front());
    free_.pop_front();
    const int64_t step = making_;
    const uint64_t round = round_;
    making_ = config_.next(step);
    lock.unlock();
    if (delays)
      delays->pause();
    if (config_.timeline)
      config_.timeline->begin("read the batch", "data", step);
    batch->error = nullptr;
    try {
      batch->bytes.resize(config_.bytes);
      fill_(step, batch->bytes.data());
    } catch (...) {
      batch->error = std::current_exception();
    }
    if (config_.timeline)
      config_.timeline->end();
    lock.lock();
    const bool failed = batch->error != nullptr;
    (round == round_ ? ready_ : free_).push_back(std::move(batch));
    changed_.notify_all();
    // What follows would fail as well; whoever asks for it hears of the failure first.
    if (failed && round == round_)
      changed_.wait(lock, [&] { return quit_ || round != round_; });
  }
}

} // namespace drt
