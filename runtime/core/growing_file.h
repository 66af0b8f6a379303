//===- growing_file.h - Files that grow while a program runs --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CORE_GROWING_FILE_H
#define DRT_CORE_GROWING_FILE_H

#include <cstdint>
#include <string>
#include <string_view>

namespace drt {

/// Text as a JSON string, with its quotes.
std::string jsonString(std::string_view text);

/// A file of records (a log's lines), which may be read while it grows. Buffered.
/// Files that shall be there whole or not at all are checkpoint/output_file.h's.
/// Every member throws drt::Error that names the path and the system's reason
/// ("No space left on device"); a torn record is then cut off. One thread.
class GrowingFile {
public:
  /// Goes on behind the first `keep` bytes of a file that is there; what follows them is cut off.
  explicit GrowingFile(const std::string &path, int64_t keep = 0);
  ~GrowingFile(); // writes what is buffered, as far as it can
  GrowingFile(const GrowingFile &) = delete;
  GrowingFile &operator=(const GrowingFile &) = delete;

  void write(std::string_view record) {
    if (buffer_.size() + record.size() > bufferBytes)
      flush();
    buffer_.append(record);
  }

  /// Hands what is buffered to the system.
  void flush();
  /// flush(), and everything is on the disk.
  void sync();
  /// Bytes handed to the system, and those that were kept.
  int64_t written() const { return written_; }

private:
  static constexpr size_t bufferBytes = 1 << 16;

  std::string path_, buffer_;
  int fd_ = -1;
  int64_t written_ = 0; // whole records so far
};

} // namespace drt

#endif // DRT_CORE_GROWING_FILE_H
