//===- support.h - What the tests of checkpoints share --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_CHECKPOINT_SUPPORT_H
#define DISTC_TEST_UNIT_CHECKPOINT_SUPPORT_H

#include "core/error.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <sys/resource.h>

namespace distc_test {

// A folder that is gone at the end of the test.
struct Folder {
  std::string path;

  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "distc-test-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const { return path + "/" + name; }

  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto &file : std::filesystem::directory_iterator(path))
      found.insert(file.path().filename().string());
    return found;
  }
};

inline std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void writeFile(const std::string &path, const std::string &bytes) {
  std::filesystem::remove(path); // some file systems write back what is truncated, which takes long
  std::ofstream(path, std::ios::binary) << bytes;
}

// The message of the drt::Error that `action` throws; "" where it throws none.
template <typename Action> std::string errorOf(Action action) {
  try {
    action();
  } catch (const drt::Error &error) {
    return error.what();
  }
  return "";
}

// No file may become longer, as on a disk that is full.
struct FileSizeLimit {
  rlimit before;
  void (*handler)(int);

  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before);
    handler = signal(SIGXFSZ, SIG_IGN);
    rlimit limit{bytes, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, handler);
  }
};

} // namespace distc_test
#endif // DISTC_TEST_UNIT_CHECKPOINT_SUPPORT_H
