//===- Servers.h - What replicas and servers give each other -------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DRT_SERVERS_H
#define DISTC_DIALECTS_DRT_SERVERS_H

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#define GET_OP_CLASSES
#include "dialects/drt/ServerOps.h.inc"

namespace distc::drt {

/// Whether each replica runs `entry` at its own pace, or one alone runs it: it pushes, or takes.
bool isServed(EntryOp entry);

} // namespace distc::drt

#endif // DISTC_DIALECTS_DRT_SERVERS_H
