//===- step_log.cpp - What a run says of its steps ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/step_log.h"
#include "launch/program.h"

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
  // As many digits as give back the number as it was: a loss may be a float64. JSON has no word for what is no finite
  // number.
  Line &operator<<(double value) {
    if (!std::isfinite(value))
      return *this << "null";
    end_ = std::to_chars(end_, text_ + sizeof text_, value).ptr;
    return *this;
  }
  std::string_view text() const { return {text_, static_cast<size_t>(end_ - text_)}; }

private:
  char text_[256];
  char *end_ = text_;
};

// How many bytes of a log stay: its first line, which says what runs, and whole lines of steps before `firstStep`.
int64_t bytesBefore(const std::string &path, int64_t firstStep) {
  int64_t kept = 0;
  std::ifstream in(path, std::ios::binary);
  for (std::string line; std::getline(in, line) && !in.eof() && line.ends_with('}');) {
    long long step = 0;
    const bool right = kept == 0 ? line.starts_with("{\"strategy\":")
                                 : std::sscanf(line.c_str(), "{\"step\":%lld,", &step) == 1 && step < firstStep;
    if (!right)
      break;
    kept += static_cast<int64_t>(line.size()) + 1;
  }
  return kept;
}

} // namespace

int64_t examplesOfStep(const drt_program &program) {
  return program.servers ? program.global_batch / program.num_replicas * program.servers->required
                         : program.global_batch;
}

StepLog::StepLog(const std::string &path, const drt_program &program, std::optional<int64_t> restartedAt)
    : file_(path, restartedAt ? bytesBefore(path, *restartedAt) : 0),
      examples_(static_cast<double>(program.global_batch ? examplesOfStep(program) : program.num_replicas)) {
  if (file_.written() > 0) {
    // Another number than the first line's may compute from here on.
    if (programsOf(program).size() > 1)
      file_.write("{\"step\":" + std::to_string(*restartedAt) + ",\"workers\":" + std::to_string(program.num_tasks) +
                  "}\n");
    return;
  }
  file_.write("{\"strategy\":" + jsonString(program.strategy) + ",\"tasks\":" + std::to_string(program.num_tasks) +
              ",\"replicas\":" + std::to_string(program.num_replicas) +
              ",\"batch\":" + std::to_string(program.global_batch) + ",\"graph\":" + jsonString(program.graph) +
              ",\"target\":" + jsonString(program.target) + ",\"versions\":{\"distc\":" +
              jsonString(program.distc_version) + ",\"abi\":" + std::to_string(program.abi_version) + "}}\n");
  file_.flush();
}

// {"accuracy:0":0.5,...}
static std::string valuesText(const std::vector<NamedValue> &values) {
  std::string text = "{";
  for (const NamedValue &value : values) {
    char number[40] = "null"; // JSON has no word for what is no finite number
    if (std::isfinite(value.value))
      *std::to_chars(number, number + sizeof number, value.value).ptr = 0;
    text += (text.size() > 1 ? "," : "") + jsonString(value.name) + ":" + number;
  }
  return text + "}";
}

void StepLog::evaluated(int64_t step, const std::vector<NamedValue> &values) {
  file_.write("{\"step\":" + std::to_string(step) + ",\"eval\":" + valuesText(values) + "}\n");
}

void StepLog::write(const StepRecord &record) {
  Line line;
  line << "{\"step\":" << record.step;
  if (record.hasLoss)
    line << ",\"loss\":" << record.loss;
  if (record.hasLoss && !std::isfinite(record.loss))
    line << ",\"loss_is\":" << (std::isnan(record.loss) ? "\"nan\"" : record.loss > 0 ? "\"inf\"" : "\"-inf\"");
  const double ns = static_cast<double>(record.nanoseconds);
  line << ",\"step_ms\":" << ns * 1e-6 << ",\"examples_per_s\":" << examples_ / (ns * 1e-9);
  file_.write(line.text());
  if (!record.fetches.empty())
    file_.write(",\"fetches\":" + valuesText(record.fetches));
  file_.write("}\n");
  constexpr int64_t flushEveryNs = 1'000'000'000;
  if (record.endNs - flushNs_ > flushEveryNs) {
    flushNs_ = record.endNs;
    file_.flush();
  }
}

void StepLog::done(int64_t steps, double seconds, const std::string &checkpoint, int signal, const std::string &stopped,
                   std::optional<GradientCounts> gradients) {
  Line line;
  line << "{\"done\":" << (signal ? "false" : "true") << ",\"steps\":" << steps << ",\"seconds\":" << seconds;
  if (signal)
    line << ",\"signal\":" << static_cast<int64_t>(signal);
  file_.write(line.text());
  if (gradients)
    file_.write(",\"gradients\":{\"accepted\":" + std::to_string(gradients->accepted) +
                ",\"dropped\":" + std::to_string(gradients->dropped) + "}");
  if (!stopped.empty())
    file_.write(",\"stopped_when\":" + jsonString(stopped));
  if (!checkpoint.empty())
    file_.write(",\"checkpoint\":" + jsonString(checkpoint));
  file_.write("}\n");
  file_.sync();
}

} // namespace drt
