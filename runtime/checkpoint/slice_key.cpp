//===- slice_key.cpp - The key of a tensor's slice in the index -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/slice_key.h"

#include <bit>

namespace drt {
namespace {

// The number of significant bytes, then these, the highest first.
void appendUnsigned(std::string &key, uint64_t value) {
  int bytes = (std::bit_width(value) + 7) / 8;
  key += char(bytes);
  for (int i = bytes - 1; i >= 0; --i)
    key += char(value >> (8 * i));
}

// Two's complement, the highest byte first, in as few bytes as hold the value
// beside a prefix like UTF-8's: as many ones as there are bytes, over which the
// sign is exclusive-ored.
void appendSigned(std::string &key, int64_t value) {
  int significant = int(std::bit_width(uint64_t(value < 0 ? ~value : value)));
  int bytes = significant / 7 + 1; // at most 10
  for (int i = 0; i < bytes; ++i) {
    int shift = 8 * (bytes - 1 - i);
    auto byte = uint8_t(shift < 64 ? value >> shift : value >> 63);
    int ones = bytes - 8 * i; // of the prefix, that fall on this byte
    key += char(byte ^ (ones >= 8 ? 0xff : ones > 0 ? uint8_t(0xff00 >> ones) : 0));
  }
}

// Zero and 255 are escaped, since a zero followed by a one ends the string.
void appendString(std::string &key, std::string_view text) {
  for (char c : text) {
    key += c;
    if (c == '\0')
      key += '\xff';
    else if (c == '\xff')
      key += '\0';
  }
  key += '\0';
  key += '\1';
}

} // namespace

std::string encodeSliceKey(std::string_view name, const std::vector<SliceExtent> &extents) {
  std::string key;
  appendUnsigned(key, 0);
  appendString(key, name);
  appendUnsigned(key, extents.size());
  for (const SliceExtent &extent : extents) {
    appendSigned(key, extent.start);
    appendSigned(key, extent.length);
  }
  return key;
}

} // namespace drt
