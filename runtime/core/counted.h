//===- counted.h - A number of things, in words ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_COUNTED_H
#define DRT_CORE_COUNTED_H

#include <cstdint>
#include <string>

namespace drt {

/// "1 step", "2 steps".
inline std::string countOf(int64_t number, const char *thing) {
  return std::to_string(number) + " " + thing + (number == 1 ? "" : "s");
}

} // namespace drt

#endif // DRT_CORE_COUNTED_H
