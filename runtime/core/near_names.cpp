//===- near_names.cpp - What a misspelt name may have meant ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/near_names.h"

#include <algorithm>
#include <numeric>

namespace drt {
namespace {

// Levenshtein's distance; a name that lacks only an outer scope is near, too.
size_t distance(std::string_view a, std::string_view b) {
  if (a.ends_with(b) || b.ends_with(a))
    return 1;
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

} // namespace

std::string nearNamesHint(std::string_view wanted, const std::vector<std::string> &names) {
  if (names.empty())
    return "; it has none at all";
  std::vector<std::pair<size_t, std::string_view>> ranked;
  for (const std::string &name : names)
    ranked.emplace_back(distance(wanted, name), name);
  size_t shown = std::min<size_t>(5, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + int64_t(shown), ranked.end());
  std::string hint = "; near names:";
  for (size_t i = 0; i < shown; ++i)
    hint += (i ? ", '" : " '") + std::string(ranked[i].second) + "'";
  return hint;
}

} // namespace drt
