//===- tfrecord.h - TFRecord files, read one after the other --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A record is its length (64 bits), the length's checksum, its bytes, and their checksum (masked CRC-32C each). A file
// may be compressed as a whole by gzip or zlib, which its first bytes tell.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_DATA_TFRECORD_H
#define DRT_DATA_TFRECORD_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

/// What a file's first bytes say of it.
enum class RecordFormat { None, Plain, Compressed };
RecordFormat recordFormat(const std::string &path);

/// Where a record is: of a plain file a place in it, of a compressed one the bytes themselves.
struct Record {
  int32_t file = 0;
  int64_t number = 0; // in its file
  int64_t offset = 0, bytes = 0;
  std::shared_ptr<const char[]> contents;
};

/// The records of several files as one sequence. Memory does not grow with the files. Throws drt::Error that names the
/// file and the record.
class RecordFiles {
public:
  explicit RecordFiles(std::vector<std::string> paths);
  ~RecordFiles();

  /// Whether the records of every file can be read in any order.
  bool isSeekable() const;

  /// The next record; of a plain file its head alone is read. False after the last one.
  bool next(Record &record);
  /// The first record is next again.
  void rewind();

  /// A record's bytes, whose checksum has been verified; readable until the next call.
  std::string_view read(const Record &record);

  /// "FILE: record 3", for messages.
  std::string describe(const Record &record) const;

  /// Tells other files from these: a checksum of their sizes, and of the first and the last bytes of the first and the
  /// last file.
  uint32_t digest() const;

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace drt

#endif // DRT_DATA_TFRECORD_H
