//===- memory.cpp - Large, aligned, zeroed memory -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/memory.h"
#include "core/error.h"

#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>

namespace drt {

Memory::Memory(int64_t bytes) : bytes_(bytes) {
  if (bytes <= 0)
    return;
  void *data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    throw Error("out of memory: " + std::to_string(bytes) +
                " bytes are needed in one piece; use a smaller batch, or more tasks with fewer replicas each");
  constexpr int64_t hugePage = 2 << 20;
  if (bytes >= hugePage)
    madvise(data, bytes, MADV_HUGEPAGE); // a hint; small pages do as well
  data_ = static_cast<char *>(data);
}

Memory::~Memory() {
  if (data_)
    munmap(data_, bytes_);
}

int64_t residentBytes() {
  long long size = 0, resident = 0;
  if (FILE *file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%lld %lld", &size, &resident) != 2)
      resident = 0;
    std::fclose(file);
  }
  return static_cast<int64_t>(resident) * sysconf(_SC_PAGESIZE);
}

} // namespace drt
