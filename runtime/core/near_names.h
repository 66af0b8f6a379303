//===- near_names.h - What a misspelt name may have meant -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Of the compiler and of executables: both answer a name that is not there alike.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_NEAR_NAMES_H
#define DRT_CORE_NEAR_NAMES_H

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

/// Names that may have been meant, the nearest first, at most `most` of them; none where none is near. Near is what a
/// few letters make the name, whatever their case, and what holds it or is held by it: a name with its scope, or a part
/// of it.
std::vector<std::string> nearNames(std::string_view wanted, const std::vector<std::string> &names, size_t most = 3);

/// "; did you mean 'a', 'b'?" for the end of an error message; "" where no name is near.
std::string didYouMean(std::string_view wanted, const std::vector<std::string> &names);

/// didYouMean(); where no name is near "; it has 'c', 'd' and 3 more", and "; it has none at all" where there are none.
std::string nearNamesHint(std::string_view wanted, const std::vector<std::string> &names);

} // namespace drt
#endif // DRT_CORE_NEAR_NAMES_H
