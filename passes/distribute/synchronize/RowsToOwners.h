//===- RowsToOwners.h - Rows of gradients that owners alone need -----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_ROWSTOOWNERS_H
#define DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_ROWSTOOWNERS_H

#include "dialects/dist/Dist.h"

namespace distc {

/// Behind updates that workers own: a dist.all_gather_slices whose rows nothing but these updates sees, each row by
/// itself or with those of its index, gets `shards`. What else sees them leaves it as it is.
void sendRowsToOwners(dfg::GraphOp graph);

} // namespace distc

#endif // DISTC_PASSES_DISTRIBUTE_SYNCHRONIZE_ROWSTOOWNERS_H
