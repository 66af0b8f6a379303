//===- crc32c.h - The checksum of checkpoints -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CHECKPOINT_CRC32C_H
#define DRT_CHECKPOINT_CRC32C_H

#include <cstddef>
#include <cstdint>

namespace drt {

// CRC-32C (Castagnoli) of what `crc` stands for followed by `data`. Start with 0.
uint32_t crc32c(uint32_t crc, const void *data, size_t bytes);

// Checksums that lie beside the data they are of are stored masked, since the
// CRC of bytes that contain their own CRC is degenerate (leveldb/util/crc32c.h).
inline uint32_t maskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

// For tests: the form without instructions of its own.
uint32_t crc32cPortable(uint32_t crc, const void *data, size_t bytes);

} // namespace drt
#endif // DRT_CHECKPOINT_CRC32C_H
