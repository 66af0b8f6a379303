//===- matmul_sum.cpp - A sum of products -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/gemm.h"
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/sgemm.h"
#include "cpu/kernels/split_matmul.h"
#include "cpu/kernels/streamed_sum.h"
#include "cpu/team.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace drt;

namespace {
// Products of so many steps are faster one by one, by the library: AMD Zen 5, one thread, GFLOP/s, and of the library
// where the terms lie behind each other, which they do not:
//
//      m     n     k  terms   by blocks   library
//    256  1024    32     64         204       210
//    128   128  2048      2         202       232
constexpr int64_t longTerm = 256;

class SumSite : public Prepared {
public:
  SumSite(const drt_matmul_desc &desc, int64_t terms, Range rows, Scratch &scratch)
      : split(desc.dtype == DRT_F32 && suitsSplitSum(shapeOf(desc, rows.size(), desc.n), terms)),
        streamed(!split && tileKernels() && terms > 1 && desc.k < longTerm && StreamedSum::suits(desc)
                     ? std::make_unique<StreamedSum>(*tileKernels(), desc, terms, rows.size(), scratch)
                     : nullptr) {}

  bool split;                            // by matrix units
  std::unique_ptr<StreamedSum> streamed; // null: product by product
};

void product(const GemmShape &s, const float *a, const float *b, float *c) { sgemm(s, 1.0f, a, b, c); }
void product(const GemmShape &s, const double *a, const double *b, double *c) { gemm(s, a, b, c); }

template <class T>
void addProducts(const drt_matmul_desc &desc, Range rows, int64_t terms, void *const *operands, void *c) {
  T *to = static_cast<T *>(c) + rows.begin * desc.n;
  for (int64_t term = 0; term < terms; ++term)
    product({rows.size(), desc.n, desc.k, true, false, desc.m, desc.n, desc.n, term > 0},
            static_cast<const T *>(operands[term]) + rows.begin, static_cast<const T *>(operands[terms + term]), to);
}
} // namespace

MatmulParts drt::matmulSumParts(const drt_matmul_desc &desc, int64_t terms) {
  return {desc.m, grainOf(desc.n * desc.k * terms)};
}

void drt::matmulSum(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Range rows, int64_t terms,
                    void *const *operands, void *c) {
  if (useLibraryThreads)
    useLibraryThreads(cache.threads());
  auto &prepared = cache.get<SumSite>(site, [&] {
    if ((desc.dtype != DRT_F32 && desc.dtype != DRT_F64) || desc.batch != 1 || !desc.transpose_a || desc.transpose_b ||
        desc.has_bias || desc.epilogue != DRT_EPILOGUE_NONE || desc.accumulate)
      throw std::runtime_error("matmuls that are added up must be plain ones of float32 or float64, of a transposed "
                               "matrix and another one, not of data type " +
                               std::to_string(desc.dtype));
    return std::make_unique<SumSite>(desc, terms, rows, cache.scratchOfNewSite());
  });
  if (prepared.split) {
    std::vector<const void *> lefts;
    for (int64_t term = 0; term < terms; ++term)
      lefts.push_back(static_cast<const float *>(operands[term]) + rows.begin);
    splitSum(shapeOf(desc, rows.size(), desc.n), 1.0f, lefts, operands + terms,
             static_cast<float *>(c) + rows.begin * desc.n);
  } else if (prepared.streamed)
    prepared.streamed->run(operands, operands + terms, rows, 1.0f, static_cast<float *>(c) + rows.begin * desc.n);
  else if (desc.dtype == DRT_F32)
    addProducts<float>(desc, rows, terms, operands, c);
  else
    addProducts<double>(desc, rows, terms, operands, c);
}
