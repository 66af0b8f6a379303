//===- Import.h - A training step in StableHLO as a graph ------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_STABLEHLO_IMPORT_H
#define DISTC_DIALECTS_DFG_STABLEHLO_IMPORT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace distc::stablehlo {

/// A tensor of a file: name, element type, shape, and elements row-major, booleans a byte each.
using TakeTensor = llvm::function_ref<void(llvm::StringRef name, mlir::Type element, llvm::ArrayRef<int64_t> shape,
                                           llvm::ArrayRef<char> bytes)>;
/// Gives all tensors of the file that the signature's "initial" names.
using ReadTensors = llvm::function_ref<llvm::Error(llvm::StringRef path, mlir::MLIRContext *context, TakeTensor take)>;

/// Whether the file holds StableHLO, as text or as its portable bytecode.
bool isStableHlo(llvm::StringRef path);

/// The graph of the step in `path`, whose signature lies beside it (Signature.h). State are variables, which an
/// operation `init` gives their initial values where there is a `read`er of them, and an operation `train` what the
/// step computes for them. Null after a diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> importStep(llvm::StringRef path, mlir::MLIRContext *context,
                                             ReadTensors read = nullptr);

} // namespace distc::stablehlo

#endif // DISTC_DIALECTS_DFG_STABLEHLO_IMPORT_H
