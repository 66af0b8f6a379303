//===- tuning.h - Algorithms that were timed, kept in a file --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// cuBLASLt's heuristic guesses which of its algorithms is the fastest for a product. With `--tune FILE` the rehearsal
// times the first few that it names, and the file keeps the fastest, by chip, version of the library, shape and type.
// Who has the file runs with the same algorithms again, and so has the same bits.
//
// A line a product, fields parted by tabs: what it is of; microseconds of the algorithm, and of the heuristic's first;
// bytes of workspace; the library's 64 bytes in hexadecimal.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_TUNING_H
#define DRT_CUDA_TUNING_H

#include "cuda/api/tables.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace drt::cuda {

struct TunedMatmul {
  cublasLtMatmulAlgo_t algorithm;
  int64_t workspace = 0;
  float us = 0, heuristicUs = 0;
};

/// Of a task; any of its replicas' threads.
class Tuning {
public:
  /// Reads the file where there is one. Throws drt::Error where it is something else.
  explicit Tuning(std::string path);

  std::optional<TunedMatmul> find(const std::string &key) const;
  /// Of replicas that timed the same, the last one's stays.
  void keep(const std::string &key, const TunedMatmul &matmul);
  /// Writes the file where something was kept since, with what other tasks have written meanwhile.
  void save();

private:
  void read();

  const std::string path_;
  mutable std::mutex mutex_;
  std::map<std::string, TunedMatmul> matmuls_;
  bool changed_ = false;
};

} // namespace drt::cuda

#endif // DRT_CUDA_TUNING_H
