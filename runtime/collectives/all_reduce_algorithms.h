//===- all_reduce_algorithms.h - How tasks add up over a network ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// In terms of one call that sends to one task and receives from another at the same time. All give every task the same
// bits. Each is its own order of additions, so that their bits differ among each other.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_ALL_REDUCE_ALGORITHMS_H
#define DRT_COLLECTIVES_ALL_REDUCE_ALGORITHMS_H

#include "collectives/reduce_sum.h"
#include "drt/drt.h"

#include <cstdint>
#include <vector>

namespace drt {

/// What an all-reduce of so many bytes between so many tasks of a network is made by, where `asked` (DRT_ALL_REDUCE_*)
/// is what the strategy wants. Never DRT_ALL_REDUCE_AUTO.
int32_t chooseAllReduce(int32_t asked, int64_t bytes, int32_t tasks);

/// "ring", "doubling", …
const char *allReduceName(int32_t algorithm);

/// Sends to one task what is received by its own call, and receives from another; -1: neither.
class Swap {
public:
  virtual void operator()(int to, const void *sent, int64_t sentBytes, int from, void *received,
                          int64_t receivedBytes) = 0;

protected:
  ~Swap() = default;
};

/// data[i] becomes the sum over all tasks, by an algorithm that chooseAllReduce has given. `scratch` keeps its memory
/// from call to call.
void allReduce(int32_t algorithm, char *data, int64_t count, SumType type, int rank, int size, Swap &swap,
               std::vector<char> &scratch);

} // namespace drt

#endif // DRT_COLLECTIVES_ALL_REDUCE_ALGORITHMS_H
