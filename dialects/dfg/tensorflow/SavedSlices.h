//===- SavedSlices.h - Variables that are slices of one tensor ------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A partitioner makes a table of several variables, "table/part_0", ..., and each entry of the collection of variables
// says which slice of "table" it is. Checkpoints have that.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_TENSORFLOW_SAVED_SLICES_H
#define DISTC_DIALECTS_DFG_TENSORFLOW_SAVED_SLICES_H

#include "dialects/dfg/Dfg.h"
#include <optional>

namespace distc::tf {

class SaveSliceInfoDef;

struct SavedSlice {
  std::string whole;                // the tensor's name in checkpoints; empty where only the text of a saver is known
  llvm::SmallVector<int64_t> shape; // of the whole
  llvm::SmallVector<int64_t> offsets, sizes; // of the slice

  /// The slice at `at` of this one, of the shape `extent`.
  SavedSlice getPart(llvm::ArrayRef<int64_t> at, llvm::ArrayRef<int64_t> extent) const;

  dfg::SliceAttr toAttribute(mlir::MLIRContext *context) const;
  static SavedSlice of(dfg::SliceAttr slice);

  /// As an entry of the collection of variables, and back. Nothing for what is no such entry, or no slice of its whole.
  void write(SaveSliceInfoDef &info) const;
  static std::optional<SavedSlice> read(const SaveSliceInfoDef &info);

  /// As savers have it: the whole's shape, and along each axis all of it or offset and size, "784 512 392,392:-"
  /// (tensorflow/core/framework/tensor_slice.h); and back.
  std::string toText() const;
  static std::optional<SavedSlice> parse(llvm::StringRef text);

private:
  bool isValid() const;
};

} // namespace distc::tf

#endif // DISTC_DIALECTS_DFG_TENSORFLOW_SAVED_SLICES_H
