//===- shapes.h - Sizes of the hand-written device program ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Its kernels read them, too, which have no standard library.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_CUDA_PROGRAM_SHAPES_H
#define DISTC_TEST_UNIT_CUDA_PROGRAM_SHAPES_H

namespace device_program {

inline constexpr long columns = 70, rows = 3; // of a replica

} // namespace device_program

#endif // DISTC_TEST_UNIT_CUDA_PROGRAM_SHAPES_H
