//===- driver.h - The emulated libcuda ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// CUDA's functions, as api/functions.h lists them, in this namespace: the types are those of cuda.h.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_DRIVER_H
#define DRT_CUDA_EMULATOR_DRIVER_H

#include "cuda/api/functions.h"

#include <cuda.h>

#include <type_traits>

namespace drt::cuda::emulated {

#define DRT_EMULATED_DECLARATION(function) std::remove_pointer_t<decltype(&::function)> function;
DRT_DRIVER_FUNCTIONS(DRT_EMULATED_DECLARATION)
#undef DRT_EMULATED_DECLARATION

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_DRIVER_H
