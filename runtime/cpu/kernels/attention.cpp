//===- attention.cpp - Attentions of a replica -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/attention.h"

#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/score_rows.h"
#include "cpu/kernels/scratch.h"
#include "cpu/kernels/sgemm.h"
#include "cpu/team.h"

#include <algorithm>
#include <memory>

using namespace drt;

namespace {
// Of scores, in the second-level cache beside keys and values; of a long sequence at least some rows, since a product
// of fewer reads the keys for little.
constexpr int64_t blockBytes = 256 * 1024, fewestRows = 32;

class AttentionSite : public Prepared {
public:
  /// `buffers`: of scores of a block.
  AttentionSite(const drt_attention_desc &desc, int64_t buffers, Scratch &scratch)
      : rows(std::clamp(blockBytes / static_cast<int64_t>(sizeof(float)) / desc.keys,
                        std::min(fewestRows, desc.queries), desc.queries)) {
    const size_t bytes = static_cast<size_t>(rows * desc.keys) * sizeof(float);
    scores = Buffer(scratch, bytes);
    gradients = Buffer(scratch, buffers > 1 ? bytes : 0);
  }

  int64_t rows; // of a block
  Buffer scores, gradients;
};

// One head of one example: where its tokens' elements begin, a `pitch` apart.
class Head {
public:
  Head(const drt_attention_desc &desc, int64_t number)
      : d(desc), example(number / d.heads), head(number % d.heads), pitch(d.heads * d.size), loops(scoreRows()) {}

  template <class T> T *tokens(T *of, int64_t count, int64_t first = 0) const {
    return of + (example * count + first) * pitch + head * d.size;
  }
  int64_t row(int64_t query) const { return (example * d.heads + head) * d.queries + query; }
  int64_t allRows() const { return d.batch * d.heads * d.queries; }

  /// scale * query key^T + bias, of some queries.
  void score(const AttentionInputs &inputs, Range queries, float *scores) const {
    sgemm({queries.size(), d.keys, d.size, false, true, pitch, pitch, d.keys, false}, static_cast<float>(d.scale),
          tokens(inputs.query, d.queries, queries.begin), tokens(inputs.key, d.keys), scores);
    if (!inputs.bias)
      return;
    const int64_t matrix = (d.bias_batch == 1 ? 0 : example) * d.bias_heads + (d.bias_heads == 1 ? 0 : head);
    for (int64_t query = queries.begin; query < queries.end; ++query, scores += d.keys)
      loops.add(scores, inputs.bias + (matrix * d.bias_queries + (d.bias_queries == 1 ? 0 : query)) * d.bias_keys,
                d.bias_keys == 1 ? 0 : 1, d.keys);
  }

  /// c (or c +=, of blocks behind the first) = scale * some queries' rows^T * rows of the head.
  void addTransposed(const float *rows, Range queries, float scale, const float *of, float *c) const {
    sgemm({d.keys, d.size, queries.size(), true, false, d.keys, pitch, pitch, queries.begin > 0}, scale, rows,
          tokens(of, d.queries, queries.begin), tokens(c, d.keys));
  }

  const drt_attention_desc &d;
  const int64_t example, head, pitch;
  const ScoreRows &loops;
};

template <class Run> void forBlocks(const drt_attention_desc &desc, int64_t rows, Run run) {
  for (int64_t first = 0; first < desc.queries; first += rows)
    run(Range{first, std::min(desc.queries, first + rows)});
}
} // namespace

MatmulParts drt::attentionParts(const drt_attention_desc &desc) {
  return {desc.batch * desc.heads, grainOf(2 * desc.queries * desc.keys * desc.size)};
}

void drt::attention(PrimitiveCache &cache, int32_t site, const drt_attention_desc &desc, Range heads,
                    const AttentionInputs &inputs, float *output, float *statistics) {
  if (useLibraryThreads)
    useLibraryThreads(cache.threads());
  auto &prepared = cache.get<AttentionSite>(
      site, [&] { return std::make_unique<AttentionSite>(desc, 1, cache.scratchOfNewSite()); });
  for (int64_t number = heads.begin; number < heads.end; ++number) {
    const Head head(desc, number);
    forBlocks(desc, prepared.rows, [&](Range queries) {
      float *scores = prepared.scores.as<float>(), *row = scores;
      head.score(inputs, queries, scores);
      for (int64_t query = queries.begin; query < queries.end; ++query, row += desc.keys) {
        const float most = head.loops.largest(row, desc.keys);
        statistics[head.row(query)] = most;
        statistics[head.allRows() + head.row(query)] = head.loops.exponentiate(row, desc.keys, most);
      }
      float *to = head.tokens(output, desc.queries, queries.begin);
      sgemm({queries.size(), desc.size, desc.keys, false, false, desc.keys, head.pitch, head.pitch, false}, 1.0f,
            scores, head.tokens(inputs.value, desc.keys), to);
      for (int64_t query = queries.begin; query < queries.end; ++query, to += head.pitch)
        head.loops.scale(to, desc.size, 1.0f / statistics[head.allRows() + head.row(query)]);
    });
  }
}

void drt::attentionGradient(PrimitiveCache &cache, int32_t site, const drt_attention_desc &desc, Range heads,
                            const AttentionInputs &inputs, const AttentionResults &results,
                            const AttentionGradients &gradients) {
  if (useLibraryThreads)
    useLibraryThreads(cache.threads());
  auto &prepared = cache.get<AttentionSite>(
      site, [&] { return std::make_unique<AttentionSite>(desc, 2, cache.scratchOfNewSite()); });
  const auto scale = static_cast<float>(desc.scale);
  for (int64_t number = heads.begin; number < heads.end; ++number) {
    const Head head(desc, number);
    forBlocks(desc, prepared.rows, [&](Range queries) {
      float *probabilities = prepared.scores.as<float>(), *ofScores = prepared.gradients.as<float>();
      head.score(inputs, queries, probabilities);
      // Of probabilities, then of scores.
      const float *grad = head.tokens(results.outputGrad, desc.queries, queries.begin);
      sgemm({queries.size(), desc.keys, desc.size, false, true, head.pitch, head.pitch, desc.keys, false}, 1.0f, grad,
            head.tokens(inputs.value, desc.keys), ofScores);
      const float *output = head.tokens(results.output, desc.queries, queries.begin);
      for (int64_t query = queries.begin, at = 0; query < queries.end; ++query, at += desc.keys) {
        head.loops.probabilities(probabilities + at, desc.keys, results.statistics[head.row(query)],
                                 1.0f / results.statistics[head.allRows() + head.row(query)]);
        const float dot = head.loops.dot(output, grad, desc.size);
        head.loops.gradients(probabilities + at, ofScores + at, desc.keys, dot);
        output += head.pitch, grad += head.pitch;
      }
      head.addTransposed(probabilities, queries, 1.0f, results.outputGrad, gradients.value);
      head.addTransposed(ofScores, queries, scale, inputs.query, gradients.key);
      sgemm({queries.size(), desc.size, desc.keys, false, false, desc.keys, head.pitch, head.pitch, false}, scale,
            ofScores, head.tokens(inputs.key, desc.keys), head.tokens(gradients.query, desc.queries, queries.begin));
    });
  }
}
