//===- dataset.h - Named arrays to train on -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_DATASET_H
#define DRT_DATA_DATASET_H

#include "data/npz.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

/// What --data names: an .npz file, or a folder whose NAME.npy files (in folders
/// of their own where NAME has slashes) are the arrays. Opening reads names only;
/// an array is mapped or read when it is asked for. Throws drt::Error.
class Dataset {
public:
  static Dataset open(const std::string &path);

  const std::string &path() const { return path_; }
  const std::vector<std::string> &names() const { return names_; }
  bool has(std::string_view name) const;
  NpyArray read(std::string_view name) const;

private:
  std::string path_;
  std::vector<std::string> names_;
  std::function<NpyArray(std::string_view)> read_;
};

} // namespace drt

#endif // DRT_DATA_DATASET_H
