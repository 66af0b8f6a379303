//===- Signature.h - What the arguments and results of a training step are -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A JSON file beside the module (step.mlir, step.json):
//
//   {"version": 1,
//    "arguments": [{"name": "params/w", "role": "state", "result": 0},
//                  {"name": "x", "role": "batch"},
//                  {"name": "rate", "role": "feed"}],
//    "loss": 1,
//    "fetches": [{"name": "accuracy", "result": 2}],
//    "initial": "step.npz"}
//
// An argument a leaf of the function's, in order. `state` lives on from step to step: `result` replaces it, and
// without one nothing does. Of `batch` each replica takes its rows, `feed` goes whole to all. `initial` has the
// state's values, by name.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_STABLEHLO_SIGNATURE_H
#define DISTC_DIALECTS_DFG_STABLEHLO_SIGNATURE_H

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include <optional>
#include <string>
#include <vector>

namespace distc::stablehlo {

struct Signature {
  enum class Role { State, Batch, Feed };
  struct Argument {
    std::string name;
    Role role;
    /// The number of the result that replaces a state.
    std::optional<int64_t> result;
  };
  struct Fetch {
    std::string name;
    int64_t result;
  };
  std::vector<Argument> arguments;
  std::vector<Fetch> fetches;
  int64_t loss = 0;
  /// How many examples the batch must have for the step to be what it says.
  int64_t smallestBatch = 1;
  /// What each replica's number of examples is a multiple of.
  int64_t batchMultiple = 1;
  /// A path relative to the signature's folder; empty where there is none.
  std::string initial;

  /// What is wrong names the entry.
  static llvm::Expected<Signature> parse(llvm::MemoryBufferRef json);
};

} // namespace distc::stablehlo

#endif // DISTC_DIALECTS_DFG_STABLEHLO_SIGNATURE_H
