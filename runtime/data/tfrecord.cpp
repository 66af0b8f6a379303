//===- tfrecord.cpp - TFRecord files, read one after the other ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/tfrecord.h"

#include "checkpoint/crc32c.h"
#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace drt {
namespace {

constexpr int64_t headBytes = 12, footBytes = 4; // length and its checksum; the checksum of the bytes
// Read at once. Of records that are longer the heads are read alone.
constexpr int64_t blockBytes = 256 << 10;
constexpr int64_t mostRecordBytes = INT32_MAX; // a message of Protocol Buffers is no longer

template <typename T> T field(const char *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// A file that is open for reading at any place.
class File {
public:
  explicit File(const std::string &path) : path_(path), fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status;
    if (fd_ < 0 || fstat(fd_, &status) != 0)
      throw Error("cannot read " + path + ": " + strerror(errno));
    if (!S_ISREG(status.st_mode))
      throw Error("cannot read " + path + ": it is no regular file");
    bytes_ = status.st_size;
  }
  ~File() {
    if (fd_ >= 0)
      close(fd_);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;

  const std::string &path() const { return path_; }
  int64_t bytes() const { return bytes_; }

  // As many bytes as there are, `count` at most.
  int64_t read(int64_t offset, int64_t count, char *into) const {
    int64_t done = 0;
    while (done < count) {
      const ssize_t more = pread(fd_, into + done, static_cast<size_t>(count - done), offset + done);
      if (more < 0 && errno == EINTR)
        continue;
      if (more < 0)
        throw Error("cannot read " + path_ + ": " + strerror(errno));
      if (more == 0)
        break;
      done += more;
    }
    return done;
  }

  // Tells the system what is needed soon.
  void prefetch(int64_t offset, int64_t count) const { posix_fadvise(fd_, offset, count, POSIX_FADV_WILLNEED); }

private:
  std::string path_;
  int fd_;
  int64_t bytes_ = 0;
};

// A part of a file in memory.
class Block {
public:
  // The bytes [offset, offset + count) if they lie in the block, else null.
  const char *find(int64_t offset, int64_t count) const {
    return offset >= begin_ && offset + count <= begin_ + held_ ? memory_.data() + (offset - begin_) : nullptr;
  }
  // Reads `count` bytes from `offset` on, or up to the end of the file; null where fewer than `needed` are left.
  const char *load(const File &file, int64_t offset, int64_t needed, int64_t count) {
    if (static_cast<int64_t>(memory_.size()) < count || static_cast<int64_t>(memory_.size()) > 4 * count + blockBytes) {
      memory_.resize(count);
      memory_.shrink_to_fit();
    }
    begin_ = offset;
    held_ = 0;
    held_ = file.read(offset, count, memory_.data());
    return held_ >= needed ? memory_.data() : nullptr;
  }
  void clear() { held_ = 0; }

private:
  int64_t begin_ = 0, held_ = 0;
  std::vector<char> memory_;
};

// What a compressed file holds, from its first byte on.
class Inflated {
public:
  explicit Inflated(const File &file) : file_(file), packed_(blockBytes), unpacked_(blockBytes) {
    constexpr int gzipOrZlib = 32;
    if (inflateInit2(&stream_, MAX_WBITS + gzipOrZlib) != Z_OK)
      throw Error(file.path() + ": zlib cannot start");
  }
  ~Inflated() { inflateEnd(&stream_); }
  Inflated(const Inflated &) = delete;
  Inflated &operator=(const Inflated &) = delete;

  // As many bytes as there are, `count` at most.
  int64_t read(int64_t count, char *into) {
    int64_t done = 0;
    while (done < count) {
      if (taken_ == made_ && !unpack())
        break;
      const int64_t more = std::min(count - done, made_ - taken_);
      std::memcpy(into + done, unpacked_.data() + taken_, more);
      taken_ += more;
      done += more;
    }
    return done;
  }

private:
  bool unpack() {
    taken_ = made_ = 0;
    stream_.next_out = reinterpret_cast<Bytef *>(unpacked_.data());
    stream_.avail_out = static_cast<uInt>(unpacked_.size());
    while (stream_.avail_out == unpacked_.size()) {
      if (stream_.avail_in == 0) {
        const int64_t more = file_.read(position_, static_cast<int64_t>(packed_.size()), packed_.data());
        position_ += more;
        stream_.next_in = reinterpret_cast<Bytef *>(packed_.data());
        stream_.avail_in = static_cast<uInt>(more);
        if (more == 0 && ended_)
          return false;
        if (more == 0)
          throw Error(file_.path() + " is truncated: its compressed data break off");
      }
      if (ended_) { // files that were joined
        inflateReset(&stream_);
        ended_ = false;
      }
      const int status = inflate(&stream_, Z_NO_FLUSH);
      ended_ = status == Z_STREAM_END;
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        throw Error(file_.path() + " is damaged: its compressed data cannot be unpacked" +
                    (stream_.msg ? std::string(" (") + stream_.msg + ")" : ""));
    }
    made_ = static_cast<int64_t>(unpacked_.size()) - stream_.avail_out;
    return made_ > 0;
  }

  const File &file_;
  z_stream stream_{};
  std::vector<char> packed_, unpacked_;
  int64_t position_ = 0, taken_ = 0, made_ = 0;
  bool ended_ = false;
};

bool isHead(const char *head) {
  return maskCrc32c(crc32c(0, head, sizeof(uint64_t))) == field<uint32_t>(head + sizeof(uint64_t));
}

RecordFormat formatOf(const File &file) {
  char head[headBytes];
  const int64_t bytes = file.read(0, headBytes, head);
  if (bytes == 0 || (bytes == headBytes && isHead(head)))
    return RecordFormat::Plain;
  const auto byte = [&](int i) { return static_cast<uint8_t>(head[i]); };
  const bool gzip = bytes >= 2 && byte(0) == 0x1f && byte(1) == 0x8b;
  const bool zlib = bytes >= 2 && (byte(0) & 0x0f) == Z_DEFLATED && (byte(0) * 256 + byte(1)) % 31 == 0;
  return gzip || zlib ? RecordFormat::Compressed : RecordFormat::None;
}

} // namespace

RecordFormat recordFormat(const std::string &path) { return formatOf(File(path)); }

struct RecordFiles::Impl {
  std::vector<std::string> paths;
  std::vector<RecordFormat> formats;
  std::vector<int64_t> sizes;

  // The files that were read last, the newest first.
  struct Opened {
    int32_t index;
    std::unique_ptr<File> file;
  };
  std::deque<Opened> opened;

  // Where the sequence goes on.
  int32_t current = -1;
  std::unique_ptr<File> file;
  std::unique_ptr<Inflated> inflated;
  int64_t offset = 0, number = 0, longest = 0; // longest: record of the file so far
  int64_t prefetched = 0;
  Block heads, contents;

  [[noreturn]] void damaged(const std::string &why) const {
    throw Error(paths[current] + ": record " + std::to_string(number) + " " + why);
  }

  void openNext() {
    ++current;
    inflated.reset();
    file.reset();
    heads.clear();
    offset = number = longest = prefetched = 0;
    if (current >= static_cast<int32_t>(paths.size()))
      return;
    file = std::make_unique<File>(paths[current]);
    if (formats[current] == RecordFormat::Compressed)
      inflated = std::make_unique<Inflated>(*file);
  }

  int64_t lengthOf(const char *head) const {
    if (!isHead(head))
      damaged("is damaged: the checksum of its length is wrong");
    const auto length = field<uint64_t>(head);
    if (length > static_cast<uint64_t>(mostRecordBytes))
      damaged("has " + std::to_string(length) + " bytes, more than a tf.Example can have");
    return static_cast<int64_t>(length);
  }

  void verify(const char *bytes, int64_t length, const std::string &what) const {
    if (maskCrc32c(crc32c(0, bytes, static_cast<size_t>(length))) != field<uint32_t>(bytes + length))
      throw Error(what + " is damaged: its checksum is wrong");
  }

  bool nextPlain(Record &record) {
    if (offset == file->bytes())
      return false;
    // Some megabytes ahead, since the system's own guess ends where heads are read alone.
    constexpr int64_t ahead = 8 << 20;
    if (offset + ahead / 2 > prefetched) {
      file->prefetch(std::max(offset, prefetched), ahead);
      prefetched = offset + ahead;
    }
    const char *head = heads.find(offset, headBytes);
    if (!head)
      head = heads.load(*file, offset, headBytes, longest > blockBytes / 4 ? headBytes : blockBytes);
    if (!head)
      damaged("is truncated: the file ends within it");
    const int64_t length = lengthOf(head);
    if (length + headBytes + footBytes > file->bytes() - offset)
      damaged("is truncated: it has " + std::to_string(length) + " bytes, but the file ends before");
    record = {current, number, offset + headBytes, length, nullptr};
    offset += headBytes + length + footBytes;
    longest = std::max(longest, length);
    return true;
  }

  bool nextInflated(Record &record) {
    char head[headBytes];
    const int64_t read = inflated->read(headBytes, head);
    if (read == 0)
      return false;
    if (read < headBytes)
      damaged("is truncated: the file ends within it");
    const int64_t length = lengthOf(head);
    std::shared_ptr<char[]> bytes(new char[length + footBytes]);
    if (inflated->read(length + footBytes, bytes.get()) < length + footBytes)
      damaged("is truncated: the file ends within it");
    record = {current, number, 0, length, std::move(bytes)};
    return true;
  }

  const File &opening(int32_t index) {
    if (file && index == current)
      return *file;
    constexpr size_t most = 16;
    const auto found = std::find_if(opened.begin(), opened.end(), [&](const Opened &o) { return o.index == index; });
    if (found != opened.end())
      return *found->file;
    if (opened.size() == most)
      opened.pop_back();
    opened.push_front({index, std::make_unique<File>(paths[index])});
    return *opened.front().file;
  }
};

RecordFiles::RecordFiles(std::vector<std::string> paths) : impl_(std::make_unique<Impl>()) {
  for (const std::string &path : paths) {
    const File file(path);
    impl_->formats.push_back(formatOf(file));
    impl_->sizes.push_back(file.bytes());
    if (impl_->formats.back() == RecordFormat::None)
      throw Error(path + " is no TFRecord file: the checksum of its first record's length is wrong, and it is not "
                         "compressed by gzip or zlib");
  }
  impl_->paths = std::move(paths);
}

RecordFiles::~RecordFiles() = default;

bool RecordFiles::isSeekable() const {
  return std::all_of(impl_->formats.begin(), impl_->formats.end(),
                     [](RecordFormat format) { return format == RecordFormat::Plain; });
}

bool RecordFiles::next(Record &record) {
  Impl &i = *impl_;
  const auto count = static_cast<int32_t>(i.paths.size());
  if (i.current < 0)
    i.openNext();
  while (i.current < count) {
    if (i.inflated ? i.nextInflated(record) : i.nextPlain(record)) {
      ++i.number;
      return true;
    }
    i.openNext();
  }
  return false;
}

void RecordFiles::rewind() {
  impl_->current = -1;
  impl_->inflated.reset();
  impl_->file.reset();
}

std::string_view RecordFiles::read(const Record &record) {
  Impl &i = *impl_;
  const char *bytes = record.contents.get();
  if (!bytes && i.file && record.file == i.current)
    bytes = i.heads.find(record.offset, record.bytes + footBytes);
  if (!bytes) {
    const int64_t needed = record.bytes + footBytes;
    bytes = i.contents.load(i.opening(record.file), record.offset, needed, needed);
  }
  if (!bytes)
    throw Error(describe(record) + " is truncated: the file has become shorter");
  i.verify(bytes, record.bytes, describe(record));
  return {bytes, static_cast<size_t>(record.bytes)};
}

std::string RecordFiles::describe(const Record &record) const {
  return impl_->paths[record.file] + ": record " + std::to_string(record.number);
}

uint32_t RecordFiles::digest() const {
  constexpr int64_t most = 1 << 16;
  uint32_t digest = crc32c(0, impl_->sizes.data(), impl_->sizes.size() * sizeof(int64_t));
  std::vector<char> part(most);
  for (const std::string &path : {impl_->paths.front(), impl_->paths.back()}) {
    const File file(path);
    for (const int64_t offset : {int64_t{0}, std::max<int64_t>(file.bytes() - most, 0)}) {
      const int64_t bytes = file.read(offset, most, part.data());
      digest = crc32c(digest, part.data(), static_cast<size_t>(bytes));
    }
  }
  return digest;
}

} // namespace drt
