//===- matmul_joined.cpp - The products of all replicas with one matrix -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/gemm.h"
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/packed_operand.h"
#include "cpu/kernels/scratch.h"
#include "cpu/kernels/sgemm.h"
#include "cpu/kernels/split_matmul.h"
#include "cpu/kernels/streamed_matmul.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace drt;

namespace {
class JoinedSite : public Prepared {
public:
  JoinedSite(const drt_matmul_desc &desc, Share share, int replicas, Scratch &scratch)
      : begin(columnsOfShare(desc.n, share).begin), end(columnsOfShare(desc.n, share).end),
        split(desc.n > 0 && suitsMatrixUnits(shapeOf(desc, replicas * desc.m, end - begin))),
        streamed(!split && tileKernels() && begin < end && StreamedMatmul::suits(desc, replicas)
                     ? std::make_unique<StreamedMatmul>(*tileKernels(), desc, replicas, begin, end, scratch)
                     : nullptr),
        stacked(scratch, split || streamed ? 0 : static_cast<size_t>(replicas * desc.m * desc.k) * sizeof(float)),
        product(scratch,
                split || streamed ? 0 : static_cast<size_t>(replicas * desc.m * (end - begin)) * sizeof(float)) {}

  int64_t begin, end;                       // the columns of this share
  bool split;                               // by matrix units
  std::unique_ptr<StreamedMatmul> streamed; // null: by sgemm
  Buffer stacked, product;
};

// Whole vectors and cache lines.
int64_t boundary(int64_t columns, int part, int parts) {
  constexpr int64_t group = 16;
  return std::min(columns, (columns + group - 1) / group * part / parts * group);
}
} // namespace

Range drt::columnsOfShare(int64_t columns, Share share) {
  return {boundary(columns, share.index, share.count), boundary(columns, share.index + 1, share.count)};
}

void drt::matmulJoined(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Share share,
                       ReplicatedOperand a, const void *b, const void *bias, void *c, int64_t cStride,
                       const void *packed) {
  if (useLibraryThreads)
    useLibraryThreads(cache.threads());
  auto &prepared = cache.get<JoinedSite>(site, [&] {
    if (desc.dtype != DRT_F32 || desc.batch != 1 || desc.transpose_a || desc.accumulate)
      throw std::runtime_error("a matmul of all replicas must be a plain one of float32, not of data type " +
                               std::to_string(desc.dtype));
    return std::make_unique<JoinedSite>(desc, share, a.replicas, cache.scratchOfNewSite());
  });
  int64_t columns = prepared.end - prepared.begin;
  if (columns <= 0 || desc.m == 0)
    return;
  if (prepared.streamed)
    return prepared.streamed->run(a, static_cast<const float *>(b), static_cast<const float *>(bias),
                                  static_cast<float *>(c), cStride);
  const char *base = static_cast<const char *>(a.base);
  const bool transposed = desc.transpose_b != 0;
  const int64_t ldb = transposed ? desc.k : desc.n;
  const float *right = static_cast<const float *>(b) + (transposed ? prepared.begin * ldb : prepared.begin);
  const PackedOperand operand(const_cast<void *>(packed), desc.k, columns);
  const float *ownBias = desc.has_bias ? static_cast<const float *>(bias) + prepared.begin : nullptr;
  if (prepared.split) {
    std::vector<LeftOperand> lefts;
    for (int64_t replica = 0; replica < a.replicas; ++replica)
      lefts.push_back({reinterpret_cast<const float *>(base + replica * a.stride),
                       reinterpret_cast<float *>(static_cast<char *>(c) + replica * cStride) + prepared.begin});
    splitMatmul(shapeOf(desc, desc.m, columns), 1.0f, lefts, right, &operand);
    for (const LeftOperand &of : lefts)
      for (int64_t row = 0; row < desc.m; ++row)
        applyEpilogue(desc.epilogue, ownBias, 1, columns, of.c + row * desc.n);
    return;
  }
  // One tall left operand: as it lies, or copied (small beside the right one).
  const float *left = static_cast<const float *>(a.base);
  if (a.stride != desc.m * desc.k * static_cast<int64_t>(sizeof(float))) {
    float *to = prepared.stacked.as<float>();
    left = to;
    for (int replica = 0; replica < a.replicas; ++replica) {
      const float *from = reinterpret_cast<const float *>(base + replica * a.stride);
      to = std::copy(from, from + desc.m * desc.k, to);
    }
  }
  float *product = prepared.product.as<float>();
  sgemm({a.replicas * desc.m, columns, desc.k, false, transposed, desc.k, ldb, columns, false}, 1.0f, left, right,
        product, &operand);
  applyEpilogue(desc.epilogue, ownBias, a.replicas * desc.m, columns, product);
  for (int replica = 0; replica < a.replicas; ++replica) {
    float *to = reinterpret_cast<float *>(static_cast<char *>(c) + replica * cStride) + prepared.begin;
    for (int64_t row = 0; row < desc.m; ++row, product += columns)
      std::copy(product, product + columns, to + row * desc.n);
  }
}
