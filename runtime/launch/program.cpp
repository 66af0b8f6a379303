//===- program.cpp - What an executable does ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/program.h"
#include "core/error.h"
#include "launch/signals.h"
#include "launch/start_point.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

namespace drt {
namespace {

void checkProgram(const drt_program &program) {
  if (program.abi_version != DRT_ABI_VERSION)
    throw Error("the program was compiled for version " + std::to_string(program.abi_version) +
                    " of the runtime, but linked with version " + std::to_string(DRT_ABI_VERSION) +
                    "; compile it again with the distc that this runtime belongs to",
                70);
#if defined(__x86_64__)
  // Gradients are reduced with these, whatever the program itself was compiled for.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    throw Error("this machine's processor has no AVX2 and FMA instructions, which the program (target " +
                std::string(program.target) + ") needs; run it on an x86-64-v3 machine");
#endif
}

// One line a stream: stdout may be a pipe that a task's parent reads.
int fail(const char *what, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "error: %s\n", what);
  return status;
}

} // namespace

const drt_program &jointProgram(const drt_program &program) {
  return &drt_the_joint_program ? drt_the_joint_program : program;
}

bool isJoint(const drt_program &program) { return &program == &drt_the_joint_program; }

int runProgram(const drt_program &program, int argc, char **argv) {
  try {
    ignoreWriteSignals();
    checkProgram(program);
    std::optional<Options> options = parseOptions(program, argc, argv);
    if (!options)
      return 0;
    if (!options->plan.empty()) {
      const drt_program &planned = options->collectives == "network" ? program : jointProgram(program);
      std::fputs(planText(planned, options->plan == "full").c_str(), stdout);
      return 0;
    }
    takeNewestCheckpoint(*options);
    return options->eval ? evaluate(program, *options) : train(program, *options);
  } catch (const Error &error) {
    return fail(error.what(), error.exitStatus());
  } catch (const std::bad_alloc &) {
    return fail("out of memory; use a smaller batch, or more tasks with fewer replicas each", 1);
  } catch (const std::exception &error) {
    return fail((std::string(error.what()) + " (an internal error of the runtime)").c_str(), 70);
  }
}

} // namespace drt
