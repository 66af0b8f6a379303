//===- Attributes.cpp - StableHLO's attributes, which no dialect here declares ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace distc::stablehlo {

/// What is between the angle brackets of `#stablehlo.KIND<...>`.
static std::optional<StringRef> getBody(Operation *op, StringRef attribute) {
  auto opaque = op->getAttrOfType<OpaqueAttr>(attribute);
  if (!opaque)
    return std::nullopt;
  StringRef text = opaque.getAttrData();
  size_t open = text.find('<');
  if (open == StringRef::npos || !text.ends_with(">"))
    return std::nullopt;
  return text.substr(open + 1).drop_back();
}

std::optional<DimensionNumbers> DimensionNumbers::get(Operation *op, StringRef attribute) {
  std::optional<StringRef> body = getBody(op, attribute);
  if (!body)
    return std::nullopt;
  DimensionNumbers numbers;
  StringRef text = body->trim();
  while (!text.empty()) {
    auto [name, value] = text.split('=');
    value = value.ltrim();
    Ints &field = numbers.fields[name.trim()];
    StringRef list;
    if (value.consume_front("[")) {
      std::tie(list, text) = value.split(']');
      text = text.ltrim();
      text.consume_front(",");
    } else {
      std::tie(list, text) = value.split(',');
    }
    SmallVector<StringRef> entries;
    list.split(entries, ',', -1, /*KeepEmpty=*/false);
    for (StringRef entry : entries) {
      int64_t number;
      if (entry.trim().getAsInteger(10, number))
        return std::nullopt;
      field.push_back(number);
    }
    text = text.ltrim();
  }
  return numbers;
}

const Ints &DimensionNumbers::operator[](StringRef name) const {
  static const Ints none;
  auto it = fields.find(name);
  return it == fields.end() ? none : it->second;
}

int64_t DimensionNumbers::getNumber(StringRef name) const {
  const Ints &field = (*this)[name];
  return field.size() == 1 ? field.front() : 0;
}

/// `[b, 0, 1, f]`, with the letters of its two axes that are no spatial ones.
static std::optional<ConvolutionNumbers::Axes> parseAxes(StringRef text, char first, char second) {
  text = text.trim();
  if (!text.consume_front("[") || !text.consume_back("]"))
    return std::nullopt;
  SmallVector<StringRef> entries;
  text.split(entries, ',');
  ConvolutionNumbers::Axes axes;
  axes.spatial.assign(entries.size() < 2 ? 0 : entries.size() - 2, -1);
  for (auto [axis, entry] : llvm::enumerate(entries)) {
    entry = entry.trim();
    uint64_t number;
    if (entry.size() == 1 && entry[0] == first)
      axes.first = axis;
    else if (entry.size() == 1 && entry[0] == second)
      axes.second = axis;
    else if (!entry.getAsInteger(10, number) && number < axes.spatial.size())
      axes.spatial[number] = axis;
    else
      return std::nullopt;
  }
  if (axes.first < 0 || axes.second < 0 || llvm::is_contained(axes.spatial, -1))
    return std::nullopt;
  return axes;
}

std::optional<ConvolutionNumbers> ConvolutionNumbers::get(Operation *op, StringRef attribute) {
  std::optional<StringRef> body = getBody(op, attribute);
  if (!body)
    return std::nullopt;
  auto [operands, result] = body->split("->");
  auto [input, kernel] = operands.split('x');
  auto of = parseAxes(input, 'b', 'f'), by = parseAxes(kernel, 'i', 'o'), to = parseAxes(result, 'b', 'f');
  if (!of || !by || !to || of->spatial.size() != by->spatial.size() || of->spatial.size() != to->spatial.size())
    return std::nullopt;
  return ConvolutionNumbers{*of, *by, *to};
}

StringRef getKeyword(Operation *op, StringRef attribute) {
  auto opaque = op->getAttrOfType<OpaqueAttr>(attribute);
  return opaque ? opaque.getAttrData().rtrim('>').rsplit(' ').second : StringRef();
}

Ints getInts(Operation *op, StringRef attribute) {
  Attribute value = op->getAttr(attribute);
  if (auto array = llvm::dyn_cast_or_null<DenseI64ArrayAttr>(value))
    return Ints(array.asArrayRef());
  Ints ints;
  if (auto dense = llvm::dyn_cast_or_null<DenseIntElementsAttr>(value))
    for (const APInt &number : dense.getValues<APInt>())
      ints.push_back(number.getSExtValue());
  return ints;
}

int64_t getInt(Operation *op, StringRef attribute, int64_t otherwise) {
  auto value = op->getAttrOfType<IntegerAttr>(attribute);
  return value ? value.getInt() : otherwise;
}

SmallVector<bool> getFlags(Operation *op, StringRef attribute) {
  Attribute value = op->getAttr(attribute);
  if (auto array = llvm::dyn_cast_or_null<DenseBoolArrayAttr>(value))
    return SmallVector<bool>(array.asArrayRef());
  SmallVector<bool> flags;
  if (auto dense = llvm::dyn_cast_or_null<DenseIntElementsAttr>(value))
    for (const APInt &flag : dense.getValues<APInt>())
      flags.push_back(!flag.isZero());
  return flags;
}

bool getFlag(Operation *op, StringRef attribute) {
  auto value = op->getAttrOfType<BoolAttr>(attribute);
  return value && value.getValue();
}

StringRef getText(Operation *op, StringRef attribute) {
  auto value = op->getAttrOfType<StringAttr>(attribute);
  return value ? value.getValue() : StringRef();
}

} // namespace distc::stablehlo
