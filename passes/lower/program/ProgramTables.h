//===- ProgramTables.h - What a program says of itself ----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The tables of drt.h's drt_program, as constants.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PROGRAM_PROGRAMTABLES_H
#define DISTC_PASSES_LOWER_PROGRAM_PROGRAMTABLES_H

#include "dialects/drt/Drt.h"
#include "dialects/drt/Servers.h"
#include "passes/lower/program/RuntimeStructs.h"

namespace distc {

/// TensorFlow's number of an element type (drt_dtype), 0 where the runtime has none.
int32_t getDtype(mlir::Type element);

/// The rows that converting an entry gives.
struct EntryTables {
  std::string name, function;
  llvm::SmallVector<mlir::Attribute> feeds, fetches, scopes, buckets;
};

/// How many of each the call sites number, over all entries; how many batches an update takes; and what replicas get
/// from servers that serve on their own, and give them.
struct CallSites {
  int32_t primitives = 0, randomStates = 0, accumulators = 0, accumulateSteps = 1;
  llvm::SmallVector<int64_t> pulled; // indices of variables
  llvm::SmallVector<mlir::Attribute> pulledRows;
  drt::PushOp push; // null: there are no such servers
};

/// A drt_type. Fails with a diagnostic at `loc` where the runtime has no such type.
llvm::FailureOr<mlir::Attribute> describeType(ConstantTables &tables, mlir::Location loc, mlir::Type tensor);

/// Writes `drt_the_program` and its tables: the variables from the module's `drt.variable`s, the tasks and names from
/// its `drt.program`.
llvm::LogicalResult writeProgram(mlir::ModuleOp module, drt::ProgramOp program, ConstantTables &tables,
                                 llvm::ArrayRef<EntryTables> entries, const CallSites &sites, llvm::StringRef plan);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PROGRAM_PROGRAMTABLES_H
