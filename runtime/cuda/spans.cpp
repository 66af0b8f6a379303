//===- spans.cpp - When the work of a device ran --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/spans.h"

namespace drt::cuda {
namespace {

double nanosecondsBetween(const Event &from, const Event &to) {
  float milliseconds = 0;
  check(driver().cuEventElapsedTime(&milliseconds, from.get(), to.get()), "cuEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e6;
}

void recordNode(const Event &event, CUstream stream) {
  check(driver().cuEventRecordWithFlags(event.get(), stream, CU_EVENT_RECORD_EXTERNAL), "cuEventRecordWithFlags");
}

} // namespace

Clock Clock::startOn(CUstream stream) {
  Clock clock;
  clock.start_ = Event::make(true);
  record(clock.start_, stream);
  check(driver().cuEventSynchronize(clock.start_.get()), "cuEventSynchronize");
  clock.originNs_ = static_cast<double>(nowNs());
  return clock;
}

void Clock::moveTo(const Event &origin) {
  originNs_ += nanosecondsBetween(origin_ ? *origin_ : start_, origin);
  origin_ = &origin;
}

int64_t Clock::timeOf(const Event &event) const {
  return static_cast<int64_t>(originNs_ + nanosecondsBetween(origin_ ? *origin_ : start_, event));
}

void Spans::reserve(size_t count) {
  spans_.resize(count);
  for (Span &span : spans_) {
    span.begin = Event::make(true);
    span.end = Event::make(true);
  }
}

size_t Spans::begin(TimelineRow *row, const char *name, const char *category, CUstream stream) {
  Span &span = spans_.at(used_);
  span.row = row;
  span.name = name;
  span.category = category;
  recordNode(span.begin, stream);
  return used_++;
}

void Spans::end(size_t span, CUstream stream) { recordNode(spans_.at(span).end, stream); }

void Spans::report(int64_t step, const Clock &clock) const {
  for (size_t i = 0; i < used_; ++i)
    addTo(spans_[i], step, clock);
}

void addTo(const Span &span, int64_t step, const Clock &clock) {
  span.row->add({span.name, span.category, clock.timeOf(span.begin), clock.timeOf(span.end), step});
}

} // namespace drt::cuda
