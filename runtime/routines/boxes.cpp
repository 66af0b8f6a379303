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
  std::priority_queue<Candidate, std::vector<Candidate>, IsWorse> candidates;
  for (int64_t i = 0; i < count; ++i)
    if (scores[i] > least)
      candidates.push({static_cast<int32_t>(i), scores[i], 0});
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
  for (int64_t i = 0; i < most; ++i) {
    const bool is = i < static_cast<int64_t>(selected.size());
    indices[i] = is ? selected[i].box : p[3] ? 0 : -1;
    kept[i] = is ? selected[i].score : 0;
  }
  *static_cast<int32_t *>(tensors[7]) = static_cast<int32_t>(selected.size());
}
