//===- matmul_update.cpp - A product over the joined batch, and its update -----===//
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
#include "cpu/kernels/streamed_sum.h"
#include "cpu/kernels/streamed_update.h"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using namespace drt;

namespace {
// The block that the kernel reads must still be in the second-level cache, beside
// the variable and its slots that pass through.
constexpr int64_t blockBytes = 512 * 1024;

// Of the contracted axis: a product of so many steps writes and reads its sums no more than one of more does.
constexpr int64_t longShare = 512;

// Of rows whose sums matrix units make at once: the right operand is packed for each block.
constexpr int64_t unitsBlockBytes = 1024 * 1024;

// Where there are several blocks each reads all of b, which does not stay in cache: they are larger, and b is packed
// while what came before it is multiplied.
constexpr int64_t sumBytes = 1024 * 1024, leastSumRows = 96;

class UpdateSite : public Prepared {
public:
  UpdateSite(const drt_matmul_desc &desc, Share share, ReplicatedOperand a, ReplicatedOperand b, Scratch &scratch)
      : elementBytes(desc.dtype == DRT_F32 ? 4 : 8), blockRows(rowsOf(blockBytes, desc)),
        own{desc.m * share.index / share.count, desc.m * (share.index + 1) / share.count} {
    const int replicas = a.replicas;
    const int64_t rows = (desc.m + share.count - 1) / share.count;
    // Whole groups of rows keep the library's kernels busy to the last one.
    if (blockRows > 16)
      blockRows -= blockRows % 16;
    const GemmShape shape = shapeOf(desc, rows, desc.n);
    unitsSum = desc.dtype == DRT_F32 && suitsSplitSum(shape, replicas);
    if (desc.dtype == DRT_F32 && (unitsSum || suitsMatrixUnits(shape))) {
      blockRows = std::max(blockRows, rowsOf(unitsBlockBytes, desc) / 32 * 32);
      block = Buffer(scratch, static_cast<size_t>(std::min(blockRows, desc.m) * desc.n * elementBytes));
      return;
    }
    if (tileKernels() && StreamedUpdate::suits(desc, replicas)) {
      streamed = std::make_unique<StreamedUpdate>(*tileKernels(), desc, replicas, scratch);
      return;
    }
    // The library is as fast with one block where it has 512 bits.
    if (tileKernels() && (rows > blockRows || (rows >= leastSumRows && feedsByBlocks())) && StreamedSum::suits(desc)) {
      blockRows = std::max(leastSumRows, rowsOf(sumBytes, desc));
      sum = std::make_unique<StreamedSum>(*tileKernels(), desc, replicas, std::min(blockRows, rows), scratch);
    }
    block = Buffer(scratch, static_cast<size_t>(std::min(blockRows, desc.m) * desc.n * elementBytes));
    // Shares of the contracted axis that lie behind each other are one operand, and one product is faster than a sum of
    // several. Copying costs little beside it where k is small; where it is long a product of each is as fast.
    joined = !sum && desc.transpose_a && !desc.transpose_b && replicas > 1 && desc.k > 0 && desc.k < longShare &&
             !own.empty();
    if (joined && a.stride != desc.k * desc.m * elementBytes)
      joinedA = Buffer(scratch, static_cast<size_t>(replicas * desc.k * own.size() * elementBytes));
    if (joined && b.stride != desc.k * desc.n * elementBytes)
      joinedB = Buffer(scratch, static_cast<size_t>(replicas * desc.k * desc.n * elementBytes));
  }

  int64_t elementBytes;
  int64_t blockRows;
  Range own;                                // rows of this share
  std::unique_ptr<StreamedUpdate> streamed; // null: by blocks of rows,
  std::unique_ptr<StreamedSum> sum;         // null: by sgemm
  bool unitsSum = false;                    // by matrix units, of all replicas at once
  Buffer block;
  bool joined = false;     // the replicas' operands, where they lie behind each other,
  Buffer joinedA, joinedB; // and where they do not: here

private:
  int64_t rowsOf(int64_t bytes, const drt_matmul_desc &desc) const {
    return std::max<int64_t>(1, bytes / std::max<int64_t>(1, desc.n * elementBytes));
  }
};

// The replicas' matrices of `rows` rows, copied to `buffer` behind each other. `columns` of a row are taken, rows are
// `pitch` elements apart.
template <class T>
const T *stack(const Buffer &buffer, ReplicatedOperand operand, int64_t rows, int64_t columns, int64_t pitch) {
  T *to = buffer.as<T>();
  for (int replica = 0; replica < operand.replicas; ++replica) {
    const T *from = reinterpret_cast<const T *>(static_cast<const char *>(operand.base) + replica * operand.stride);
    if (columns == pitch)
      to = std::copy(from, from + rows * columns, to);
    else
      for (int64_t row = 0; row < rows; ++row)
        to = std::copy(from + row * pitch, from + row * pitch + columns, to);
  }
  return buffer.as<T>();
}

void product(const GemmShape &s, float scale, const float *a, const float *b, float *c) { sgemm(s, scale, a, b, c); }

void product(const GemmShape &s, double, const double *a, const double *b, double *c) { gemm(s, a, b, c); }

template <class T> struct Operands {
  ReplicatedOperand a, b;
  const T *of(const ReplicatedOperand &operand, int replica) const {
    return reinterpret_cast<const T *>(static_cast<const char *>(operand.base) + replica * operand.stride);
  }
};

template <class T>
void update(UpdateSite &site, const drt_matmul_desc &desc, Operands<T> operands, double scale, drt_range_kernel kernel,
            void *const *arguments) {
  const int replicas = operands.a.replicas;
  bool transposeA = desc.transpose_a != 0, transposeB = desc.transpose_b != 0;
  int64_t lda = transposeA ? desc.m : desc.k, ldb = transposeB ? desc.k : desc.n;
  const auto [begin, end] = site.own;
  const bool joined = site.joined;
  const T *wholeA = nullptr, *wholeB = nullptr;
  if (joined) {
    bool dense = !site.joinedA.data();
    wholeA = dense ? operands.of(operands.a, 0) + begin
                   : stack<T>(site.joinedA, {operands.of(operands.a, 0) + begin, operands.a.stride, replicas}, desc.k,
                              end - begin, desc.m);
    lda = dense ? desc.m : end - begin;
    wholeB =
        site.joinedB.data() ? stack<T>(site.joinedB, operands.b, desc.k, desc.n, desc.n) : operands.of(operands.b, 0);
  }
  int products = joined ? 1 : replicas;
  int64_t k = joined ? desc.k * replicas : desc.k;
  T *block = site.block.as<T>();
  for (int64_t row = begin; row < end; row += site.blockRows) {
    int64_t rows = std::min(site.blockRows, end - row);
    if (k == 0)
      std::fill(block, block + rows * desc.n, T(0));
    for (int replica = 0; replica < products && k > 0; ++replica) {
      const T *a = joined ? wholeA + (row - begin) : operands.of(operands.a, replica) + (transposeA ? row : row * lda);
      const T *b = joined ? wholeB : operands.of(operands.b, replica);
      GemmShape shape = {rows, desc.n, k, transposeA, transposeB, lda, ldb, desc.n, replica > 0};
      product(shape, static_cast<T>(scale), a, b, block);
    }
    if (std::is_same_v<T, double> && scale != 1.0)
      for (int64_t i = 0; i < rows * desc.n; ++i)
        block[i] *= static_cast<T>(scale);
    kernel(row * desc.n, (row + rows) * desc.n, block, arguments);
  }
}

void updateSummed(UpdateSite &site, const drt_matmul_desc &desc, ReplicatedOperand a, ReplicatedOperand b, double scale,
                  drt_range_kernel kernel, void *const *arguments) {
  std::vector<const void *> lefts, ownLefts, rights;
  for (int64_t replica = 0; replica < a.replicas; ++replica) {
    lefts.push_back(static_cast<const char *>(a.base) + replica * a.stride);
    rights.push_back(static_cast<const char *>(b.base) + replica * b.stride);
  }
  const auto [begin, end] = site.own;
  for (int64_t row = begin; row < end; row += site.blockRows) {
    const Range rows = {row, std::min(row + site.blockRows, end)};
    if (site.unitsSum) {
      ownLefts.clear();
      for (const void *left : lefts)
        ownLefts.push_back(static_cast<const float *>(left) + row);
      splitSum(shapeOf(desc, rows.size(), desc.n), static_cast<float>(scale), ownLefts, rights.data(),
               site.block.as<float>());
    } else {
      site.sum->run(lefts.data(), rights.data(), rows, static_cast<float>(scale), site.block.as<float>());
    }
    kernel(rows.begin * desc.n, rows.end * desc.n, site.block.as<float>(), arguments);
  }
}

void updateStreamed(UpdateSite &site, const drt_matmul_desc &desc, ReplicatedOperand a, ReplicatedOperand b,
                    double scale, drt_range_kernel kernel, void *const *arguments, int numVariables) {
  StreamedUpdate &streamed = *site.streamed;
  const auto [begin, end] = site.own;
  if (begin < end)
    streamed.packRight(b);
  for (int64_t row = begin; row < end; row += streamed.blockRows()) {
    int64_t rows = std::min(streamed.blockRows(), end - row);
    const float *block = streamed.block(a, row, rows, static_cast<float>(scale), arguments, numVariables);
    int64_t together = streamed.pitch() == desc.n ? rows : 1;
    for (int64_t i = 0; i < rows; i += together)
      kernel((row + i) * desc.n, (row + i + together) * desc.n, block + i * streamed.pitch(), arguments);
  }
}
} // namespace

void drt::matmulUpdate(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Share share,
                       ReplicatedOperand a, ReplicatedOperand b, double scale, drt_range_kernel kernel,
                       void *const *arguments, int numVariables) {
  if (desc.m == 0 || desc.n == 0)
    return;
  if (useLibraryThreads)
    useLibraryThreads(cache.threads());
  auto &prepared = cache.get<UpdateSite>(site, [&] {
    if ((desc.dtype != DRT_F32 && desc.dtype != DRT_F64) || desc.batch != 1 || desc.has_bias ||
        desc.epilogue != DRT_EPILOGUE_NONE || desc.accumulate)
      throw std::runtime_error("a matmul that updates a variable must be a plain one of float32 or float64, not of "
                               "data type " +
                               std::to_string(desc.dtype) + " or with a bias, an epilogue or a batch axis");
    return std::make_unique<UpdateSite>(desc, share, a, b, cache.scratchOfNewSite());
  });
  if (prepared.streamed)
    updateStreamed(prepared, desc, a, b, scale, kernel, arguments, numVariables);
  else if (prepared.sum || prepared.unitsSum)
    updateSummed(prepared, desc, a, b, scale, kernel, arguments);
  else if (desc.dtype == DRT_F32)
    update<float>(prepared, desc, {a, b}, scale, kernel, arguments);
  else
    update<double>(prepared, desc, {a, b}, scale, kernel, arguments);
}
