//===- memory.cpp - Large, aligned, zeroed memory -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/memory.h"
#include "core/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
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

namespace {

/// The number in a file of one; nothing where there is none ("max").
std::optional<int64_t> numberIn(const std::string &path) {
  int64_t value = 0;
  std::ifstream file(path);
  return file >> value ? std::optional(value) : std::nullopt;
}

/// "/a/b" of the line "0::/a/b".
std::string controlGroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::"))
      return line.substr(3);
  return "";
}

} // namespace

std::optional<int64_t> availableBytes() {
  std::optional<int64_t> available;
  std::ifstream file("/proc/meminfo");
  for (std::string name, line; file >> name && std::getline(file, line);)
    if (name == "MemAvailable:")
      available = std::strtoll(line.c_str(), nullptr, 10) * 1024;
  if (!available)
    return std::nullopt;
  // Every group above limits as well.
  for (std::string group = controlGroup(); !group.empty(); group.resize(group.rfind('/'))) {
    const std::string folder = "/sys/fs/cgroup" + group;
    const std::optional<int64_t> most = numberIn(folder + "/memory.max"), used = numberIn(folder + "/memory.current");
    if (most && used)
      available = std::min(*available, std::max<int64_t>(*most - *used, 0));
    if (group == "/")
      break;
  }
  return available;
}

} // namespace drt
