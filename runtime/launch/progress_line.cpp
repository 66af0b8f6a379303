//===- progress_line.cpp - How far a run is, for who watches it ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/progress_line.h"
#include "core/timeline.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace drt {
namespace {

constexpr int64_t second = 1'000'000'000;

std::string bar(double fraction) {
  constexpr int width = 24;
  const int full = static_cast<int>(fraction * width);
  std::string text(full, '=');
  if (full < width)
    text += '>' + std::string(width - full - 1, ' ');
  return "[" + text + "]";
}

std::string clockText(double seconds) {
  const int64_t s = static_cast<int64_t>(seconds + 0.5);
  char text[32];
  if (s >= 3600)
    std::snprintf(text, sizeof text, "%d:%02d:%02d", static_cast<int>(s / 3600), static_cast<int>(s / 60 % 60),
                  static_cast<int>(s % 60));
  else
    std::snprintf(text, sizeof text, "%d:%02d", static_cast<int>(s / 60), static_cast<int>(s % 60));
  return text;
}

} // namespace

ProgressLine::ProgressLine(int64_t firstStep, int64_t steps, int64_t examples)
    : firstStep_(firstStep), steps_(steps), examples_(examples), startNs_(nowNs()), shownStep_(firstStep),
      shownNs_(startNs_), terminal_(isatty(STDERR_FILENO) == 1) {
  periodNs_ = terminal_ ? second / 10 : 5 * second;
  nextNs_ = startNs_ + periodNs_;
}

void ProgressLine::show(const StepRecord &record) {
  const int64_t done = record.step + 1;
  const double sinceStart = static_cast<double>(record.endNs - startNs_) * 1e-9;
  const double each = sinceStart / static_cast<double>(std::max<int64_t>(done - firstStep_, 1));
  const double interval = static_cast<double>(record.endNs - shownNs_) * 1e-9;
  char loss[32] = "", speed[48] = "";
  if (record.hasLoss)
    std::snprintf(loss, sizeof loss, "  loss %.5g", record.loss);
  if (interval > 0 && done > shownStep_) {
    const double stepsPerSecond = static_cast<double>(done - shownStep_) / interval;
    if (examples_ > 0)
      std::snprintf(speed, sizeof speed, "  %.0f examples/s", stepsPerSecond * static_cast<double>(examples_));
    else
      std::snprintf(speed, sizeof speed, "  %.1f steps/s", stepsPerSecond);
  }
  const std::string text = "step " + std::to_string(done) + "/" + std::to_string(steps_) +
                           (terminal_ ? " " + bar(static_cast<double>(done) / static_cast<double>(steps_)) : "") +
                           loss + speed + "  ETA " + clockText(each * static_cast<double>(steps_ - done));
  // The rest of a longer line before it is wiped.
  std::fprintf(stderr, terminal_ ? "\r%s\033[K" : "%s\n", text.c_str());
  std::fflush(stderr);
  shownStep_ = done;
  shownNs_ = record.endNs;
  nextNs_ = record.endNs + periodNs_;
}

void ProgressLine::interrupt() {
  if (terminal_)
    std::fputs("\r\033[K", stderr);
}

void ProgressLine::finish(const StepRecord &last) {
  if (shownStep_ <= last.step)
    show(last);
  if (terminal_)
    std::fputs("\n", stderr);
}

} // namespace drt
