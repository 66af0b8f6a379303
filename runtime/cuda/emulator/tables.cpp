//===- tables.cpp - libcuda, as the runtime finds it ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/api/tables.h"

#include "cuda/emulator/driver.h"
#include "cuda/emulator/table.h"
#include "cuda/emulator/testing.h"

#include <map>

using namespace drt::cuda;

namespace {
struct Words {
  const char *name, *text;
};

const Words *wordsOf(CUresult code) {
  static const std::map<CUresult, Words> words = {
#define DRT_WORDS(code, text) {code, {#code, text}},
      DRT_WORDS(CUDA_SUCCESS, "no error") DRT_WORDS(CUDA_ERROR_INVALID_VALUE, "invalid argument") DRT_WORDS(
          CUDA_ERROR_OUT_OF_MEMORY, "out of memory") DRT_WORDS(CUDA_ERROR_NOT_INITIALIZED, "initialization error")
          DRT_WORDS(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected") DRT_WORDS(
              CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal") DRT_WORDS(CUDA_ERROR_INVALID_IMAGE,
                                                                             "device kernel image is invalid")
              DRT_WORDS(CUDA_ERROR_INVALID_CONTEXT, "invalid device context") DRT_WORDS(
                  CUDA_ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device")
                  DRT_WORDS(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle") DRT_WORDS(
                      CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state")
                      DRT_WORDS(CUDA_ERROR_NOT_FOUND, "named symbol not found") DRT_WORDS(
                          CUDA_ERROR_NOT_READY,
                          "device not ready") DRT_WORDS(CUDA_ERROR_ILLEGAL_ADDRESS,
                                                        "an illegal memory access was encountered")
                          DRT_WORDS(CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed") DRT_WORDS(
                              CUDA_ERROR_MISALIGNED_ADDRESS,
                              "misaligned address") DRT_WORDS(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure")
                              DRT_WORDS(CUDA_ERROR_NOT_SUPPORTED, "operation not supported") DRT_WORDS(
                                  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                                  "operation not permitted when stream is capturing")
                                  DRT_WORDS(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
                                            "operation failed due to a previous error during capture")
                                      DRT_WORDS(CUDA_ERROR_STREAM_CAPTURE_MERGE,
                                                "operation would result in a merge of separate capture sequences")
                                          DRT_WORDS(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED,
                                                    "capture was not ended in the same stream as it began")
                                              DRT_WORDS(CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
                                                        "capturing stream has unjoined work")
                                                  DRT_WORDS(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
                                                            "dependency created on uncaptured work in another stream")
                                                      DRT_WORDS(
                                                          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
                                                          "attempt to terminate a thread-local capture sequence from "
                                                          "another thread")
                                                          DRT_WORDS(CUDA_ERROR_CAPTURED_EVENT,
                                                                    "operation not permitted on an event last recorded "
                                                                    "in a capturing stream")
                                                              DRT_WORDS(CUDA_ERROR_UNKNOWN, "unknown error")
#undef DRT_WORDS
  };
  auto found = words.find(code);
  return found == words.end() ? nullptr : &found->second;
}
} // namespace

CUresult emulated::cuGetErrorName(CUresult code, const char **name) {
  const Words *words = wordsOf(code);
  *name = words ? words->name : nullptr;
  return words ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// With what the emulator knows beyond it.
CUresult emulated::cuGetErrorString(CUresult code, const char **text) {
  const Words *words = wordsOf(code);
  *text = words ? words->text : nullptr;
  if (!words)
    return CUDA_ERROR_INVALID_VALUE;
  thread_local std::string all;
  std::string detail = messageOf(code);
  all = words->text + (detail.empty() ? "" : " (" + detail + ")");
  *text = all.c_str();
  return CUDA_SUCCESS;
}

const DriverTable &drt::cuda::driver() {
  static const DriverTable made = [] {
    using namespace emulated;
    DriverTable table;
    DRT_DRIVER_FUNCTIONS(DRT_EMULATED_ENTRY)
    return table;
  }();
  return made;
}

bool drt::cuda::isEmulated() { return true; }
