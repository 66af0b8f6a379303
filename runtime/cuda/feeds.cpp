//===- feeds.cpp - A replica's feeds on their way to its device -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/feeds.h"
#include "core/error.h"

#include <cstring>

namespace drt::cuda {

FeedBuffers::FeedBuffers(const drt_program &program, TimelineRow *row) : row_(row) {
  const int64_t bytes = deviceMemoryPlan(program).feeds;
  memory_ = DeviceMemory(feedSets * bytes, "the feed buffers");
  pinned_ = PinnedMemory(feedSets * bytes);
  stream_ = Stream::make();
  // The rehearsal reads them before anything is fed.
  memory_.clear(stream_.get());
  check(driver().cuStreamSynchronize(stream_.get()), "cuStreamSynchronize");
  for (int i = 0; i < feedSets; ++i) {
    sets_[i].device = memory_.data() + i * bytes;
    sets_[i].pinned = pinned_.data() + i * bytes;
    sets_[i].sent = Event::make();
    record(sets_[i].sent, stream_.get());
    if (row) {
      sets_[i].span = {row, "feeds", "copy", Event::make(true), Event::make(true)};
    }
  }
}

void FeedBuffers::addresses(const drt_entry &entry, int set, std::vector<const void *> &feeds) const {
  const std::vector<int64_t> offsets = feedOffsets(entry);
  for (int32_t i = 0; i < entry.num_feeds; ++i)
    feeds[static_cast<size_t>(i)] = sets_[set].device + offsets[static_cast<size_t>(i)];
}

void FeedBuffers::send(const drt_entry &entry, int index, int64_t step, const std::vector<GivenFeed> &given,
                       int32_t localReplica, const Event &done, CUstream computing) {
  Set &set = sets_[index];
  set.step = step;
  set.copied = false;
  if (set.entry != &entry) {
    set.entry = &entry;
    set.versions.assign(static_cast<size_t>(entry.num_feeds), 0);
  }
  const std::vector<int64_t> offsets = feedOffsets(entry);
  for (size_t i = 0; i < set.versions.size(); ++i) {
    const drt_feed &feed = entry.feeds[i];
    if (!given[i].share0)
      throw Error(std::string("the feed '") + feed.name + "' was not given: an internal error of the runtime", 70);
    if (set.versions[i] == given[i].version)
      continue;
    if (!set.copied) {
      // The pinned memory may still be read for the run before, the device's be computed from.
      check(driver().cuEventSynchronize(set.sent.get()), "cuEventSynchronize");
      waitFor(stream_.get(), done);
      if (row_)
        record(set.span.begin, stream_.get());
      set.copied = true;
    }
    const auto bytes = static_cast<size_t>(typeBytes(feed.type));
    std::memcpy(set.pinned + offsets[i], given[i].share0 + localReplica * given[i].shareBytes, bytes);
    check(driver().cuMemcpyHtoDAsync(addressOf(set.device + offsets[i]), set.pinned + offsets[i], bytes, stream_.get()),
          "cuMemcpyHtoDAsync");
    set.versions[i] = given[i].version;
  }
  if (!set.copied)
    return;
  if (row_)
    record(set.span.end, stream_.get());
  record(set.sent, stream_.get());
  waitFor(computing, set.sent);
}

void FeedBuffers::report(int set, const Clock &clock) const {
  if (row_ && sets_[set].copied)
    addTo(sets_[set].span, sets_[set].step, clock);
}

} // namespace drt::cuda
