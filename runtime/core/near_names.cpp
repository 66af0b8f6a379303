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

constexpr size_t mostShown = 5;

std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < std::min(mostShown, names.size()); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return names.size() > mostShown ? text + " and " + std::to_string(names.size() - mostShown) + " more" : text;
}

} // namespace

std::vector<std::string> nearNames(std::string_view wanted, const std::vector<std::string> &names) {
  const size_t limit = std::max<size_t>(2, wanted.size() / 3);
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const std::string &name : names)
    // Of names of a letter or two nothing may be alike.
    if (const size_t far = distance(wanted, name); far <= limit && far < std::max(wanted.size(), name.size()))
      ranked.emplace_back(far, name);
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> near;
  for (size_t i = 0; i < std::min(mostShown, ranked.size()); ++i)
    near.push_back(ranked[i].second);
  return near;
}

std::string nearNamesHint(std::string_view wanted, const std::vector<std::string> &names) {
  if (names.empty())
    return "; it has none at all";
  const std::vector<std::string> near = nearNames(wanted, names);
  return near.empty() ? "; it has " + listed(names) : "; near names: " + listed(near);
}

} // namespace drt
