//===- Tensors.cpp - TensorProto as elements and back -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/tensorflow/Tensors.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/tensorflow/Types.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc::tf {

/// The bytes of `values` as elements of type T. TensorFlow writes trailing equal elements once; a single one stays
/// single, as a splat.
template <typename T, typename Values> static std::vector<char> getBytes(const Values &values, int64_t count) {
  int64_t present = values.size();
  int64_t elements = present <= 1 ? 1 : count;
  std::vector<char> bytes(elements * sizeof(T));
  T last{};
  for (int64_t i = 0; i < elements; ++i) {
    if (i < present)
      last = static_cast<T>(values.Get(i));
    std::memcpy(bytes.data() + i * sizeof(T), &last, sizeof(T));
  }
  return bytes;
}

/// How many typed values `tensor` has, whatever their type.
static int64_t getNumTypedValues(const TensorProto &tensor) {
  return std::max({tensor.float_val_size(), tensor.double_val_size(), tensor.half_val_size(), tensor.int_val_size(),
                   tensor.int64_val_size(), tensor.uint32_val_size(), tensor.uint64_val_size(),
                   tensor.bool_val_size()});
}

static std::vector<char> getTypedValues(const TensorProto &tensor, int64_t count) {
  switch (tensor.dtype()) {
  case DT_FLOAT:
    return getBytes<float>(tensor.float_val(), count);
  case DT_DOUBLE:
    return getBytes<double>(tensor.double_val(), count);
  case DT_HALF:
  case DT_BFLOAT16:
    return getBytes<uint16_t>(tensor.half_val(), count);
  case DT_INT8:
  case DT_UINT8:
    return getBytes<uint8_t>(tensor.int_val(), count);
  case DT_INT16:
  case DT_UINT16:
    return getBytes<uint16_t>(tensor.int_val(), count);
  case DT_INT32:
    return getBytes<int32_t>(tensor.int_val(), count);
  case DT_INT64:
    return getBytes<int64_t>(tensor.int64_val(), count);
  case DT_UINT32:
    return getBytes<uint32_t>(tensor.uint32_val(), count);
  case DT_UINT64:
    return getBytes<uint64_t>(tensor.uint64_val(), count);
  case DT_BOOL:
    return getBytes<uint8_t>(tensor.bool_val(), count);
  default:
    return {};
  }
}

static ElementsAttr importStrings(const TensorProto &tensor, RankedTensorType type, int64_t count) {
  SmallVector<StringRef> strings;
  int64_t present = tensor.string_val_size();
  for (int64_t i = 0; i < (present <= 1 ? std::min<int64_t>(count, 1) : count); ++i)
    strings.push_back(present == 0 ? StringRef() : StringRef(tensor.string_val(std::min(i, present - 1))));
  return DenseStringElementsAttr::get(type, strings);
}

/// What a file leaves out of a constant, as equal elements at its end, is made here, up to so many bytes.
constexpr int64_t kMaxRepeatedBytes = int64_t(1) << 28;

/// Fails, and `problem` says why, where `present` elements of `count` are too few.
static bool checkRepeated(int64_t present, int64_t count, int64_t width, std::string &problem) {
  // One element stays one.
  if (present <= 1 || present >= count || count <= kMaxRepeatedBytes / width)
    return true;
  problem = ("a constant of " + Twine(count) + " elements has " + Twine(present) +
             " in the file, and the rest is too large to repeat")
                .str();
  return false;
}

/// bool's elements are bytes on the wire; how MLIR stores them is its own business.
static ElementsAttr importBools(RankedTensorType type, ArrayRef<char> bytes) {
  SmallVector<bool> values(bytes.begin(), bytes.end());
  return DenseElementsAttr::get(type, ArrayRef<bool>(values));
}

/// Pairs, of which the last one stands for all that are not given.
static ElementsAttr importComplexNumbers(const TensorProto &tensor, RankedTensorType type, int64_t count,
                                         std::string &problem) {
  const int given = tensor.scomplex_val_size() / 2;
  if (tensor.dtype() != DT_COMPLEX64 || tensor.scomplex_val_size() % 2 != 0 || given > count ||
      !checkRepeated(given, count, 2 * sizeof(float), problem))
    return {};
  std::vector<float> numbers;
  // One is that of all elements.
  for (int64_t i = 0; i < (given <= 1 ? std::min<int64_t>(count, 1) : count); ++i)
    for (int part : {0, 1})
      numbers.push_back(given == 0 ? 0
                                   : tensor.scomplex_val(2 * static_cast<int>(std::min<int64_t>(i, given - 1)) + part));
  return DenseElementsAttr::getFromRawBuffer(
      type, ArrayRef(reinterpret_cast<const char *>(numbers.data()), numbers.size() * sizeof(float)));
}

ElementsAttr importTensor(const TensorProto &tensor, MLIRContext *context, std::string &problem) {
  Type elementType = getElementType(tensor.dtype(), context);
  if (!elementType || tensor.tensor_shape().unknown_rank())
    return {};
  auto type = llvm::cast<RankedTensorType>(getTensorType(&tensor.tensor_shape(), elementType));
  if (!type.hasStaticShape()) {
    problem = "a constant's shape has a negative size";
    return {};
  }
  int64_t count = type.getNumElements();
  if (tensor.dtype() == DT_STRING)
    return checkRepeated(tensor.string_val_size(), count, sizeof(StringRef), problem)
               ? importStrings(tensor, type, count)
               : ElementsAttr();
  // What has no byte form of its own here stays as it came.
  bool isComplex = llvm::isa<ComplexType>(elementType);
  if (!isComplex && (!elementType.isIntOrFloat() || elementType.getIntOrFloatBitWidth() == 4 ||
                     llvm::isa<Float8E5M2Type, Float8E4M3FNType>(elementType)))
    return {};
  int64_t width =
      isComplex ? (tensor.dtype() == DT_COMPLEX64 ? 8 : 16) : std::max(1u, elementType.getIntOrFloatBitWidth() / 8);

  if (!tensor.tensor_content().empty() || count == 0) {
    ArrayRef<char> content(tensor.tensor_content().data(), tensor.tensor_content().size());
    // No file has as many bytes as 63 bits count.
    int64_t needed;
    if (llvm::MulOverflow(count, width, needed) || static_cast<int64_t>(content.size()) != needed) {
      problem = ("a constant has " + Twine(content.size()) + " bytes where its shape needs " + Twine(count) +
                 " times " + Twine(width))
                    .str();
      return {};
    }
    if (tensor.dtype() == DT_BOOL)
      return importBools(type, content);
    return DenseElementsAttr::getFromRawBuffer(type, content);
  }
  if (isComplex)
    return importComplexNumbers(tensor, type, count, problem);
  if (!checkRepeated(getNumTypedValues(tensor), count, width, problem))
    return {};
  std::vector<char> bytes = getTypedValues(tensor, count);
  if (bytes.empty())
    return {};
  if (tensor.dtype() == DT_BOOL)
    return importBools(type, bytes);
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

template <typename T> static T first(ArrayRef<char> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return value;
}

/// One element as a typed value; false where the type has none.
static bool addTypedValue(ArrayRef<char> bytes, TensorProto &tensor) {
  switch (tensor.dtype()) {
  case DT_FLOAT:
    return tensor.add_float_val(first<float>(bytes)), true;
  case DT_DOUBLE:
    return tensor.add_double_val(first<double>(bytes)), true;
  case DT_HALF:
  case DT_BFLOAT16:
    return tensor.add_half_val(first<uint16_t>(bytes)), true;
  case DT_INT8:
    return tensor.add_int_val(first<int8_t>(bytes)), true;
  case DT_UINT8:
    return tensor.add_int_val(first<uint8_t>(bytes)), true;
  case DT_INT16:
    return tensor.add_int_val(first<int16_t>(bytes)), true;
  case DT_UINT16:
    return tensor.add_int_val(first<uint16_t>(bytes)), true;
  case DT_INT32:
    return tensor.add_int_val(first<int32_t>(bytes)), true;
  case DT_INT64:
    return tensor.add_int64_val(first<int64_t>(bytes)), true;
  case DT_UINT32:
    return tensor.add_uint32_val(first<uint32_t>(bytes)), true;
  case DT_UINT64:
    return tensor.add_uint64_val(first<uint64_t>(bytes)), true;
  default:
    return false;
  }
}

void exportTensor(ElementsAttr elements, TensorProto &tensor) {
  auto type = llvm::cast<TensorType>(elements.getShapedType());
  tensor.set_dtype(getDataType(type.getElementType()));
  setShape(type, *tensor.mutable_tensor_shape());
  if (auto strings = llvm::dyn_cast<DenseStringElementsAttr>(elements)) {
    ArrayRef<StringRef> raw = strings.getRawStringData();
    for (StringRef value : raw)
      tensor.add_string_val(value.str());
    return;
  }
  if (auto resource = llvm::dyn_cast<DenseResourceElementsAttr>(elements)) {
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      tensor.set_tensor_content(blob->getData().data(), blob->getData().size());
    return;
  }
  auto dense = llvm::cast<DenseElementsAttr>(elements);
  if (type.getNumElements() == 0)
    return;
  if (type.getElementType().isInteger(1)) {
    if (dense.isSplat()) {
      tensor.add_bool_val(dense.getSplatValue<bool>());
      return;
    }
    std::string bytes;
    for (bool value : dense.getValues<bool>())
      bytes.push_back(value);
    tensor.set_tensor_content(std::move(bytes));
    return;
  }
  ArrayRef<char> bytes = dense.getRawData();
  if (dense.isSplat()) {
    if (addTypedValue(bytes, tensor))
      return;
    std::string content;
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      content.append(bytes.data(), bytes.size());
    tensor.set_tensor_content(std::move(content));
    return;
  }
  tensor.set_tensor_content(bytes.data(), bytes.size());
}

} // namespace distc::tf
