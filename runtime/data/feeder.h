//===- feeder.h - From a dataset to what each replica is given ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_FEEDER_H
#define DRT_DATA_FEEDER_H

#include "core/timeline.h"
#include "data/dataset.h"
#include "data/example_parser.h"
#include "data/examples.h"
#include "data/order.h"
#include "data/read_ahead.h"
#include "drt/drt.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace drt {

class ArrayExamples;

/// What becomes of an epoch's last examples where they are fewer than a batch.
enum class LastBatch {
  Mix,  // the next epoch's first ones fill the batch up
  Drop, // they are left out
  Pad,  // they are a batch of their own: a feed says which rows are there (drt_feed::validity)
  Fill  // an example fills the batch up, see setFiller; there is one epoch
};

struct FeederConfig {
  int32_t firstReplica = 0, localReplicas = 1, numReplicas = 1;
  std::optional<uint64_t> shuffleSeed;
  /// With shuffleSeed: examples among which the next one is drawn; 0: all.
  int64_t shuffleWindow = 0;
  LastBatch lastBatch = LastBatch::Mix;
  /// Whether runs of other entries lie between, which number their feeds each for itself: then what does not change is
  /// handed over in every step, not once.
  bool alternates = false;
  /// Of records: which feature a feed takes where it is not the one of its name.
  std::vector<std::pair<std::string, std::string>> features;
  /// Feeds of one number that is not in the data.
  std::vector<std::pair<std::string, double>> values;

  /// Whether batches may be made before they are asked for, in a thread of their own, where that costs time; which step
  /// follows a step (null: the next one); the thread's cores; its row in the timeline (null: none).
  bool readAhead = true;
  std::function<int64_t(int64_t step)> nextStep;
  std::optional<cpu_set_t> cores;
  TimelineRow *timeline = nullptr;
};

/// Whether the entry takes fewer examples than a batch: a feed says which rows are there.
bool takesFewer(const drt_entry &entry);

/// Throws drt::Error for an array that no entry of the program reads: a misspelt name would train on something else.
void checkAllRead(const Dataset &data, const drt_program &program);

/// Throws drt::Error for a --feature or a --value of what is no feed of the program.
void checkFeedFlags(const FeederConfig &config, const drt_program &program);

/// Gives the replicas of one task their rows of one batch after the other: step k
/// is examples [k*B, (k+1)*B) of the sequence of epochs, replica r of N the r-th part of them. Rows that lie
/// together in a mapped array are not copied; others are, by a thread of its own where that takes time.
class Feeder {
public:
  /// How a feed is handed over: TaskRuntime::setFeed.
  using SetFeed = std::function<void(int32_t feed, const void *share0, int64_t shareBytes)>;

  /// Checks every feed of the entry: that its array is there, its type, its shape,
  /// as many examples as the others, at least a batch of them (where they start over). Throws
  /// drt::Error that names the feed and what the data hold. `data`: null where
  /// there are none, which is right for an entry without feeds only.
  Feeder(const Dataset *data, const drt_entry &entry, FeederConfig config);
  ~Feeder();
  Feeder(const Feeder &) = delete;
  Feeder &operator=(const Feeder &) = delete;

  /// Tells other data from these: a checksum of the arrays' types and shapes, and of their first and last elements; of
  /// records see RecordFiles.
  uint32_t digest() const { return digest_; }

  /// Examples in the data: of records, reads all of them once. Rows of a batch; 0 where no feed is batched.
  int64_t examples() const;
  int64_t batch() const { return batch_; }
  /// Batches of so many epochs, the last one filled up; nothing where they cannot be counted.
  std::optional<int64_t> batchesOf(int64_t epochs) const;

  /// Position in the sequence of examples (without those that are left out) where a step's batch begins.
  int64_t position(int64_t step) const { return firstPosition_ + (step - firstStep_) * batch_; }
  /// Before the first call of feed: where `step` begins, and in which order examples are shuffled.
  void startAt(int64_t step, int64_t position, std::optional<uint64_t> shuffleSeed);

  /// Hands over the feeds of step k. They are readable until the next call.
  void feed(int64_t step, const SetFeed &set);

  /// Which example fills a batch up past the end (LastBatch::Fill); at first the last one.
  void setFiller(int64_t example) { filler_ = example; }

private:
  struct Batched {
    int32_t feed;
    int64_t rowBytes, shareBytes;
    int64_t offset; // of the task's rows in a batch that is copied
  };
  void addValue(const drt_feed &feed, int32_t index);
  void addWhole(const Dataset &data, const drt_feed &feed, int32_t index);
  void addBatched(const drt_feed &feed, int32_t index, std::vector<const drt_feed *> &batched);
  void addValidity(const drt_feed &feed, int32_t index);
  void addArrays(const Dataset &data, const std::vector<const drt_feed *> &feeds);
  void addRecords(const Dataset &data, const std::vector<const drt_feed *> &feeds);
  void prepare();
  void checkCount(int64_t examples) const;
  int64_t epochLength(int64_t examples) const;
  std::optional<int64_t> exampleAt(int64_t position);
  bool isKept(int64_t example) const;
  void copyRow(std::optional<int64_t> example, char *const *rows);
  void padRow(int64_t step, const std::vector<char *> &rows, bool isFirst);
  void makeBatch(int64_t step, char *batch);
  const char *stagedBatch(int64_t step);
  bool feedInPlace(int64_t step, const SetFeed &set);

  FeederConfig config_;
  std::string path_;
  std::vector<Batched> batched_;
  std::vector<int32_t> missing_; // optional feeds that the data does not have
  std::optional<Batched> validity_;
  std::vector<char> allValid_; // a byte a row of the task's shares
  std::vector<std::pair<int32_t, NpyArray>> whole_;
  bool wholeGiven_ = false;
  int64_t batch_ = 0, batchBytes_ = 0, filler_ = -1;
  int64_t firstStep_ = 0, firstPosition_ = 0;
  uint32_t digest_ = 0;
  std::unique_ptr<Examples> examples_;
  ArrayExamples *arrays_ = nullptr; // examples_, where they are rows of arrays
  std::unique_ptr<ExampleOrder> order_;
  std::vector<std::pair<int64_t, std::vector<char>>> kept_; // see isKept
  std::vector<char> staged_;
  std::unique_ptr<ReadAhead> readAhead_; // before what it uses is gone
};

} // namespace drt

#endif // DRT_DATA_FEEDER_H
