//===- aggregation.h - Rules that outvote wrong gradients -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Of n gradients of which up to f may be anything:
//   median            of each element; of an even number the mean of the two in the middle
//   trimmed mean      of each element, without its f smallest and f largest
//   Krum              the gradient with the smallest sum of squared distances to its n - f - 2
//                     nearest ones (Blanchard et al. 2017); multi-Krum the mean of the m best,
//                     m = n - f where it is 0
//   geometric median  the point with the smallest sum of distances to all, by the smoothed
//                     Weiszfeld iteration (Pillutla, Kakade and Harchaoui 2022, algorithm 2)
// Distances are over the gradients of one bucket. Of a sum over the batch the result is n times
// that. Not a number counts as larger than all numbers, and a gradient that holds a number that is
// not finite as infinitely far away.
//
// Krum and the geometric median give each gradient a weight: the distances are taken
// first, then updates add the weighted gradients block by block.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_AGGREGATION_H
#define DRT_COLLECTIVES_AGGREGATION_H

#include "collectives/reduce.h"
#include "core/ranges.h"

#include <memory>
#include <vector>

namespace drt {

class Aggregation {
public:
  /// Null without an aggregator, or for gradients that are neither float32 nor float64. `bucket` outlives it. `parts`:
  /// gradients, over all tasks. Throws Error where there are too few.
  static std::unique_ptr<Aggregation> make(const drt_bucket &bucket, int32_t parts, int32_t localReplicas);

  /// Whether combine() needs weights: measure() and weigh() come before it, in every replica, once a pass, with a
  /// barrier between the two.
  bool isWeighted() const;
  int32_t passes() const;

  /// Takes the distances over the replica's part of the elements. `parts` begin with the bucket.
  void measure(int32_t pass, int32_t localReplica, int32_t localReplicas, Contributions parts);
  /// From all replicas' distances; each replica does it for itself, with the same result in every task.
  void weigh(int32_t pass, int32_t localReplica);

  void combine(int32_t localReplica, void *out, Contributions parts, int64_t count) const;

  /// The weights of the last step, one a gradient.
  const std::vector<double> &weights(int32_t localReplica) const { return own_[localReplica].weights; }

private:
  struct PerReplica {
    std::vector<double> weights, matrix; // matrix: parts x parts
    int32_t anchor = 0;
  };

  Aggregation(const drt_bucket &bucket, int32_t parts, int32_t localReplicas);
  void krum(PerReplica &own) const;
  void findAnchor(PerReplica &own) const;
  bool isMedianAnchor(const PerReplica &own) const;
  void weiszfeld(PerReplica &own) const;
  size_t pairs() const { return static_cast<size_t>(parts_) * (parts_ + 1) / 2; }

  const drt_bucket &bucket_;
  const drt_exchange &rule_;
  const int32_t parts_;
  double factor_; // of the aggregated gradient: n for a sum
  std::vector<Range> chunks_;
  std::vector<double> sums_; // a chunk: one number a pair of gradients
  std::vector<PerReplica> own_;
};

} // namespace drt

#endif // DRT_COLLECTIVES_AGGREGATION_H
