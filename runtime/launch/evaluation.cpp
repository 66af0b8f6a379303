//===- evaluation.cpp - Forward only, over all of the data ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/evaluation.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/values.h"
#include "data/npz.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>

namespace drt {
namespace {

// Some replica's part of a joined fetch: so many rows along the fetch's axis.
struct Part {
  std::vector<char> bytes;
  int64_t rows;
};

// A fetch over all batches.
struct Fetched {
  const drt_fetch *fetch;
  std::vector<int64_t> shape;
  std::vector<char> bytes; // of what comes first; in the end, of what is joined
  std::vector<Part> parts; // of what is joined: of each batch each replica's
  std::vector<double>
      total; // of sums and means over a batch: the sum over the examples; over the batches where there are none
  std::vector<std::optional<double>> alike; // … the number that each batch gave, where all gave the same
};

// A fetch of one batch.
struct Value {
  std::vector<Part> parts;     // of what is joined, one a replica; else the first replica's alone
  std::vector<double> numbers; // of a sum or mean over the batch
};

// Of each batch numbers of its own.
bool isAveraged(const drt_fetch &fetch) {
  return fetch.join == DRT_JOIN_MEAN || fetch.join == DRT_JOIN_SUM || fetch.join == DRT_JOIN_BATCH;
}

int64_t product(const int64_t *extents, int64_t count) {
  return std::accumulate(extents, extents + count, int64_t{1}, std::multiplies<int64_t>());
}

int64_t countRows(const std::vector<Part> &parts) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t rows, const Part &part) { return rows + part.rows; });
}

// The parts of a fetch side by side along its axis, of which `kept` rows remain.
std::vector<char> concatenate(const drt_fetch &fetch, const std::vector<Part> &parts, int64_t kept) {
  const drt_type &type = fetch.type;
  if (type.rank == 0)
    return parts.empty() ? std::vector<char>() : parts.front().bytes;
  const int64_t outer = product(type.shape, fetch.axis);
  const int64_t rowBytes = product(type.shape + fetch.axis + 1, type.rank - fetch.axis - 1) * dtypeSize(type.dtype);
  std::vector<char> joined;
  joined.reserve(outer * kept * rowBytes);
  for (int64_t i = 0; i < outer; ++i) {
    int64_t left = kept;
    for (const Part &part : parts) {
      const int64_t taken = std::min(part.rows, left);
      const char *from = part.bytes.data() + i * part.rows * rowBytes;
      joined.insert(joined.end(), from, from + taken * rowBytes);
      left -= taken;
    }
  }
  return joined;
}

std::string compiledIn(const drt_entry &entry) {
  std::string names;
  for (int32_t i = 0; i < entry.num_fetches; ++i)
    names += (i ? ", " : "") + std::string(entry.fetches[i].name);
  return names.empty() ? "none" : names;
}

const drt_fetch &getFetch(TaskRuntime &task, const drt_entry &entry, const std::string &name) {
  if (const drt_fetch *fetch = findFetch(&entry, name))
    return *fetch;
  if (findFetch(task.findEntry("update"), name))
    throw Error(
        "--fetch " + name +
        " is what servers make of an update's gradients, and --eval makes none; there are: " + compiledIn(entry));
  if (findFetch(task.findEntry("step"), name))
    throw Error("--fetch " + name +
                " stands behind an update of a variable, and --eval changes none; there are: " + compiledIn(entry));
  throw Error("--fetch " + name + " is not compiled in; there are: " + compiledIn(entry) +
              ". Compile again with --fetch " + name);
}

const drt_entry &evalEntry(TaskRuntime &task, const std::vector<std::string> &names) {
  if (const drt_entry *entry = task.findEntry("eval"))
    return *entry;
  if (names.empty())
    throw Error("there is nothing to evaluate: the program was compiled without --fetch TENSOR", 2);
  throw Error("--fetch " + names[0] + " is not compiled in, nor is any other; compile again with --fetch " + names[0]);
}

std::vector<const drt_fetch *> select(TaskRuntime &task, const drt_entry &entry,
                                      const std::vector<std::string> &names) {
  std::vector<const drt_fetch *> selected;
  for (const std::string &name : names)
    selected.push_back(&getFetch(task, entry, name));
  for (int32_t i = 0; names.empty() && i < entry.num_fetches; ++i)
    selected.push_back(&entry.fetches[i]);
  return selected;
}

FeederConfig feederConfig(const TaskRuntime &task, const drt_entry &entry, FeederConfig feeding) {
  feeding.firstReplica = 0;
  feeding.localReplicas = feeding.numReplicas = task.localReplicas();
  feeding.shuffleSeed.reset();
  feeding.lastBatch = takesFewer(entry) ? LastBatch::Pad : LastBatch::Fill;
  feeding.alternates = true; // with the step's feeds, in training
  return feeding;
}

Value valueOf(const TaskRuntime &task, int32_t replicas, const drt_fetch &fetch) {
  // Where other tasks have replicas too, the batches here are a part of the compiled one, and so are their sums.
  const double batches = static_cast<double>(task.config().numReplicas) / replicas;
  const drt_type &type = fetch.type;
  const int64_t count = elementCount(type), bytes = count * dtypeSize(type.dtype);
  const auto part = [&](int32_t replica) { return static_cast<const char *>(task.fetched(replica, fetch)); };
  Value value;
  if (isAveraged(fetch)) {
    value.numbers.resize(count);
    for (int64_t i = 0; i < count; ++i) {
      ReplicaValues values;
      for (int32_t r = 0; r < replicas; ++r)
        values.add(valueAt(type.dtype, part(r), i));
      value.numbers[i] = fetch.join == DRT_JOIN_SUM ? batches * values.getSum() : values.getShareOfMean(replicas);
    }
    return value;
  }
  const int64_t rows = type.rank > 0 ? type.shape[fetch.axis] : 1;
  for (int32_t r = 0; r < (fetch.join == DRT_JOIN_CONCAT ? replicas : 1); ++r)
    value.parts.push_back({std::vector<char>(part(r), part(r) + bytes), rows});
  return value;
}

void addBatch(Fetched &f, const Value &value, int64_t examples, bool first) {
  f.total.resize(value.numbers.size());
  if (first)
    f.alike.assign(value.numbers.begin(), value.numbers.end());
  for (size_t i = 0; i < value.numbers.size(); ++i) {
    f.total[i] += value.numbers[i] * static_cast<double>(examples);
    if (i < f.alike.size() && f.alike[i] != value.numbers[i])
      f.alike[i].reset();
  }
  if (f.fetch->join == DRT_JOIN_CONCAT)
    f.parts.insert(f.parts.end(), value.parts.begin(), value.parts.end());
  else if (first && !value.parts.empty())
    f.bytes = value.parts.front().bytes;
}

// Whether two values are equal, to rounding.
bool agree(double a, double b, double scale, int32_t dtype) {
  const double tolerance = dtype == DRT_F64 ? 1e-9 : dtype == DRT_F16 || dtype == DRT_BF16 ? 3e-2 : 1e-4;
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * scale;
}

bool agree(const std::vector<char> &a, const std::vector<char> &b, int32_t dtype) {
  const int64_t count = static_cast<int64_t>(a.size()) / dtypeSize(dtype);
  for (int64_t i = 0; i < count; ++i) {
    const double x = valueAt(dtype, a.data(), i), y = valueAt(dtype, b.data(), i);
    if (isFloat(dtype) ? !agree(x, y, std::max({std::abs(x), std::abs(y), 1e-3}), dtype) : x != y)
      return false;
  }
  return true;
}

// A batch of `count` examples alone, by a program that takes fewer than a batch: rows that are not there are cut.
void addSmallerBatch(Fetched &f, const Value &value, int64_t count, const Feeder &feeder, bool first) {
  if (f.fetch->join == DRT_JOIN_CONCAT) {
    const int64_t rows = countRows(value.parts) * count / feeder.batch();
    f.parts.push_back({concatenate(*f.fetch, value.parts, rows), rows});
    return;
  }
  // A sum over the examples counts like that of another batch.
  addBatch(f, value, f.fetch->join == DRT_JOIN_SUM ? feeder.batch() : count, first);
}

// The last examples, fewer than a batch, in a batch that an example fills up; and a batch of nothing but that one.
struct FilledUp {
  Value with, filler;
};

[[noreturn]] void refusePartialBatch(const drt_fetch &fetch, const Feeder &feeder) {
  throw Error(std::string(fetch.name) + " of the last " + std::to_string(feeder.examples() % feeder.batch()) + " of " +
              std::to_string(feeder.examples()) + " examples cannot be told from a whole batch of " +
              std::to_string(feeder.batch()) + ": what it gives for an example depends on the others; give a multiple" +
              " of the batch, or compile with a --batch that divides " + std::to_string(feeder.examples()));
}

// Adds a batch that only `count` examples have a part in. The program is compiled for whole batches, so others fill it
// up, and what they bring is taken away again: rows are cut, and of a sum or mean the filler's part is known, since a
// batch of it alone gives it. Neither is right where a row's result depends on other rows (batch statistics, the square
// root of a mean): then another filler gives another result, and there is none.
void addPartialBatch(Fetched &f, const FilledUp &one, const FilledUp &other, int64_t count, const Feeder &feeder,
                     bool first) {
  const drt_fetch &fetch = *f.fetch;
  const double batch = static_cast<double>(feeder.batch()), fillers = static_cast<double>(feeder.batch() - count);
  bool right = true;
  if (isAveraged(fetch)) {
    f.total.resize(one.with.numbers.size());
    f.alike.clear();
    for (size_t i = 0; i < f.total.size(); ++i) {
      const auto sum = [&](const FilledUp &by) { return batch * by.with.numbers[i] - fillers * by.filler.numbers[i]; };
      const double scale = batch * (std::abs(one.with.numbers[i]) + std::abs(one.filler.numbers[i]) +
                                    std::abs(other.with.numbers[i]) + std::abs(other.filler.numbers[i]));
      right &= agree(sum(one), sum(other), scale, fetch.type.dtype);
      f.total[i] += sum(one);
    }
  } else if (fetch.join == DRT_JOIN_CONCAT) {
    const int64_t rows = countRows(one.with.parts) * count;
    right = rows % feeder.batch() == 0;
    const auto kept = [&](const Value &value) { return concatenate(fetch, value.parts, rows / feeder.batch()); };
    right = right && agree(kept(one.with), kept(other.with), fetch.type.dtype);
    if (right)
      f.parts.push_back({kept(one.with), rows / feeder.batch()});
  } else if (first) {
    const auto bytes = [](const Value &value) -> const std::vector<char> & { return value.parts.front().bytes; };
    right = bytes(one.with) == bytes(other.with) && bytes(one.with) == bytes(one.filler);
    f.bytes = bytes(one.with);
  }
  if (!right)
    refusePartialBatch(fetch, feeder);
}

// Sums over the examples become those of a batch, as float64.
void conclude(Fetched &f, const Feeder &feeder) {
  const bool batched = feeder.batch() > 0;
  for (double &value : f.total)
    value /= batched ? static_cast<double>(feeder.examples()) : 1;
  // Their mean, which no rounding may change.
  for (size_t i = 0; batched && f.fetch->join != DRT_JOIN_SUM && i < f.alike.size(); ++i)
    f.total[i] = f.alike[i].value_or(f.total[i]);
  if (f.fetch->join != DRT_JOIN_CONCAT)
    return;
  const int64_t rows = countRows(f.parts);
  f.bytes = concatenate(*f.fetch, f.parts, rows);
  if (!f.shape.empty())
    f.shape[f.fetch->axis] = rows;
}

void print(const Fetched &f) {
  const bool mean = isAveraged(*f.fetch);
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
    if (isAveraged(*f.fetch))
      writer.add(f.fetch->name, DRT_F64, f.shape, f.total.data());
    else
      writer.add(f.fetch->name, f.fetch->type.dtype, f.shape, f.bytes.data());
  writer.finish();
}

} // namespace

const drt_fetch *findFetch(const drt_entry *entry, std::string_view name) {
  for (int32_t i = 0; entry && i < entry->num_fetches; ++i) {
    const std::string_view known = entry->fetches[i].name;
    if (name == known || (known.size() == name.size() + 2 && known.starts_with(name) && known.ends_with(":0")))
      return &entry->fetches[i];
  }
  return nullptr;
}

struct Evaluation::Impl {
  TaskRuntime &task;
  const drt_entry &entry;
  std::vector<const drt_fetch *> selected;
  Feeder feeder;
  std::vector<Fetched> fetched; // of the last run

  Impl(TaskRuntime &task, const Dataset *data, const std::vector<std::string> &names, FeederConfig feeding)
      : task(task), entry(evalEntry(task, names)), selected(select(task, entry, names)),
        feeder(data, entry, feederConfig(task, entry, std::move(feeding))) {
    // Before anything is computed.
    for (const drt_fetch *fetch : selected)
      if (!takesFewer(entry) && fetch->join == DRT_JOIN_BATCH && feeder.batch() > 0 &&
          feeder.examples() % feeder.batch() != 0)
        refusePartialBatch(*fetch, feeder);
  }

  std::vector<Value> runBatch(int64_t batch) {
    feeder.feed(batch, [this](int32_t feed, const void *share0, int64_t shareBytes) {
      task.setFeed(feed, share0, shareBytes);
    });
    task.run(entry, batch);
    std::vector<Value> values;
    for (const drt_fetch *fetch : selected)
      values.push_back(valueOf(task, task.localReplicas(), *fetch));
    return values;
  }

  void run() {
    fetched.clear();
    for (const drt_fetch *fetch : selected)
      fetched.push_back({fetch, {fetch->type.shape, fetch->type.shape + fetch->type.rank}, {}, {}, {}});
    const bool batched = feeder.batch() > 0;
    const int64_t fullBatches = batched ? feeder.examples() / feeder.batch() : 1;
    for (int64_t k = 0; k < fullBatches; ++k) {
      const std::vector<Value> values = runBatch(k);
      for (size_t i = 0; i < fetched.size(); ++i)
        addBatch(fetched[i], values[i], batched ? feeder.batch() : 1, k == 0);
    }
    const int64_t left = batched ? feeder.examples() % feeder.batch() : 0;
    if (left && takesFewer(entry)) {
      const std::vector<Value> values = runBatch(fullBatches);
      for (size_t i = 0; i < fetched.size(); ++i)
        addSmallerBatch(fetched[i], values[i], left, feeder, fullBatches == 0);
    } else if (left) {
      // Fillers that differ where any two of the examples do: the last one, and the first of the data or of the batch.
      std::vector<std::vector<Value>> runs;
      for (const int64_t filler : {feeder.examples() - 1, fullBatches > 0 ? int64_t{0} : feeder.examples() - left}) {
        feeder.setFiller(filler);
        runs.push_back(runBatch(fullBatches));
        runs.push_back(runBatch(fullBatches + 1));
      }
      for (size_t i = 0; i < fetched.size(); ++i)
        addPartialBatch(fetched[i], {runs[0][i], runs[1][i]}, {runs[2][i], runs[3][i]}, left, feeder, fullBatches == 0);
    }
    for (Fetched &f : fetched)
      conclude(f, feeder);
  }
};

Evaluation::Evaluation(TaskRuntime &task, const Dataset *data, const std::vector<std::string> &names,
                       FeederConfig feeding)
    : impl_(std::make_unique<Impl>(task, data, names, std::move(feeding))) {}

Evaluation::~Evaluation() = default;

void Evaluation::run() { impl_->run(); }

void Evaluation::print() const {
  for (const Fetched &f : impl_->fetched)
    drt::print(f);
  std::fflush(stdout);
}

void Evaluation::write(const std::string &path) const { writeNpz(path, impl_->fetched); }

std::vector<NamedValue> Evaluation::numbers() const {
  std::vector<NamedValue> numbers;
  for (const Fetched &f : impl_->fetched)
    if (elementCount(f.fetch->type) == 1 && f.fetch->join != DRT_JOIN_CONCAT)
      numbers.push_back(
          {f.fetch->name, isAveraged(*f.fetch) ? f.total[0] : valueAt(f.fetch->type.dtype, f.bytes.data(), 0)});
  return numbers;
}

} // namespace drt
