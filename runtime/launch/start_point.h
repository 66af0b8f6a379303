//===- start_point.h - Which checkpoint a run starts from ------------------- ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_START_POINT_H
#define DRT_LAUNCH_START_POINT_H

#include "launch/options.h"
#include "launch/socket.h"

#include <string>

namespace drt {

/// The newest checkpoint in a folder that can be gone on from: every checksum and its place in the data are right. ""
/// where there is none. Says on stderr which ones are damaged, and how.
/// `damaged`: set where there are such.
std::string newestSoundCheckpoint(const std::string &folder, bool *damaged = nullptr);

/// A run's hold on --checkpoint-dir, until it is destroyed or its process ends: two runs that save in one folder would
/// take each other's checkpoints for their own. Makes the folder; one in which nothing was saved goes again.
class CheckpointDirLock {
public:
  /// Throws drt::Error where another run of this machine has the folder, and does not end within a moment. A file
  /// system without locks has none.
  explicit CheckpointDirLock(const std::string &folder);
  ~CheckpointDirLock();
  CheckpointDirLock(const CheckpointDirLock &) = delete;
  CheckpointDirLock &operator=(const CheckpointDirLock &) = delete;

private:
  const std::string folder_;
  bool made_ = false;
  Socket held_;
};

/// Whether this very run has ended at the checkpoint from which the task, any one, is to resume, and all that was to
/// be written is there. False in a task that sees no checkpoints.
bool hasEnded(const Options &options);

/// Throws where a file or folder that the run writes at its end could not be written: the training would be lost.
void checkOutputs(const Options &options);

/// Removes what tasks of this run, or of one before it, left unfinished when they were killed. Not while one runs.
void removeUnfinished(const Options &options);

/// Where --restore names a folder: its newest checkpoint instead, in the command as well. Throws where it holds none.
void takeNewestCheckpoint(Options &options);

/// Settles what becomes of the checkpoints that an earlier run left in --checkpoint-dir: --resume gets the newest's
/// prefix, in the command as well. Throws where neither --resume nor --overwrite is said, and this run does not start
/// from the newest of them, and where --resume finds damaged ones alone. (What --overwrite removes goes when all else
/// was right: see Trainer::openFiles.)
void settleCheckpointDir(Options &options);

} // namespace drt

#endif // DRT_LAUNCH_START_POINT_H
