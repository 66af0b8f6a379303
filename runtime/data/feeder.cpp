//===- feeder.cpp - From a dataset to what each replica is given ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/feeder.h"
#include "checkpoint/crc32c.h"
#include "core/dtype.h"
#include "core/error.h"
#include "core/near_names.h"
#include "data/array_examples.h"
#include "data/record_examples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace drt {
namespace {

// An array that is not aligned for its type is copied once, when it is opened,
// unless it is larger than this; then its rows are, in every step.
constexpr int64_t copyOnceBytes = int64_t{256} << 20;

// Rows that are copied: from this size of a batch on a thread of its own is worth its while.
constexpr int64_t readAheadBytes = 256 << 10;

// Tells readers' threads from replicas' (core/delays.h).
constexpr uint64_t readerDelays = 1 << 20;

std::string quoted(const char *name) { return std::string("'") + name + "'"; }

std::string listed(const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names)
    list += (list.empty() ? "" : ", ") + name;
  return list;
}

// The shape that the data must have, with the first extent open where it is batched.
std::string wantedShape(const drt_feed &feed) {
  if (!feed.batched)
    return shapeName(feed.type);
  std::string shape = "(examples";
  for (int32_t i = 1; i < feed.type.rank; ++i)
    shape += ", " + std::to_string(feed.type.shape[i]);
  return shape + (feed.type.rank == 1 ? ",)" : ")");
}

bool shapeFits(const drt_feed &feed, const NpyArray &array) {
  const int32_t skipped = feed.batched ? 1 : 0;
  return static_cast<int32_t>(array.shape.size()) == feed.type.rank &&
         std::equal(array.shape.begin() + skipped, array.shape.end(), feed.type.shape + skipped);
}

void align(NpyArray &array, int64_t limit) {
  if (array.aligned || array.bytes > limit)
    return;
  auto copy = std::make_shared<std::vector<int64_t>>(array.bytes / 8 + 1);
  std::memcpy(copy->data(), array.data, array.bytes);
  array.data = copy->data();
  array.storage = copy;
  array.aligned = true;
  array.mapped = false;
}

// Bytes of a boolean array as programs take them, 0 and 1: numpy calls any other one true as well.
void normalizeBooleans(NpyArray &array, const std::string &what) {
  const auto isNeither = [](char byte) { return (byte & ~1) != 0; };
  const char *from = static_cast<const char *>(array.data);
  if (array.dtype != DRT_BOOL || std::none_of(from, from + array.bytes, isNeither))
    return;
  if (array.bytes > copyOnceBytes)
    throw Error(what + " has booleans that are neither 0 nor 1 in memory, as arrays have that were made by a view; "
                       "write 'x != 0' in place of x");
  auto copy = std::make_shared<std::vector<int64_t>>(array.bytes / 8 + 1);
  char *to = reinterpret_cast<char *>(copy->data());
  std::transform(from, from + array.bytes, to, [](char byte) { return static_cast<char>(byte != 0); });
  array.data = to;
  array.storage = copy;
  array.aligned = true;
  array.mapped = false;
}

// The array that a feed reads; ":0" may be left out.
std::string arrayOf(const drt_feed &feed, const Dataset &data) {
  const std::string name = feed.name;
  return !data.has(name) && data.has(name + ":0") ? name + ":0" : name;
}

// ":0" may be left out.
std::string plainName(std::string_view name) {
  return std::string(name.ends_with(":0") ? name.substr(0, name.size() - 2) : name);
}

// What a flag says of a feed; null where it says nothing.
template <typename T> const T *findOf(const std::vector<std::pair<std::string, T>> &said, const drt_feed &feed) {
  for (const auto &[name, value] : said)
    if (plainName(name) == plainName(feed.name))
      return &value;
  return nullptr;
}

template <typename T> bool storeExactly(double number, void *to) {
  const bool isInteger = std::numeric_limits<T>::is_integer;
  if (isInteger && !(number >= -0x1p63 && number < 0x1p63 && number == std::floor(number)))
    return false;
  if (isInteger && (static_cast<int64_t>(number) < static_cast<int64_t>(std::numeric_limits<T>::min()) ||
                    static_cast<int64_t>(number) > static_cast<int64_t>(std::numeric_limits<T>::max())))
    return false;
  const T value = static_cast<T>(number);
  if (std::isfinite(number) && !std::isfinite(static_cast<double>(value)))
    return false;
  std::memcpy(to, &value, sizeof value);
  return true;
}

// Whether the type has the number; floats are rounded.
bool storeNumber(int32_t dtype, double number, void *to) {
  switch (dtype) {
  case DRT_F32:
    return storeExactly<float>(number, to);
  case DRT_F64:
    return storeExactly<double>(number, to);
  case DRT_I64:
    return storeExactly<int64_t>(number, to);
  case DRT_I32:
    return storeExactly<int32_t>(number, to);
  case DRT_I16:
    return storeExactly<int16_t>(number, to);
  case DRT_I8:
    return storeExactly<int8_t>(number, to);
  case DRT_U8:
    return storeExactly<uint8_t>(number, to);
  case DRT_BOOL:
    return storeExactly<bool>(number, to);
  default:
    return false;
  }
}

// An array that a feed reads, in parts.
std::vector<NpyArray> readArray(const Dataset &data, const drt_feed &feed) {
  const std::string name = arrayOf(feed, data);
  if (!data.has(name))
    throw Error(data.path() + " has no array for the feed " + quoted(feed.name) + " (" + dtypeName(feed.type.dtype) +
                " " + wantedShape(feed) + "); it has " + listed(data.names()));
  std::vector<NpyArray> parts = data.read(name);
  for (size_t i = 0; i < parts.size(); ++i) {
    const NpyArray &array = parts[i];
    const std::string what = "the feed " + quoted(feed.name) + " in " + data.partPath(i);
    if (array.dtype != feed.type.dtype)
      throw Error(what + " is " + dtypeName(array.dtype) + ", but the graph takes " + dtypeName(feed.type.dtype) +
                  "; convert it with numpy's astype(numpy." + dtypeName(feed.type.dtype) + ")");
    if (!shapeFits(feed, array))
      throw Error(what + " has shape " + shapeName(array.shape.data(), static_cast<int32_t>(array.shape.size())) +
                  ", but the graph takes " + wantedShape(feed));
    normalizeBooleans(parts[i], what);
  }
  return parts;
}

uint32_t addTo(uint32_t digest, const NpyArray &array) {
  constexpr int64_t most = 1 << 16;
  digest = crc32c(digest, &array.dtype, sizeof array.dtype);
  digest = crc32c(digest, array.shape.data(), array.shape.size() * sizeof(int64_t));
  const auto *bytes = static_cast<const char *>(array.data);
  const int64_t part = std::min(array.bytes, most);
  digest = crc32c(digest, bytes, static_cast<size_t>(part));
  return crc32c(digest, bytes + array.bytes - part, static_cast<size_t>(part));
}

} // namespace

bool takesFewer(const drt_entry &entry) {
  return std::any_of(entry.feeds, entry.feeds + entry.num_feeds, [](const drt_feed &feed) { return feed.validity; });
}

void checkAllRead(const Dataset &data, const drt_program &program) {
  if (data.holdsRecords()) // which often hold more than one graph takes
    return;
  std::vector<std::string> feeds, read;
  for (int32_t e = 0; e < program.num_entries; ++e)
    for (int32_t i = 0; i < program.entries[e].num_feeds; ++i) {
      const drt_feed &feed = program.entries[e].feeds[i];
      if (std::find(feeds.begin(), feeds.end(), feed.name) == feeds.end())
        feeds.push_back(feed.name);
      read.push_back(arrayOf(feed, data));
    }
  // What the graph is fed, though nothing that is compiled needs it.
  for (int32_t i = 0; i < program.num_placeholders; ++i)
    for (const std::string &name : {std::string(program.placeholders[i]), std::string(program.placeholders[i]) + ":0"})
      read.push_back(name);
  for (const std::string &name : data.names())
    if (std::find(read.begin(), read.end(), name) == read.end())
      throw Error(data.path() + " has an array '" + name +
                  "', which the program does not read: it has no feed of that name" + nearNamesHint(name, feeds) +
                  "; rename it or take it out");
}

void checkFeedFlags(const FeederConfig &config, const drt_program &program) {
  std::vector<std::string> feeds;
  for (int32_t e = 0; e < program.num_entries; ++e)
    for (int32_t i = 0; i < program.entries[e].num_feeds; ++i)
      if (std::string name = program.entries[e].feeds[i].name;
          std::find(feeds.begin(), feeds.end(), name) == feeds.end())
        feeds.push_back(std::move(name));
  const auto check = [&](const char *flag, const std::string &name) {
    if (std::find(feeds.begin(), feeds.end(), plainName(name)) == feeds.end())
      throw Error(std::string(flag) + " " + name + ": the program has no feed of that name" +
                      nearNamesHint(plainName(name), feeds),
                  2);
  };
  for (const auto &[feed, feature] : config.features)
    check("--feature", feed);
  for (const auto &[feed, value] : config.values)
    check("--value", feed);
}

Feeder::Feeder(const Dataset *data, const drt_entry &entry, FeederConfig config) : config_(std::move(config)) {
  if (!config_.nextStep)
    config_.nextStep = [](int64_t step) { return step + 1; };
  std::vector<std::string> wanted;
  std::vector<const drt_feed *> batched;
  for (int32_t i = 0; i < entry.num_feeds; ++i) {
    const drt_feed &feed = entry.feeds[i];
    if (!feed.optional && !feed.validity && !data && !findOf(config_.values, feed))
      wanted.push_back(quoted(feed.name) + " " + dtypeName(feed.type.dtype) + " " + wantedShape(feed));
  }
  if (!wanted.empty())
    throw Error("the graph is fed " + listed(wanted) +
                    "; give it data: --data FILE.npz, a folder of .npy files, or TFRecord files",
                2);
  path_ = data ? data->path() : "";
  for (int32_t i = 0; i < entry.num_feeds; ++i) {
    const drt_feed &feed = entry.feeds[i];
    const bool inData = data && data->has(arrayOf(feed, *data));
    if (feed.validity)
      addValidity(feed, i);
    else if (findOf(config_.values, feed)) {
      if (inData)
        throw Error(
            "the feed " + quoted(feed.name) + " is in " + path_ + " and has a --value, too; leave one of them out", 2);
      addValue(feed, i);
    } else if (feed.batched) {
      addBatched(feed, i, batched);
    } else if (feed.optional && !inData) {
      missing_.push_back(i);
    } else {
      addWhole(*data, feed, i);
    }
  }
  if (validity_) {
    validity_->offset = batchBytes_;
    batchBytes_ += validity_->shareBytes * config_.localReplicas;
  }
  if (batched.empty())
    return;
  if (data->holdsRecords())
    addRecords(*data, batched);
  else
    addArrays(*data, batched);
  prepare();
}

Feeder::~Feeder() = default;

// The feed is one number, the same in every step.
void Feeder::addValue(const drt_feed &feed, int32_t index) {
  const double number = *findOf(config_.values, feed);
  const auto refuse = [&](const std::string &why) { throw Error("--value " + std::string(feed.name) + ": " + why, 2); };
  if (feed.batched || elementCount(feed.type) != 1)
    refuse("the feed is " + dtypeName(feed.type.dtype) + " " + wantedShape(feed) +
           ", not one number; give an array in --data");
  NpyArray array;
  auto memory = std::make_shared<int64_t>(0);
  array.dtype = feed.type.dtype;
  array.bytes = dtypeSize(feed.type.dtype);
  array.data = memory.get();
  array.storage = memory;
  if (!storeNumber(feed.type.dtype, number, memory.get()))
    refuse("a " + dtypeName(feed.type.dtype) + " cannot be " + std::to_string(number));
  whole_.emplace_back(index, std::move(array));
}

void Feeder::addWhole(const Dataset &data, const drt_feed &feed, int32_t index) {
  if (data.holdsRecords())
    throw Error("the feed " + quoted(feed.name) + " (" + dtypeName(feed.type.dtype) + " " + wantedShape(feed) +
                    ") is the same for a whole batch, but " + path_ + " holds examples; say --value " + feed.name +
                    "=NUMBER",
                2);
  std::vector<NpyArray> parts = readArray(data, feed);
  NpyArray &array = parts.front();
  for (size_t i = 1; i < parts.size(); ++i)
    if (std::memcmp(parts[i].data, array.data, array.bytes) != 0)
      throw Error("the feed " + quoted(feed.name) + " is the same for all examples, but " + data.partPath(i) +
                  " has another value than " + data.partPath(0));
  align(array, array.bytes);
  digest_ = addTo(digest_, array);
  whole_.emplace_back(index, std::move(array));
}

void Feeder::addBatched(const drt_feed &feed, int32_t index, std::vector<const drt_feed *> &batched) {
  const int64_t batch = feed.type.shape[0] * config_.numReplicas;
  if (!batched.empty() && batch != batch_)
    throw Error("the program takes " + std::to_string(batch) + " rows of " + quoted(feed.name) + " a step, but " +
                    std::to_string(batch_) + " of " + quoted(batched.front()->name) +
                    ", which is an internal error of the compiler",
                70);
  batch_ = batch;
  batched.push_back(&feed);
  const int64_t shareBytes = elementCount(feed.type) * dtypeSize(feed.type.dtype);
  batched_.push_back({index, shareBytes / feed.type.shape[0], shareBytes, batchBytes_});
  // Each feed's rows begin where any type and any vector register is aligned.
  batchBytes_ += (shareBytes * config_.localReplicas + 63) / 64 * 64;
}

// The program's own, no array of the data.
void Feeder::addValidity(const drt_feed &feed, int32_t index) {
  const int64_t share = elementCount(feed.type);
  validity_ = Batched{index, 1, share, 0};
  allValid_.assign(static_cast<size_t>(share * config_.localReplicas), 1);
}

void Feeder::addArrays(const Dataset &data, const std::vector<const drt_feed *> &feeds) {
  if (!config_.features.empty())
    throw Error("--feature " + config_.features.front().first + "=" + config_.features.front().second +
                    " names a feature of records, and " + data.path() + " has arrays, which have the feeds' names",
                2);
  std::vector<std::vector<NpyArray>> arrays;
  for (const drt_feed *feed : feeds) {
    arrays.push_back(readArray(data, *feed));
    for (size_t i = 0; i < arrays.back().size(); ++i) {
      NpyArray &part = arrays.back()[i];
      const int64_t rows = part.rows(), others = arrays.front()[i].rows();
      if (rows != others)
        throw Error("the feed " + quoted(feed->name) + " in " + data.partPath(i) + " holds " + std::to_string(rows) +
                    " examples, but " + quoted(feeds.front()->name) + " holds " + std::to_string(others) +
                    "; one that is no batch is compiled with its shape: distc compile --feed " + feed->name + "=...");
      digest_ = addTo(digest_, part);
      align(part, copyOnceBytes);
    }
  }
  auto examples = std::make_unique<ArrayExamples>(std::move(arrays));
  arrays_ = examples.get();
  examples_ = std::move(examples);
}

void Feeder::addRecords(const Dataset &data, const std::vector<const drt_feed *> &feeds) {
  std::vector<Feature> features;
  for (const drt_feed *feed : feeds) {
    const std::string *renamed = findOf(config_.features, *feed);
    const int64_t count = elementCount(feed->type) / feed->type.shape[0];
    features.push_back({renamed ? *renamed : plainName(feed->name), feed->name, feed->type.dtype, count,
                        count * dtypeSize(feed->type.dtype)});
  }
  const bool inAnyOrder = config_.shuffleSeed && config_.shuffleWindow == 0;
  auto examples = std::make_unique<RecordExamples>(data.recordFiles(), std::move(features), inAnyOrder);
  const uint32_t files = examples->digest();
  digest_ = crc32c(digest_, &files, sizeof files);
  examples_ = std::move(examples);
}

// What is right for arrays and for records: how many examples, in which order, copied by whom.
void Feeder::prepare() {
  const LastBatch last = config_.lastBatch;
  // Records are counted where something depends on it: else training begins at once.
  if (last != LastBatch::Mix || examples_->known()) {
    const int64_t count = examples_->count();
    checkCount(count);
    filler_ = count - 1;
  }
  startAt(0, 0, config_.shuffleSeed);
}

void Feeder::checkCount(int64_t examples) const {
  if (examples == 0)
    throw Error(path_ + " holds no example");
  if (config_.lastBatch != LastBatch::Fill && config_.lastBatch != LastBatch::Pad && examples < batch_)
    throw Error(path_ + " has " + std::to_string(examples) + " examples, fewer than the batch of " +
                std::to_string(batch_) + "; give more data, or compile with a smaller --batch");
}

void Feeder::startAt(int64_t step, int64_t position, std::optional<uint64_t> shuffleSeed) {
  firstStep_ = step;
  firstPosition_ = position;
  config_.shuffleSeed = shuffleSeed;
  if (!examples_)
    return;
  if (!shuffleSeed)
    order_ = std::make_unique<StoredOrder>(*examples_);
  else if (config_.shuffleWindow > 0)
    order_ = std::make_unique<WindowOrder>(*examples_, config_.shuffleWindow, *shuffleSeed);
  else
    order_ = std::make_unique<ShuffledOrder>(examples_->count(), *shuffleSeed);
}

// Without what is left out, and with the rows that no example is for.
int64_t Feeder::epochLength(int64_t examples) const {
  if (config_.lastBatch == LastBatch::Pad)
    return (examples + batch_ - 1) / batch_ * batch_;
  return config_.lastBatch == LastBatch::Drop ? examples / batch_ * batch_ : examples;
}

int64_t Feeder::examples() const {
  if (!examples_)
    return 0;
  const int64_t count = examples_->count();
  checkCount(count);
  return count;
}

std::optional<int64_t> Feeder::batchesOf(int64_t epochs) const {
  int64_t rows = 0;
  if (__builtin_mul_overflow(epochs, epochLength(examples()), &rows) || __builtin_add_overflow(rows, batch_ - 1, &rows))
    return std::nullopt;
  return rows / batch_;
}

// Which example is at a position of the sequence; nothing where there is none, and the batch is padded or filled up.
std::optional<int64_t> Feeder::exampleAt(int64_t position) {
  if (config_.lastBatch == LastBatch::Fill)
    return position < *examples_->known() ? std::optional(position) : std::nullopt;
  for (;;) {
    const std::optional<int64_t> known = examples_->known();
    const int64_t length = known ? epochLength(*known) : INT64_MAX;
    if (config_.lastBatch == LastBatch::Pad && position % length >= *known)
      return std::nullopt;
    if (const std::optional<int64_t> example = order_->at(position / length, position % length))
      return example;
    // The first epoch has ended: now it is known where.
    if (known || !examples_->known())
      throw Error(path_ + " has fewer examples than before: it was changed while it is read");
    checkCount(*examples_->known());
  }
}

// Rows of records that are needed more than once, which are not read again: those that fill a batch up, and those of
// the batch that is filled up (Evaluation runs it several times).
bool Feeder::isKept(int64_t example) const {
  return config_.lastBatch == LastBatch::Fill && (example == 0 || example >= *examples_->known() / batch_ * batch_);
}

// The rows of an example, or, for none, of the one that fills a batch up.
void Feeder::copyRow(std::optional<int64_t> example, char *const *rows) {
  const int64_t wanted = example.value_or(filler_);
  if (arrays_) {
    examples_->copy(wanted, rows);
    return;
  }
  const auto forEach = [&](auto copy) {
    for (size_t i = 0, offset = 0; i < batched_.size(); offset += batched_[i++].rowBytes)
      copy(rows[i], offset, static_cast<size_t>(batched_[i].rowBytes));
  };
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto &kept) { return kept.first == wanted; });
  if (found != kept_.end()) {
    forEach([&](char *row, size_t offset, size_t bytes) { std::memcpy(row, found->second.data() + offset, bytes); });
    return;
  }
  if (config_.lastBatch == LastBatch::Fill)
    order_->at(0, wanted);
  examples_->copy(wanted, rows);
  if (!isKept(wanted))
    return;
  std::vector<char> bytes;
  forEach([&](char *row, size_t, size_t count) { bytes.insert(bytes.end(), row, row + count); });
  kept_.emplace_back(wanted, std::move(bytes));
}

// A row that is not there has the values of one that is, so that nothing is computed of it that would end the program.
void Feeder::padRow(int64_t step, const std::vector<char *> &rows, bool isFirst) {
  if (isFirst) {
    copyRow(exampleAt(position(step)), rows.data());
    return;
  }
  for (size_t i = 0; i < batched_.size(); ++i)
    std::memcpy(rows[i], rows[i] - batched_[i].rowBytes, static_cast<size_t>(batched_[i].rowBytes));
}

void Feeder::makeBatch(int64_t step, char *batch) {
  const int64_t share = batch_ / config_.numReplicas, first = position(step) + config_.firstReplica * share;
  std::vector<char *> rows(batched_.size());
  for (int64_t i = 0; i < share * config_.localReplicas; ++i) {
    for (size_t feed = 0; feed < batched_.size(); ++feed)
      rows[feed] = batch + batched_[feed].offset + i * batched_[feed].rowBytes;
    const std::optional<int64_t> example = exampleAt(first + i);
    if (validity_)
      batch[validity_->offset + i] = example || config_.lastBatch != LastBatch::Pad;
    if (!example && config_.lastBatch == LastBatch::Pad)
      padRow(step, rows, i == 0);
    else
      copyRow(example, rows.data());
  }
}

// Without a copy, where the task's rows are side by side.
bool Feeder::feedInPlace(int64_t step, const SetFeed &set) {
  if (!arrays_ || config_.shuffleSeed)
    return false;
  const int64_t share = batch_ / config_.numReplicas, count = share * config_.localReplicas;
  int64_t first = position(step) + config_.firstReplica * share;
  if (config_.lastBatch != LastBatch::Fill)
    first %= epochLength(*examples_->known());
  for (size_t i = 0; i < batched_.size(); ++i)
    if (!arrays_->find(i, first, count))
      return false;
  for (size_t i = 0; i < batched_.size(); ++i) {
    set(batched_[i].feed, arrays_->find(i, first, count), batched_[i].shareBytes);
    arrays_->readOn(i, first, count);
  }
  if (validity_)
    set(validity_->feed, allValid_.data(), validity_->shareBytes);
  return true;
}

const char *Feeder::stagedBatch(int64_t step) {
  const bool costly = !arrays_ || (config_.shuffleSeed && batchBytes_ >= readAheadBytes);
  if (config_.readAhead && costly && config_.lastBatch != LastBatch::Fill && !readAhead_)
    readAhead_ =
        std::make_unique<ReadAhead>(ReadAhead::Config{batchBytes_, config_.nextStep, config_.cores, config_.timeline,
                                                      readerDelays + static_cast<uint64_t>(config_.firstReplica)},
                                    [this](int64_t made, char *batch) { makeBatch(made, batch); });
  if (readAhead_)
    return readAhead_->get(step);
  staged_.resize(batchBytes_);
  makeBatch(step, staged_.data());
  return staged_.data();
}

void Feeder::feed(int64_t step, const SetFeed &set) {
  if (!wholeGiven_ || config_.alternates) {
    for (const auto &[feed, array] : whole_)
      set(feed, array.data, 0);
    for (int32_t feed : missing_)
      set(feed, nullptr, 0);
  }
  wholeGiven_ = true;
  if (batched_.empty() && validity_)
    set(validity_->feed, allValid_.data(), validity_->shareBytes);
  if (batched_.empty() || feedInPlace(step, set))
    return;
  const char *batch = stagedBatch(step);
  for (const Batched &batched : batched_)
    set(batched.feed, batch + batched.offset, batched.shareBytes);
  if (validity_)
    set(validity_->feed, batch + validity_->offset, validity_->shareBytes);
}

} // namespace drt
