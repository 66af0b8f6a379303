//===- output_file.h - A file that is there complete or not at all --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Bytes go to a file beside the target; publish() renames it. Until then, and
// where anything fails, the target is as it was, and the destructor removes the
// file beside it. A symbolic link stays, and what it names is written. What is no
// regular file (a device, a pipe) is written to as it is: nothing takes its place.
// Errors name the file, and for a full disk what is free.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CHECKPOINT_OUTPUT_FILE_H
#define DRT_CHECKPOINT_OUTPUT_FILE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace drt {

class OutputFile {
public:
  // `temporary`: where the bytes go meanwhile, in the same folder; "": a name
  // made from the target's.
  explicit OutputFile(const std::string &target, const std::string &temporary = "");
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  // Small pieces are gathered, large ones go to the file straight from `data`.
  void write(const void *data, size_t bytes);
  int64_t position() const { return position_; }

  // All bytes to the disk; the file keeps its temporary name.
  void sync();
  // sync(), then the rename. The folder's entry is not yet on the disk: see
  // syncFolder.
  void publish();
  // sync(); the file stays under its temporary name, for who publishes it.
  void leave();

private:
  void flush();
  void syncAndClose();
  void writeOut(const char *data, size_t bytes);

  std::string target, temporary; // temporary: "" where bytes go to the target itself
  int fd = -1;
  std::vector<char> gathered;
  int64_t position_ = 0;
  int64_t writtenBack = 0;
};

// Removes what lies under a temporary name. For a process that is about to
// _exit: no file can be begun or published afterwards.
void removeUnfinishedFiles();

// Removes what a process that was killed has left beside `target`. Not while one writes it.
void removeTemporariesOf(const std::string &target);

// Makes renames and removals in the folder of `path` last over a power cut.
void syncFolder(const std::string &path);

// The folder of a path, "." where it names none.
std::string folderOf(const std::string &path);

// "cannot write F: No space left on device (0 MB free in D) ..." for errno.
std::string writeErrorText(const std::string &path, int error);

} // namespace drt
#endif // DRT_CHECKPOINT_OUTPUT_FILE_H
