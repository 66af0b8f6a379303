//===- evaluate.cpp - Forward only, over all of the data ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/dtype.h"
#include "core/task.h"
#include "data/feeder.h"
#include "data/npz.h"
#include "launch/program.h"
#include "launch/values.h"
#include "launch/variables.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>

namespace drt {
namespace {

// A fetch over all batches.
struct Fetched {
  const drt_fetch *fetch;
  std::vector<int64_t> shape;
  std::vector<char> bytes;   // of what is joined or comes first
  std::vector<double> total; // of what is averaged
};

std::string compiledIn(const drt_entry &entry) {
  std::string names;
  for (int32_t i = 0; i < entry.num_fetches; ++i)
    names += (i ? ", " : "") + std::string(entry.fetches[i].name);
  return names.empty() ? "none" : names;
}

const drt_fetch &findFetch(const drt_entry &entry, const std::string &name) {
  for (int32_t i = 0; i < entry.num_fetches; ++i)
    if (name == entry.fetches[i].name || name + ":0" == entry.fetches[i].name)
      return entry.fetches[i];
  throw Error("--fetch " + name + " is not compiled in; there are: " + compiledIn(entry) +
              ". Compile again with --fetch " + name);
}

const drt_entry &evalEntry(TaskRuntime &task, const Options &options) {
  if (const drt_entry *entry = task.findEntry("eval"))
    return *entry;
  if (options.fetches.empty())
    throw Error("there is nothing to evaluate: the program was compiled without --fetch TENSOR", 2);
  throw Error("--fetch " + options.fetches[0] + " is not compiled in, nor is any other; compile again with --fetch " +
              options.fetches[0]);
}

std::vector<Fetched> select(const drt_entry &entry, const Options &options) {
  std::vector<Fetched> fetched;
  for (const std::string &name : options.fetches)
    fetched.push_back({&findFetch(entry, name), {}, {}, {}});
  for (int32_t i = 0; options.fetches.empty() && i < entry.num_fetches; ++i)
    fetched.push_back({&entry.fetches[i], {}, {}, {}});
  for (Fetched &f : fetched)
    f.shape.assign(f.fetch->type.shape, f.fetch->type.shape + f.fetch->type.rank);
  return fetched;
}

void collect(TaskRuntime &task, Fetched &f, bool firstBatch, bool fullBatch) {
  const drt_type &type = f.fetch->type;
  const int64_t count = elementCount(type), bytes = count * dtypeSize(type.dtype);
  const auto valueOf = [&](int32_t replica) { return static_cast<const char *>(task.fetched(replica, *f.fetch)); };
  if (f.fetch->join == DRT_JOIN_MEAN) {
    f.total.resize(count);
    for (int32_t r = 0; fullBatch && r < task.localReplicas(); ++r)
      for (int64_t i = 0; i < count; ++i)
        f.total[i] += valueAt(type.dtype, valueOf(r), i) / task.localReplicas();
  } else if (f.fetch->join == DRT_JOIN_CONCAT) {
    for (int32_t r = 0; r < task.localReplicas(); ++r)
      f.bytes.insert(f.bytes.end(), valueOf(r), valueOf(r) + bytes);
  } else if (firstBatch) {
    f.bytes.assign(valueOf(0), valueOf(0) + bytes);
  }
}

// Rows that only filled the last batch go; sums become means, as float64.
void conclude(Fetched &f, const Feeder &feeder, int64_t batches, int64_t fullBatches, int32_t replicas) {
  if (f.fetch->join == DRT_JOIN_MEAN) {
    if (fullBatches == 0)
      throw Error(std::string(f.fetch->name) + " is a mean over a batch, and there are only " +
                  std::to_string(feeder.examples()) + " examples for a batch of " + std::to_string(feeder.batch()) +
                  "; give more data, or compile with a smaller --batch");
    for (double &value : f.total)
      value /= static_cast<double>(fullBatches);
  } else if (f.fetch->join == DRT_JOIN_CONCAT && !f.shape.empty()) {
    const int64_t rowBytes =
        static_cast<int64_t>(f.bytes.size()) / std::max<int64_t>(1, batches * replicas * f.shape[0]);
    const int64_t perBatch = f.shape[0] * replicas;
    f.shape[0] = batches * perBatch;
    if (feeder.batch() > 0 && perBatch % feeder.batch() == 0)
      f.shape[0] = feeder.examples() * (perBatch / feeder.batch());
    f.bytes.resize(f.shape[0] * rowBytes);
  }
}

void print(const Fetched &f) {
  const bool mean = f.fetch->join == DRT_JOIN_MEAN;
  const int32_t dtype = mean ? static_cast<int32_t>(DRT_F64) : f.fetch->type.dtype;
  const void *data = mean ? static_cast<const void *>(f.total.data()) : f.bytes.data();
  int64_t count = 1;
  for (int64_t extent : f.shape)
    count *= extent;
  if (count == 1) {
    std::printf("%s = %.9g\n", f.fetch->name, valueAt(dtype, data, 0));
    return;
  }
  double least = 0, most = 0, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = valueAt(dtype, data, i);
    least = i ? std::min(least, value) : value;
    most = i ? std::max(most, value) : value;
    sum += value;
  }
  std::printf("%s: %s %s, mean %.6g, from %.6g to %.6g\n", f.fetch->name, dtypeName(f.fetch->type.dtype).c_str(),
              shapeName(f.shape.data(), static_cast<int32_t>(f.shape.size())).c_str(),
              sum / static_cast<double>(std::max<int64_t>(count, 1)), least, most);
}

void writeNpz(const std::string &path, const std::vector<Fetched> &fetched) {
  NpzWriter writer(path);
  for (const Fetched &f : fetched)
    if (f.fetch->join == DRT_JOIN_MEAN)
      writer.add(f.fetch->name, DRT_F64, f.shape, f.total.data());
    else
      writer.add(f.fetch->name, f.fetch->type.dtype, f.shape, f.bytes.data());
  writer.finish();
}

} // namespace

int evaluate(const drt_program &program, const Options &options) {
  TaskConfig config;
  config.localReplicas = config.numReplicas = config.hostReplicas = program.num_replicas;
  config.pin = options.pin;
  config.shareDevices = options.shareDevices;
  config.entropy = options.seed ? *options.seed : std::random_device{}();
  const std::unique_ptr<TaskRuntime> made = makeTask(program, nullptr, config);
  TaskRuntime &task = *made;
  const drt_entry &entry = evalEntry(task, options);
  std::vector<Fetched> fetched = select(entry, options);

  std::optional<Dataset> data;
  if (!options.data.empty())
    data = Dataset::open(options.data);
  FeederConfig feeding;
  feeding.localReplicas = feeding.numReplicas = program.num_replicas;
  feeding.wrap = false;
  Feeder feeder(data ? &*data : nullptr, entry, feeding);

  if (const drt_entry *init = task.findEntry("init"))
    task.run(*init, 0);
  if (!options.restore.empty())
    restoreVariables(task, options.restore);
  else if (!options.quiet)
    std::fputs("note: without --restore PREFIX the variables have their initial values\n", stderr);

  task.broadcastVariables();

  const bool batched = feeder.batch() > 0;
  const int64_t batches = batched ? (feeder.examples() + feeder.batch() - 1) / feeder.batch() : 1;
  const int64_t fullBatches = batched ? feeder.examples() / feeder.batch() : 1;
  for (int64_t k = 0; k < batches; ++k) {
    feeder.feed(
        k, [&task](int32_t feed, const void *share0, int64_t shareBytes) { task.setFeed(feed, share0, shareBytes); });
    task.run(entry, k);
    for (Fetched &f : fetched)
      collect(task, f, k == 0, k < fullBatches);
  }
  for (Fetched &f : fetched)
    conclude(f, feeder, batches, fullBatches, program.num_replicas);
  if (!options.exportNpz.empty())
    writeNpz(options.exportNpz, fetched);
  for (const Fetched &f : fetched)
    print(f);
  std::fflush(stdout);
  return 0;
}

} // namespace drt
