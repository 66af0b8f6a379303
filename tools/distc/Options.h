//===- Options.h - What distc is asked to do --------------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_DISTC_OPTIONS_H
#define DISTC_TOOLS_DISTC_OPTIONS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace distc {

/// Of `--replicas` and `--ps` of one machine: each is a thread or a process.
inline constexpr int kMostReplicas = 4096;

/// What `--precision` can be.
inline const std::vector<std::string> kPrecisions = {"fp32", "tf32", "bf16", "fp16"};

/// What the command line of `compile`, `run`, `inspect` and `strategy` says. The names are the flags'.
struct CompileOptions {
  std::string graph, strategy = "AllReduce", resources, output = "train", emit = "exe", target = "cpu", runtime,
                     precision = "fp32";
  std::string trainOp, loss, initOp;
  std::vector<std::string> fetches, feeds;
  /// `--emit=html`: what runs of the executable wrote.
  std::vector<std::string> timelines;
  /// `strategy diff`: what `strategy` is compared with.
  std::string otherStrategy;
  int64_t batch = 0;
  /// Replicas on this machine; 0 where `resources` says which there are.
  int replicas = 1, servers = 0;
  bool oneProcessPerReplica = false;
  /// Whether any of these was said, and not left out.
  bool saysWhere = false;
  /// The executable has the programs of fewer workers, too, down to so many; 0: of all of them alone.
  int minWorkers = 0;
  /// Whether tasks can encrypt what they say to each other.
  bool tls = false;
  /// Cores that compute each replica's step together; 0: not said.
  int coresPerReplica = 0;
  uint64_t maxMemory = 0; // bytes; 0: whatever the step takes
  /// How often loops run at most that nothing bounds, but that need a bound; 0: they are refused.
  int64_t maxIterations = 0;
  /// Whether the executable has the graph's initializers; without them it starts from checkpoints alone.
  bool init = true;
  /// Whether a step can be given fewer examples than a batch.
  bool padsBatch = false;
  /// Whether the IR is written without what only an export to TensorFlow needs.
  bool stripsExportInfo = false;
  /// Whether the step gives the values of the graph's scalar summaries.
  bool summaries = false;
  /// `inspect`: whether all that must run has code for the target.
  bool check = false;
  /// Check indices and labels when the program runs.
  bool asserts = true;
  bool cache = true; // of code that was generated before
  /// A compilation ended by an internal error, and this is the same once more: it says nothing, and keeps each stage's
  /// module until the stage is done, for the reproducer.
  bool writesReproducer = false;
  /// Say at the end how long each pass took.
  bool timing = false;
  /// Say what the tools that distc calls have to say.
  bool verbose = false;
  /// `run`: what the executable is given.
  std::vector<std::string> runArguments;
};

enum ExitStatus { kDone = 0, kWrongInput = 1, kWrongCommand = 2, kInternalError = 70 };

/// Each returns an exit status; what is wrong was said on stderr, in one line that holds "error:".
int compileCommand(const CompileOptions &options);
int runCommand(const CompileOptions &options);
int inspectCommand(const CompileOptions &options);
/// `inspect --check`: whether everything that the endpoints need has code for the target.
int checkCommand(const CompileOptions &options);
/// What can be built, and the keys of each, for help.
std::string describeBuilders();
std::vector<std::string> listBuilders();
int strategyBuildCommand(const CompileOptions &options);
int strategyShowCommand(const CompileOptions &options);
/// As diff: kWrongInput as well where the strategies differ.
int strategyDiffCommand(const CompileOptions &options);

} // namespace distc

#endif // DISTC_TOOLS_DISTC_OPTIONS_H
