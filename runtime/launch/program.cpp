//===- program.cpp - What an executable does ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/program.h"
#include "core/error.h"
#include "launch/launchers.h"
#include "launch/signals.h"
#include "launch/start_point.h"
#include "launch/tasks.h"

#include <algorithm>
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

std::vector<const drt_program *> programsOf(const drt_program &program) {
  if (&drt_the_programs) {
    const std::vector<const drt_program *> all(drt_the_programs.programs,
                                               drt_the_programs.programs + drt_the_programs.num_programs);
    if (std::find(all.begin(), all.end(), &program) != all.end())
      return all;
  }
  return {&program};
}

const drt_program *programOf(const drt_program &program, int64_t workers) {
  const std::vector<const drt_program *> all = programsOf(program);
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto *one) { return one->num_tasks == workers; });
  return found == all.end() ? nullptr : *found;
}

std::vector<int> elasticSizes(const drt_program &program, const Options &options) {
  std::vector<int> sizes;
  for (const drt_program *one : programsOf(program))
    if (one->num_tasks >= options.minWorkers.value_or(1) && one->num_tasks <= options.maxWorkers.value_or(INT32_MAX))
      sizes.push_back(one->num_tasks);
  return sizes;
}

std::string workersText(const drt_program &program) {
  const std::vector<const drt_program *> all = programsOf(program);
  std::string text;
  for (size_t i = 0; i < all.size(); ++i)
    text += (i == 0 ? "" : i + 1 == all.size() ? " or " : ", ") + std::to_string(all[i]->num_tasks);
  return text + (text == "1" ? " worker" : " workers");
}

namespace {

/// The program of as many workers as the command line says, or a launcher has started, or of all.
const drt_program &chooseProgram(const drt_program &program, const Options &options) {
  const auto chosen = [&](int64_t workers, const std::string &source) -> const drt_program & {
    if (const drt_program *found = programOf(program, workers))
      return *found;
    throw Error(source + ": the program is compiled for " + workersText(program) +
                    "; say one of these, or compile it for others (distc compile --replicas, --min-workers)",
                2);
  };
  if (options.workers)
    return chosen(*options.workers, "--workers " + std::to_string(*options.workers));
  if (options.minWorkers || options.eval || !options.plan.empty() || !options.task.empty() ||
      programsOf(program).size() == 1)
    return program;
  const auto info = find_launcher(process_environment(), plan_tasks(program, false));
  return info ? chosen(info->size, info->launcher + " says that there are " + std::to_string(info->size) +
                                       " processes (" + info->size_source + ")")
              : program;
}

} // namespace

int runProgram(const drt_program &program, int argc, char **argv) {
  try {
    ignoreWriteSignals();
    checkProgram(program);
    std::optional<Options> options = parseOptions(program, argc, argv);
    if (!options)
      return 0;
    if (!options->plan.empty()) {
      const drt_program &chosen = chooseProgram(program, *options);
      const drt_program &planned = options->collectives == "network" ? chosen : jointProgram(chosen);
      std::fputs(planText(planned, options->plan == "full", &*options).c_str(), stdout);
      return 0;
    }
    takeNewestCheckpoint(*options);
    return options->eval ? evaluate(program, *options) : train(chooseProgram(program, *options), *options);
  } catch (const Error &error) {
    return fail(error.what(), error.exitStatus());
  } catch (const std::bad_alloc &) {
    return fail("out of memory; use a smaller batch, or more tasks with fewer replicas each", 1);
  } catch (const std::exception &error) {
    return fail((std::string(error.what()) + " (an internal error of the runtime)").c_str(), 70);
  }
}

} // namespace drt
