//===- all_reduce_algorithms.cpp - How tasks add up over a network --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/all_reduce_algorithms.h"

#include <algorithm>

namespace drt {
namespace {

// Up to the first the network's round trip counts; from the second on its bandwidth alone, and a ring has a neighbour's
// link to itself. Between them, with more than two tasks, both count.
constexpr int64_t doublingBytes = 32 * 1024, halvingBytes = 1024 * 1024;

class AllReduce {
public:
  AllReduce(char *data, int64_t count, SumType type, int rank, int size, Swap &swap, std::vector<char> &scratch)
      : data_(data), count_(count), element_(static_cast<int64_t>(type.element_size)), type_(type), rank_(rank),
        size_(size), swap_(swap), scratch_(scratch) {}

  /// Recursive doubling: log2 N exchanges of everything (Thakur, Rabenseifner and Gropp 2005, section 4.5.1). Both
  /// partners add the same two values.
  void byDoubling() {
    room(bytes());
    if (!fold())
      return;
    for (int distance = 1; distance < power_; distance *= 2) {
      const int partner = taskAt(position_ ^ distance);
      swap_(partner, data_, bytes(), partner, scratch_.data(), bytes());
      add(data_, count_);
    }
    unfold();
  }

  /// Recursive halving and doubling (Thakur, Rabenseifner and Gropp 2005, section 4.5.2): a reduce-scatter whose
  /// messages halve, then an all-gather whose messages double. 2 log2 N exchanges, 2 (N-1)/N of the bytes.
  void byHalving() {
    room(bytes());
    if (!fold())
      return;
    int64_t begin = 0, end = count_;
    std::vector<std::pair<int64_t, int64_t>> ranges; // before each halving
    for (int distance = power_ / 2; distance >= 1; distance /= 2) {
      ranges.emplace_back(begin, end);
      const int64_t middle = begin + (end - begin) / 2;
      const bool upper = (position_ & distance) != 0;
      const int64_t sent = upper ? begin : middle, sentCount = upper ? middle - begin : end - middle;
      (upper ? begin : end) = middle;
      const int partner = taskAt(position_ ^ distance);
      swap_(partner, at(sent), sentCount * element_, partner, scratch_.data(), (end - begin) * element_);
      add(at(begin), end - begin);
    }
    for (int distance = 1; distance < power_; distance *= 2) {
      const auto [first, last] = ranges.back();
      ranges.pop_back();
      const bool upper = (position_ & distance) != 0;
      const int64_t other = upper ? first : end, otherCount = upper ? begin - first : last - end;
      const int partner = taskAt(position_ ^ distance);
      swap_(partner, at(begin), (end - begin) * element_, partner, at(other), otherCount * element_);
      begin = first;
      end = last;
    }
    unfold();
  }

  /// Reduce-scatter and all-gather around a ring: each task sends 2 (N-1)/N of the bytes (Patarasuk and Yuan 2009), in
  /// segments, so that one is added up while the next is on its way.
  void byRing() {
    constexpr int64_t segmentBytes = 256 * 1024;
    const int64_t segment = std::max<int64_t>(segmentBytes / element_, 1);
    room(segment * element_);
    const int next = (rank_ + 1) % size_, before = (rank_ + size_ - 1) % size_;
    const auto begin = [&](int chunk) { return count_ * ((chunk + 2 * size_) % size_) / size_; };
    const auto end = [&](int chunk) { return count_ * ((chunk + 2 * size_) % size_ + 1) / size_; };
    for (int turn = 0; turn < size_ - 1; ++turn) {
      const int64_t sent = begin(rank_ - turn), sentEnd = end(rank_ - turn), sum = begin(rank_ - turn - 1),
                    sumEnd = end(rank_ - turn - 1);
      for (int64_t i = 0; sent + i < sentEnd || sum + i < sumEnd; i += segment) {
        const int64_t out = std::clamp<int64_t>(sentEnd - sent - i, 0, segment),
                      in = std::clamp<int64_t>(sumEnd - sum - i, 0, segment);
        swap_(next, out ? at(sent + i) : data_, out * element_, before, scratch_.data(), in * element_);
        if (in > 0)
          add(at(sum + i), in);
      }
    }
    for (int turn = 0; turn < size_ - 1; ++turn)
      swap_(next, at(begin(rank_ + 1 - turn)), (end(rank_ + 1 - turn) - begin(rank_ + 1 - turn)) * element_, before,
            at(begin(rank_ - turn)), (end(rank_ - turn) - begin(rank_ - turn)) * element_);
  }

private:
  int64_t bytes() const { return count_ * element_; }
  char *at(int64_t element) const { return data_ + element * element_; }
  void room(int64_t bytes) {
    if (static_cast<int64_t>(scratch_.size()) < bytes)
      scratch_.resize(static_cast<size_t>(bytes));
  }
  void add(char *to, int64_t count) { type_.sum(to, to, scratch_.data(), static_cast<size_t>(count)); }

  // Where the number of tasks is no power of two, the first ones fold into their neighbours and get the result back.
  // False: this one has.
  bool fold() {
    while (power_ * 2 <= size_)
      power_ *= 2;
    folded_ = size_ - power_;
    if (rank_ < 2 * folded_ && rank_ % 2 == 0) {
      swap_(rank_ + 1, data_, bytes(), -1, nullptr, 0);
      swap_(-1, nullptr, 0, rank_ + 1, data_, bytes());
      return false;
    }
    if (rank_ < 2 * folded_) {
      swap_(-1, nullptr, 0, rank_ - 1, scratch_.data(), bytes());
      add(data_, count_);
    }
    position_ = rank_ < 2 * folded_ ? rank_ / 2 : rank_ - folded_;
    return true;
  }
  void unfold() {
    if (rank_ < 2 * folded_)
      swap_(rank_ - 1, data_, bytes(), -1, nullptr, 0);
  }
  int taskAt(int position) const { return position < folded_ ? 2 * position + 1 : position + folded_; }

  char *const data_;
  const int64_t count_, element_;
  const SumType type_;
  const int rank_, size_;
  Swap &swap_;
  std::vector<char> &scratch_;
  int power_ = 1, folded_ = 0, position_ = 0;
};

} // namespace

int32_t chooseAllReduce(int32_t asked, int64_t bytes, int32_t tasks) {
  if (asked != DRT_ALL_REDUCE_AUTO)
    return asked;
  if (bytes <= doublingBytes)
    return DRT_ALL_REDUCE_DOUBLING;
  return bytes <= halvingBytes && tasks > 2 ? DRT_ALL_REDUCE_HALVING : DRT_ALL_REDUCE_RING;
}

const char *allReduceName(int32_t algorithm) {
  switch (algorithm) {
  case DRT_ALL_REDUCE_RING:
    return "ring";
  case DRT_ALL_REDUCE_DOUBLING:
    return "doubling";
  case DRT_ALL_REDUCE_HALVING:
    return "halving and doubling";
  default:
    return "auto";
  }
}

void allReduce(int32_t algorithm, char *data, int64_t count, SumType type, int rank, int size, Swap &swap,
               std::vector<char> &scratch) {
  if (size == 1 || count == 0)
    return;
  AllReduce reduce(data, count, type, rank, size, swap, scratch);
  if (algorithm == DRT_ALL_REDUCE_DOUBLING)
    reduce.byDoubling();
  else if (algorithm == DRT_ALL_REDUCE_HALVING)
    reduce.byHalving();
  else
    reduce.byRing();
}

} // namespace drt
