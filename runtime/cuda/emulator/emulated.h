//===- emulated.h - What kernels compiled for the host ask the emulator -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// With --target=cuda:emulated the kernels are compiled for the host, into a
// shared object (drt_image.arch "host"). The executable defines the functions
// below and exports them; the shared object is opened by the emulated driver.
//
// A kernel's symbol is `void NAME(void **params)`, params as of cuLaunchKernel:
// params[i] points to argument i; `const int32_t NAME_parameters` says how many
// there are. One call is one thread of the grid; the
// emulator calls it for every thread. What is shared memory on a GPU are global
// variables of the shared object, so one block runs at a time.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_EMULATED_H
#define DRT_CUDA_EMULATOR_EMULATED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The calling thread's registers, by the numbers that drt_emulated_register takes.
enum {
  DRT_EMULATED_TID = 0,    // x, y, z: in the block
  DRT_EMULATED_NTID = 3,   // x, y, z: threads of a block
  DRT_EMULATED_CTAID = 6,  // x, y, z: of the block in the grid
  DRT_EMULATED_NCTAID = 9, // x, y, z: blocks of the grid
  DRT_EMULATED_LANEID = 12 // in the warp: tid.x + ntid.x * (tid.y + ntid.y * tid.z), modulo 32
};
uint32_t drt_emulated_register(int32_t which);

// Returns when every thread of the block has called it.
void drt_emulated_barrier(void);

// shfl.sync of PTX's ISA without its predicate: the `value` of another lane of the warp, or the own where there is no
// such lane. `lane` is PTX's b, `clamp` its c (bits 0-4: the clamp; 8-12: the segments' mask). Returns when the lanes
// of `mask` have called it.
enum { DRT_EMULATED_UP = 0, DRT_EMULATED_DOWN = 1, DRT_EMULATED_INDEX = 2, DRT_EMULATED_BUTTERFLY = 3 };
uint32_t drt_emulated_shuffle(int32_t mode, uint32_t mask, uint32_t value, uint32_t lane, uint32_t clamp);

// mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 of PTX's ISA: a lane's fragments of the left matrix (4 words, two
// bfloat16 each), of the right one (2 words) and of the sums (4 float32), to which the product is added. Returns when
// all lanes of the warp have called it.
void drt_emulated_multiply(const uint32_t *left, const uint32_t *right, float *sums);

// A thread accesses `size` bytes at `offset` of argument `argument`, which has `bytes`: the kernel fails when the block
// has ended. Gives memory for the access that no other one sees.
void *drt_emulated_beyond(int32_t argument, int64_t offset, int64_t size, int64_t bytes);

#ifdef __cplusplus
}
#endif
#endif // DRT_CUDA_EMULATOR_EMULATED_H
