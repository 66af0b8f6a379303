//===- OpSignatures.h - TensorFlow's definitions of its operations --------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// OpSignatures.inc holds what TensorFlow's registry says of every operation, one a line:
//
//   NAME input... -> output... ; attribute...
//
//   NAME            followed by ! where the operation is stateful: it does more than compute its outputs
//   input, output   name:KIND      float32 (a type), $T (what attribute T says), *T (a list of types),
//                                  N*KIND (as many as attribute N says), &KIND (a reference)
//   attribute       name:KIND      string, int, float, bool, type, shape, tensor, func, list(...);
//                                  then >=MINIMUM (of a list: its length), {ALLOWED,...}, =DEFAULT
//                                  (written out where types and counts depend on it)
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_OPSIGNATURES_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_OPSIGNATURES_H

#include "dialects/dfg/tensorflow/graph.pb.h"
#include "llvm/ADT/StringMap.h"
#include <memory>

namespace distc::tf {

/// Parses a line when it is first asked for. Not for several threads at once.
class OpSignatures {
public:
  OpSignatures();

  /// Null where TensorFlow has no such operation.
  const OpDef *find(llvm::StringRef op) const;
  /// The version of the graphs that the TensorFlow the table is made from writes (VersionDef.producer).
  int getProducer() const { return producer; }

private:
  struct Entry {
    llvm::StringRef line;
    std::unique_ptr<OpDef> def;
  };
  int producer = 0;
  mutable llvm::StringMap<Entry> entries;
};

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_OPSIGNATURES_H
