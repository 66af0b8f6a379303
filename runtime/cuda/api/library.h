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
