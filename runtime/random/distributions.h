//===- distributions.h - Tensors of TensorFlow's random numbers -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The numbers of TensorFlow's CPU kernels (core/kernels/random_op_cpu.h). There
// each group of outputs has its own place in the generator's stream: one
// position a group, and 64 positions an output for the truncated normal, whose
// samples are drawn until they fit.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_RANDOM_DISTRIBUTIONS_H
#define DRT_RANDOM_DISTRIBUTIONS_H

#include "drt/drt.h"
#include "random/philox.h"

namespace drt {

/// Positions by which a run of a stateful operation moves its generator on: 256 an
/// output, whatever it uses, as GuardedPhiloxRandom::ReserveRandomOutputs has it, where
/// the descriptor has no number of its own.
inline uint64_t reservedPositions(const drt_random_desc &desc, int32_t replicas) {
  if (desc.whole && desc.first + desc.count < desc.whole)
    return 0;
  const int64_t own = desc.reserved ? desc.reserved : (desc.whole ? desc.whole : desc.count) * 256;
  return static_cast<uint64_t>(own) * (desc.per_replica ? replicas : 1);
}

/// The generator of a stateless operation, version 1 (GenerateKey): `seed` points
/// to two numbers, which are scrambled, so that neither need be a good key.
Philox statelessGenerator(const int64_t *seed);

/// Writes desc.count elements of desc.dtype to `out`, of the tensor's elements those from number `first` on. minval and
/// maxval point to one element each for DRT_RANDOM_UNIFORM_INT and are not read otherwise. Throws std::runtime_error
/// for an empty range and for a type the distribution lacks.
void fillRandom(Philox generator, const drt_random_desc &desc, int64_t first, const void *minval, const void *maxval,
                void *out);

} // namespace drt

#endif // DRT_RANDOM_DISTRIBUTIONS_H
