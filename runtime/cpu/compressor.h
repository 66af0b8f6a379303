//===- compressor.h - Gradients made small for their way ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
//   half    every element as float16 or bfloat16, to nearest, ties to even; beyond
//           float16's largest number it is that number. The result that replicas
//           receive is a half, too: the sum or mean, taken in float32, rounded once more.
//   top-k   of each gradient the k elements that are largest by magnitude (of equal
//           ones those with smaller indices), the others are zero (Aji and Heafield
//           2017; Lin et al. 2018). drt_member::kept says k.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_COMPRESSOR_H
#define DRT_CPU_COMPRESSOR_H

#include "drt/drt.h"

#include <cstdint>
#include <memory>

namespace drt {

/// Compresses float32 contributions to one bucket. encode() may run for several replicas at once.
class Compressor {
public:
  /// Null for DRT_COMPRESS_NONE and for PowerSGD. `bucket` outlives it.
  static std::unique_ptr<Compressor> make(const drt_bucket &bucket, int32_t localReplicas);
  virtual ~Compressor() = default;

  /// Adds what earlier steps left over to the contribution, keeps what is left over
  /// now, and leaves in the contribution what the others see. `wire`: takes wireBytes() bytes for
  /// other tasks; null where there are none.
  virtual void encode(int32_t localReplica, float *contribution, char *wire) = 0;

  virtual int64_t wireBytes() const = 0;

  /// sum[i] += what was encoded, for every element of the bucket's members.
  virtual void addTo(const char *wire, float *sum) const = 0;

  /// Rounds elements of a result to what replicas receive.
  virtual void roundResult(float *, int64_t) const {}
};

/// out[i] = in[i] as DRT_F16 or DRT_BF16; and back.
void toHalf(drt_dtype half, const float *in, uint16_t *out, int64_t count);
void fromHalf(drt_dtype half, const uint16_t *in, float *out, int64_t count);

/// DRT_F16 or DRT_BF16 of a compressor that casts, 0 of another.
int32_t halfOf(int32_t compressor);

} // namespace drt

#endif // DRT_CPU_COMPRESSOR_H
