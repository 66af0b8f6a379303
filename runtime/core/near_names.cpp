//===- near_names.cpp - What a misspelt name may have meant ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/near_names.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <tuple>

namespace drt {
namespace {

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) { return std::tolower(c); });
  return result;
}

// Levenshtein's distance; 1 where one name holds the other.
size_t distance(std::string_view a, std::string_view b) {
  constexpr size_t leastPart = 3;
  if (std::min(a.size(), b.size()) >= leastPart &&
      (a.find(b) != std::string_view::npos || b.find(a) != std::string_view::npos))
    return a.size() == b.size() ? 0 : 1;
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({substituted, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

constexpr size_t mostListed = 5;

std::string listed(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < std::min(mostListed, names.size()); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return names.size() > mostListed ? text + " and " + std::to_string(names.size() - mostListed) + " more" : text;
}

} // namespace

std::vector<std::string> nearNames(std::string_view wanted, const std::vector<std::string> &names, size_t most) {
  const size_t limit = std::max<size_t>(2, wanted.size() / 3);
  const std::string word = lowered(wanted);
  // Of names that hold it the shortest is the nearest.
  std::vector<std::tuple<size_t, size_t, std::string>> ranked;
  for (const std::string &name : names)
    // Of names of a letter or two nothing may be alike.
    if (const size_t far = distance(word, lowered(name)); far <= limit && far < std::max(word.size(), name.size()))
      ranked.emplace_back(far, name.size(), name);
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> near;
  for (size_t i = 0; i < std::min(most, ranked.size()); ++i)
    near.push_back(std::get<std::string>(ranked[i]));
  return near;
}

std::string didYouMean(std::string_view wanted, const std::vector<std::string> &names) {
  const std::vector<std::string> near = nearNames(wanted, names);
  return near.empty() ? "" : "; did you mean " + listed(near) + "?";
}

std::string nearNamesHint(std::string_view wanted, const std::vector<std::string> &names) {
  if (names.empty())
    return "; it has none at all";
  std::string near = didYouMean(wanted, names);
  return near.empty() ? "; it has " + listed(names) : near;
}

} // namespace drt
