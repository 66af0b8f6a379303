//===- NearNames.cpp - Names that may have been meant -------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/NearNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

namespace distc {

std::string listNearNames(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> known) {
  constexpr unsigned kListed = 3;
  llvm::SmallVector<std::pair<unsigned, llvm::StringRef>> near;
  unsigned limit = std::max<unsigned>(2, name.size() / 3);
  for (llvm::StringRef other : known) {
    // A name that holds the other is near, however long its scope.
    unsigned distance = other.contains(name) || (!other.empty() && name.contains(other))
                            ? 1
                            : name.edit_distance(other, /*AllowReplacements=*/true, limit + 1);
    if (distance <= limit)
      near.emplace_back(distance, other);
  }
  // Of names that hold it the shortest is the nearest.
  llvm::stable_sort(near, [](const auto &x, const auto &y) {
    return std::pair(x.first, x.second.size()) < std::pair(y.first, y.second.size());
  });
  std::string text;
  for (auto [distance, other] : llvm::ArrayRef(near).take_front(kListed))
    text += (text.empty() ? "; did you mean '" : "', '") + other.str();
  return text.empty() ? text : text + "'?";
}

} // namespace distc
