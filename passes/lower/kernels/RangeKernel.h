//===- RangeKernel.h - The kernel of an update on a range of elements -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_KERNELS_RANGEKERNEL_H
#define DISTC_PASSES_LOWER_KERNELS_RANGEKERNEL_H

#include "dialects/dfg/Dfg.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace distc::lower {

/// Builds the kernel that `drt.update` names (see its description for the signature). Operands of the update are
/// declared one after the other, then `build` makes the function.
class RangeKernel {
public:
  /// `fromBucket`: the gradient is given from element `begin` on.
  RangeKernel(dfg::UpdateInterface update, bool fromBucket) : update(update), fromBucket(fromBucket) {}

  void addVariable(unsigned operand, mlir::RankedTensorType type);
  void addConstant(unsigned operand, mlir::TypedAttr value) { constants[operand] = value; }
  void addArgument(unsigned operand, mlir::RankedTensorType type) { arguments.push_back({operand, type}); }

  /// Elements of the variable.
  int64_t getCount() const { return count; }

  /// Fails with a diagnostic where an operand has neither one element nor as many as the variable.
  llvm::FailureOr<drt::KernelOp> build(mlir::ModuleOp module, llvm::StringRef name);

private:
  using Parameter = std::pair<unsigned, mlir::RankedTensorType>;
  dfg::UpdateInterface update;
  bool fromBucket;
  int64_t count = 0;
  llvm::SmallVector<Parameter> variables, arguments;
  llvm::DenseMap<unsigned, mlir::TypedAttr> constants;
};

/// The loads of a range kernel's argument, each at the place of a loop of the kernel's own; fails where it is used in
/// another way.
llvm::FailureOr<llvm::SmallVector<mlir::memref::LoadOp>> getElementLoads(drt::KernelOp kernel, unsigned argument);

/// A copy of `kernel`, behind it, that is given the tensor of `argument` as its gradient, as from a bucket: as its
/// third argument, from element `begin` on. Null where the kernel reads other elements of it than those of its range.
drt::KernelOp takeGradient(drt::KernelOp kernel, unsigned argument, llvm::StringRef name);

/// Erases the range kernels that no operation of an entry names (`kernel`).
void eraseUnusedRangeKernels(mlir::ModuleOp module);

} // namespace distc::lower

#endif // DISTC_PASSES_LOWER_KERNELS_RANGEKERNEL_H
