//===- file.h - Files that are there whole or not at all ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_FILE_H
#define DRT_CORE_FILE_H

#include <string>
#include <string_view>

namespace drt {

/// Text as a JSON string, with its quotes.
std::string jsonString(std::string_view text);

/// A file that is written aside (PATH.tmp-PID) and renamed by finish(), or one
/// that grows in place, line by line, as a log does. Buffered. Every member
/// throws drt::Error that names the path and the system's reason ("No space left
/// on device"); the file aside is then removed. One thread.
class OutputFile {
public:
  enum Mode { Aside, InPlace };

  explicit OutputFile(const std::string &path, Mode mode = Aside);
  ~OutputFile(); // without finish(): what was written aside is removed; in place, what is buffered is written
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  void write(std::string_view bytes) {
    if (buffer_.size() + bytes.size() > bufferBytes)
      flush();
    buffer_.append(bytes);
  }

  /// Hands what is buffered to the system. Where that fails in place, a torn last
  /// line is cut off.
  void flush();

  void finish();

  const std::string &path() const { return path_; }

private:
  static constexpr size_t bufferBytes = 1 << 16;
  [[noreturn]] void fail();

  std::string path_, aside_;
  std::string buffer_;
  int fd_ = -1;
  int64_t written_ = 0; // whole lines so far
};

} // namespace drt

#endif // DRT_CORE_FILE_H
