//===- npz_header.h - The head of an .npy file ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_NPZ_HEADER_H
#define DRT_DATA_NPZ_HEADER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

struct NpyHeader {
  int32_t dtype = 0;
  bool fortranOrder = false;
  std::vector<int64_t> shape;
  size_t bytes = 0; // of the header itself: the data begin there
  int64_t dataBytes = 0;
};

// Parses the head of an .npy file and checks that `contents` holds its data, too, and
// nothing else: no byte can be put in or left out without a word.
// `what` names the file and the member in errors.
NpyHeader parseNpyHeader(std::string_view contents, const std::string &what);

// The head of an .npy file, which ends at a multiple of 64 when it begins at
// `position`.
std::string formatNpyHeader(int32_t dtype, const std::vector<int64_t> &shape, int64_t position,
                            const std::string &what);

} // namespace drt
#endif // DRT_DATA_NPZ_HEADER_H
