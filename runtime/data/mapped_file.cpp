//===- mapped_file.cpp - A file's bytes, mapped ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/mapped_file.h"

#include "core/error.h"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace drt {
namespace {

constexpr uintptr_t pageBytes = 4096; // x86-64's; where pages are larger the system refuses, and nothing is forgotten

} // namespace

Contents mapFile(const std::string &path) {
  // A pipe is no file to map, and waits for nobody here.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status;
  if (fd < 0 || fstat(fd, &status) != 0) {
    std::string why = strerror(errno);
    if (fd >= 0)
      close(fd);
    throw Error("cannot read " + path + ": " + why);
  }
  auto size = size_t(status.st_size);
  void *mapping = size && S_ISREG(status.st_mode) ? mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0) : nullptr;
  int error = errno;
  close(fd);
  if (!mapping)
    throw Error("cannot read " + path + ": " + (S_ISREG(status.st_mode) ? "it is empty" : "it is no regular file"));
  if (mapping == MAP_FAILED)
    throw Error("cannot read " + path + ": " + strerror(error));
  return {std::shared_ptr<const void>(mapping, [size](const void *p) { munmap(const_cast<void *>(p), size); }),
          std::string_view(static_cast<const char *>(mapping), size), true};
}

void forgetPages(const void *begin, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (address + pageBytes - 1) / pageBytes * pageBytes;
  const uintptr_t last = (address + bytes) / pageBytes * pageBytes;
  if (first < last)
    madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
}

void prefetchPages(const void *begin, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = address / pageBytes * pageBytes;
  madvise(reinterpret_cast<void *>(first), address + bytes - first, MADV_WILLNEED);
}

} // namespace drt
