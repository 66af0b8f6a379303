//===- feeder.h - From a dataset to what each replica is given ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_FEEDER_H
#define DRT_DATA_FEEDER_H

#include "data/dataset.h"
#include "data/order.h"
#include "drt/drt.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drt {

struct FeederConfig {
  int32_t firstReplica = 0, localReplicas = 1, numReplicas = 1;
  std::optional<uint64_t> shuffleSeed;
  /// Past the last example: start over, or (to evaluate) repeat one, see setFiller.
  bool wrap = true;
  /// Whether runs of other entries lie between, which number their feeds each for itself: then what does not change is
  /// handed over in every step, not once.
  bool alternates = false;
};

/// Throws drt::Error for an array that no entry of the program reads: a misspelt name would train on something else.
void checkAllRead(const Dataset &data, const drt_program &program);

/// Gives the replicas of one task their rows of one batch after the other: step k
/// is rows [k*B, (k+1)*B), replica r of N the r-th part of them. Rows that lie
/// together in a mapped array are not copied.
class Feeder {
public:
  /// How a feed is handed over: TaskRuntime::setFeed.
  using SetFeed = std::function<void(int32_t feed, const void *share0, int64_t shareBytes)>;

  /// Checks every feed of the entry: that its array is there, its type, its shape,
  /// as many examples as the others, at least a batch of them (where wrap). Throws
  /// drt::Error that names the feed and what the data hold. `data`: null where
  /// there are none, which is right for an entry without feeds only.
  Feeder(const Dataset *data, const drt_entry &entry, FeederConfig config);

  /// Tells other data from these: a checksum of the arrays' types and shapes, and of their first and last elements.
  uint32_t digest() const;

  /// Examples in the data, rows of a batch; 0 where no feed is batched.
  int64_t examples() const { return examples_; }
  int64_t batch() const { return batch_; }

  /// Hands over the feeds of step k. They are readable until the next call.
  void feed(int64_t step, const SetFeed &set);

  /// Which example fills a batch up past the end, where the data do not start over; at first the last one.
  void setFiller(int64_t example) { filler_ = example; }

private:
  struct Batched {
    int32_t feed;
    NpyArray array;
    int64_t rowBytes, shareBytes;
    std::vector<char> staged; // the task's rows of a batch, where they must be copied
  };
  void addFeed(const Dataset &data, const drt_entry &entry, int32_t index);
  const char *rows(Batched &batched, int64_t position);

  FeederConfig config_;
  std::string path_;
  std::vector<Batched> batched_;
  std::vector<int32_t> missing_; // optional feeds that the data does not have
  std::vector<std::pair<int32_t, NpyArray>> whole_;
  bool wholeGiven_ = false;
  std::string counted_; // the feed that said how many examples there are
  int64_t examples_ = 0, batch_ = 0, filler_ = 0;
  std::optional<ShuffledOrder> order_;
  std::vector<int64_t> chosen_; // the task's examples of this step, where shuffled
};

} // namespace drt

#endif // DRT_DATA_FEEDER_H
