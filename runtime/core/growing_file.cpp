//===- growing_file.cpp - Files that grow while a program runs ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/growing_file.h"
#include "core/error.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace drt {

std::string jsonString(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", c);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

GrowingFile::GrowingFile(const std::string &path, int64_t keep) : path_(path), written_(keep) {
  fd_ = open(path.c_str(), O_WRONLY | O_CREAT | (keep > 0 ? 0 : O_TRUNC) | O_CLOEXEC, 0666);
  // Where nothing is kept there may be nothing to cut: a pipe or a terminal.
  if (fd_ < 0 || (keep > 0 && (ftruncate(fd_, keep) != 0 || lseek(fd_, keep, SEEK_SET) != keep))) {
    const std::string reason = std::strerror(errno);
    if (fd_ >= 0)
      close(fd_);
    throw Error("cannot write " + path_ + ": " + reason);
  }
  buffer_.reserve(bufferBytes);
}

GrowingFile::~GrowingFile() {
  try {
    flush();
  } catch (const Error &) {
    // Something else ended the run, and has been said.
  }
  close(fd_);
}

void GrowingFile::flush() {
  for (size_t done = 0; done < buffer_.size();) {
    const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      const std::string reason = std::strerror(errno);
      buffer_.clear();
      if (ftruncate(fd_, written_) != 0) {
        // A pipe or a terminal: nothing to cut.
      }
      throw Error("cannot write " + path_ + ": " + reason);
    }
    done += static_cast<size_t>(n);
  }
  written_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
}

void GrowingFile::sync() {
  flush();
  // EINVAL, EROFS: what is written to cannot be synced (a pipe, a terminal).
  if (fsync(fd_) != 0 && errno != EINVAL && errno != EROFS)
    throw Error("cannot write " + path_ + ": " + std::strerror(errno));
}

} // namespace drt
