//===- dataset.cpp - What --data names ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/dataset.h"
#include "core/error.h"
#include "data/tfrecord.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <glob.h>
#include <memory>

namespace drt {
namespace {

namespace fs = std::filesystem;

std::string kinds(const std::string &flag) {
  return flag + " takes an .npz file, a folder of .npy files, TFRecord files, or a pattern of them";
}

// The files and folders that a path or a pattern names, in the order of their names.
std::vector<std::string> matches(const std::string &path, const std::string &flag) {
  std::error_code ignored;
  if (fs::exists(path, ignored))
    return {path};
  std::vector<std::string> found;
  if (path.find_first_of("*?[") == path.npos)
    throw Error("there is no " + path + "; " + kinds(flag));
  glob_t names = {};
  if (glob(path.c_str(), 0, nullptr, &names) == 0)
    found.assign(names.gl_pathv, names.gl_pathv + names.gl_pathc);
  globfree(&names);
  std::sort(found.begin(), found.end()); // glob's own order depends on the locale
  if (found.empty())
    throw Error("no file is named like " + path + "; " + kinds(flag));
  return found;
}

enum class Kind { Npz, Npy, Folder, Records };

Kind kindOf(const std::string &path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    return Kind::Folder;
  // Opening a pipe waits for who writes into it.
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
    throw Error("cannot read " + path + ": it is no regular file");
  std::ifstream file(path, std::ios::binary);
  char head[6] = {};
  file.read(head, sizeof head);
  const std::string_view bytes(head, static_cast<size_t>(file.gcount()));
  if (bytes.starts_with("\x93NUMPY"))
    return Kind::Npy;
  if (bytes.starts_with("PK") || path.ends_with(".npz"))
    return Kind::Npz;
  if (path.ends_with(".npy"))
    return Kind::Npy; // and damaged
  if (recordFormat(path) == RecordFormat::None)
    throw Error(path +
                " is not an .npz file, nor .npy or TFRecord: of a TFRecord the checksum of the first length would "
                "be right, or the file be compressed by gzip or zlib");
  return Kind::Records;
}

} // namespace

Dataset::Part Dataset::openArrays(const std::string &path, bool isFolder, const std::string &flag) {
  Part part = {path, {}, {}};
  if (isFolder) {
    const fs::path folder = path;
    std::error_code error;
    for (auto at = fs::recursive_directory_iterator(folder, error); !error && at != fs::end(at); at.increment(error))
      if (at->path().extension() == ".npy")
        part.names.push_back(at->path().lexically_relative(folder).replace_extension().string());
    if (error)
      throw Error("cannot read the folder " + path + ": " + error.message());
    if (part.names.empty())
      throw Error("the folder " + path + " holds no .npy file; " + flag +
                  " takes a folder of one NAME.npy for each placeholder NAME; for TFRecord files say a pattern: '" +
                  path + "/*'");
    std::sort(part.names.begin(), part.names.end());
    part.read = [folder](std::string_view name) { return readNpy((folder / (std::string(name) + ".npy")).string()); };
  } else if (kindOf(path) == Kind::Npy) {
    part.names = {fs::path(path).stem().string()};
    part.read = [path](std::string_view) { return readNpy(path); };
  } else {
    auto reader = std::make_shared<NpzReader>(path);
    part.names = reader->names();
    part.read = [reader](std::string_view name) { return reader->read(name); };
  }
  return part;
}

Dataset Dataset::open(const std::string &path, const std::string &flag) {
  Dataset data;
  data.path_ = path;
  const std::vector<std::string> paths = matches(path, flag);
  for (const std::string &one : paths) {
    const Kind kind = kindOf(one);
    if (!(kind == Kind::Records ? data.parts_.empty() : data.recordFiles_.empty()))
      throw Error(path + " names files of several kinds, " + paths.front() + " and " + one +
                  "; name arrays or records, not both");
    if (kind == Kind::Records)
      data.recordFiles_.push_back(one);
    else
      data.parts_.push_back(openArrays(one, kind == Kind::Folder, flag));
  }
  if (data.holdsRecords())
    return data;
  data.names_ = data.parts_.front().names;
  for (const Part &part : data.parts_)
    if (!std::is_permutation(part.names.begin(), part.names.end(), data.names_.begin(), data.names_.end()))
      throw Error(part.path + " has other arrays than " + paths.front() + "; every file of " + path +
                  " must have the same ones");
  return data;
}

bool Dataset::has(std::string_view name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }

std::vector<NpyArray> Dataset::read(std::string_view name) const {
  std::vector<NpyArray> arrays;
  for (const Part &part : parts_)
    arrays.push_back(part.read(name));
  return arrays;
}

} // namespace drt
