//===- attention.h - Attentions of a replica -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What drt_attention and drt_attention_gradient do, for a given cache of call sites: of
// some heads of all examples, in blocks of queries whose scores stay in the
// second-level cache. See drt.h for the meaning of the arguments. Both throw
// dnnl::error or std::runtime_error, and only at the first call of a site.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_ATTENTION_H
#define DRT_CPU_KERNELS_ATTENTION_H

#include "core/ranges.h"
#include "cpu/kernels/matmul.h"
#include "cpu/kernels/primitives.h"

namespace drt {

/// The parts are the heads of all examples.
MatmulParts attentionParts(const drt_attention_desc &desc);

struct AttentionInputs {
  const float *query, *key, *value, *bias; // bias: null where there is none
};
void attention(PrimitiveCache &cache, int32_t site, const drt_attention_desc &desc, Range heads,
               const AttentionInputs &inputs, float *output, float *statistics);

struct AttentionResults {
  const float *statistics, *outputGrad, *output;
};
struct AttentionGradients {
  float *query, *key, *value;
};
void attentionGradient(PrimitiveCache &cache, int32_t site, const drt_attention_desc &desc, Range heads,
                       const AttentionInputs &inputs, const AttentionResults &results,
                       const AttentionGradients &gradients);

} // namespace drt

#endif // DRT_CPU_KERNELS_ATTENTION_H
