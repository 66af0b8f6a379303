//===- failure.h - Errors of the emulated driver --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// CUDA's calls return a number; inside of the emulator they throw, with what is known beyond the number. Entry
// (table.h) turns it back, and keeps the words for cuGetErrorString, so that the runtime's messages have them.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_FAILURE_H
#define DRT_CUDA_EMULATOR_FAILURE_H

#include <cuda.h>

#include <stdexcept>
#include <string>

namespace drt::cuda::emulated {

class Failure : public std::runtime_error {
public:
  Failure(CUresult code, const std::string &detail) : std::runtime_error(detail), code(code) {}
  const CUresult code;
};

inline void require(bool condition, CUresult code, const char *detail) {
  if (!condition) [[unlikely]]
    throw Failure(code, detail);
}

/// The last failure with this code says so in cuGetErrorString. Any thread.
void remember(const Failure &failure);

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_FAILURE_H
