//===- launch_command.h - distc launch ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// distc launch PROGRAM --resources R.yml [--port P] [--directory D] -- FLAGS
//
// Starts the tasks of an executable on the hosts of its plan, over ssh. No LLVM, so it is compiled with exceptions.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TOOLS_LAUNCH_COMMAND_H
#define DISTC_TOOLS_LAUNCH_COMMAND_H

#include <CLI/CLI.hpp>

#include <string>

namespace distc {

struct LaunchArguments {
  std::string program, resources, directory;
  int port = 29500;
};

// Declares the command line of `launch` on `app`.
void declareLaunchCommand(CLI::App &app, LaunchArguments &arguments);

// argv[0] is "launch" or what stands for it; what stands behind "--" are the tasks' flags. Returns when all tasks have
// ended: 0 where all did well, else the status of the first that failed, 2 where the command line is wrong, 1 where no
// task could be started, 128 + the signal that ended it. Throws nothing.
int launchCommand(int argc, const char *const *argv);

} // namespace distc
#endif // DISTC_TOOLS_LAUNCH_COMMAND_H
