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

#include <algorithm>
#include <cstring>

namespace drt {
namespace {

// An array that is not aligned for its type is copied once, when it is opened,
// unless it is larger than this; then its rows are, in every step.
constexpr int64_t copyOnceBytes = int64_t{1} << 30;

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
}

// The array that a feed reads; ":0" may be left out.
std::string arrayOf(const drt_feed &feed, const Dataset &data) {
  const std::string name = feed.name;
  return !data.has(name) && data.has(name + ":0") ? name + ":0" : name;
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

void checkAllRead(const Dataset &data, const drt_program &program) {
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

uint32_t Feeder::digest() const {
  uint32_t digest = 0;
  for (const auto &[feed, array] : whole_)
    digest = addTo(digest, array);
  for (const Batched &batched : batched_)
    digest = addTo(digest, batched.array);
  return digest;
}

Feeder::Feeder(const Dataset *data, const drt_entry &entry, FeederConfig config) : config_(config) {
  std::vector<std::string> feeds;
  for (int32_t i = 0; i < entry.num_feeds; ++i)
    if (!entry.feeds[i].optional)
      feeds.push_back(quoted(entry.feeds[i].name) + " " + dtypeName(entry.feeds[i].type.dtype) + " " +
                      wantedShape(entry.feeds[i]));
  if (!data && !feeds.empty())
    throw Error("the graph is fed " + listed(feeds) + "; say where from: --data FILE.npz, or a folder of .npy files",
                2);
  for (int32_t i = 0; i < entry.num_feeds; ++i)
    if (data && (!entry.feeds[i].optional || data->has(arrayOf(entry.feeds[i], *data))))
      addFeed(*data, entry, i);
    else
      missing_.push_back(i);
  if (!batched_.empty() && config_.wrap && examples_ < batch_)
    throw Error(path_ + " has " + std::to_string(examples_) + " examples, fewer than the batch of " +
                std::to_string(batch_) + "; give more data, or compile with a smaller --batch");
  if (config_.shuffleSeed && !batched_.empty())
    order_.emplace(examples_, *config_.shuffleSeed);
}

void Feeder::addFeed(const Dataset &data, const drt_entry &entry, int32_t index) {
  const drt_feed &feed = entry.feeds[index];
  path_ = data.path();
  const std::string name = arrayOf(feed, data);
  if (!data.has(name))
    throw Error(path_ + " has no array for the feed " + quoted(feed.name) + " (" + dtypeName(feed.type.dtype) + " " +
                wantedShape(feed) + "); it has " + listed(data.names()));
  NpyArray array = data.read(name);
  const std::string what = "the feed " + quoted(feed.name) + " in " + path_;
  if (array.dtype != feed.type.dtype)
    throw Error(what + " is " + dtypeName(array.dtype) + ", but the graph takes " + dtypeName(feed.type.dtype) +
                "; convert it with numpy's astype(numpy." + dtypeName(feed.type.dtype) + ")");
  if (!shapeFits(feed, array))
    throw Error(what + " has shape " + shapeName(array.shape.data(), static_cast<int32_t>(array.shape.size())) +
                ", but the graph takes " + wantedShape(feed));
  align(array, copyOnceBytes);
  if (!feed.batched) {
    align(array, array.bytes);
    whole_.emplace_back(index, std::move(array));
    return;
  }
  const int64_t batch = feed.type.shape[0] * config_.numReplicas;
  if (array.rows() == 0)
    throw Error(what + " holds no example");
  if (batched_.empty()) {
    counted_ = feed.name;
    examples_ = array.rows();
    filler_ = examples_ - 1;
    batch_ = batch;
  }
  if (array.rows() != examples_)
    throw Error(what + " holds " + std::to_string(array.rows()) + " examples, but " + quoted(counted_.c_str()) +
                " holds " + std::to_string(examples_));
  if (batch != batch_)
    throw Error("the program takes " + std::to_string(batch) + " rows of " + quoted(feed.name) + " a step, but " +
                    std::to_string(batch_) + " of " + quoted(counted_.c_str()) + ", which is a defect of the compiler",
                70);
  const int64_t rowBytes = array.rowBytes();
  batched_.push_back({index, std::move(array), rowBytes, rowBytes * feed.type.shape[0], {}});
}

void Feeder::feed(int64_t step, const SetFeed &set) {
  if (!wholeGiven_ || config_.alternates) {
    for (const auto &[feed, array] : whole_)
      set(feed, array.data, 0);
    for (int32_t feed : missing_)
      set(feed, nullptr, 0);
  }
  wholeGiven_ = true;
  if (batched_.empty())
    return;
  const int64_t share = batch_ / config_.numReplicas;
  const int64_t position = step * batch_ + config_.firstReplica * share;
  if (order_) {
    chosen_.resize(config_.localReplicas * share);
    for (size_t i = 0; i < chosen_.size(); ++i)
      chosen_[i] = order_->at(position + static_cast<int64_t>(i));
  }
  for (Batched &batched : batched_)
    set(batched.feed, rows(batched, position), batched.shareBytes);
}

// The task's rows from `position` of the endless sequence on.
const char *Feeder::rows(Batched &batched, int64_t position) {
  const int64_t count = batch_ / config_.numReplicas * config_.localReplicas;
  const char *data = static_cast<const char *>(batched.array.data);
  const int64_t first = config_.wrap ? position % examples_ : position;
  if (!order_ && first + count <= examples_ && batched.array.aligned)
    return data + first * batched.rowBytes;
  batched.staged.resize(count * batched.rowBytes);
  char *out = batched.staged.data();
  if (order_) {
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(out + i * batched.rowBytes, data + chosen_[i] * batched.rowBytes, batched.rowBytes);
    return out;
  }
  for (int64_t done = 0; done < count;) {
    const int64_t next = first + done;
    const int64_t from = config_.wrap ? next % examples_ : next < examples_ ? next : filler_;
    const int64_t run = next >= examples_ && !config_.wrap ? 1 : std::min(count - done, examples_ - from);
    std::memcpy(out + done * batched.rowBytes, data + from * batched.rowBytes, run * batched.rowBytes);
    done += run;
  }
  return out;
}

} // namespace drt
