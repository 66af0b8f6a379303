//===- TextTable.h - Tables that a person reads -------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_TEXTTABLE_H
#define DISTC_STRATEGIES_TEXTTABLE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatAdapters.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace distc::strategies {

/// Columns as wide as their widest cell; those of `toTheRight`, which are numbers, to the right.
class TextTable {
public:
  TextTable(std::vector<std::string> header, llvm::ArrayRef<bool> toTheRight)
      : rows({std::move(header)}), right(toTheRight) {}

  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }

  void print(llvm::raw_ostream &os) const {
    std::vector<size_t> widths(rows.front().size());
    for (const auto &row : rows)
      for (size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], row[i].size());
    for (const auto &row : rows) {
      for (size_t i = 0; i < row.size(); ++i) {
        os << "  ";
        if (right[i])
          os << llvm::right_justify(row[i], widths[i]);
        else if (i + 1 < row.size())
          os << llvm::left_justify(row[i], widths[i]);
        else
          os << row[i];
      }
      os << "\n";
    }
  }

private:
  std::vector<std::vector<std::string>> rows;
  llvm::SmallVector<bool> right;
};

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_TEXTTABLE_H
