//===- Roofline.h - The time that a chip's figures allow a plan -----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_PLAN_ROOFLINE_H
#define DISTC_PASSES_LOWER_PLAN_ROOFLINE_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/lower/plan/Chips.h"
#include "passes/lower/plan/WorkEstimate.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/JSON.h"

#include <string>
#include <vector>

namespace distc {

/// A roofline (Williams, Waterman and Patterson, 2009) of each entry of a plan for devices: from the bytes that its
/// operations move and what they compute, the least time that a chip needs. docs/roofline.md says what is counted.
class Roofline {
public:
  enum class Limit { Memory, Arithmetic, Launch, Link };
  static llvm::StringRef getName(Limit limit);

  struct Row {
    mlir::Operation *op;
    std::string name, category;
    Work work;
    int64_t sent = 0;       // bytes that a collective sends
    double seconds[3] = {}; // by MatmulType
    Limit limit;            // with matmuls of the plan's own type

    /// How many times what it must a kernel moves.
    double getExcess() const { return work.least ? static_cast<double>(work.bytes) / work.least : 1; }
  };
  struct Entry {
    std::string name;
    std::vector<Row> rows; // in the order in which they are enqueued
    Work work;             // of all
    int64_t sent = 0;
    double seconds[3] = {}; // by MatmulType; collectives run beside kernels
    /// Kernels that move more than 1.3 times what they must, of more than 1 % of the entry's time: numbers of rows.
    std::vector<size_t> excessive;
  };

  /// The module is a whole plan for devices.
  Roofline(mlir::ModuleOp module, const Chip &chip);

  void print(llvm::raw_ostream &os) const;
  /// An object.
  void write(llvm::json::OStream &json) const;

private:
  void add(mlir::Operation *op, Entry &entry);
  double getSent(mlir::Operation *op) const;
  void time(Row &row) const;
  void schedule(Entry &entry) const;

  const Chip &chip;
  WorkEstimate estimate;
  mlir::SymbolTable symbols;
  int64_t replicas;
  MatmulType planned = MatmulType::F32; // what matmuls of the plan are made of
  std::vector<Entry> entries;
};

/// Rooflines of the plan, one a chip, as a JSON document or as text.
llvm::LogicalResult writeRooflines(mlir::ModuleOp module, llvm::ArrayRef<const Chip *> chips, bool json,
                                   llvm::raw_ostream &os);

} // namespace distc

#endif // DISTC_PASSES_LOWER_PLAN_ROOFLINE_H
