//===- library_matmul.h - oneDNN's matrix products, where they are linked -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Weak: a program whose products are small is linked without the library, and own
// loops do them all. One that has larger ones, or convolutions, is linked with
// --undefined=drt_use_onednn (passes/lower/program/LinkExecutable.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_KERNELS_LIBRARY_MATMUL_H
#define DRT_CPU_KERNELS_LIBRARY_MATMUL_H

#include "cpu/kernels/gemm.h"
#include "cpu/kernels/scratch.h"
#include "drt/drt.h"

#include <memory>

namespace drt {

/// A product that the library has prepared. Throws dnnl::error.
class LibraryMatmul {
public:
  virtual ~LibraryMatmul() = default;
  virtual void run(const void *a, const void *b, const void *bias, void *c) = 0;
};

/// Of DRT_F32 or DRT_BF16. Null where the library has no fast primitive on this machine.
__attribute__((weak)) std::unique_ptr<LibraryMatmul> makeLibraryMatmul(const drt_matmul_desc &desc, Scratch &scratch);

/// c = scale * op(a) * op(b) + keep * c, of `depth` of the shape's k.
__attribute__((weak)) void librarySgemm(const GemmShape &shape, int64_t depth, float scale, const float *a,
                                        const float *b, float keep, float *c);

/// How many threads the library may use for calls from this thread.
__attribute__((weak)) void useLibraryThreads(int threads);
/// What was said last on this thread; 0 before.
__attribute__((weak)) int usedLibraryThreads();

} // namespace drt

#endif // DRT_CPU_KERNELS_LIBRARY_MATMUL_H
