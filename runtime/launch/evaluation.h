//===- evaluation.h - Forward only, over all of the data ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_EVALUATION_H
#define DRT_LAUNCH_EVALUATION_H

#include "core/task.h"
#include "data/feeder.h"
#include "launch/step_log.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace drt {

/// The fetch of that name, whose ":0" may be left out; null where the entry has none, or is null.
const drt_fetch *findFetch(const drt_entry *entry, std::string_view name);

/// What the entry "eval" gives over all of the data, by the task's own replicas. No variable changes. Each fetch is
/// what one replica gives on the whole data, whatever the number of replicas. Throws drt::Error.
class Evaluation {
public:
  /// names: of the fetches to compute, none for all that are compiled in. `data` outlives it.
  /// Of `feeding` what says how the data are read counts: features, values.
  Evaluation(TaskRuntime &task, const Dataset *data, const std::vector<std::string> &names, FeederConfig feeding);
  ~Evaluation();

  void run();

  // Of the last run.
  void print() const;                        // a line a fetch, on stdout
  void write(const std::string &path) const; // .npz
  std::vector<NamedValue> numbers() const;   // the fetches that are one number

private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

} // namespace drt

#endif // DRT_LAUNCH_EVALUATION_H
