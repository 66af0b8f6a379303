//===- replica.cpp - What library calls see of a replica on a device ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/replica.h"

namespace drt::cuda {

void Replica::keepFailure(const char *message) {
  failure = message;
  if (entry && scope >= 0 && scope < entry->num_scopes)
    failure = std::string(entry->scopes[scope].name) + ": " + failure;
}

} // namespace drt::cuda
