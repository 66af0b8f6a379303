//===- Heap.cpp - Memory for large graphs -------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "tools/distc/Heap.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstdlib>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

namespace distc {

/// Address translation holds most of what smaller graphs take. A SavedModel is a folder, and counts as small.
constexpr uint64_t kSmallGraph = 1 << 20;
/// What becomes of a byte of a graph: 23 bytes where each variable is split in two.
constexpr uint64_t kGrowth = 32;
constexpr uint64_t kHugePage = 2 << 20;

void reserveHeap(const std::string &file) {
  uint64_t bytes = 0;
  if (llvm::sys::fs::file_size(file, bytes) || bytes < kSmallGraph)
    return;
  uint64_t memory = uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGE_SIZE));
  // The heap keeps what is freed, and large tables are in it too.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
  void *reserved = std::malloc(std::min(bytes * kGrowth, memory / 2));
  if (!reserved)
    return;
  auto begin = llvm::alignTo(reinterpret_cast<uintptr_t>(reserved), kHugePage);
  auto end = llvm::alignDown(reinterpret_cast<uintptr_t>(reserved) + malloc_usable_size(reserved), kHugePage);
  if (begin < end)
    madvise(reinterpret_cast<void *>(begin), end - begin, MADV_HUGEPAGE);
  std::free(reserved);
}

} // namespace distc
