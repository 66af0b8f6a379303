//===- input_file.h - Bytes as a file --------------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_FUZZ_TARGETS_INPUT_FILE_H
#define DISTC_TEST_FUZZ_TARGETS_INPUT_FILE_H

#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>

/// In memory, for readers that take a path.
class InputFile {
public:
  explicit InputFile(std::string_view bytes) : descriptor_(memfd_create("input", MFD_CLOEXEC)) {
    if (descriptor_ < 0 || write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      abort();
  }
  ~InputFile() { close(descriptor_); }
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

private:
  int descriptor_;
};

#endif // DISTC_TEST_FUZZ_TARGETS_INPUT_FILE_H
