//===- boxes.cpp - drt.h's routines on boxes of images ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "drt/drt.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <vector>

namespace {

/// By how much two boxes overlap: what both have of what one of them has. Each is two opposite corners, whichever.
float overlap(const float *a, const float *b) {
  const auto low = [](const float *box, int axis) { return std::min(box[axis], box[axis + 2]); };
  const auto high = [](const float *box, int axis) { return std::max(box[axis], box[axis + 2]); };
  const auto area = [&](const float *box) { return (high(box, 0) - low(box, 0)) * (high(box, 1) - low(box, 1)); };
  const float areaA = area(a), areaB = area(b);
  if (areaA <= 0 || areaB <= 0)
    return 0;
  const auto shared = [&](int axis) {
    return std::max(std::min(high(a, axis), high(b, axis)) - std::max(low(a, axis), low(b, axis)), 0.0f);
  };
  const float both = shared(0) * shared(1);
  return both / (areaA + areaB - both);
}

struct Candidate {
  int32_t box;
  float score;
  /// How many of the selected ones it was compared with.
  size_t compared;
};

/// The best is on top, of equal ones the first.
struct IsWorse {
  bool operator()(const Candidate &a, const Candidate &b) const {
    return a.score < b.score || (a.score == b.score && a.box > b.box);
  }
};

/// The boxes that are selected, the best first: `most` at most of `count`, with scores above `least`. A box that
/// overlaps those that were selected by more than `mostOverlap` is left out, or with a sigma loses score.
template <typename Scores, typename Overlap>
std::vector<Candidate> select(int64_t count, int64_t most, Scores scoreOf, Overlap overlapOf, float mostOverlap,
                              float least, float sigma) {
  std::priority_queue<Candidate, std::vector<Candidate>, IsWorse> candidates;
  for (int64_t i = 0; i < count; ++i)
    if (scoreOf(i) > least)
      candidates.push({static_cast<int32_t>(i), scoreOf(i), 0});
  const bool isSoft = sigma > 0;
  const float scale = isSoft ? -0.5f / sigma : 0;
  std::vector<Candidate> selected;
  while (static_cast<int64_t>(selected.size()) < most && !candidates.empty()) {
    Candidate next = candidates.top();
    candidates.pop();
    const float before = next.score;
    bool isLeftOut = false;
    // With those that were selected since, the last first.
    for (size_t i = selected.size(); i-- > next.compared && !isLeftOut;) {
      const float by = overlapOf(next.box, selected[i].box);
      if (isSoft)
        next.score *= std::exp(scale * by * by);
      else
        isLeftOut = by > mostOverlap;
      if (next.score <= least)
        break;
    }
    next.compared = selected.size();
    if (isLeftOut)
      continue;
    if (next.score == before)
      selected.push_back(next);
    else if (next.score > least)
      candidates.push(next);
  }
  return selected;
}

} // namespace

void drt_routine_non_max_suppression(drt_replica *, const int64_t *p, void *const *tensors) {
  const int64_t count = p[0], most = p[1];
  const float *boxes = static_cast<const float *>(tensors[0]), *scores = static_cast<const float *>(tensors[1]);
  const float mostOverlap = *static_cast<const float *>(tensors[2]), least = *static_cast<const float *>(tensors[3]),
              sigma = *static_cast<const float *>(tensors[4]);
  int32_t *indices = static_cast<int32_t *>(tensors[5]);
  float *kept = static_cast<float *>(tensors[6]);
  const auto overlapOf = [&](int64_t a, int64_t b) {
    return p[2] ? boxes[a * count + b] : overlap(boxes + 4 * a, boxes + 4 * b);
  };
  const std::vector<Candidate> selected =
      select(count, most, [&](int64_t i) { return scores[i]; }, overlapOf, mostOverlap, least, sigma);
  for (int64_t i = 0; i < most; ++i) {
    const bool is = i < static_cast<int64_t>(selected.size());
    indices[i] = is ? selected[i].box : p[3] ? 0 : -1;
    kept[i] = is ? selected[i].score : 0;
  }
  *static_cast<int32_t *>(tensors[7]) = static_cast<int32_t>(selected.size());
}

void drt_routine_combined_non_max_suppression(drt_replica *, const int64_t *p, void *const *tensors) {
  const int64_t count = p[1], boxClasses = p[2], classes = p[3], most = p[5];
  const float mostOverlap = *static_cast<const float *>(tensors[2]), least = *static_cast<const float *>(tensors[3]);
  struct Found {
    const float *box;
    float score;
    int64_t label;
  };
  for (int64_t example = 0; example < p[0]; ++example) {
    const float *boxes = static_cast<const float *>(tensors[0]) + example * count * boxClasses * 4;
    const float *scores = static_cast<const float *>(tensors[1]) + example * count * classes;
    std::vector<Found> found;
    for (int64_t label = 0; label < classes; ++label) {
      const auto boxOf = [&](int64_t i) { return boxes + (i * boxClasses + (boxClasses == 1 ? 0 : label)) * 4; };
      const auto selected = select(
          count, std::min(p[4], count), [&](int64_t i) { return scores[i * classes + label]; },
          [&](int64_t a, int64_t b) { return overlap(boxOf(a), boxOf(b)); }, mostOverlap, least, 0);
      for (const Candidate &candidate : selected)
        found.push_back({boxOf(candidate.box), candidate.score, label});
    }
    std::stable_sort(found.begin(), found.end(), [](const Found &a, const Found &b) { return a.score > b.score; });
    found.resize(std::min(found.size(), static_cast<size_t>(most)));
    float *keptBoxes = static_cast<float *>(tensors[4]) + example * most * 4;
    float *keptScores = static_cast<float *>(tensors[5]) + example * most;
    float *labels = static_cast<float *>(tensors[6]) + example * most;
    std::fill_n(keptBoxes, most * 4, 0.0f);
    std::fill_n(keptScores, most, 0.0f);
    std::fill_n(labels, most, 0.0f);
    for (size_t i = 0; i < found.size(); ++i) {
      for (int64_t corner = 0; corner < 4; ++corner) {
        const float at = found[i].box[corner];
        keptBoxes[4 * i + corner] = p[6] ? std::max(std::min(at, 1.0f), 0.0f) : at;
      }
      keptScores[i] = found[i].score;
      labels[i] = static_cast<float>(found[i].label);
    }
    static_cast<int32_t *>(tensors[7])[example] = static_cast<int32_t>(found.size());
  }
}
