//===- Attributes.h - StableHLO's attributes, which no dialect here declares -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// MLIR hands on what a dialect that is not registered has written as its text. These
// read the few forms that StableHLO has.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_STABLEHLO_ATTRIBUTES_H
#define DISTC_DIALECTS_DFG_STABLEHLO_ATTRIBUTES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace distc::stablehlo {

using Ints = llvm::SmallVector<int64_t>;

/// `#stablehlo.gather<offset_dims = [0], index_vector_dim = 1>`: lists of numbers by name. A name that is not there is
/// an empty list.
class DimensionNumbers {
public:
  /// None where the attribute is not there or has another form.
  static std::optional<DimensionNumbers> get(mlir::Operation *op, llvm::StringRef attribute);

  const Ints &operator[](llvm::StringRef name) const;
  /// A number alone, 0 where it is left out.
  int64_t getNumber(llvm::StringRef name) const;

private:
  llvm::StringMap<Ints> fields;
};

/// `#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>`: where the axes of operands and result are.
struct ConvolutionNumbers {
  struct Axes {
    /// The batch and the features; of the kernel, its input and output features.
    int64_t first = -1, second = -1;
    Ints spatial;
  };
  Axes input, kernel, output;
  static std::optional<ConvolutionNumbers> get(mlir::Operation *op, llvm::StringRef attribute);
};

/// The last word of `#stablehlo<comparison_direction GE>`; "" where the attribute is not there.
llvm::StringRef getKeyword(mlir::Operation *op, llvm::StringRef attribute);

/// `array<i64: 1, 2>` or `dense<[1, 2]>`; empty where the attribute is not there.
Ints getInts(mlir::Operation *op, llvm::StringRef attribute);
int64_t getInt(mlir::Operation *op, llvm::StringRef attribute, int64_t otherwise = 0);
/// `array<i1: ...>` or `dense<true>`.
llvm::SmallVector<bool> getFlags(mlir::Operation *op, llvm::StringRef attribute);
bool getFlag(mlir::Operation *op, llvm::StringRef attribute);
llvm::StringRef getText(mlir::Operation *op, llvm::StringRef attribute);

} // namespace distc::stablehlo

#endif // DISTC_DIALECTS_DFG_STABLEHLO_ATTRIBUTES_H
