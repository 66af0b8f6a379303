//===- metered_communicator.cpp - When collectives ran, and what they moved ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/metered_communicator.h"

#include "core/dtype.h"
#include "core/timeline.h"

#include <algorithm>
#include <numeric>

namespace drt {

template <class Collective>
void MeteredCommunicator::meter(int64_t bytes, bool joins, Collective collective, int root) {
  const int64_t begin = nowNs();
  collective();
  done_.push_back({name_, begin, nowNs(), bytes, root, joins});
}

int64_t MeteredCommunicator::reducedBytes(int64_t count, drt_dtype dtype) const {
  return 2 * count * dtypeSize(dtype) * (size() - 1) / size();
}

void MeteredCommunicator::all_reduce_sum(void *data, int64_t count, drt_dtype dtype, int32_t algorithm) {
  meter(reducedBytes(count, dtype), count > 0, [&] { inner_.all_reduce_sum(data, count, dtype, algorithm); });
}

void MeteredCommunicator::all_reduce(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                                     int32_t algorithm) {
  meter(reducedBytes(count, dtype), count > 0,
        [&] { inner_.all_reduce(dtype, contributions, count, divisor, algorithm); });
}

void MeteredCommunicator::reduce_scatter(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                                         const Pieces &pieces) {
  meter(reducedBytes(count, dtype) / 2, false,
        [&] { inner_.reduce_scatter(dtype, contributions, count, divisor, pieces); });
}

void MeteredCommunicator::all_gather_pieces(const Pieces &pieces) {
  int64_t bytes = 0;
  for (const std::vector<Piece> &ofTask : pieces)
    bytes += bytes_of(ofTask);
  meter(bytes * (size() - 1) / size(), false, [&] { inner_.all_gather_pieces(pieces); });
}

void MeteredCommunicator::broadcast(void *data, int64_t bytes, int root) {
  meter(bytes, false, [&] { inner_.broadcast(data, bytes, root); }, root);
}

void MeteredCommunicator::all_gather(const void *data, int64_t bytes, void *gathered) {
  meter(bytes * (size() - 1), false, [&] { inner_.all_gather(data, bytes, gathered); });
}

void MeteredCommunicator::all_to_all(const void *data, int64_t bytes, void *received) {
  meter(bytes * (size() - 1), false, [&] { inner_.all_to_all(data, bytes, received); });
}

void MeteredCommunicator::all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                                     const std::vector<int64_t> &bytes_from) {
  const int64_t all = std::accumulate(bytes_to.begin(), bytes_to.end(), int64_t(0));
  meter(all - bytes_to[static_cast<size_t>(rank())], false,
        [&] { inner_.all_to_all(data, bytes_to, received, bytes_from); });
}

void MeteredCommunicator::all_gather(void *gathered, const std::vector<int64_t> &bytes) {
  const int64_t all = std::accumulate(bytes.begin(), bytes.end(), int64_t(0));
  meter(all * (size() - 1) / size(), false, [&] { inner_.all_gather(gathered, bytes); });
}

void MeteredCommunicator::barrier() {
  meter(0, true, [&] { inner_.barrier(); });
}

double MeteredCommunicator::measureBandwidth(int64_t bytes) {
  // The first one touches memory and opens windows.
  const int64_t rounds = std::clamp<int64_t>((4 << 20) / std::max<int64_t>(bytes, 1), 4, 50);
  const int64_t count = std::max<int64_t>(bytes / static_cast<int64_t>(sizeof(float)), 1);
  std::vector<float> own;
  // Where gradients are: in memory that collectives use in place.
  auto *data = reinterpret_cast<float *>(inner_.shared_memory(count * static_cast<int64_t>(sizeof(float))));
  if (!data) {
    own.resize(static_cast<size_t>(count));
    data = own.data();
  }
  inner_.describe(0, "the measurement of the bandwidth");
  int64_t best = 0;
  for (int64_t i = 0; i < rounds; ++i) {
    inner_.barrier();
    const int64_t begin = nowNs();
    inner_.all_reduce(DRT_F32, {reinterpret_cast<const char *>(data), 0, 1}, count, 1);
    const int64_t took = nowNs() - begin;
    best = best == 0 ? took : std::min(best, took);
  }
  return static_cast<double>(reducedBytes(count, DRT_F32)) / (static_cast<double>(best) * 1e-9);
}

} // namespace drt
