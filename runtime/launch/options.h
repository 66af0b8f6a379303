//===- options.h - The executable's command line --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_OPTIONS_H
#define DRT_LAUNCH_OPTIONS_H

#include "data/feeder.h"
#include "drt/drt.h"
#include "tls/tls.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace drt {

/// --stop-when: "accuracy:0 > 0.99".
struct StopCondition {
  std::string text, name;
  enum { Less, LessOrEqual, Greater, GreaterOrEqual } relation;
  double bound;

  bool holds(double value) const;
};

/// Throws drt::Error that says how a condition is written.
StopCondition parseStopCondition(const std::string &text);

/// What the command line says; defaults where it says nothing.
struct Options {
  std::vector<std::string> command; // argv as it was

  std::string data;
  std::optional<int64_t> steps, epochs, batch;
  std::optional<int64_t> workers; // how many compute, of a program that is compiled for several numbers
  bool shuffle = false;           // set by shuffleWindow, too
  std::optional<int64_t> shuffleWindow;
  LastBatch lastBatch = LastBatch::Mix;
  std::vector<std::pair<std::string, std::string>> features; // of --feature FEED=FEATURE
  std::vector<std::pair<std::string, double>> values;        // of --value FEED=NUMBER
  std::optional<uint64_t> seed;

  /// Continue a run: from this checkpoint, or where it is empty from the newest in checkpointDir, if there is one.
  std::optional<std::string> resume;
  std::string restore;
  bool overwrite = false;
  std::string checkpointDir, exportNpz;
  int64_t saveEvery = 0;
  int keep = 5;
  int maxRestarts = 0;

  std::string evalData;
  int64_t evalEvery = 0;
  std::optional<int64_t> fetchEvery;
  std::optional<StopCondition> stopWhen;

  std::string logJson, timeline, report, summaryDir, tuning;
  bool quiet = false;

  std::string task, rendezvous, secretFile;
  TlsFiles tls;                     // --tls-cert, --tls-key, --tls-ca: none or all; --tls-name
  std::string collectives = "auto"; // or "network"
  double stallWarning = 60, failureTimeout = 10;
  std::optional<double> arrivalTimeout; // set when parsed
  std::optional<int64_t> minWorkers;    // set where the run is elastic
  std::optional<int64_t> maxWorkers;
  double lastCall = 5;
  bool pin = true, shareDevices = false;

  std::string plan; // "tables" or "full", "" to train
  bool eval = false;
  std::vector<std::string> fetches;
};

/// Reads the command line. Returns nothing where it asked for help, which has
/// then been printed. Throws drt::Error with exit status 2.
std::optional<Options> parseOptions(const drt_program &program, int argc, char **argv);

/// What the flags say of the training data, but for the seed of their order.
FeederConfig feedingOf(const Options &options);

} // namespace drt

#endif // DRT_LAUNCH_OPTIONS_H
