//===- host_kernels.h - Kernels of a grid's threads, run on the host ------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_PASSES_LOWER_HOST_KERNELS_H
#define DISTC_TEST_UNIT_PASSES_LOWER_HOST_KERNELS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <string>
#include <vector>

namespace distc::test {

/// A context with all of MLIR's and distc's dialects.
std::unique_ptr<mlir::MLIRContext> createContext();
/// The text must be right.
mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context, const std::string &text);

/// A shared object, from its bytes; closed in the end.
class Library {
public:
  explicit Library(llvm::StringRef data);
  ~Library();
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;
  void *find(const std::string &symbol) const;

private:
  void *handle = nullptr;
};

/// `gpu.module @kernels` of a module as code of the host. One thread of the grid runs behind the other, so there is
/// nothing to wait for: a shuffle gives the lane that it names for its value.
class HostKernels {
public:
  /// Lowers a copy of the module's kernels.
  explicit HostKernels(mlir::ModuleOp module);
  ~HostKernels();

  /// Runs kernel `name` over its grid.
  void run(const std::string &name, std::vector<void *> arguments) const;

private:
  struct Launch {
    std::string name;
    int64_t blocks, threads;
  };
  std::vector<Launch> launches;
  std::unique_ptr<Library> library;
};

} // namespace distc::test

#endif // DISTC_TEST_UNIT_PASSES_LOWER_HOST_KERNELS_H
