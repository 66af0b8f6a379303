//===- Drt.h - The runtime's dialect -------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DRT_DRT_H
#define DISTC_DIALECTS_DRT_DRT_H

#include "dialects/drt/Access.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <algorithm>

namespace distc::drt {

/// Whether the places in the arena that `op` says (`at`) are those of its results.
llvm::LogicalResult verifyPlaces(mlir::Operation *op);

/// Results are written to the arena, at places that drt-plan-memory chooses.
template <typename Op> struct Placed : mlir::OpTrait::TraitBase<Op, Placed> {
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) { return verifyPlaces(op); }
};

/// A convolution or one of its gradients, with the descriptor of the C API.
template <typename Op> struct Convolves : mlir::OpTrait::TraitBase<Op, Convolves> {};
/// Starts, or waits for, what other replicas or the runtime do: it computes nothing.
template <typename Op> struct Synchronizes : mlir::OpTrait::TraitBase<Op, Synchronizes> {};

/// A text that is a parameter of a template.
template <size_t size> struct FixedText {
  consteval FixedText(const char (&chars)[size]) {
    std::copy_n(chars, size, text);
  } // NOLINT(google-explicit-constructor)
  char text[size];
};
/// The category of a ScopeInterface.
template <FixedText category> struct InScope {
  template <typename Op> struct Impl : mlir::OpTrait::TraitBase<Op, Impl> {
    static llvm::StringRef getScopeCategory() { return category.text; }
  };
};

} // namespace distc::drt

#include "dialects/drt/DrtDialect.h.inc"
#include "dialects/drt/DrtInterfaces.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/drt/DrtAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/drt/DrtOps.h.inc"

namespace distc::drt {

/// On the LLVM function that a divided kernel becomes: its `divided`.
inline constexpr llvm::StringLiteral kDividedAttr = "drt.divided";

/// The `gpu.module` with a program's kernels, and on each of them x, y and z of grid and block (array<i64>).
inline constexpr llvm::StringLiteral kKernelModule = "kernels";
inline constexpr llvm::StringLiteral kGridAttr = "drt.grid", kBlockAttr = "drt.block";
/// Words of a random operation's state in device memory (drt_random_state): counter (4), key (2), the replica's number.
inline constexpr int64_t kRandomStateWords = 7;
/// On a linalg operation: the number of the group of operations over the same rows that it is in; a group becomes one
/// kernel.
inline constexpr llvm::StringLiteral kRowsAttr = "drt.rows";
/// On a kernel of a GPU: the schedule that made it, for people to read.
inline constexpr llvm::StringLiteral kScheduleAttr = "drt.schedule";

/// Whether the result is the operand's memory, with another shape.
bool isView(mlir::Operation *op);

/// DRT_FILTER_* of a convolution, or of a gradient of one; none where its `filter_layout` is unknown.
std::optional<int32_t> getFilterLayout(mlir::Operation *op);

/// The module's program, null before `drt-describe-program`.
ProgramOp findProgram(mlir::ModuleOp module);
/// Cores that compute a replica's step; 1 where no program says it.
int64_t getCores(mlir::ModuleOp module);
/// The module's program; without one it fails with a diagnostic at `user` that says which pass makes it.
llvm::FailureOr<ProgramOp> getProgram(mlir::Operation *user);
/// The same of a program whose memory is planned: `arena_bytes` is there.
llvm::FailureOr<ProgramOp> getPlannedProgram(mlir::Operation *user);

} // namespace distc::drt

#endif // DISTC_DIALECTS_DRT_DRT_H
