//===- testing.h - What tests make the emulated machine do ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The environment says the same to an executable:
//   DRT_EMULATED_DEVICES=N   devices of the machine; 8 unless said
//   DRT_EMULATED_SEED=N      of the order in which works run; 1 unless said
//   DRT_EMULATED_FAIL=F:C:N  the N-th call (0 is the first) of function F returns the number C, once:
//   "cuLaunchKernel:719:5"
//   DRT_EMULATED_COUNTS=FILE how often each function was called, a line each, is added to the file at the end
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_TESTING_H
#define DRT_CUDA_EMULATOR_TESTING_H

#include <cuda.h>
#include <nccl.h>

#include <cstdint>
#include <string>

namespace drt::cuda::emulated {

void seed(uint64_t value);

/// Devices of the machine. Before any context is made.
void setDevices(int count);

/// The call after the next `after` ones of `function` ("cuMemAlloc", "cudnnPoolingForward", "ncclAllReduce") returns
/// `status` and does nothing.
void failCall(const std::string &function, int status, int after = 0);

/// The kernel fails while it runs, with `status`, at its next launch: its device is lost.
void failKernel(const std::string &kernel, CUresult status);

/// From now on the communicator's ncclCommGetAsyncError says `status`, and its collectives do not end.
void failCommunicator(ncclComm_t communicator, ncclResult_t status);

/// A device that has failed is as new. For the test after.
void forgiveFailures();

/// What the last failure with this code was: empty unless there was one.
std::string messageOf(CUresult code);

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_TESTING_H
