//===- npz_header.cpp - The head of an .npy file --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The format: numpy/lib/format.py. Magic, version, length, and a Python dict
// literal such as {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
//
//===----------------------------------------------------------------------===//
#include "data/npz_header.h"

#include "checkpoint/tensor_type.h"
#include "core/error.h"

#include <cctype>
#include <cstring>
#include <utility>

namespace drt {
namespace {

struct Descriptor {
  int32_t dtype;
  const char *text;
};

// NumPy has no bfloat16; those who add one (ml_dtypes) save it as raw bytes.
constexpr Descriptor kDescriptors[] = {{1, "<f4"},   {2, "<f8"},  {3, "<i4"},  {4, "|u1"},  {5, "<i2"},  {6, "|i1"},
                                       {8, "<c8"},   {9, "<i8"},  {10, "|b1"}, {14, "|V2"}, {14, "<V2"}, {17, "<u2"},
                                       {18, "<c16"}, {19, "<f2"}, {22, "<u4"}, {23, "<u8"}};

constexpr std::string_view kMagic("\x93NUMPY", 6);

// Reads the literal from the left; every function throws where it finds
// something else than it wants.
class Literal {
public:
  Literal(std::string_view text, const std::string &what) : rest(text), what(what) {}

  bool take(char c) {
    while (!rest.empty() && isspace(static_cast<unsigned char>(rest[0])))
      rest.remove_prefix(1);
    if (rest.empty() || rest[0] != c)
      return false;
    rest.remove_prefix(1);
    return true;
  }

  void expect(char c) {
    if (!take(c))
      fail();
  }

  std::string_view quoted() {
    char quote = take('\'') ? '\'' : '"';
    if (quote == '"')
      expect('"');
    size_t end = rest.find(quote);
    if (end == std::string_view::npos)
      fail();
    std::string_view text = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    return text;
  }

  bool boolean() {
    take(' ');
    for (std::string_view word : {"True", "False"})
      if (rest.starts_with(word)) {
        rest.remove_prefix(word.size());
        return word == "True";
      }
    fail();
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> values;
    expect('(');
    while (!take(')')) {
      take(' ');
      int64_t value = 0;
      size_t digits = 0;
      for (; digits < rest.size() && isdigit(static_cast<unsigned char>(rest[digits])); ++digits)
        if (__builtin_mul_overflow(value, int64_t(10), &value) ||
            __builtin_add_overflow(value, int64_t(rest[digits] - '0'), &value))
          fail();
      if (!digits)
        fail();
      rest.remove_prefix(digits);
      take('L'); // Python 2 wrote long integers so
      values.push_back(value);
      if (!take(',') && (rest.empty() || rest[0] != ')'))
        fail();
    }
    return values;
  }

  // The padding: spaces, and one newline at the very end.
  bool atPadding() const {
    return !rest.empty() && rest.find_first_not_of(' ') == rest.size() - 1 && rest.back() == '\n';
  }

  [[noreturn]] void fail() const { throw Error(what + " is damaged: its .npy header cannot be parsed"); }

private:
  std::string_view rest;
  const std::string &what;
};

int32_t dtypeOf(std::string_view descriptor, const std::string &what) {
  for (const Descriptor &known : kDescriptors)
    if (descriptor == known.text)
      return known.dtype;
  std::string way = descriptor.starts_with('>') ? "is big-endian; save it little-endian (array.astype('<...'))"
                    : descriptor.starts_with("|O")
                        ? "holds Python objects; save it as numbers"
                        : "cannot be used; save it as one of the types float16/32/64, int8/16/32/64, uint8, bool";
  throw Error(what + " has the type '" + std::string(descriptor) + "', which " + way);
}

uint32_t littleEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i)
    value = (value << 8) | uint8_t(bytes[i - 1]);
  return value;
}

void parseDict(Literal literal, NpyHeader &header, const std::string &what) {
  bool hasType = false, hasOrder = false, hasShape = false;
  const auto first = [&](bool &has) {
    if (std::exchange(has, true))
      literal.fail();
  };
  literal.expect('{');
  while (!literal.take('}')) {
    std::string_view key = literal.quoted();
    literal.expect(':');
    if (key == "descr") {
      if (literal.take('['))
        throw Error(what + " is a structured array; save its fields as arrays of their own");
      header.dtype = dtypeOf(literal.quoted(), what);
      first(hasType);
    } else if (key == "fortran_order") {
      header.fortranOrder = literal.boolean();
      first(hasOrder);
    } else if (key == "shape") {
      header.shape = literal.tuple();
      first(hasShape);
    } else {
      literal.fail();
    }
    if (!literal.take(',')) {
      literal.expect('}');
      break;
    }
  }
  if (!hasType || !hasOrder || !hasShape)
    literal.fail();
  if (!literal.atPadding())
    throw Error(what +
                " is damaged: its .npy header does not end with spaces and a newline where it says that it ends, "
                "so the data may be shifted; save it again");
}

} // namespace

NpyHeader parseNpyHeader(std::string_view contents, const std::string &what) {
  if (!contents.starts_with(kMagic) || contents.size() < 12)
    throw Error(what + " is not an .npy array: its first bytes are not NumPy's");
  int version = contents[6];
  if (version < 1 || version > 3)
    throw Error(what + " has .npy version " + std::to_string(version) + "; versions 1 to 3 are known");
  size_t lengthBytes = version == 1 ? 2 : 4, start = 8 + lengthBytes;
  uint32_t length = littleEndian(contents.substr(8, lengthBytes));
  if (contents.size() - start < length)
    throw Error(what + " is truncated: it ends within its .npy header");
  NpyHeader header;
  parseDict(Literal(contents.substr(start, length), what), header, what);
  header.bytes = start + length;
  int64_t count = shapeElements(header.shape);
  header.dataBytes = count * elementSize(header.dtype);
  if (count < 0)
    throw Error(what + " is damaged: its shape is " + shapeText(header.shape));
  if (contents.size() - header.bytes < uint64_t(header.dataBytes))
    throw Error(what + " is truncated: " + typeName(header.dtype) + shapeText(header.shape) + " needs " +
                std::to_string(header.dataBytes) + " bytes, it has " + std::to_string(contents.size() - header.bytes));
  if (contents.size() - header.bytes > uint64_t(header.dataBytes))
    throw Error(what + " is damaged: " + typeName(header.dtype) + shapeText(header.shape) + " is " +
                std::to_string(header.dataBytes) + " bytes, but " + std::to_string(contents.size() - header.bytes) +
                " follow its header; save it again");
  return header;
}

std::string formatNpyHeader(int32_t dtype, const std::vector<int64_t> &shape, int64_t position,
                            const std::string &what) {
  const char *descriptor = nullptr;
  for (const Descriptor &known : kDescriptors)
    if (!descriptor && known.dtype == dtype)
      descriptor = known.text;
  if (!descriptor)
    throw Error(what + ": NumPy has no type for " + typeName(dtype));
  std::string dict = std::string("{'descr': '") + descriptor + "', 'fortran_order': False, 'shape': (";
  for (size_t axis = 0; axis < shape.size(); ++axis)
    dict += std::to_string(shape[axis]) + (shape.size() == 1 ? "," : axis + 1 < shape.size() ? ", " : "");
  dict += "), }";
  constexpr size_t kStart = 10; // magic, version 1.0, two bytes of length
  size_t end = (size_t(position) + kStart + dict.size() + 1 + 63) / 64 * 64;
  dict.append(end - size_t(position) - kStart - dict.size() - 1, ' ');
  dict += '\n';
  if (dict.size() > 0xffff)
    throw Error(what + ": too many axes");
  std::string header(kMagic);
  header += '\1';
  header += '\0';
  header += char(dict.size() & 0xff);
  header += char(dict.size() >> 8);
  return header + dict;
}

} // namespace drt
