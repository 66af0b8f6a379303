//===- matmul.cpp - Matrix products of a replica -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/matmul.h"

#include "cpu/compressor.h"
#include "cpu/kernels/gemm.h"
#include "cpu/kernels/library_matmul.h"
#include "cpu/kernels/packed_operand.h"
#include "cpu/kernels/scratch.h"
#include "cpu/kernels/sgemm.h"
#include "cpu/kernels/split_matmul.h"
#include "cpu/kernels/streamed_matmul.h"
#include "cpu/kernels/streamed_sum.h"
#include "cpu/team.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

using namespace drt;

namespace {
// How a call site's product is computed. oneDNN 2.6.3, one thread, GFLOP/s on a
// Xeon of the Sapphire Rapids generation (AVX-512), the better of dnnl_sgemm and
// the matmul primitive for float32:
//
//      m     n     k               sgemm  matmul
//     64  2048   784                 116     119   forward
//     64  2048  2048                 118     116
//     64    10  2048                  74      92
//   2048  2048    64  a transposed   165     155   gradient of a weight
//   2048  2048   128  a transposed   171     156
//    784  2048   128  a transposed   166     156
//     64  2048  2048  b transposed   124     135   gradient of an input
//    512   512   512                 153     169
//      1   512   512                  34      14   matrix times vector
//    512     1   512                  39      10
//
// Where b's rows collide in the cache, sgemm in parts gains a quarter and more (see
// sgemm.h), so the first two forward products go that way.
//
// A call costs 0.3 us, which own loops beat below about 1000 multiplications.
enum class Method { Plain, Sgemm, Primitive, Sum, Streamed };

constexpr int64_t tinyProduct = 1024;

// Of a gradient of a weight, whose sum goes over many examples: by own tiles, the rows whose sums stay in the
// second-level cache, and what is worth packing both operands for.
constexpr int64_t tilesBytes = 1024 * 1024, fewestTileRows = 32, fewestTileColumns = 64, fewestTileSteps = 256;

// Where rows of an operand collide in the cache the library, with vectors of 256 bits, has 62 to 66 GFLOP/s a thread
// (512 x 128 x 3136 on two threads of an AMD EPYC of the Zen 3 generation), and tiles 82.
bool suitsSum(const drt_matmul_desc &whole, int64_t rows) {
  constexpr int64_t colliding = 256;
  return feedsByBlocks() && StreamedSum::suits(whole) && whole.batch == 1 && !whole.accumulate && !whole.has_bias &&
         whole.epilogue == DRT_EPILOGUE_NONE && (whole.m % colliding == 0 || whole.n % colliding == 0) &&
         rows >= fewestTileRows && whole.n >= fewestTileColumns && whole.k >= fewestTileSteps;
}

// Of a batch of matrices: for smaller ones the library, which is called once for all of them, is as fast (32 of 128 x
// 128 x 64: 124 GFLOP/s, and 100 on matrix units).
constexpr int64_t smallestOfBatch = 128 * 128 * 128;

// Of few rows with a transposed right operand, a recurrent layer's gradient: as above 70 GFLOP/s by the library (32 x
// 256 x 1024), which packs the right operand for so few, and 82 by tiles that read it where it lies.
constexpr int64_t fewestStreamedRows = 8, mostStreamedRows = 192, fewestStreamed = 64;

bool suitsStreamed(const drt_matmul_desc &part) {
  return feedsByBlocks() && part.transpose_b && !part.transpose_a && part.batch == 1 && !part.accumulate &&
         part.m >= fewestStreamedRows && part.m <= mostStreamedRows && part.n >= fewestStreamed &&
         part.k >= fewestStreamed && StreamedMatmul::suits(part, 1);
}

// `columns`: of a transposed left operand, of which desc.m are taken.
GemmShape gemmShape(const drt_matmul_desc &desc, int64_t columns, bool accumulate) {
  GemmShape shape = shapeOf(desc, desc.m, desc.n);
  shape.lda = shape.transposeA ? columns : shape.lda;
  shape.accumulate = accumulate;
  return shape;
}

// `desc`: of the whole product, what is computed here. One that matrix units suit is sgemm's in all of its parts.
Method chooseMethod(const drt_matmul_desc &whole, const drt_matmul_desc &desc) {
  if (suitsSum(whole, desc.m))
    return Method::Sum;
  if (suitsStreamed(desc))
    return Method::Streamed;
  if (desc.dtype != DRT_F32 || desc.m == 0 || desc.n == 0 || desc.k == 0)
    return Method::Plain;
  if (desc.m * desc.n * desc.k <= tinyProduct && desc.batch == 1)
    return Method::Plain;
  // The primitive's vectorized tanh and logistic outweigh what sgemm gains.
  bool transcendental = desc.epilogue == DRT_EPILOGUE_TANH || desc.epilogue == DRT_EPILOGUE_SIGMOID;
  if (!transcendental && suitsMatrixUnits(gemmShape(whole, whole.m, false)) &&
      (whole.batch == 1 || whole.m * whole.n * whole.k >= smallestOfBatch))
    return Method::Sgemm;
  bool added = desc.accumulate && (desc.has_bias || desc.epilogue != DRT_EPILOGUE_NONE);
  if (desc.batch != 1 || added || transcendental)
    return Method::Primitive;
  bool vector = desc.m == 1 || desc.n == 1;
  return vector || desc.transpose_a || chooseFeed(gemmShape(desc, desc.m, false)) != Feed::Whole ? Method::Sgemm
                                                                                                 : Method::Primitive;
}

// A dense left operand that meets one right operand is one tall matrix.
drt_matmul_desc normalized(drt_matmul_desc desc) {
  if (desc.batch > 1 && desc.batch_stride_b == 0 && !desc.transpose_a && desc.batch_stride_a == desc.m * desc.k) {
    desc.m *= desc.batch;
    desc.batch = 1;
  }
  return desc;
}

bool isHalf(int32_t dtype) { return dtype == DRT_BF16 || dtype == DRT_F16; }

// A shape the library's primitive has no name for.
bool broadcastsBoth(const drt_matmul_desc &desc) {
  return desc.batch != 1 && desc.batch_stride_a == 0 && desc.batch_stride_b == 0;
}

drt_matmul_desc partOf(drt_matmul_desc desc, Range parts) {
  (desc.batch > 1 ? desc.batch : desc.m) = parts.size();
  return desc;
}

class MatmulSite : public Prepared {
public:
  MatmulSite(const drt_matmul_desc &given, Range parts, Scratch &scratch)
      : whole(normalized(given)), desc(partOf(whole, parts)), parts(parts), method(chooseMethod(whole, desc)) {
    if (method == Method::Streamed)
      streamed = std::make_unique<StreamedMatmul>(*tileKernels(), desc, 1, 0, desc.n, scratch);
    if (method == Method::Sum) {
      blockRows = std::min(desc.m, std::max(fewestTileRows, tilesBytes / 4 / desc.n));
      sum = std::make_unique<StreamedSum>(*tileKernels(), whole, 1, blockRows, scratch);
    }
    if (method == Method::Primitive && !broadcastsBoth(desc))
      call = makeLibraryMatmul ? makeLibraryMatmul(desc, scratch) : nullptr;
    if (method == Method::Primitive && !call)
      method = Method::Sgemm;
    // c += epilogue(...) needs the product by itself.
    if (method != Method::Primitive && desc.accumulate && (desc.has_bias || desc.epilogue != DRT_EPILOGUE_NONE))
      product = Buffer(scratch, static_cast<size_t>(desc.m * desc.n) * sizeof(double));
  }

  template <class T> void run(const void *a, const void *b, const void *bias, void *c, const void *packed = nullptr) {
    const T *left = static_cast<const T *>(a), *right = static_cast<const T *>(b);
    T *product = static_cast<T *>(c);
    if (whole.batch > 1) {
      left += parts.begin * whole.batch_stride_a;
      right += parts.begin * whole.batch_stride_b;
      product += parts.begin * whole.m * whole.n;
    } else {
      left += parts.begin * (whole.transpose_a ? 1 : whole.k);
      product += parts.begin * whole.n;
    }
    if (method == Method::Primitive) {
      call->run(left, right, bias, product);
      return;
    }
    if constexpr (std::is_same_v<T, float>)
      if (method == Method::Streamed)
        return streamed->run({left, 0, 1}, right, static_cast<const float *>(bias), product, 0);
    if (method == Method::Sum) {
      for (int64_t row = parts.begin; row < parts.end; row += blockRows)
        sum->run(&a, &b, {row, std::min(parts.end, row + blockRows)}, 1.0f, static_cast<float *>(c) + row * whole.n);
      return;
    }
    // One right operand serves all items, where it is packed.
    const PackedOperand operand(const_cast<void *>(packed), whole.k, whole.n);
    for (int64_t item = 0; item < desc.batch; ++item)
      runItem(left + item * desc.batch_stride_a, right + item * desc.batch_stride_b, static_cast<const T *>(bias),
              product + item * desc.m * desc.n, operand);
  }

private:
  template <class T> void runItem(const T *a, const T *b, const T *bias, T *c, const PackedOperand &packed) {
    T *to = product.data() ? product.as<T>() : c;
    GemmShape shape = gemmShape(desc, whole.m, desc.accumulate && to == c);
    if constexpr (std::is_same_v<T, float>)
      method == Method::Sgemm ? sgemm(shape, 1.0f, a, b, to, &packed) : gemm(shape, a, b, to);
    else
      gemm(shape, a, b, to);
    applyEpilogue(desc.epilogue, desc.has_bias ? bias : nullptr, desc.m, desc.n, to);
    if (to != c)
      for (int64_t i = 0; i < desc.m * desc.n; ++i)
        c[i] += to[i];
  }

  drt_matmul_desc whole, desc; // what is computed of it
  Range parts;
  Method method;
  std::unique_ptr<LibraryMatmul> call;
  int64_t blockRows = 0;
  std::unique_ptr<StreamedSum> sum;
  std::unique_ptr<StreamedMatmul> streamed;
  Buffer product;
};

// A product of bfloat16 or float16 matrices, whose elements are added up in float32. Where the library has none on this
// machine (of float16, or before AVX-512), of what the operands are in float32.
class NarrowMatmulSite : public Prepared {
public:
  NarrowMatmulSite(const drt_matmul_desc &given, Range parts, Scratch &scratch)
      : whole(normalized(given)), desc(partOf(whole, parts)), parts(parts) {
    if (desc.dtype == DRT_BF16 && desc.m * desc.n * desc.k > 0 && !broadcastsBoth(desc) && makeLibraryMatmul)
      call = makeLibraryMatmul(desc, scratch);
    if (call)
      return;
    drt_matmul_desc wideDesc = whole;
    wideDesc.dtype = DRT_F32;
    wide = std::make_unique<MatmulSite>(wideDesc, parts, scratch);
    wideA = Buffer(scratch, static_cast<size_t>(countA()) * sizeof(float));
    wideB = Buffer(scratch, static_cast<size_t>(countB()) * sizeof(float));
    if (whole.widens)
      return;
    wideBias = Buffer(scratch, whole.has_bias ? static_cast<size_t>(whole.n) * sizeof(float) : 0);
    wideC = Buffer(scratch, static_cast<size_t>(countC()) * sizeof(float));
  }

  void run(const void *a, const void *b, const void *bias, void *c) {
    if (call)
      return call->run(static_cast<const uint16_t *>(a) + beginA(), static_cast<const uint16_t *>(b) + beginB(), bias,
                       static_cast<char *>(c) + beginC() * (whole.widens ? 4 : 2));
    widen(a, beginA(), whole.transpose_a && whole.batch == 1 ? countA() : beginA() + sizeA(), wideA);
    widen(b, beginB(),
          beginB() +
              (whole.batch > 1 && whole.batch_stride_b ? parts.size() * whole.batch_stride_b : whole.k * whole.n),
          wideB);
    if (whole.widens)
      return wide->run<float>(wideA.data(), wideB.data(), bias, c);
    if (whole.has_bias)
      widen(bias, 0, whole.n, wideBias);
    if (whole.accumulate)
      widen(c, beginC(), beginC() + desc.batch * desc.m * desc.n, wideC);
    wide->run<float>(wideA.data(), wideB.data(), wideBias.data(), wideC.data());
    toHalf(half(), wideC.as<float>() + beginC(), static_cast<uint16_t *>(c) + beginC(), desc.batch * desc.m * desc.n);
  }

private:
  drt_dtype half() const { return static_cast<drt_dtype>(whole.dtype); }

  void widen(const void *from, int64_t begin, int64_t end, const Buffer &to) const {
    fromHalf(half(), static_cast<const uint16_t *>(from) + begin, to.as<float>() + begin, end - begin);
  }

  // In elements of the whole's operands: all, and where the parts begin.
  int64_t countA() const { return (whole.batch - 1) * whole.batch_stride_a + whole.m * whole.k; }
  int64_t countB() const { return (whole.batch - 1) * whole.batch_stride_b + whole.k * whole.n; }
  int64_t countC() const { return whole.batch * whole.m * whole.n; }
  int64_t beginA() const {
    return parts.begin * (whole.batch > 1 ? whole.batch_stride_a : whole.transpose_a ? 1 : whole.k);
  }
  int64_t beginB() const { return whole.batch > 1 ? parts.begin * whole.batch_stride_b : 0; }
  int64_t beginC() const { return parts.begin * (whole.batch > 1 ? whole.m * whole.n : whole.n); }
  int64_t sizeA() const {
    return whole.batch > 1 ? (desc.batch - 1) * whole.batch_stride_a + whole.m * whole.k : desc.m * whole.k;
  }

  drt_matmul_desc whole, desc; // what is computed of it
  Range parts;
  std::unique_ptr<LibraryMatmul> call;
  std::unique_ptr<MatmulSite> wide;
  Buffer wideA, wideB, wideBias, wideC;
};
} // namespace

MatmulParts drt::matmulParts(const drt_matmul_desc &given) {
  const drt_matmul_desc desc = normalized(given);
  if (desc.batch > 1)
    return {desc.batch, grainOf(desc.m * desc.n * desc.k)};
  // The library's primitive takes a left operand that lies dense.
  if (desc.transpose_a && (isHalf(desc.dtype) || chooseMethod(desc, desc) == Method::Primitive))
    return {desc.m, desc.m};
  return {desc.m, grainOf(desc.n * desc.k)};
}

void drt::matmul(PrimitiveCache &cache, int32_t site, const drt_matmul_desc &desc, Range parts, const void *a,
                 const void *b, const void *bias, void *c, const void *packed) {
  if (useLibraryThreads)
    useLibraryThreads(cache.threads());
  if (isHalf(desc.dtype))
    return cache
        .get<NarrowMatmulSite>(
            site, [&] { return std::make_unique<NarrowMatmulSite>(desc, parts, cache.scratchOfNewSite()); })
        .run(a, b, bias, c);
  auto &prepared =
      cache.get<MatmulSite>(site, [&] { return std::make_unique<MatmulSite>(desc, parts, cache.scratchOfNewSite()); });
  switch (desc.dtype) {
  case DRT_F32:
    return prepared.run<float>(a, b, bias, c, packed);
  case DRT_F64:
    return prepared.run<double>(a, b, bias, c);
  case DRT_I32:
    return prepared.run<int32_t>(a, b, bias, c);
  case DRT_I64:
    return prepared.run<int64_t>(a, b, bias, c);
  default:
    throw std::runtime_error("there is no matmul for data type " + std::to_string(desc.dtype) +
                             ": cast the operands to float32, float16, bfloat16, float64, int32 or int64");
  }
}
