//===- options.cpp - The executable's command line ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/options.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/flag_errors.h"
#include "core/number_flags.h"
#include "launch/program.h"

#include <algorithm>
#include <filesystem>

namespace drt {
namespace {

// The last of a repeated flag counts, so that scripts can be given overrides.
template <class T> CLI::Option *last(CLI::App &app, const char *name, T &value, const char *help) {
  return app.add_option(name, value, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
}

constexpr double leastTimeout = 0.1; // a heartbeat is an eighth of it
constexpr double byHandArrival = 60; // time to start the tasks of other machines

/// What is understood once all of the line is known.
struct Raw {
  std::string resume, stopWhen;
  std::string lastBatch;
  std::vector<std::string> features, values;
};

std::pair<std::string, std::string> splitAssignment(const char *flag, const std::string &text, const char *form) {
  const size_t at = text.find('=');
  if (at == 0 || at == text.npos || at + 1 == text.size())
    throw Error(std::string(flag) + " " + text + " is not of the form " + form, 2);
  return {text.substr(0, at), text.substr(at + 1)};
}

LastBatch parseLastBatch(const std::string &text, const drt_program &program) {
  const bool pads = std::any_of(program.entries, program.entries + program.num_entries, takesFewer);
  if (text.empty())
    return pads ? LastBatch::Pad : LastBatch::Mix;
  if (text == "mix" || text == "drop")
    return text == "mix" ? LastBatch::Mix : LastBatch::Drop;
  if (text != "pad")
    throw Error("--last-batch must be mix, drop or pad, not '" + text + "'", 2);
  if (!pads)
    throw Error(
        "--last-batch pad: the program's step takes whole batches; compile it with --pad-batch, or say drop or mix", 2);
  return LastBatch::Pad;
}

void declare(CLI::App &app, Options &o, Raw &raw) {
  const auto group = [](const char *title, std::initializer_list<CLI::Option *> options) {
    for (CLI::Option *option : options)
      option->group(title);
  };
  group("Training",
        {last(app, "--data", o.data,
              "an .npz file, or a folder of .npy files: one array a feed, first axis = example; or TFRecord files of "
              "tf.Example; or a pattern of files ('train-*.tfrecord')"),
         last(app, "--steps", o.steps, "steps to train")->check(wholeNumber(0, mostCount)),
         last(app, "--epochs", o.epochs, "times to go through the data, instead of --steps")
             ->check(wholeNumber(1, mostCount)),
         last(app, "--batch", o.batch, "global batch; must equal the compiled one")->check(wholeNumber(1, INT32_MAX)),
         app.add_flag("--shuffle", o.shuffle, "another order of the examples in each epoch"),
         last(app, "--shuffle-window", o.shuffleWindow,
              "shuffles by drawing each example from the next so many, which is what has to be in memory")
             ->check(wholeNumber(1, INT32_MAX)),
         last(app, "--last-batch", raw.lastBatch,
              "an epoch's last examples, fewer than a batch: mix (with the next epoch's first ones), drop, or pad "
              "(a step of them alone: the default of programs compiled with --pad-batch)")
             ->type_name("mix|drop|pad"),
         app.add_option("--feature", raw.features,
                        "FEED=FEATURE: the feature of tf.Examples that a feed takes; default: "
                        "of the feed's name")
             ->allow_extra_args(false),
         app.add_option("--value", raw.values, "FEED=NUMBER: a feed of one number that is not in the data")
             ->allow_extra_args(false),
         last(app, "--seed", o.seed, "for --shuffle and for random operations without a seed of their own")
             ->check(wholeNumber(0, INT64_MAX)),
         last(app, "--eval-data", o.evalData, "data that the fetches are computed on while training, as --eval does"),
         last(app, "--eval-every", o.evalEvery, "steps between evaluations")->check(wholeNumber(1, mostCount)),
         last(app, "--stop-when", raw.stopWhen,
              "'NAME < NUMBER' (also <=, >, >=): ends the training when that holds of the loss, a fetch, or what "
              "--eval-data gives")});
  group(
      "Checkpoints",
      {last(app, "--restore", o.restore,
            "checkpoint to start from (PREFIX of PREFIX.index, or a folder: its newest), instead of initializing"),
       last(app, "--checkpoint-dir", o.checkpointDir, "folder for checkpoints; one is written at the end"),
       last(app, "--resume", raw.resume, "go on with the run that wrote --checkpoint-dir, from its newest checkpoint")
           ->expected(0, 1)
           ->type_name("[PREFIX]"),
       app.add_flag("--overwrite", o.overwrite, "remove the checkpoints of an earlier run from --checkpoint-dir"),
       last(app, "--save-every", o.saveEvery, "steps between checkpoints")->check(wholeNumber(1, mostCount)),
       last(app, "--keep", o.keep, "checkpoints that are kept, 0: all")
           ->check(wholeNumber(0, INT32_MAX))
           ->capture_default_str(),
       last(app, "--export-npz", o.exportNpz, "file for the variables at the end; with --eval, for the fetches"),
       last(app, "--max-restarts", o.maxRestarts, "times to start again from the last checkpoint after a task was lost")
           ->check(wholeNumber(0, INT32_MAX))
           ->capture_default_str()});
  group("What is reported",
        {last(app, "--log-json", o.logJson, "file for one JSON object a step"),
         last(app, "--timeline", o.timeline, "file for a Chrome trace of the last steps"),
         last(app, "--report", o.report,
              "file for what the run's time went to, by task: computing, waiting, transfer; bandwidth; who is late"),
         last(app, "--summary-dir", o.summaryDir,
              "folder for TensorBoard's event file: the loss, --fetch, the graph's scalar summaries"),
         last(app, "--fetch-every", o.fetchEvery, "steps between values of --fetch; 1 in the log")
             ->check(wholeNumber(1, mostCount)),
         app.add_flag("--quiet", o.quiet, "no progress")});
  CLI::Option *failureTimeout =
      last(app, "--failure-timeout", o.failureTimeout, "seconds after which a silent task is given up");
  group(
      "Tasks",
      {last(app, "--task", o.task, "which task of the plan this process is, for example worker:1"),
       last(app, "--workers", o.workers,
            "how many workers compute, of a program that was compiled for several numbers (distc compile "
            "--min-workers); default: as many as a launcher has started, else all")
           ->check(wholeNumber(1, INT32_MAX)),
       last(app, "--rendezvous", o.rendezvous, "HOST:PORT where the tasks meet; task 0 listens there"),
       last(app, "--secret-file", o.secretFile,
            "file with the secret by which tasks know each other, the same for every task; default: $DISTC_SECRET, and "
            "a random one where this program starts all tasks"),
       last(app, "--tls-cert", o.tls.certificate,
            "this task's certificate (PEM), with which tasks speak TLS; with --tls-key and --tls-ca, for every task; "
            "for programs compiled with --tls"),
       last(app, "--tls-key", o.tls.key, "the key of --tls-cert (PEM)"),
       last(app, "--tls-ca", o.tls.authority, "the authority (PEM) that has signed every task's certificate"),
       last(app, "--tls-name", o.tls.name,
            "a name or address that every task's certificate has (subjectAltName), where the authority signs others as "
            "well"),
       last(app, "--collectives", o.collectives,
            "auto: tasks of one host share memory; network: all speak over the network, the same for every task")
           ->check(CLI::IsMember({"auto", "network"}))
           ->capture_default_str(),
       last(app, "--stall-warning", o.stallWarning, "seconds of waiting before the log says who is late; 0: never")
           ->check(realNumber(0, mostSeconds))
           ->capture_default_str(),
       failureTimeout->check(realNumber(leastTimeout, mostSeconds))->capture_default_str(),
       last(app, "--arrival-timeout", o.arrivalTimeout,
            "seconds within which every task must have come; default: --failure-timeout where it is given or where "
            "this program starts all tasks, else 60")
           ->check(realNumber(leastTimeout, mostSeconds)),
       last(app, "--min-workers", o.minWorkers,
            "workers may come and go, as long as there are so many: those that have come compute, at any time in the "
            "run (tasks that are started one by one, with --max-restarts)")
           ->check(wholeNumber(1, INT32_MAX)),
       last(app, "--max-workers", o.maxWorkers, "with --min-workers: no more compute; others wait until some have gone")
           ->check(wholeNumber(1, INT32_MAX)),
       last(app, "--last-call", o.lastCall,
            "with --min-workers: seconds that others are awaited when so many have come")
           ->check(realNumber(0, mostSeconds))
           ->capture_default_str(),
       last(app, "--tune", o.tuning,
            "on GPUs: file of the fastest algorithms of matmuls; those that it has not are timed, and added"),
       app.add_flag_callback("--no-pin", [&o] { o.pin = false; }, "leave the choice of cores to the system")});
  group("Instead of training",
        {app.add_flag("--plan{tables}", o.plan,
                      "print the plan: tasks, variables, buckets, memory; with --plan=full also the schedule")
             ->check(CLI::IsMember({"tables", "full"})),
         app.add_flag("--eval", o.eval, "run forward only, over all of --data"),
         app.add_option("--fetch", o.fetches,
                        "with --eval: tensors to compute; default: all that are compiled in. In training: to log")});
  group("", {app.add_flag("--share-devices", o.shareDevices, "several replicas on a device")});
}

void checkTls(const drt_program &program, const TlsFiles &files) {
  if (!files.any())
    return;
  if (!files.all())
    throw Error("--tls-cert, --tls-key and --tls-ca go together, and --tls-name with them", 2);
  if (program.num_tasks < 2)
    throw Error("--tls-cert, --tls-key and --tls-ca are about connections between tasks, and the plan has one task", 2);
  if (std::string_view(program.target).starts_with("cuda"))
    throw Error(
        "--tls-cert, --tls-key and --tls-ca: gradients between GPUs travel by NCCL, which does not encrypt them; "
        "keep strangers from the network between the hosts (WireGuard, IPsec)",
        2);
}

void checkElastic(const drt_program &program, const Options &o) {
  const auto wrong = [](const std::string &message) { throw Error(message, 2); };
  if (!o.minWorkers && o.maxWorkers)
    wrong("--max-workers is the other end of --min-workers M: say both");
  if (!o.minWorkers)
    return;
  const std::string least = "--min-workers " + std::to_string(*o.minWorkers);
  if (programsOf(program).size() == 1)
    wrong(least + ": the program is compiled for " + workersText(program) +
          "; compile it for several numbers (distc compile --replicas N --one-process-per-replica --min-workers M)");
  if (o.workers)
    wrong("--workers and --min-workers exclude each other: one says how many compute, the other how few");
  if (o.maxWorkers && *o.maxWorkers < *o.minWorkers)
    wrong(least + " is more than --max-workers " + std::to_string(*o.maxWorkers));
  if (elasticSizes(program, o).empty())
    wrong(least + (o.maxWorkers ? " and --max-workers " + std::to_string(*o.maxWorkers) : "") +
          ": the program is compiled for " + workersText(program) + ", none of which is between");
  if (o.maxRestarts == 0)
    wrong(least + " has the group formed again from a checkpoint when workers come and go: say --max-restarts R, "
                  "--checkpoint-dir D and --save-every K as well");
}

/// What is written is neither what is read nor written by something else.
void checkFiles(const Options &o) {
  using NamedFile = std::pair<const char *, const std::string *>;
  const auto isSame = [](const std::string &x, const std::string &y) {
    std::error_code error;
    return !x.empty() && !y.empty() && !std::filesystem::is_other(x, error) &&
           (std::filesystem::weakly_canonical(x, error) == std::filesystem::weakly_canonical(y, error) ||
            std::filesystem::equivalent(x, y, error));
  };
  const NamedFile read[] = {{"--data", &o.data}, {"--eval-data", &o.evalData}};
  const NamedFile written[] = {
      {"--export-npz", &o.exportNpz}, {"--log-json", &o.logJson}, {"--timeline", &o.timeline}, {"--report", &o.report}};
  for (const auto &[flag, file] : written) {
    for (const auto &[other, data] : read)
      if (isSame(*file, *data))
        throw Error(std::string(flag) + " " + *file + " is what " + other + " reads; name another file", 2);
    for (const auto &[other, output] : written)
      if (output != file && isSame(*file, *output))
        throw Error(std::string(flag) + " and " + other + " both name " + *file + "; name a file for each", 2);
  }
}

/// What is asked of a training run is not left out without a word.
void checkEvaluation(const Options &o) {
  const std::pair<const char *, bool> ofTraining[] = {{"--log-json", !o.logJson.empty()},
                                                      {"--timeline", !o.timeline.empty()},
                                                      {"--report", !o.report.empty()},
                                                      {"--summary-dir", !o.summaryDir.empty()},
                                                      {"--checkpoint-dir", !o.checkpointDir.empty()},
                                                      {"--resume", o.resume.has_value()},
                                                      {"--eval-data", !o.evalData.empty()},
                                                      {"--stop-when", o.stopWhen.has_value()}};
  for (const auto &[flag, given] : ofTraining)
    if (given)
      throw Error(std::string(flag) + " is about training, and --eval computes fetches alone, over all of --data: " +
                      "leave it out (--restore names the checkpoint, --export-npz a file for the fetches)",
                  2);
}

void check(const drt_program &program, const Options &o) {
  const auto wrong = [](const std::string &message) { throw Error(message, 2); };
  if (o.batch && program.global_batch != 0 && *o.batch != program.global_batch)
    wrong("--batch is " + std::to_string(*o.batch) + ", but the program was compiled for a batch of " +
          std::to_string(program.global_batch) + "; leave it out, or compile again with another --batch");
  checkTls(program, o.tls);
  if (!o.plan.empty())
    return;
  checkFiles(o);
  if (!o.tuning.empty() && !std::string_view(program.target).starts_with("cuda"))
    wrong("--tune times the algorithms of GPUs, and the program was compiled for " + std::string(program.target) +
          ": leave it out");
  if (o.eval)
    return checkEvaluation(o);
  checkElastic(program, o);
  if (o.evalData.empty() != (o.evalEvery == 0))
    wrong("--eval-data F and --eval-every K go together");
  if (o.fetchEvery && o.fetches.empty())
    wrong("--fetch-every says how often --fetch TENSOR is logged: name one");
  if (o.resume && o.resume->empty() && o.overwrite)
    wrong("--resume and --overwrite exclude each other");
  if (o.checkpointDir.empty() && (o.overwrite || (o.resume && o.resume->empty())))
    wrong(std::string(o.overwrite ? "--overwrite" : "--resume") + " needs a folder of checkpoints: --checkpoint-dir D");
  if (!o.steps && !o.epochs)
    wrong("--steps N or --epochs E is required");
  if (o.steps && o.epochs)
    wrong("--steps and --epochs exclude each other");
  if (o.saveEvery > 0 && o.checkpointDir.empty())
    wrong("--save-every needs a folder: --checkpoint-dir D");
  if (!o.report.empty() && std::string_view(program.target).starts_with("cuda"))
    wrong("--report is not made of runs on GPUs; --timeline F shows when each kernel, copy and collective ran");
  if (o.maxRestarts > 0 && o.checkpointDir.empty())
    wrong("--max-restarts starts again from the last checkpoint: say --checkpoint-dir D, and --save-every K");
}

} // namespace

bool StopCondition::holds(double value) const {
  switch (relation) {
  case Less:
    return value < bound;
  case LessOrEqual:
    return value <= bound;
  case Greater:
    return value > bound;
  case GreaterOrEqual:
    return value >= bound;
  }
  return false;
}

StopCondition parseStopCondition(const std::string &text) {
  const auto wrong = [&] {
    return Error("--stop-when '" + text + "' is no condition: write 'NAME > NUMBER', with <, <=, > or >=", 2);
  };
  const auto trimmed = [](std::string_view part) {
    const size_t first = part.find_first_not_of(' ');
    return first == part.npos ? std::string() : std::string(part.substr(first, part.find_last_not_of(' ') + 1 - first));
  };
  const size_t at = text.find_first_of("<>");
  if (at == text.npos)
    throw wrong();
  const bool orEqual = text.compare(at + 1, 1, "=") == 0;
  StopCondition condition{text, trimmed(std::string_view(text).substr(0, at)), StopCondition::Less, 0};
  if (text[at] == '<')
    condition.relation = orEqual ? StopCondition::LessOrEqual : StopCondition::Less;
  else
    condition.relation = orEqual ? StopCondition::GreaterOrEqual : StopCondition::Greater;
  const std::string number = trimmed(std::string_view(text).substr(at + (orEqual ? 2 : 1)));
  const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), condition.bound);
  if (condition.name.empty() || number.empty() || error != std::errc() || rest != number.data() + number.size() ||
      condition.bound != condition.bound)
    throw wrong();
  return condition;
}

FeederConfig feedingOf(const Options &options) {
  FeederConfig feeding;
  feeding.shuffleWindow = options.shuffleWindow.value_or(0);
  feeding.lastBatch = options.lastBatch;
  feeding.features = options.features;
  feeding.values = options.values;
  return feeding;
}

std::optional<Options> parseOptions(const drt_program &program, int argc, char **argv) {
  Options options;
  options.command.assign(argv, argv + argc);
  Raw raw;
  CLI::App app{std::string("Trains ") + program.graph + " with " + countOf(program.num_replicas, "replica") +
               " (strategy " + program.strategy + ")."};
  declare(app, options, raw);
  try {
    app.parse(argc, argv);
    // A restart waits for tasks of other machines, which hear of the failure one after the other.
    if (!options.arrivalTimeout)
      options.arrivalTimeout =
          app.count("--failure-timeout") > 0 && options.maxRestarts == 0 ? options.failureTimeout : byHandArrival;
  } catch (const CLI::CallForHelp &) {
    std::fputs(app.help().c_str(), stdout);
    return std::nullopt;
  } catch (const CLI::ParseError &error) {
    throw Error(describeFlagError(app, error) + " (" + options.command[0] + " --help lists what there is)", 2);
  }
  if (app.count("--resume") > 0)
    options.resume = raw.resume;
  for (const std::string &text : raw.features)
    options.features.push_back(splitAssignment("--feature", text, "FEED=FEATURE"));
  for (const std::string &text : raw.values) {
    const auto [feed, number] = splitAssignment("--value", text, "FEED=NUMBER");
    double value = 0;
    const auto [rest, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || rest != number.data() + number.size())
      throw Error("--value " + text + ": '" + number + "' is not a number", 2);
    // The last counts here, too.
    std::erase_if(options.values, [&, name = feed](const auto &other) { return other.first == name; });
    options.values.emplace_back(feed, value);
  }
  options.lastBatch = parseLastBatch(raw.lastBatch, program);
  options.shuffle |= options.shuffleWindow.has_value();
  if (app.count("--keep") > 0 && options.checkpointDir.empty() && options.plan.empty())
    throw Error("--keep needs a folder of checkpoints: --checkpoint-dir D", 2);
  if (app.count("--stop-when") > 0)
    options.stopWhen = parseStopCondition(raw.stopWhen);
  check(program, options);
  return options;
}

} // namespace drt
