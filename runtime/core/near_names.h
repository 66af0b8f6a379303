//===- near_names.h - What a misspelt name may have meant -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_NEAR_NAMES_H
#define DRT_CORE_NEAR_NAMES_H

#include <string>
#include <string_view>
#include <vector>

namespace drt {

// Names that may have been meant, the nearest first; none where none is near.
std::vector<std::string> nearNames(std::string_view wanted, const std::vector<std::string> &names);

// "; near names: 'a', 'b'" for the end of an error message; "; it has 'c', 'd'" where none is near, and "; it has none
// at all" where there are none.
std::string nearNamesHint(std::string_view wanted, const std::vector<std::string> &names);

} // namespace drt
#endif // DRT_CORE_NEAR_NAMES_H
