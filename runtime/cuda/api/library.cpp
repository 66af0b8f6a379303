//===- library.cpp - A shared library of the machine ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/api/library.h"
#include "core/error.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

namespace drt::cuda {
namespace {

struct Place {
  std::string folder; // "" is where the system looks
  std::string text;
};

std::string folderOfExecutable() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string all(path, length > 0 ? static_cast<size_t>(length) : 0);
  const size_t slash = all.rfind('/');
  return slash == std::string::npos ? "." : all.substr(0, slash);
}

std::vector<Place> places() {
  std::vector<Place> all = {{"", "where the system looks (LD_LIBRARY_PATH, /etc/ld.so.conf)"}};
  if (const char *home = std::getenv("CUDA_HOME"); home && *home)
    all.push_back({std::string(home) + "/lib64", std::string(home) + "/lib64 (CUDA_HOME)"});
  all.push_back({"/usr/local/cuda/lib64", "/usr/local/cuda/lib64"});
  const std::string own = folderOfExecutable();
  all.push_back({own, own + " (beside the executable)"});
  return all;
}

} // namespace

namespace {

constexpr int kOldestMajor = 12, kNewestMajor = 13; // whose interfaces these are

std::string versionText(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

} // namespace

std::vector<std::string> sonamesFor(const std::string &name, int driverVersion) {
  std::vector<std::string> sonames;
  for (int major = std::min(driverVersion / 1000, kNewestMajor); major >= kOldestMajor; --major)
    sonames.push_back(name + "." + std::to_string(major));
  if (sonames.empty())
    throw Error("this machine's driver is of CUDA " + versionText(driverVersion) + "; the program needs one of CUDA " +
                std::to_string(kOldestMajor) + " or later: update NVIDIA's driver");
  return sonames;
}

void requireDriver(const char *library, int libraryVersion, int driverVersion) {
  if (libraryVersion / 1000 > driverVersion / 1000)
    throw Error(std::string(library) + " was built for CUDA " + versionText(libraryVersion) +
                ", which this machine's driver, of CUDA " + versionText(driverVersion) +
                ", does not run: install the one for CUDA " + std::to_string(driverVersion / 1000) +
                ", or update the driver");
}

Library::Library(const LibraryName &name) : name_(name) {
  std::string looked, reason;
  for (const Place &place : places()) {
    looked += (looked.empty() ? "" : ", ") + place.text;
    for (const std::string &soname : name_.sonames) {
      path_ = place.folder.empty() ? soname : place.folder + "/" + soname;
      handle_ = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL);
      if (handle_)
        return;
      // The file is there, but cannot be used: that is worth more than that others are missing.
      const char *said = dlerror();
      if (said && (reason.empty() || (!place.folder.empty() && access(path_.c_str(), F_OK) == 0)))
        reason = said;
    }
  }
  std::string sonames;
  for (const std::string &soname : name_.sonames)
    sonames += (sonames.empty() ? "" : " or ") + soname;
  throw Error(std::string("cannot open ") + name_.title + ", " + sonames + ": it was looked for " + looked + " (" +
              reason + "); " + name_.wayOut);
}

void *Library::symbol(const char *symbolName, const char *older) const {
  if (void *found = dlsym(handle_, symbolName))
    return found;
  if (void *found = older ? dlsym(handle_, older) : nullptr)
    return found;
  throw Error(std::string(name_.title) + " (" + path_ + ") is too old: it has no " + symbolName + "; " + name_.wayOut);
}

} // namespace drt::cuda
