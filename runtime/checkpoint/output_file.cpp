//===- output_file.cpp - A file that is there complete or not at all ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "checkpoint/output_file.h"

#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <set>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace drt {
namespace {

constexpr size_t kGathered = size_t(1) << 20;
constexpr const char *kTemporary = ".tempstate"; // and the process that writes
// One write(2) at most: large enough that the call costs nothing, and Linux
// takes no more than 2 GiB at once.
constexpr size_t kLargestWrite = size_t(64) << 20;
// Hand pages to the disk as they come, so that sync() has little left to do.
constexpr int64_t kWriteBack = int64_t(64) << 20;

} // namespace

std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash ? path.substr(0, slash) : "/";
}

std::string writeErrorText(const std::string &path, int error) {
  std::string text = "cannot write " + path + ": " + strerror(error);
  struct statvfs disk;
  if (error == ENOSPC && statvfs(folderOf(path).c_str(), &disk) == 0)
    text += " (" + std::to_string(uint64_t(disk.f_bavail) * disk.f_frsize >> 20) + " MB free in " + folderOf(path) +
            "); free some, or choose another folder";
  else if (error == EDQUOT)
    text += "; free some of the quota, or choose another folder";
  else if (error == EFBIG)
    text += "; raise the limit on file sizes (ulimit -f), or choose another file system";
  return text;
}

// Temporary names, for a process that must end at once.
struct Unfinished {
  std::mutex mutex;
  std::set<std::string> names;
};

static Unfinished &unfinished() {
  static Unfinished files;
  return files;
}

void removeUnfinishedFiles() {
  // Never unlocked: who writes meanwhile must not begin another file.
  unfinished().mutex.lock();
  for (const std::string &name : unfinished().names)
    unlink(name.c_str());
}

void removeTemporariesOf(const std::string &target) {
  const std::string start = std::filesystem::path(target).filename().string() + kTemporary;
  std::error_code ignored;
  for (const auto &file : std::filesystem::directory_iterator(folderOf(target), ignored))
    if (const std::string name = file.path().filename().string();
        name.starts_with(start) && name.find_first_not_of("0123456789", start.size()) == std::string::npos)
      std::filesystem::remove(file.path(), ignored);
}

void syncFolder(const std::string &path) {
  int fd = open(folderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0)
    return; // some network file systems have no folders to sync
  fsync(fd);
  close(fd);
}

/// What a symbolic link names, else the path itself.
static std::string followLinks(const std::string &path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error))
    return path;
  const std::filesystem::path followed = std::filesystem::weakly_canonical(path, error);
  return error ? path : followed.string();
}

static bool isSpecial(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

OutputFile::OutputFile(const std::string &path, const std::string &aside) : target(followLinks(path)) {
  if (isSpecial(target)) {
    fd = open(target.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0)
      throw Error(writeErrorText(target, errno));
    return;
  }
  temporary = aside.empty() ? target + kTemporary + std::to_string(getpid()) : aside;
  std::lock_guard lock(unfinished().mutex);
  fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0)
    throw Error(writeErrorText(target, errno));
  unfinished().names.insert(temporary);
}

OutputFile::~OutputFile() {
  if (fd >= 0)
    close(fd);
  if (!temporary.empty()) {
    std::lock_guard lock(unfinished().mutex);
    unlink(temporary.c_str());
    unfinished().names.erase(temporary);
  }
}

void OutputFile::writeOut(const char *data, size_t bytes) {
  while (bytes) {
    ssize_t n = ::write(fd, data, std::min(bytes, kLargestWrite));
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      throw Error(writeErrorText(target, errno));
    data += n;
    bytes -= size_t(n);
  }
}

void OutputFile::flush() {
  writeOut(gathered.data(), gathered.size());
  gathered.clear();
}

void OutputFile::write(const void *data, size_t bytes) {
  const char *from = static_cast<const char *>(data);
  position_ += int64_t(bytes);
  if (gathered.size() + bytes <= kGathered) {
    gathered.insert(gathered.end(), from, from + bytes);
    return;
  }
  flush();
  if (bytes <= kGathered / 2)
    gathered.assign(from, from + bytes);
  else
    writeOut(from, bytes);
#ifdef SYNC_FILE_RANGE_WRITE
  if (int64_t done = position_ - int64_t(gathered.size()); done - writtenBack >= kWriteBack) {
    sync_file_range(fd, writtenBack, done - writtenBack, SYNC_FILE_RANGE_WRITE);
    writtenBack = done;
  }
#endif
}

void OutputFile::sync() {
  flush();
  // EINVAL: what is written to does not support it (a pipe).
  if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
    throw Error(writeErrorText(target, errno));
}

void OutputFile::syncAndClose() {
  sync();
  int closing = fd;
  fd = -1;
  if (close(closing) != 0)
    throw Error(writeErrorText(target, errno));
}

void OutputFile::publish() {
  syncAndClose();
  if (temporary.empty())
    return;
  std::lock_guard lock(unfinished().mutex);
  if (rename(temporary.c_str(), target.c_str()) != 0)
    throw Error(writeErrorText(target, errno));
  unfinished().names.erase(temporary);
  temporary.clear();
}

void OutputFile::leave() {
  syncAndClose();
  std::lock_guard lock(unfinished().mutex);
  unfinished().names.erase(temporary);
  temporary.clear();
}

} // namespace drt
