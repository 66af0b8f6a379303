//===- UpdateRule.h - What an update does to one element -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_GPU_UPDATERULE_H
#define DISTC_PASSES_LOWER_GPU_UPDATERULE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OwningOpRef.h"

namespace distc {

/// The body of a range kernel (see drt.update), without its loop. Its operands are an element of each buffer of the
/// kernel, in their order: gradient, variables, arguments.
class UpdateRule {
public:
  /// `variables`: buffers that are written, the first ones behind the gradient. Fails with a diagnostic where an
  /// element depends on more than the elements at its place.
  static llvm::FailureOr<UpdateRule> get(drt::KernelOp rangeKernel, bool hasGradient, size_t variables);

  /// Of each operand.
  llvm::ArrayRef<mlir::Type> getTypes() const;
  /// Equal rules have equal texts, whatever the sizes of their variables.
  llvm::StringRef getText() const { return text; }
  /// The new elements of the variables.
  llvm::SmallVector<mlir::Value> write(mlir::ImplicitLocOpBuilder &builder, mlir::ValueRange elements) const;

private:
  mlir::OwningOpRef<mlir::func::FuncOp> function;
  std::string text;
};

} // namespace distc

#endif // DISTC_PASSES_LOWER_GPU_UPDATERULE_H
