//===- product.h - Matrix products as cuBLASLt defines them ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_PRODUCT_H
#define DRT_CUDA_EMULATOR_PRODUCT_H

#include "cuda/emulator/memory.h"

#include <cublasLt.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace drt::cuda::emulated {

/// Column-major: element (i, j) of item b lies at b * batchStride + j * leading + i.
struct MatrixLayout {
  cudaDataType_t type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t batchStride = 0;

  /// Elements from the first to the last one, of all items.
  size_t extent() const {
    return static_cast<size_t>((batch - 1) * batchStride + (static_cast<int64_t>(columns) - 1) * leading) + rows;
  }
};

/// What tensor cores read of a float32 where TF32 is allowed: 10 bits of its mantissa, rounded.
inline float roundToTf32(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  if (std::isfinite(x))
    bits = (bits + 0x1000u) & ~0x1fffu;
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}
inline double roundToTf32(double x) { return x; }

/// d = epilogue(alpha * op(a) * op(b) + beta * c + bias). The bias has an element a row of d.
template <class T> struct Product {
  struct Operand {
    const void *address;
    MatrixLayout layout;
    bool transposed;
  };
  Operand a, b, c, d;
  const void *bias; // null: none
  int64_t biasBatchStride, inner;
  bool relu, tf32;
  T alpha, beta;

  void run(const Memory &memory, int device) const {
    auto data = [&](const Operand &operand) {
      return memory.resolve<T>(device, operand.address, operand.layout.extent());
    };
    const T *biases = bias ? memory.resolve<T>(device, bias,
                                               static_cast<size_t>((d.layout.batch - 1) * biasBatchStride) +
                                                   static_cast<size_t>(d.layout.rows))
                           : nullptr;
    T *result = data(d);
    const T *left = data(a), *right = data(b), *added = beta != T(0) ? data(c) : nullptr;
    for (int64_t item = 0; item < d.layout.batch; ++item)
      runItem(left + item * a.layout.batchStride, right + item * b.layout.batchStride,
              added ? added + item * c.layout.batchStride : nullptr, biases ? biases + item * biasBatchStride : nullptr,
              result + item * d.layout.batchStride);
  }

private:
  void runItem(const T *left, const T *right, const T *added, const T *biases, T *result) const {
    auto rows = static_cast<int64_t>(d.layout.rows), columns = static_cast<int64_t>(d.layout.columns);
    // Both with the inner dimension contiguous. float64 sums: no order of summation is the library's.
    std::vector<double> rowsOfA = packed(a, left, rows), columnsOfB = packed(b, right, columns);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) {
        const double *x = &rowsOfA[static_cast<size_t>(i * inner)], *y = &columnsOfB[static_cast<size_t>(j * inner)];
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += x[k] * y[k];
        T value = alpha * static_cast<T>(sum);
        if (added)
          value += beta * added[j * c.layout.leading + i];
        if (biases)
          value += biases[i];
        result[j * d.layout.leading + i] = relu && !(value > T(0)) ? T(0) : value;
      }
  }

  // op(a)'s rows or op(b)'s columns.
  std::vector<double> packed(const Operand &operand, const T *from, int64_t count) const {
    bool contiguous = (&operand == &a) == operand.transposed;
    std::vector<double> to(static_cast<size_t>(count * inner));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < inner; ++k) {
        T value = contiguous ? from[i * operand.layout.leading + k] : from[k * operand.layout.leading + i];
        to[static_cast<size_t>(i * inner + k)] = tf32 ? roundToTf32(value) : value;
      }
    return to;
  }
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_PRODUCT_H
