//===- library.h - A shared library of the machine ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_API_LIBRARY_H
#define DRT_CUDA_API_LIBRARY_H

#include <string>
#include <vector>

namespace drt::cuda {

/// What a library is called, and what helps where it is missing.
struct LibraryName {
  const char *title;                // "cuDNN"
  std::vector<std::string> sonames; // "libcudnn.so.9": the first that is found is taken
  const char *wayOut;               // "install cuDNN 9"
};

/// The names of a library of the toolkit whose major version is in its name, for a driver of CUDA's `driverVersion` (as
/// cuDriverGetVersion says it: 12040): the newest that the driver runs comes first. Throws drt::Error where that is
/// none.
std::vector<std::string> sonamesFor(const std::string &name, int driverVersion);

/// Throws drt::Error where a library was built for a newer major version of CUDA than the driver's. Both as 12040.
void requireDriver(const char *library, int libraryVersion, int driverVersion);

/// Opened when it is made, and never closed: CUDA's libraries keep threads of their own.
class Library {
public:
  /// Looks where the system does (LD_LIBRARY_PATH, /etc/ld.so.conf), in $CUDA_HOME/lib64, in /usr/local/cuda/lib64 and
  /// beside the executable. Throws drt::Error that names the library, those places and the way out.
  explicit Library(const LibraryName &name);

  /// Throws drt::Error where the library is too old to have it. `older`: what serves as well; or null.
  void *symbol(const char *name, const char *older = nullptr) const;

private:
  const LibraryName name_;
  std::string path_;
  void *handle_ = nullptr;
};

} // namespace drt::cuda

#endif // DRT_CUDA_API_LIBRARY_H
