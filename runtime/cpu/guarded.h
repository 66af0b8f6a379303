//===- guarded.h - Calls from generated code ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_GUARDED_H
#define DRT_CPU_GUARDED_H

#include "cpu/replica.h"

#include <exception>

namespace drt {

/// Calls with the replica. No exception crosses the C interface.
template <class Call> void guarded(drt_replica *replica, Call call) {
  try {
    call(Replica::of(replica));
  } catch (const std::exception &error) {
    drt_fail(replica, error.what());
  }
}

} // namespace drt

#endif // DRT_CPU_GUARDED_H
