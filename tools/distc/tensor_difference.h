//===- tensor_difference.h - How far two tensors are apart ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_TENSOR_DIFFERENCE_H
#define DISTC_TOOLS_TENSOR_DIFFERENCE_H

#include <cstdint>
#include <string>
#include <vector>

namespace distc {

// "" where the bytes are equal; else the largest absolute and relative
// difference and how many elements differ, of two tensors of one type and shape.
// Relative: to the larger magnitude of the two elements.
std::string differenceText(int32_t dtype, const std::vector<char> &a, const std::vector<char> &b);

} // namespace distc
#endif // DISTC_TOOLS_TENSOR_DIFFERENCE_H
