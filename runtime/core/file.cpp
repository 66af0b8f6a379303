//===- file.cpp - Files that are there whole or not at all ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/file.h"
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

OutputFile::OutputFile(const std::string &path, Mode mode) : path_(path) {
  if (mode == Aside)
    aside_ = path + ".tmp-" + std::to_string(getpid());
  const std::string &opened = mode == Aside ? aside_ : path_;
  fd_ = open(opened.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0)
    throw Error("cannot write " + path_ + ": " + std::strerror(errno));
  buffer_.reserve(bufferBytes);
}

OutputFile::~OutputFile() {
  if (fd_ < 0)
    return;
  if (!aside_.empty())
    unlink(aside_.c_str());
  else
    while (!buffer_.empty()) {
      const ssize_t n = ::write(fd_, buffer_.data(), buffer_.size());
      if (n <= 0)
        break;
      buffer_.erase(0, static_cast<size_t>(n));
    }
  close(fd_);
}

void OutputFile::fail() {
  const std::string reason = std::strerror(errno);
  if (!aside_.empty())
    unlink(aside_.c_str());
  else if (ftruncate(fd_, written_) != 0) {
    // A pipe or a terminal: nothing to cut.
  }
  buffer_.clear();
  close(fd_);
  fd_ = -1;
  throw Error("cannot write " + path_ + ": " + reason + (aside_.empty() ? "" : "; nothing was left behind"));
}

void OutputFile::flush() {
  size_t done = 0;
  while (done < buffer_.size() && fd_ >= 0) {
    const ssize_t n = ::write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      fail();
    done += static_cast<size_t>(n);
  }
  written_ += static_cast<int64_t>(done);
  buffer_.clear();
}

void OutputFile::finish() {
  flush();
  if (fd_ < 0)
    return;
  const int fd = fd_;
  if (!aside_.empty() && fsync(fd) != 0 && errno != EINVAL && errno != EROFS)
    fail();
  fd_ = -1;
  if (close(fd) != 0 || (!aside_.empty() && rename(aside_.c_str(), path_.c_str()) != 0)) {
    const std::string reason = std::strerror(errno);
    if (!aside_.empty())
      unlink(aside_.c_str());
    throw Error("cannot write " + path_ + ": " + reason);
  }
}

} // namespace drt
