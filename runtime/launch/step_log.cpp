//===- step_log.cpp - What a run says of its steps ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/step_log.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace drt {
namespace {

// Appends text to a buffer that is large enough for a line.
class Line {
public:
  Line &operator<<(std::string_view text) {
    std::memcpy(end_, text.data(), text.size());
    end_ += text.size();
    return *this;
  }
  Line &operator<<(int64_t value) {
    end_ = std::to_chars(end_, text_ + sizeof text_, value).ptr;
    return *this;
  }
  // As many digits as give back the number as it was: a loss may be a float64. JSON has no word for what is not a
  // number; Python's, which most readers of logs use, is NaN.
  Line &operator<<(double value) {
    if (std::isfinite(value))
      end_ = std::to_chars(end_, text_ + sizeof text_, value).ptr;
    else
      *this << (std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    return *this;
  }
  std::string_view text() const { return {text_, static_cast<size_t>(end_ - text_)}; }

private:
  char text_[256];
  char *end_ = text_;
};

std::string linesBefore(const std::string &path, int64_t firstStep) {
  std::string kept, line;
  std::ifstream in(path);
  while (firstStep > 0 && std::getline(in, line)) {
    long long step = 0;
    if (std::sscanf(line.c_str(), "{\"step\":%lld", &step) == 1 && step < firstStep && line.back() == '}')
      kept += line + "\n";
  }
  return kept;
}

} // namespace

StepLog::StepLog(const std::string &path, const drt_program &program, int64_t firstStep)
    : kept_(linesBefore(path, firstStep)), file_(path),
      examples_(static_cast<double>(program.global_batch ? program.global_batch : program.num_replicas)) {
  file_.write("{\"strategy\":" + jsonString(program.strategy) + ",\"tasks\":" + std::to_string(program.num_tasks) +
              ",\"replicas\":" + std::to_string(program.num_replicas) +
              ",\"batch\":" + std::to_string(program.global_batch) + ",\"graph\":" + jsonString(program.graph) +
              ",\"target\":" + jsonString(program.target) + ",\"versions\":{\"distc\":" +
              jsonString(program.distc_version) + ",\"abi\":" + std::to_string(program.abi_version) + "}}\n");
  file_.write(kept_);
  file_.flush();
}

void StepLog::write(const StepRecord &record) {
  Line line;
  line << "{\"step\":" << record.step;
  if (record.hasLoss)
    line << ",\"loss\":" << record.loss;
  const double ns = static_cast<double>(record.nanoseconds);
  line << ",\"step_ms\":" << ns * 1e-6 << ",\"examples_per_s\":" << examples_ / (ns * 1e-9) << "}\n";
  file_.write(line.text());
  constexpr int64_t flushEveryNs = 1'000'000'000;
  if (record.endNs - flushNs_ > flushEveryNs) {
    flushNs_ = record.endNs;
    file_.flush();
  }
}

void StepLog::done(int64_t steps, double seconds, const std::string &checkpoint, int signal) {
  Line line;
  line << "{\"done\":" << (signal ? "false" : "true") << ",\"steps\":" << steps << ",\"seconds\":" << seconds;
  if (signal)
    line << ",\"signal\":" << static_cast<int64_t>(signal);
  file_.write(line.text());
  if (!checkpoint.empty())
    file_.write(",\"checkpoint\":" + jsonString(checkpoint));
  file_.write("}\n");
  file_.flush();
}

} // namespace drt
