//===- crc32c.cpp - The checksum of checkpoints ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// SSE4.2's crc32 has a latency of three cycles and a throughput of one, so three
// streams run side by side and are joined by shifting the earlier ones over the
// zeros that the later ones stand for (V. Gopal et al., Fast CRC computation
// for iSCSI polynomial using CRC32 instruction, Intel 2011). The shift by a fixed
// number of zeros is linear: four table look-ups.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace drt {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u; // reflected

using ByteTable = std::array<uint32_t, 256>;

// Slicing by eight: table k advances a byte by 1 + k bytes.
constexpr std::array<ByteTable, 8> makeSlices() {
  std::array<ByteTable, 8> slices{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
    slices[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k)
    for (size_t byte = 0; byte < 256; ++byte)
      slices[k][byte] = (slices[k - 1][byte] >> 8) ^ slices[0][slices[k - 1][byte] & 0xff];
  return slices;
}
constexpr auto kSlices = makeSlices();

uint32_t portable(uint32_t crc, const unsigned char *data, size_t bytes) {
  for (; bytes >= 8; bytes -= 8, data += 8) {
    uint64_t word;
    memcpy(&word, data, 8);
    word ^= crc;
    crc = 0;
    for (int k = 0; k < 8; ++k)
      crc ^= kSlices[size_t(7 - k)][(word >> (8 * k)) & 0xff];
  }
  for (; bytes; --bytes)
    crc = (crc >> 8) ^ kSlices[0][(crc ^ *data++) & 0xff];
  return crc;
}

#if defined(__x86_64__)

constexpr size_t kStream = 4096; // bytes of each of the three streams

// The column of each bit of a CRC after kStream zero bytes: a 32x32 matrix over
// GF(2), by squaring the one of a single zero bit.
constexpr std::array<ByteTable, 4> makeShift() {
  std::array<uint32_t, 32> matrix{};
  matrix[0] = kPolynomial;
  for (size_t bit = 1; bit < 32; ++bit)
    matrix[bit] = 1u << (bit - 1);
  auto apply = [](const std::array<uint32_t, 32> &columns, uint32_t vector) {
    uint32_t sum = 0;
    for (size_t bit = 0; vector; vector >>= 1, ++bit)
      sum ^= vector & 1 ? columns[bit] : 0;
    return sum;
  };
  for (size_t bits = 1; bits < 8 * kStream; bits *= 2) {
    std::array<uint32_t, 32> square{};
    for (size_t bit = 0; bit < 32; ++bit)
      square[bit] = apply(matrix, matrix[bit]);
    matrix = square;
  }
  std::array<ByteTable, 4> shift{};
  for (size_t k = 0; k < 4; ++k)
    for (uint32_t byte = 0; byte < 256; ++byte)
      shift[k][byte] = apply(matrix, byte << (8 * k));
  return shift;
}
constexpr auto kShift = makeShift();

uint32_t shiftByStream(uint32_t crc) {
  return kShift[0][crc & 0xff] ^ kShift[1][(crc >> 8) & 0xff] ^ kShift[2][(crc >> 16) & 0xff] ^ kShift[3][crc >> 24];
}

inline uint64_t load(const unsigned char *data) {
  uint64_t word;
  memcpy(&word, data, 8);
  return word;
}

__attribute__((target("sse4.2"))) uint32_t threeStreams(uint32_t crc, const unsigned char *data, size_t bytes) {
  for (; bytes >= 3 * kStream; bytes -= 3 * kStream, data += 3 * kStream) {
    uint64_t a = crc, b = 0, c = 0;
    for (size_t i = 0; i < kStream; i += 8) {
      a = _mm_crc32_u64(a, load(data + i));
      b = _mm_crc32_u64(b, load(data + kStream + i));
      c = _mm_crc32_u64(c, load(data + 2 * kStream + i));
    }
    crc = shiftByStream(shiftByStream(uint32_t(a)) ^ uint32_t(b)) ^ uint32_t(c);
  }
  uint64_t wide = crc;
  for (; bytes >= 8; bytes -= 8, data += 8)
    wide = _mm_crc32_u64(wide, load(data));
  crc = uint32_t(wide);
  for (; bytes; --bytes)
    crc = _mm_crc32_u8(crc, *data++);
  return crc;
}

#endif

} // namespace

uint32_t crc32cPortable(uint32_t crc, const void *data, size_t bytes) {
  return ~portable(~crc, static_cast<const unsigned char *>(data), bytes);
}

uint32_t crc32c(uint32_t crc, const void *data, size_t bytes) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2"))
    return ~threeStreams(~crc, static_cast<const unsigned char *>(data), bytes);
#endif
  return crc32cPortable(crc, data, bytes);
}

} // namespace drt
