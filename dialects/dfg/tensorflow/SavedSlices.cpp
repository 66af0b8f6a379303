//===- SavedSlices.cpp - Variables that are slices of one tensor ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/SavedSlices.h"
#include "dialects/dfg/tensorflow/meta_graph.pb.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace distc::tf {

bool SavedSlice::isValid() const { return dfg::isSlice(shape, offsets, sizes); }

SavedSlice SavedSlice::getPart(ArrayRef<int64_t> at, ArrayRef<int64_t> extent) const {
  SavedSlice part = *this;
  for (auto [offset, more] : llvm::zip(part.offsets, at))
    offset += more;
  part.sizes.assign(extent.begin(), extent.end());
  return part;
}

dfg::SliceAttr SavedSlice::toAttribute(MLIRContext *context) const {
  Builder builder(context);
  return dfg::SliceAttr::get(context, builder.getStringAttr(whole), builder.getDenseI64ArrayAttr(shape),
                             builder.getDenseI64ArrayAttr(offsets), builder.getDenseI64ArrayAttr(sizes));
}

SavedSlice SavedSlice::of(dfg::SliceAttr slice) {
  return {slice.getWhole().str(), llvm::to_vector(slice.getShape().asArrayRef()),
          llvm::to_vector(slice.getOffsets().asArrayRef()), llvm::to_vector(slice.getSizes().asArrayRef())};
}

void SavedSlice::write(SaveSliceInfoDef &info) const {
  info.set_full_name(whole);
  info.mutable_full_shape()->Assign(shape.begin(), shape.end());
  info.mutable_var_offset()->Assign(offsets.begin(), offsets.end());
  info.mutable_var_shape()->Assign(sizes.begin(), sizes.end());
}

std::optional<SavedSlice> SavedSlice::read(const SaveSliceInfoDef &info) {
  SavedSlice slice;
  slice.whole = info.full_name();
  llvm::append_range(slice.shape, info.full_shape());
  llvm::append_range(slice.offsets, info.var_offset());
  llvm::append_range(slice.sizes, info.var_shape());
  return !slice.whole.empty() && slice.isValid() ? std::optional(slice) : std::nullopt;
}

std::string SavedSlice::toText() const {
  std::string text;
  for (int64_t size : shape)
    text += std::to_string(size) + " ";
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    text += axis ? ":" : "";
    text += size == shape[axis] ? std::string("-") : std::to_string(offsets[axis]) + "," + std::to_string(size);
  }
  return text;
}

std::optional<SavedSlice> SavedSlice::parse(StringRef text) {
  SavedSlice slice;
  SmallVector<StringRef> fields, axes;
  text.split(fields, ' ');
  fields.pop_back_val().split(axes, ':');
  for (StringRef field : fields)
    if (field.getAsInteger(10, slice.shape.emplace_back()))
      return std::nullopt;
  if (axes.size() != slice.shape.size())
    return std::nullopt;
  for (auto [whole, axis] : llvm::zip(slice.shape, axes)) {
    auto [offset, size] = axis.split(',');
    slice.offsets.push_back(0);
    slice.sizes.push_back(whole);
    if (axis != "-" && (offset.getAsInteger(10, slice.offsets.back()) || size.getAsInteger(10, slice.sizes.back())))
      return std::nullopt;
  }
  return slice.isValid() ? std::optional(slice) : std::nullopt;
}

} // namespace distc::tf
