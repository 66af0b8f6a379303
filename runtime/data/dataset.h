//===- dataset.h - What --data names --------------------------------------===//
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

/// What --data names: named arrays (an .npz file, a folder whose NAME.npy files, in folders of their own where NAME has
/// slashes, are the arrays, or one NAME.npy), or records (a TFRecord file, which may be compressed). A pattern with * ?
/// [ names several of one kind, which are taken one after the other in the order of their names. A file's kind is told
/// by its first bytes. Opening reads names only; an array is mapped or read when it is asked for. Throws drt::Error.
/// `flag`: what named the path, for messages.
class Dataset {
public:
  static Dataset open(const std::string &path, const std::string &flag = "--data");

  const std::string &path() const { return path_; }

  /// The TFRecord files; empty where the data are arrays.
  const std::vector<std::string> &recordFiles() const { return recordFiles_; }
  bool holdsRecords() const { return !recordFiles_.empty(); }

  /// The arrays' names; none where the data are records.
  const std::vector<std::string> &names() const { return names_; }
  bool has(std::string_view name) const;
  /// An array's parts, one a file that the pattern names.
  std::vector<NpyArray> read(std::string_view name) const;
  /// The file of a part, for messages.
  const std::string &partPath(size_t part) const { return parts_[part].path; }

private:
  struct Part {
    std::string path;
    std::vector<std::string> names;
    std::function<NpyArray(std::string_view)> read;
  };
  static Part openArrays(const std::string &path, bool isFolder, const std::string &flag);

  std::string path_;
  std::vector<std::string> names_, recordFiles_;
  std::vector<Part> parts_;
};

} // namespace drt

#endif // DRT_DATA_DATASET_H
