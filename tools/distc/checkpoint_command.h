//===- checkpoint_command.h - distc checkpoint ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// distc checkpoint list PREFIX
// distc checkpoint diff A B                               (prefixes, .npz or .safetensors)
// distc checkpoint export PREFIX OUT.npz|OUT.safetensors
// distc checkpoint import IN.npz|IN.safetensors PREFIX
//
// Knows the runtime's files alone; no LLVM, so it is compiled with exceptions.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_CHECKPOINT_COMMAND_H
#define DISTC_TOOLS_CHECKPOINT_COMMAND_H

#include <CLI/CLI.hpp>

#include <string>

namespace distc {

// What the command is asked for: which of its commands, and their two files.
struct CheckpointArguments {
  std::string from, to;
  CLI::App *list, *diff, *write, *read;
};

// Declares the command line of `checkpoint` on `app`.
void declareCheckpointCommand(CLI::App &app, CheckpointArguments &arguments);

// argv[0] is "checkpoint" or what stands for it. Prints to stdout, errors to
// stderr; returns the exit status: 0 done (diff: equal), 1 the input is wrong
// (diff: different; list: a wrong checksum), 2 the command line is wrong. Throws nothing.
int checkpointCommand(int argc, const char *const *argv);

} // namespace distc
#endif // DISTC_TOOLS_CHECKPOINT_COMMAND_H
