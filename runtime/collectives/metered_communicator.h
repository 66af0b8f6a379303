//===- metered_communicator.h - When collectives ran, and what they moved -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_METERED_COMMUNICATOR_H
#define DRT_COLLECTIVES_METERED_COMMUNICATOR_H

#include "collectives/communicator.h"

#include <utility>
#include <vector>

namespace drt {

/// One collective of this task.
struct MeteredCollective {
  const char *name;       // as described
  int64_t beginNs, endNs; // from when this task came to when it went; monotonic clock
  int64_t bytes;          // that a task must send at least: 2 (T-1)/T of what is summed, and so on
  int root;               // the only one that others wait for; -1: all wait for all
  bool joins;             // no task has gone before every one has come
};

/// Another communicator, and what it has done. It costs two looks at the clock a collective.
class MeteredCommunicator final : public Communicator {
public:
  explicit MeteredCommunicator(Communicator &inner) : inner_(inner) {}

  /// What was done since the last call. Not while a collective is under way.
  std::vector<MeteredCollective> take() { return std::exchange(done_, {}); }

  /// Bytes a second of an all-reduce of `bytes` bytes, counted as above: the best of a few, while nothing else is
  /// under way. Every task calls it at the same time.
  double measureBandwidth(int64_t bytes);

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void describe(int64_t step, const char *name) override {
    name_ = name;
    inner_.describe(step, name);
  }
  char *shared_memory(int64_t bytes) override { return inner_.shared_memory(bytes); }
  bool has_common_memory() const override { return inner_.has_common_memory(); }
  CommonMemory common_memory(int64_t bytes) override { return inner_.common_memory(bytes); }
  void throw_if_aborted() override { inner_.throw_if_aborted(); }
  std::vector<std::unique_ptr<Channel>> open_channels(int root, const std::vector<int> &counts) override {
    return inner_.open_channels(root, counts);
  }
  void all_reduce_sum(void *data, int64_t count, drt_dtype dtype, int32_t algorithm) override;
  void all_reduce(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                  int32_t algorithm) override;
  void reduce_scatter(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                      const Pieces &pieces) override;
  void all_gather_pieces(const Pieces &pieces) override;
  void broadcast(void *data, int64_t bytes, int root) override;
  void all_gather(const void *data, int64_t bytes, void *gathered) override;
  void all_to_all(const void *data, int64_t bytes, void *received) override;
  void all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                  const std::vector<int64_t> &bytes_from) override;
  void all_gather(void *gathered, const std::vector<int64_t> &bytes) override;
  void barrier() override;
  void abort(const std::string &reason) noexcept override { inner_.abort(reason); }

private:
  template <class Collective> void meter(int64_t bytes, bool joins, Collective collective, int root = -1);
  int64_t reducedBytes(int64_t count, drt_dtype dtype) const;

  Communicator &inner_;
  const char *name_ = "";
  std::vector<MeteredCollective> done_;
};

} // namespace drt

#endif // DRT_COLLECTIVES_METERED_COMMUNICATOR_H
