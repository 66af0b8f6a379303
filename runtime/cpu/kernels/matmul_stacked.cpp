//===- matmul_stacked.cpp - Products with one right operand -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/gemm.h"
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/scratch.h"
#include "cpu/kernels/sgemm.h"
#include "cpu/kernels/split_matmul.h"
#include "cpu/team.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace drt;

namespace {
// By vectors: rows that are copied behind each other and multiplied at once. Of their product, too, most is in the
// second-level cache when it is copied to where it belongs.
constexpr int64_t rowsAtOnce = 128;

class StackedSite : public Prepared {
public:
  StackedSite(const drt_matmul_desc &desc, int64_t count, Scratch &scratch)
      : split(suitsMatrixUnits(shapeOf(desc, count * desc.m, desc.n))),
        atOnce(desc.m > 0 ? std::clamp<int64_t>(rowsAtOnce / desc.m, 1, count) : 1),
        left(scratch, split || atOnce == 1 ? 0 : static_cast<size_t>(atOnce * desc.m * desc.k) * sizeof(float)),
        product(scratch, split || atOnce == 1 ? 0 : static_cast<size_t>(atOnce * desc.m * desc.n) * sizeof(float)) {}

  bool split;     // by matrix units
  int64_t atOnce; // left operands, by vectors
  Buffer left, product;
};

void multiplyByVectors(const StackedSite &site, const drt_matmul_desc &desc, void *const *a, const float *b,
                       void *const *c, int64_t count) {
  if (site.atOnce == 1)
    return sgemm(shapeOf(desc, desc.m, desc.n), 1.0f, static_cast<const float *>(a[0]), b, static_cast<float *>(c[0]));
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(static_cast<const float *>(a[i]), desc.m * desc.k, site.left.as<float>() + i * desc.m * desc.k);
  sgemm(shapeOf(desc, count * desc.m, desc.n), 1.0f, site.left.as<float>(), b, site.product.as<float>());
  for (int64_t i = 0; i < count; ++i)
    std::copy_n(site.product.as<float>() + i * desc.m * desc.n, desc.m * desc.n, static_cast<float *>(c[i]));
}
} // namespace

MatmulParts drt::matmulStackedParts(const drt_matmul_desc &desc, int64_t count) {
  return {count, grainOf(desc.m * desc.n * desc.k)};
}

void drt::matmulStacked(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Range lefts, int64_t count,
                        void *const *operands, const void *b, const void *bias) {
  if (useLibraryThreads)
    useLibraryThreads(cache.threads());
  auto &prepared = cache.get<StackedSite>(site, [&] {
    if (desc.dtype != DRT_F32 || desc.batch != 1 || desc.transpose_a || desc.accumulate)
      throw std::runtime_error("matmuls with one right operand must be plain ones of float32, not of data type " +
                               std::to_string(desc.dtype));
    return std::make_unique<StackedSite>(desc, lefts.size(), cache.scratchOfNewSite());
  });
  const float *right = static_cast<const float *>(b),
              *added = desc.has_bias ? static_cast<const float *>(bias) : nullptr;
  void *const *a = operands + lefts.begin, *const *c = operands + count + lefts.begin;
  if (prepared.split) {
    std::vector<LeftOperand> all;
    for (int64_t i = 0; i < lefts.size(); ++i)
      all.push_back({static_cast<const float *>(a[i]), static_cast<float *>(c[i])});
    splitMatmul(shapeOf(desc, desc.m, desc.n), 1.0f, all, right);
  } else {
    for (int64_t i = 0; i < lefts.size(); i += prepared.atOnce)
      multiplyByVectors(prepared, desc, a + i, right, c + i, std::min(prepared.atOnce, lefts.size() - i));
  }
  for (int64_t i = 0; i < lefts.size(); ++i)
    applyEpilogue(desc.epilogue, added, desc.m, desc.n, static_cast<float *>(c[i]));
}
