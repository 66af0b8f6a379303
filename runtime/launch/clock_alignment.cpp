//===- clock_alignment.cpp - A task's clock beside task 0's ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/clock_alignment.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace drt {
namespace {

/// Between samples that are nearer to each other an interpolation would follow their errors, not the clocks.
constexpr int64_t separationNs = 1'000'000'000;
/// No clock of a machine that runs shows more, and differences of such times are no overflow.
constexpr int64_t latestNs = int64_t{1} << 60;

int64_t drifted(int64_t ns) {
  return static_cast<int64_t>(std::ceil(ClockAlignment::drift * static_cast<double>(std::abs(ns))));
}

/// Whether a sample says no more than one that is as good or better.
bool isUseless(const ClockSample &sample, const ClockSample &better) {
  const int64_t between = sample.atNs - better.atNs;
  return std::abs(between) < separationNs || better.uncertaintyNs + drifted(between) <= sample.uncertaintyNs;
}

} // namespace

std::string_view nameOf(ClockAlignment::Kind kind) {
  switch (kind) {
  case ClockAlignment::Kind::Shared:
    return "shared";
  case ClockAlignment::Kind::Measured:
    return "measured";
  case ClockAlignment::Kind::Unknown:
    break;
  }
  return "unknown";
}

ClockAlignment ClockAlignment::shared() {
  ClockAlignment alignment;
  alignment.kind_ = Kind::Shared;
  return alignment;
}

ClockAlignment ClockAlignment::measured(const std::vector<ClockSample> &samples) {
  ClockAlignment alignment;
  std::vector<ClockSample> best = samples;
  std::stable_sort(best.begin(), best.end(),
                   [](const ClockSample &x, const ClockSample &y) { return x.uncertaintyNs < y.uncertaintyNs; });
  for (const ClockSample &sample : best)
    if (std::none_of(alignment.samples_.begin(), alignment.samples_.end(),
                     [&](const ClockSample &better) { return isUseless(sample, better); }))
      alignment.samples_.push_back(sample);
  std::sort(alignment.samples_.begin(), alignment.samples_.end(),
            [](const ClockSample &x, const ClockSample &y) { return x.atNs < y.atNs; });
  if (!alignment.samples_.empty())
    alignment.kind_ = Kind::Measured;
  return alignment;
}

int64_t ClockAlignment::aheadNs(int64_t ownNs) const {
  if (samples_.empty())
    return 0;
  const auto after = std::upper_bound(samples_.begin(), samples_.end(), ownNs,
                                      [](int64_t at, const ClockSample &sample) { return at < sample.atNs; });
  if (after == samples_.begin())
    return after->aheadNs;
  const ClockSample &before = *std::prev(after);
  if (after == samples_.end())
    return before.aheadNs;
  const double part = static_cast<double>(ownNs - before.atNs) / static_cast<double>(after->atNs - before.atNs);
  return before.aheadNs + std::llround(part * static_cast<double>(after->aheadNs - before.aheadNs));
}

int64_t ClockAlignment::uncertaintyNs(int64_t beginNs, int64_t endNs) const {
  if (samples_.empty())
    return 0;
  int64_t most = 0;
  if (beginNs < samples_.front().atNs)
    most = samples_.front().uncertaintyNs + drifted(samples_.front().atNs - beginNs);
  if (endNs > samples_.back().atNs)
    most = std::max(most, samples_.back().uncertaintyNs + drifted(endNs - samples_.back().atNs));
  // Each of two samples bounds the time between them, with the drift since: what is interpolated has the mean of both
  // bounds, weighted as it is, which is largest in the middle.
  for (size_t i = 0; i + 1 < samples_.size(); ++i)
    if (samples_[i + 1].atNs >= beginNs && samples_[i].atNs <= endNs)
      most = std::max(most, std::max(samples_[i].uncertaintyNs, samples_[i + 1].uncertaintyNs) +
                                drifted((samples_[i + 1].atNs - samples_[i].atNs) / 2));
  return std::max(most, samples_.size() == 1 ? samples_.front().uncertaintyNs : 0);
}

void ClockComparison::exchanged(int64_t sentNs, int64_t receivedNs, int64_t answeredNs, int64_t returnedNs) {
  for (const int64_t at : {sentNs, receivedNs, answeredNs, returnedNs})
    if (at < 0 || at > latestNs)
      return;
  const int64_t least = sentNs - receivedNs, most = returnedNs - answeredNs;
  if (returnedNs < sentNs || answeredNs < receivedNs || most < least)
    return;
  const ClockSample sample = {sentNs + (returnedNs - sentNs) / 2, least + (most - least) / 2, (most - least + 1) / 2};
  if (!samples_.empty() && sample.atNs < periodEndNs_) {
    if (sample.uncertaintyNs <= samples_.back().uncertaintyNs)
      samples_.back() = sample;
    return;
  }
  samples_.push_back(sample);
  periodEndNs_ = sample.atNs + periodNs_;
  if (samples_.size() < most_)
    return;
  for (size_t i = 0; i < samples_.size() / 2; ++i)
    samples_[i] = std::min(samples_[2 * i], samples_[2 * i + 1], [](const ClockSample &x, const ClockSample &y) {
      return x.uncertaintyNs < y.uncertaintyNs;
    });
  samples_.resize(samples_.size() / 2);
  periodNs_ *= 2;
}

ClockAlignment ClockComparison::alignment(bool isShared) const {
  const bool contradicted = std::any_of(samples_.begin(), samples_.end(), [](const ClockSample &sample) {
    return std::abs(sample.aheadNs) > sample.uncertaintyNs;
  });
  return isShared && !contradicted ? ClockAlignment::shared() : ClockAlignment::measured(samples_);
}

} // namespace drt
