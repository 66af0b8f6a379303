//===- mapped_file.h - A file's bytes, mapped -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_MAPPED_FILE_H
#define DRT_DATA_MAPPED_FILE_H

#include <memory>
#include <string>
#include <string_view>

namespace drt {

/// Bytes, and what keeps them alive: a mapping or a buffer.
struct Contents {
  std::shared_ptr<const void> storage;
  std::string_view bytes;
  bool mapped = false; // a file's, so that forgetPages may be called
};

/// Maps a regular file that is not empty. Throws drt::Error.
Contents mapFile(const std::string &path);

/// Takes the pages that lie wholly in a part of a mapped file out of the process, which reads them again when it
/// touches them: what has been read once and is not needed soon does not count as the process's memory. Never for a
/// buffer, whose bytes would be lost.
void forgetPages(const void *begin, size_t bytes);

/// Tells the system that a part of a mapped file is needed soon.
void prefetchPages(const void *begin, size_t bytes);

} // namespace drt

#endif // DRT_DATA_MAPPED_FILE_H
