//===- dataset.cpp - Named arrays to train on -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/dataset.h"
#include "core/error.h"

#include <algorithm>
#include <filesystem>
#include <memory>

namespace drt {

Dataset Dataset::open(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw Error("there is no " + path + "; --data takes an .npz file or a folder of .npy files");
  Dataset data;
  data.path_ = path;
  if (!fs::is_directory(status)) {
    auto reader = std::make_shared<NpzReader>(path);
    data.names_ = reader->names();
    data.read_ = [reader](std::string_view name) { return reader->read(name); };
    return data;
  }
  const fs::path folder = path;
  for (auto at = fs::recursive_directory_iterator(folder, error); !error && at != fs::end(at); at.increment(error))
    if (at->path().extension() == ".npy")
      data.names_.push_back(at->path().lexically_relative(folder).replace_extension().string());
  if (error)
    throw Error("cannot read the folder " + path + ": " + error.message());
  if (data.names_.empty())
    throw Error("the folder " + path + " holds no .npy file; --data takes one NAME.npy for each placeholder NAME");
  std::sort(data.names_.begin(), data.names_.end());
  data.read_ = [folder](std::string_view name) { return readNpy((folder / (std::string(name) + ".npy")).string()); };
  return data;
}

bool Dataset::has(std::string_view name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }

NpyArray Dataset::read(std::string_view name) const { return read_(name); }

} // namespace drt
