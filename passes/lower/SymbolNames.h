//===- SymbolNames.h - Names that are made in a module -------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_LOWER_SYMBOLNAMES_H
#define DISTC_PASSES_LOWER_SYMBOLNAMES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringSet.h"

namespace distc::lower {

/// Names for a module's new symbols. Its variables are symbols, too, and may be called as kernels are: Keras' second
/// `kernel` is `kernel_1`.
class SymbolNames {
public:
  explicit SymbolNames(mlir::ModuleOp module) {
    for (auto symbol : module.getOps<mlir::SymbolOpInterface>())
      taken.insert(symbol.getName());
  }

  /// `prefix` and the first number, from `number` on, that gives a new one; `number` is the next one then.
  std::string make(const llvm::Twine &prefix, unsigned &number) {
    std::string name;
    do
      name = (prefix + llvm::Twine(number++)).str();
    while (!taken.insert(name).second);
    return name;
  }

private:
  llvm::StringSet<> taken;
};

} // namespace distc::lower

#endif // DISTC_PASSES_LOWER_SYMBOLNAMES_H
