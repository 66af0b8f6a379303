//===- main.cpp - distc's command line -----------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/flag_errors.h"
#include "runtime/core/number_flags.h"
#include "tools/distc/Options.h"
#include "tools/distc/checkpoint_command.h"
#include "tools/distc/command_pages.h"
#include "tools/distc/launch_command.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <iostream>

namespace {

using distc::CompileOptions;

const std::vector<std::string> kEmits = {"exe",    "dfg",  "dist",     "drt", "llvm",
                                         "report", "html", "roofline", "ptx", "graphdef"};
const std::vector<std::string> kShells = {"bash", "zsh", "fish"};

// What a shell completes.
distc::FlagValues flagValues() {
  return {{"--emit", kEmits},
          {"--precision", distc::kPrecisions},
          {"--strategy", distc::listBuilders()},
          {"--target", {"cpu", "cpu:native", "cuda", "cuda:emulated"}},
          {"NAME", distc::listBuilders()},
          {"SHELL", kShells}};
}

void addResources(CLI::App &app, CompileOptions &options) {
  auto *resources = app.add_option("--resources", options.resources, "Hosts and devices (AutoDist's YAML)");
  auto *replicas = app.add_option("--replicas", options.replicas, "Replicas on this machine")
                       ->check(drt::wholeNumber(1, distc::kMostReplicas))
                       ->capture_default_str();
  auto *servers = app.add_option("--ps", options.servers, "Parameter servers on this machine")
                      ->check(drt::wholeNumber(0, distc::kMostReplicas));
  resources->excludes(replicas, servers);
  app.callback([&app, resources, replicas, servers, &options] {
    const CLI::Option *processes = app.get_option_no_throw("--one-process-per-replica");
    options.saysWhere = *resources || *replicas || *servers || (processes && *processes);
    if (*resources)
      options.replicas = 0;
  });
}

void addEndpoints(CLI::App &app, CompileOptions &options) {
  app.add_option("--train-op", options.trainOp, "The operation that trains (else the graph's collection train_op)");
  app.add_option("--loss", options.loss, "The loss (else the collection losses)");
  app.add_option("--init-op", options.initOp, "The operation that initializes (else the collection init_op)");
}

void addTarget(CLI::App &app, CompileOptions &options) {
  app.add_option(
         "--target", options.target,
         "cpu (x86-64-v3), cpu:native, cpu:NAME, cuda (sm_90), cuda:CHIP,...: NVIDIA's GPUs, cuda:emulated: GPUs "
         "in software")
      ->capture_default_str();
}

void addNoInit(CLI::App &app, CompileOptions &options) {
  app.add_flag_callback(
      "--no-init", [&options] { options.init = false; },
      "Leave the graph's initializers out: the executable starts from a checkpoint (--restore) alone");
}

void addCompile(CLI::App &app, CompileOptions &options) {
  app.add_option("GRAPH", options.graph,
                 "MetaGraphDef, GraphDef (binary or text) or SavedModel folder; StableHLO with its signature; .mlir "
                 "that --emit wrote")
      ->required();
  app.add_option("--strategy", options.strategy, "A file, or NAME[:key=value,...]")->capture_default_str();
  addResources(app, options);
  app.add_option("--batch", options.batch, "The global batch")->check(drt::wholeNumber(1, INT32_MAX));
  app.add_flag(
      "--pad-batch", options.padsBatch,
      "The last, smaller batch of an epoch is a step of its examples alone (the executable's --last-batch pad)");
  app.add_flag("--one-process-per-replica", options.oneProcessPerReplica, "A process for each replica, not a thread");
  app.add_option(
         "--min-workers", options.minWorkers,
         "The executable can run with fewer workers as well, down to so many (--replicas, --one-process-per-replica)")
      ->check(drt::wholeNumber(1, distc::kMostReplicas));
  app.add_flag("--tls", options.tls,
               "Tasks can encrypt what they say to each other (the executable's --tls-cert); takes 5 MB");
  app.add_option(
         "--cores-per-replica", options.coresPerReplica,
         "Cores that compute each replica's step together (else one, and library calls take what the replicas leave)")
      ->check(drt::wholeNumber(1, 1024));
  app.add_option("--max-memory", options.maxMemory,
                 "Bytes that a task's variables and its replicas' arenas take at most (12G, 500M): values are computed "
                 "again instead of kept")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  app.add_option("--max-iterations", options.maxIterations,
                 "How often a loop runs at most of which only data say when it ends, where it has a gradient; a run "
                 "that would go on ends with an error")
      ->check(drt::wholeNumber(1, 100'000));
  addEndpoints(app, options);
  app.add_option("--fetch", options.fetches, "Further tensors that the executable gives (--eval --fetch)")
      ->allow_extra_args(false);
  app.add_option("--feed", options.feeds,
                 "NAME=2x3: the shape that a placeholder is fed, of the batch a replica's share; NAME= is a scalar")
      ->allow_extra_args(false);
  addTarget(app, options);
  app.add_option("--precision", options.precision,
                 "Of matmuls and convolutions of float32: fp32 as they are; bf16 or fp16 of rounded operands, added up "
                 "in float32; tf32 on GPUs' matrix units")
      ->check(CLI::IsMember(distc::kPrecisions))
      ->capture_default_str();
  addNoInit(app, options);
  app.add_flag_callback(
      "--no-asserts", [&options] { options.asserts = false; },
      "Leave out the checks of indices and labels in the data");
  app.add_flag_callback(
      "--no-cache", [&options] { options.cache = false; },
      "Generate all code again, and keep none (else in $XDG_CACHE_HOME/distc or ~/.cache/distc)");
  app.add_flag("--summaries", options.summaries,
               "Compile the graph's own scalar summaries in, for the executable's --summary-dir");
  app.add_flag("--strip-export-info", options.stripsExportInfo,
               "With --emit=dfg and dist: leave out what only an export to TensorFlow needs, for people to read");
  app.add_flag("--timing", options.timing, "Report how long each pass took");
  app.add_flag("--verbose", options.verbose,
               "Print what ptxas reports: the registers that kernels use, and what they spill");
  app.add_option("--runtime", options.runtime, "Folder of libdrt.a (else beside distc)");
}

int wrongCommandStatus(const CLI::App &app, const CLI::ParseError &error) {
  if (error.get_exit_code() == 0)
    return app.exit(error); // --help, --version
  std::string command = "distc";
  for (const CLI::App *used = &app; !used->get_subcommands().empty();) {
    used = used->get_subcommands().front();
    command += " " + used->get_name();
  }
  std::cerr << "distc: error: " << drt::describeFlagError(app, error) << " (" << command
            << " --help lists what there is)\n";
  return distc::kWrongCommand;
}

} // namespace

int main(int argc, char **argv) {
  // These have command lines of their own.
  if (argc > 1 && std::strcmp(argv[1], "checkpoint") == 0)
    return distc::checkpointCommand(argc - 1, argv + 1);
  if (argc > 1 && std::strcmp(argv[1], "launch") == 0)
    return distc::launchCommand(argc - 1, argv + 1);

  CLI::App app("distc compiles a training graph and a distribution strategy to one distributed executable", "distc");
  app.set_version_flag("--version", "distc " DISTC_VERSION);
  app.require_subcommand(1);
  CompileOptions options;
  int status = distc::kDone;

  CLI::App *compile = app.add_subcommand("compile", "Compile a graph to a distributed executable");
  addCompile(*compile, options);
  compile->add_option("-o,--output", options.output, "What to write; - is standard output, for text")
      ->capture_default_str();
  compile->add_option("--emit", options.emit, "What to write: the executable, or where the pipeline is to stop")
      ->check(CLI::IsMember(kEmits))
      ->capture_default_str();
  compile
      ->add_option("--timeline", options.timelines,
                   "With --emit=html: what a run of the executable wrote (--timeline): shows what was measured")
      ->allow_extra_args(false);

  CLI::App *run =
      app.add_subcommand("run", "Compile to a temporary file, then run it: distc run GRAPH ... -- --data F --steps N");
  addCompile(*run, options);

  CLI::App *inspect = app.add_subcommand("inspect", "Print what is in a graph");
  inspect
      ->add_option("GRAPH", options.graph,
                   "MetaGraphDef, GraphDef or SavedModel folder, or StableHLO with its signature")
      ->required();
  addEndpoints(*inspect, options);
  CLI::Option *check =
      inspect->add_flag("--check", options.check, "Say instead what must run and has no code for the target: status 1");
  inspect->add_option("--fetch", options.fetches, "With --check: further tensors that are to be given")
      ->allow_extra_args(false)
      ->needs(check);
  inspect->add_option("--feed", options.feeds, "With --check: NAME=2x3, the shape that a placeholder is fed")
      ->allow_extra_args(false)
      ->needs(check);
  inspect->add_option("--batch", options.batch, "With --check: the batch to check with")
      ->check(drt::wholeNumber(1, INT32_MAX))
      ->needs(check);
  addTarget(*inspect, options);
  addNoInit(*inspect, options);

  CLI::App *strategy = app.add_subcommand("strategy", "Build, show and compare strategies");
  strategy->require_subcommand(1);
  CLI::App *build = strategy->add_subcommand("build", "Write the strategy that a builder makes for a graph");
  build->add_option("NAME", options.strategy, "NAME[:key=value,...]")->required();
  build->add_option("GRAPH", options.graph, "The graph")->required();
  addResources(*build, options);
  addEndpoints(*build, options);
  std::string strategyOutput = "-";
  build->add_option("-o,--output", strategyOutput, "A .pbtxt or .pb file; - is standard output");
  build->footer(distc::describeBuilders);
  CLI::App *show = strategy->add_subcommand("show", "Print tables of a strategy: variables, servers, groups");
  show->add_option("STRATEGY", options.strategy, "A file, or NAME[:key=value,...]")->required();
  show->add_option("GRAPH", options.graph, "The graph")->required();
  addResources(*show, options);
  addEndpoints(*show, options);
  CLI::App *diff = strategy->add_subcommand("diff", "Print what differs; exit status 1 where anything does");
  diff->add_option("A", options.strategy, "A file, or NAME[:key=value,...]")->required();
  diff->add_option("B", options.otherStrategy, "Another one")->required();
  diff->add_option("GRAPH", options.graph, "The graph, where A or B is to be built");
  addResources(*diff, options);
  addEndpoints(*diff, options);

  distc::CheckpointArguments ofCheckpoint; // for help; checkpointCommand has its own
  distc::declareCheckpointCommand(
      *app.add_subcommand("checkpoint", "List, compare and convert TensorFlow's checkpoints"), ofCheckpoint);

  distc::LaunchArguments ofLaunch;
  distc::declareLaunchCommand(
      *app.add_subcommand("launch",
                          "Start an executable's tasks on several hosts, over ssh: distc launch PROGRAM ... -- FLAGS"),
      ofLaunch);

  std::string shell;
  CLI::App *completion = app.add_subcommand("completion", "Print the completion script of a shell");
  completion->add_option("SHELL", shell, "bash, zsh or fish")->required()->check(CLI::IsMember(kShells));
  CLI::App *manual = app.add_subcommand("manual", "Print distc's manual page, for man");

  // `run`: what stands behind -- is the executable's.
  std::vector<char *> own(argv, argv + argc);
  for (int i = 1; i < argc; ++i)
    if (std::strcmp(argv[i], "--") == 0 && argc > 1 && std::strcmp(argv[1], "run") == 0) {
      options.runArguments.assign(argv + i + 1, argv + argc);
      own.resize(i);
      break;
    }
  try {
    app.parse(static_cast<int>(own.size()), own.data());
  } catch (const CLI::ParseError &error) {
    return wrongCommandStatus(app, error);
  }
  if (*completion)
    std::cout << distc::completionScript(app, shell, flagValues());
  else if (*manual)
    std::cout << distc::manualPage(app, DISTC_VERSION);
  else if (*compile)
    status = distc::compileCommand(options);
  else if (*run)
    status = distc::runCommand(options);
  else if (*inspect)
    status = distc::inspectCommand(options);
  else if (*build) {
    options.output = strategyOutput;
    status = distc::strategyBuildCommand(options);
  } else if (*show)
    status = distc::strategyShowCommand(options);
  else if (*diff)
    status = distc::strategyDiffCommand(options);
  // Where standard output is a file on a full disk.
  llvm::outs().flush();
  if (std::error_code error = llvm::outs().error()) {
    llvm::outs().clear_error();
    llvm::errs() << "distc: error: cannot write to standard output: " << error.message() << '\n';
    return distc::kWrongInput;
  }
  return status;
}
