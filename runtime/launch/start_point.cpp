//===- start_point.cpp - Which checkpoint a run starts from ----------------- ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/start_point.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/output_file.h"
#include "core/error.h"
#include "launch/input_position.h"
#include "launch/supervise.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace drt {
namespace {

bool isFolder(const std::string &path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool isSamePrefix(const std::string &a, const std::string &b) {
  const auto plain = [](const std::string &path) {
    std::error_code ignored;
    const std::filesystem::path absolute = std::filesystem::absolute(path, ignored);
    return absolute.lexically_normal();
  };
  return !a.empty() && !b.empty() && plain(a) == plain(b);
}

} // namespace

CheckpointDirLock::CheckpointDirLock(const std::string &folder) : folder_(folder) {
  std::error_code ignored; // who saves says what is wrong
  made_ = std::filesystem::create_directories(folder, ignored);
  held_ = Socket(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // One that was killed may have to end yet.
  const auto until = Clock::now() + std::chrono::seconds(2);
  while (held_ && flock(held_.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK)
      return;
    if (Clock::now() > until)
      throw Error("--checkpoint-dir " + folder +
                  " is another run's, which still goes on: end it first, or name another folder");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

CheckpointDirLock::~CheckpointDirLock() {
  if (made_)
    rmdir(folder_.c_str()); // only where it is empty
}

std::string newestSoundCheckpoint(const std::string &folder, bool *damaged) {
  return CheckpointManager(folder).latest([damaged](const std::string &prefix) {
    try {
      const CheckpointReader reader(prefix);
      for (const CheckpointTensor &tensor : reader.tensors())
        reader.verify(tensor.name);
      readInputPosition(prefix);
      return true;
    } catch (const Error &error) {
      std::fprintf(stderr, "warning: %s is passed over: %s\n", prefix.c_str(), error.what());
      if (damaged)
        *damaged = true;
      return false;
    }
  });
}

bool hasEnded(const Options &options) {
  if (!options.resume || options.checkpointDir.empty())
    return false;
  // It is settled in task 0 alone.
  const std::string newest =
      options.resume->empty() ? CheckpointManager(options.checkpointDir).latest() : *options.resume;
  if (newest.empty())
    return false;
  std::optional<InputPosition> input;
  try {
    input = readInputPosition(newest);
  } catch (const Error &) {
    return false; // task 0 passes a damaged one over, and says so
  }
  return input && input->finished == runText(options.command) &&
         std::ranges::all_of(std::array{options.exportNpz, options.timeline, options.report, options.logJson},
                             [](const std::string &path) {
                               std::error_code ignored;
                               return path.empty() || std::filesystem::exists(path, ignored);
                             });
}

void checkOutputs(const Options &options) {
  const auto check = [](const char *flag, const std::string &target) {
    std::error_code ignored;
    // Whatever else there is, a device or a pipe, is opened once.
    const auto kind = std::filesystem::status(target, ignored).type();
    if (target.empty() ||
        (kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::none &&
         kind != std::filesystem::file_type::regular && kind != std::filesystem::file_type::directory))
      return;
    try {
      if (kind == std::filesystem::file_type::directory)
        throw Error("it is a folder");
      OutputFile begun(target); // it goes again
    } catch (const Error &error) {
      throw Error(std::string(flag) + " " + target + ": " + error.what());
    }
  };
  check("--export-npz", options.exportNpz);
  check("--timeline", options.timeline);
  check("--report", options.report);
  if (options.checkpointDir.empty())
    return;
  std::error_code error;
  std::filesystem::create_directories(options.checkpointDir, error);
  if (error)
    throw Error("--checkpoint-dir " + options.checkpointDir + ": cannot make the folder: " + error.message());
  try {
    OutputFile begun(options.checkpointDir + "/checkpoint");
  } catch (const Error &failure) {
    throw Error("--checkpoint-dir " + options.checkpointDir + ": " + failure.what());
  }
}

void removeUnfinished(const Options &options) {
  if (!options.checkpointDir.empty())
    CheckpointManager(options.checkpointDir).removeTemporaries();
  for (const std::string &target : {options.exportNpz, options.timeline, options.report})
    if (!target.empty())
      removeTemporariesOf(target);
}

void takeNewestCheckpoint(Options &options) {
  if (!isFolder(options.restore))
    return;
  std::string newest = newestSoundCheckpoint(options.restore);
  // A SavedModel's folder has one, of the values that it was saved with.
  std::error_code ignored;
  if (const std::string saved = options.restore + "/variables/variables";
      newest.empty() && std::filesystem::exists(saved + ".index", ignored))
    newest = saved;
  if (newest.empty())
    throw Error("--restore " + options.restore + ": the folder holds no complete checkpoint");
  options.restore = newest;
  options.command = withFlag(options.command, "--restore", newest);
}

void settleCheckpointDir(Options &options) {
  if (options.checkpointDir.empty() || (options.resume && !options.resume->empty()))
    return;
  bool damaged = false;
  const std::string newest = options.resume ? newestSoundCheckpoint(options.checkpointDir, &damaged)
                                            : CheckpointManager(options.checkpointDir).latest();
  // Nobody asked to begin anew where there is something to repair.
  if (newest.empty() && damaged)
    throw Error("--checkpoint-dir " + options.checkpointDir +
                " holds damaged checkpoints alone: copy one there again, or begin anew with --overwrite");
  if (options.resume) {
    options.resume = newest;
    options.command = withoutFlag(options.command, "--resume");
    if (!newest.empty())
      options.command = withFlag(options.command, "--resume", newest);
    if (newest.empty() && !options.quiet)
      std::fprintf(stderr, "note: %s holds no checkpoint to resume from: the run begins\n",
                   options.checkpointDir.c_str());
  } else if (!options.overwrite && !newest.empty() && !isSamePrefix(newest, options.restore)) {
    throw Error("--checkpoint-dir " + options.checkpointDir + " holds checkpoints of an earlier run, the newest " +
                    newest + ": go on from it with --resume, remove them with --overwrite, or name another folder",
                2);
  }
}

} // namespace drt
