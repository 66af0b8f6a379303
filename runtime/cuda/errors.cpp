//===- errors.cpp - What CUDA's libraries say went wrong ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/errors.h"
#include "core/error.h"

namespace drt::cuda {
namespace {

[[noreturn]] void fail(const char *function, const std::string &words) {
  throw Error(std::string(function) + ": " + words);
}

} // namespace

void fail(CUresult status, const char *function) {
  const char *words = nullptr, *name = nullptr;
  driver().cuGetErrorString(status, &words);
  driver().cuGetErrorName(status, &name);
  const std::string number = "error " + std::to_string(static_cast<int>(status));
  fail(function, std::string(words ? words : "unknown to the driver") + " (" + (name ? name : number.c_str()) + ")");
}

void fail(cublasStatus_t status, const char *function) { fail(function, cublasLt().cublasLtGetStatusString(status)); }

void fail(cudnnStatus_t status, const char *function) { fail(function, cudnn().cudnnGetErrorString(status)); }

void fail(ncclResult_t status, const char *function) {
  const char *last = nccl().ncclGetLastError(nullptr);
  const std::string words = nccl().ncclGetErrorString(status);
  fail(function, last && *last ? words + " (" + last + ")" : words);
}

} // namespace drt::cuda
