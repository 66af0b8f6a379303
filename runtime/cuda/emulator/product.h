//===- product.h - Matrix products as cuBLASLt defines them ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_PRODUCT_H
#define DRT_CUDA_EMULATOR_PRODUCT_H

#include "cuda/emulator/elements.h"

#include <cublasLt.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
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
  const void *sums; // where those of op(a)'s rows go, of the result's type; null: nowhere
  int64_t biasBatchStride, inner;
  bool relu, tf32;
  T alpha, beta;

  void run(const Memory &memory, int device) const {
    auto data = [&](const Operand &operand) {
      return Elements(memory, device, operand.address, operand.layout.extent(), dtypeOf(operand.layout.type));
    };
    std::optional<Elements> biases, added;
    if (bias) // of the result's type
      biases.emplace(memory, device, bias,
                     static_cast<size_t>((d.layout.batch - 1) * biasBatchStride) + static_cast<size_t>(d.layout.rows),
                     dtypeOf(d.layout.type));
    if (beta != T(0))
      added = data(c);
    Elements left = data(a), right = data(b), result = data(d);
    if (sums)
      sumRows(left, Elements(memory, device, sums, static_cast<size_t>(d.layout.rows), dtypeOf(d.layout.type)));
    for (int64_t item = 0; item < d.layout.batch; ++item)
      runItem(item, left, right, added, biases, result);
  }

private:
  void sumRows(const Elements &left, Elements to) const {
    const auto rows = static_cast<int64_t>(d.layout.rows);
    const std::vector<double> rowsOfA = packed(a, 0, left, rows);
    for (int64_t i = 0; i < rows; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += rowsOfA[static_cast<size_t>(i * inner + k)];
      to.set(static_cast<size_t>(i), sum);
    }
  }

  void runItem(int64_t item, const Elements &left, const Elements &right, const std::optional<Elements> &added,
               const std::optional<Elements> &biases, Elements &result) const {
    auto rows = static_cast<int64_t>(d.layout.rows), columns = static_cast<int64_t>(d.layout.columns);
    // Both with the inner dimension contiguous. float64 sums: no order of summation is the library's.
    std::vector<double> rowsOfA = packed(a, item, left, rows), columnsOfB = packed(b, item, right, columns);
    for (int64_t j = 0; j < columns; ++j)
      for (int64_t i = 0; i < rows; ++i) {
        const double *x = &rowsOfA[static_cast<size_t>(i * inner)], *y = &columnsOfB[static_cast<size_t>(j * inner)];
        double sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += x[k] * y[k];
        T value = alpha * static_cast<T>(sum);
        if (added)
          value += beta * static_cast<T>(
                              (*added)[static_cast<size_t>(item * c.layout.batchStride + j * c.layout.leading + i)]);
        if (biases)
          value += static_cast<T>((*biases)[static_cast<size_t>(item * biasBatchStride + i)]);
        result.set(static_cast<size_t>(item * d.layout.batchStride + j * d.layout.leading + i),
                   relu && !(value > T(0)) ? T(0) : value);
      }
  }

  // op(a)'s rows or op(b)'s columns.
  std::vector<double> packed(const Operand &operand, int64_t item, const Elements &from, int64_t count) const {
    const int64_t begin = item * operand.layout.batchStride;
    bool contiguous = (&operand == &a) == operand.transposed;
    std::vector<double> to(static_cast<size_t>(count * inner));
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < inner; ++k) {
        const int64_t at = contiguous ? i * operand.layout.leading + k : k * operand.layout.leading + i;
        const T value = static_cast<T>(from[static_cast<size_t>(begin + at)]);
        to[static_cast<size_t>(i * inner + k)] = tf32 ? roundToTf32(value) : value;
      }
    return to;
  }
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_PRODUCT_H
