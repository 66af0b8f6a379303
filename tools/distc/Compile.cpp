//===- Compile.cpp - distc compile and distc run ----------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Support/FileUtilities.h"
#include "passes/distribute/strategy/AppliedStrategy.h"
#include "passes/graph/Passes.h"
#include "passes/lower/plan/Roofline.h"
#include "passes/lower/program/EmitObject.h"
#include "passes/lower/program/LinkExecutable.h"
#include "strategies/Builder.h"
#include "strategies/StrategyCheck.h"
#include "tools/distc/ExportGraphs.h"
#include "tools/distc/Feeds.h"
#include "tools/distc/Heap.h"
#include "tools/distc/Pipeline.h"
#include "tools/distc/PlanPage.h"
#include "tools/distc/Session.h"
#include "tools/distc/Stage.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/ToolOutputFile.h"
#include <unistd.h>

using namespace mlir;

namespace distc {
namespace {

/// The folder of libdrt.a: named, or beside the folder of distc: lib/distc where it is installed, lib of a build.
std::string findRuntime(const CompileOptions &options) {
  if (!options.runtime.empty())
    return options.runtime;
  std::string self = llvm::sys::fs::getMainExecutable("distc", reinterpret_cast<void *>(&findRuntime));
  llvm::SmallString<128> folder(llvm::sys::path::parent_path(llvm::sys::path::parent_path(self))), installed;
  llvm::sys::path::append(folder, "lib");
  installed = folder;
  llvm::sys::path::append(installed, "distc");
  return (llvm::sys::fs::is_directory(installed) ? installed : folder).str().str();
}

/// Rows of a replica's share of the batch, 0 where no feed is batched; fails after saying what does not fit.
FailureOr<int64_t> getReplicaBatch(ModuleOp module, const CompileOptions &options) {
  FailureOr<dist::TopologyOp> topology = dist::getTopology(module);
  if (failed(topology))
    return failure();
  const int64_t replicas = topology->getReplicas();
  SmallVector<StringRef> batched, known;
  dfg::PlaceholderOp fixed;
  module.walk([&](dfg::PlaceholderOp placeholder) {
    if (placeholder->hasAttr(dfg::kValidityAttr)) // no one's feed
      return;
    known.push_back(dfg::getNodeName(placeholder));
    auto type = llvm::dyn_cast<RankedTensorType>(placeholder.getResult().getType());
    auto share = placeholder->getAttrOfType<StringAttr>("dist.feed");
    if (!share || share.getValue() != "sharded" || !type || type.getRank() == 0)
      return;
    if (type.isDynamicDim(0))
      batched.push_back(dfg::getNodeName(placeholder));
    else
      fixed = placeholder;
  });
  for (StringRef feed : options.feeds)
    if (!llvm::is_contained(known, feed.split('=').first))
      return module.emitError() << "--feed " << feed << ": there is no placeholder '" << feed.split('=').first
                                << "'; there are: " << llvm::join(known, ", ");
  if (fixed && options.batch) {
    // The graph's number is the batch of each replica, whatever the flag says.
    auto type = llvm::cast<RankedTensorType>(fixed.getResult().getType());
    const int64_t share = type.getDimSize(0);
    if (share * replicas != options.batch && type.getRank() > 1 && type.isDynamicDim(1))
      return module.emitError() << "placeholder '" << dfg::getNodeName(fixed) << "' has " << share
                                << " rows, and its second size is open: examples are counted along the first axis of "
                                   "what is fed, which is here that of time; feed it with the batch's axis first "
                                   "([None, "
                                << share << ", …]) and have the graph transpose it (tf.transpose(x, [1, 0, 2]))";
    if (share * replicas != options.batch)
      return module.emitError() << "the graph fixes its batch: placeholder '" << dfg::getNodeName(fixed) << "' has "
                                << share << " rows, which each replica is given, so that the global batch of "
                                << replicas << (replicas == 1 ? " replica" : " replicas") << " is " << share * replicas
                                << " and not " << options.batch
                                << (replicas == 1
                                        ? std::string()
                                        : " (or " + std::to_string(share) +
                                              ", of which each replica has a part, with a synchronous strategy and "
                                              "coupling=whole)")
                                << ": leave --batch out, or leave the placeholders' first size open (None)";
  }
  if (batched.empty())
    return 0;
  if (options.batch == 0) {
    // A graph whose batched placeholders all have shapes by --feed needs no batch.
    auto isFixed = [&](StringRef name) {
      return llvm::any_of(options.feeds, [&](StringRef feed) { return feed.split('=').first == name; });
    };
    if (llvm::all_of(batched, isFixed))
      return 0;
    return module.emitError() << "the batch is open in the placeholders " << llvm::join(batched, ", ")
                              << ": give the global batch with --batch";
  }
  for (auto graph : module.getOps<dfg::GraphOp>())
    if (int64_t smallest = dfg::getSmallestBatch(graph); options.batch < smallest)
      return module.emitError() << "the step takes a batch of " << smallest
                                << " examples or more, as it moves or counts them by a number (jnp.roll): "
                                   "give a --batch of as many";
  if (options.batch % replicas != 0)
    return module.emitError() << "the batch of " << options.batch << " does not divide into equal shares for "
                              << replicas << " replicas: give a --batch that is a multiple of " << replicas;
  if (int64_t multiple = dfg::getBatchMultiple(module); options.batch / replicas % multiple != 0)
    return module.emitError()
           << "the step divides its batch into equal parts, so that the examples of each replica are a multiple of "
           << multiple << ": give a --batch that is a multiple of " << multiple * replicas;
  return options.batch / replicas;
}

int writeText(Session &session, const CompileOptions &options, llvm::function_ref<void(llvm::raw_ostream &)> print) {
  // Text goes to standard output unless a file is named.
  std::string path = options.output == "train" ? "-" : options.output, message;
  std::unique_ptr<llvm::ToolOutputFile> file = openOutputFile(path, &message);
  if (!file)
    return session.fail(message);
  print(file->os());
  file->os().flush();
  if (file->os().has_error()) {
    const std::string why = file->os().error().message();
    file->os().clear_error();
    return session.fail("cannot write '" + path + "': " + why);
  }
  file->keep();
  return kDone;
}

/// Other stages understand strategies that native code is not made of yet.
int checkNative(Session &session, ModuleOp module, const CompileOptions &options, bool device) {
  FailureOr<AppliedStrategy> applied = AppliedStrategy::read(module);
  if (failed(applied))
    return session.status();
  if (llvm::any_of(applied->topology.getTasks().getAsRange<dist::TaskAttr>(),
                   [](dist::TaskAttr task) { return task.getJob() == "ps"; }))
    return session.fail("the graph has been split for servers in processes of their own, which is not supported yet by "
                        "executables; take a strategy of synchronous servers, which share workers' processes");
  std::string remark =
      device ? strategies::remarkOnDevices(*applied->strategy) : strategies::remarkOnProcessors(*applied->strategy);
  if (!remark.empty())
    module.emitWarning() << remark;
  llvm::Error error = strategies::checkNative(*applied->strategy);
  return error ? session.fail(llvm::toString(std::move(error))) : kDone;
}

/// What is loaded by chips that have no image of their own; empty where the program has no kernels.
llvm::StringRef getPtx(ModuleOp module) {
  for (auto image : module.getOps<drt::ImageOp>())
    if (image.getArch().starts_with("compute_"))
      return image.getData().rtrim('\0');
  return "";
}

/// Whether a matmul of the plan is so large that a library's is worth its size in the executable.
bool hasLargeMatmuls(ModuleOp module) {
  constexpr int64_t kLarge = 16384; // multiplications; own loops take some 10 us for them
  auto isLarge = [](Value a, Value b, bool transposeB) {
    auto left = llvm::cast<RankedTensorType>(a.getType()), right = llvm::cast<RankedTensorType>(b.getType());
    // Own loops do all of other types.
    const bool hasLibrary = left.getElementTypeBitWidth() <= 32 && llvm::isa<FloatType>(left.getElementType());
    return hasLibrary && left.getNumElements() * right.getDimSize(right.getRank() - (transposeB ? 2 : 1)) > kLarge;
  };
  return module
      .walk([&](Operation *op) {
        bool large = false;
        if (auto matmul = llvm::dyn_cast<drt::MatmulOp>(op))
          large = isLarge(matmul.getA(), matmul.getB(), matmul.getTransposeB());
        else if (auto matmul = llvm::dyn_cast<drt::MatmulPackedOp>(op))
          large = isLarge(matmul.getA(), matmul.getB(), matmul.getTransposeB());
        else if (auto matmul = llvm::dyn_cast<drt::MatmulStackedOp>(op))
          large = isLarge(matmul.getA().front(), matmul.getB(), matmul.getTransposeB());
        else if (auto sum = llvm::dyn_cast<drt::MatmulSumOp>(op))
          large = isLarge(sum.getA().front(), sum.getB().front(), /*transposeB=*/false);
        else if (llvm::isa<drt::AttentionOp, drt::AttentionGradientOp>(op))
          large = true;
        else if (auto update = llvm::dyn_cast<drt::MatmulUpdateOp>(op))
          large = isLarge(update.getA(), update.getB(), update.getTransposeB());
        return large ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

bool hasConvolutions(ModuleOp module) {
  auto isConvolution = [](Operation *op) {
    return llvm::isa<drt::Conv2DOp, drt::Conv2DGradInputOp, drt::Conv2DGradFilterOp>(op) ? WalkResult::interrupt()
                                                                                         : WalkResult::advance();
  };
  return module.walk(isConvolution).wasInterrupted();
}

/// The chips of the target, whose figures are known; fails after saying which are.
int findChips(Session &session, const Target &target, SmallVectorImpl<const Chip *> &chips) {
  std::string known = llvm::join(llvm::map_range(getChips(), [](const Chip &chip) { return chip.arch.str(); }), ", ");
  if (target.kernels != Target::Kernels::Cuda)
    return session.fail("--emit=roofline needs a chip, --target=cuda:sm_90; this target is " + target.name,
                        kWrongCommand);
  for (StringRef name : target.chips) {
    chips.push_back(findChip(name));
    if (!chips.back())
      return session.fail("--emit=roofline has no figures of " + name + "; there are those of " + known, kWrongCommand);
  }
  return kDone;
}

/// JSON where the file's name says so, else text.
int writeRoofline(Session &session, ModuleOp module, const CompileOptions &options, ArrayRef<const Chip *> chips) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(writeRooflines(module, chips, llvm::sys::path::extension(options.output) == ".json", os)))
    return session.status();
  return writeText(session, options, [&](llvm::raw_ostream &out) { out << text; });
}

/// Whether the tasks of the graph's topology can be the replicas of one plan with common memory: where one machine has
/// them all, one replica each, and nothing of a step is one process's alone. What compresses or chooses gradients keeps
/// state between steps; servers that serve on their own do, too.
bool canShareMemory(ModuleOp module) {
  FailureOr<dist::TopologyOp> topology = dist::getTopology(module);
  if (failed(topology) || topology->getTasks().size() < 2)
    return false;
  auto tasks = topology->getTasks().getAsRange<dist::TaskAttr>();
  StringAttr host = (*tasks.begin()).getHost();
  if (!llvm::all_of(tasks, [&](dist::TaskAttr task) { return task.getHost() == host && task.getNumReplicas() == 1; }))
    return false;
  WalkResult own = module.walk([](Operation *op) {
    auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op);
    const bool keepsState =
        (reduce && (reduce.getCompression() || reduce.getAggregator())) || llvm::isa<dist::PushOp, dist::TakeOp>(op);
    return keepsState ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !own.wasInterrupted();
}

/// Whether what the graph's strategy computes is the same with any number of workers, and they are what --min-workers
/// deals the batch to; else says what is not.
LogicalResult checkElastic(ModuleOp module) {
  FailureOr<dist::TopologyOp> topology = dist::getTopology(module);
  if (failed(topology))
    return failure();
  for (auto task : topology->getTasks().getAsRange<dist::TaskAttr>())
    if (task.getJob() == "ps")
      return module.emitError()
             << "--min-workers: the strategy has servers, which cannot come and go; take a strategy of all-reduces";
  // Of one replica the own part is the whole batch.
  if (module->hasAttr(dist::kCouplingAttr) && topology->getReplicas() > 1)
    return module.emitError() << "--min-workers: the strategy has each replica see its own part of the batch "
                                 "(coupling: replica), so that other numbers "
                                 "of workers compute others; take one that computes what one replica does";
  WalkResult own = module.walk([](Operation *op) {
    auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op);
    const char *what = llvm::isa<dist::PushOp, dist::TakeOp>(op) ? "servers that serve on their own"
                       : reduce && reduce.getCompression()       ? "a compressor"
                       : reduce && reduce.getAggregator()        ? "an aggregator"
                                                                 : nullptr;
    if (!what)
      return WalkResult::advance();
    op->emitError() << "--min-workers: the strategy has " << what
                    << ", whose result depends on the number of replicas; leave it out, or compile for one "
                       "number of workers";
    return WalkResult::interrupt();
  });
  return failure(own.wasInterrupted());
}

/// Whether a step in which some of the replicas may have no example of a smaller batch is one of the examples alone.
LogicalResult checkPadded(ModuleOp module) {
  FailureOr<AppliedStrategy> applied = AppliedStrategy::read(module);
  if (failed(applied))
    return failure();
  WalkResult own = module.walk([](Operation *op) {
    auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op);
    const bool isOwn = llvm::isa<dist::PushOp, dist::TakeOp>(op) || (reduce && reduce.getAggregator());
    return isOwn ? WalkResult::interrupt() : WalkResult::advance();
  });
  const bool several = applied->topology.getReplicas() > 1;
  const char *what =
      applied->strategy->accumulate_steps() > 1
          ? "adds up gradients of several batches, of which a smaller one would count as much "
            "as the others (accumulate_steps)"
      : several && own.wasInterrupted()
          ? "takes each replica's gradient for itself (an aggregator, or servers that serve on their own), "
            "which may be of no example"
      : several && module->hasAttr(dist::kCouplingAttr)
          ? "has each replica see its own part of the batch (coupling: replica), which may be empty"
          : nullptr;
  if (what)
    return module.emitError() << "--pad-batch: the strategy " << what << "; take another one, or leave the flag out";
  return success();
}

/// What of the command line --min-workers does not go with.
int checkElasticFlags(Session &session, const CompileOptions &options, const Target &target, Stage stage) {
  auto wrong = [&](const llvm::Twine &why) { return session.fail("--min-workers " + why.str(), kWrongCommand); };
  if (options.emit != "exe" && options.emit != "llvm")
    return wrong("is for executables, not for --emit=" + llvm::Twine(options.emit));
  if (stage != Stage::Graph)
    return wrong("distributes a graph several times, and '" + llvm::Twine(options.graph) +
                 "' is distributed already: give the graph");
  if (target.isDevice())
    return wrong("is for executables of processors; this target is " + llvm::Twine(target.name));
  if (options.servers > 0)
    return wrong(
        "is for workers that add up gradients among themselves; --ps asks for servers, which cannot come and go");
  if (!options.resources.empty() || !options.oneProcessPerReplica)
    return wrong("deals the batch to workers of one replica each, wherever they run: give --replicas N "
                 "--one-process-per-replica, and where a "
                 "worker has several cores --cores-per-replica");
  if (options.minWorkers >= options.replicas)
    return wrong(llvm::Twine(options.minWorkers) + " is not less than --replicas " + llvm::Twine(options.replicas) +
                 ", the most workers there are");
  if (options.batch == 0)
    return wrong("deals the global batch to more or fewer workers: give it with --batch");
  return kDone;
}

/// Where `inspect --check` stops: nothing is written, and the strategy is one replica's.
constexpr llvm::StringLiteral kEmitNothing = "nothing";

int compileOnce(Session &session, CompileOptions options) {
  options.strategy = strategies::spellSpec(options.strategy);
  if (options.emit == "exe")
    if (int status = session.checkOutput(options.output))
      return status;
  if (llvm::sys::fs::equivalent(options.output, options.graph))
    return session.fail("-o " + options.output + " is the graph itself; name another file", kWrongCommand);
  reserveHeap(options.graph);
  OwningOpRef<ModuleOp> module = session.import(options);
  if (!module)
    return session.status();
  // The process ends after it, and a large graph takes long to take apart.
  llvm::scope_exit keep([&] { (void)module.release(); });
  FailureOr<Stage> stage = resume(*module, options);
  if (failed(stage))
    return session.status();
  llvm::Expected<Target> target = Target::parse(options.target);
  if (!target)
    return session.fail(llvm::toString(target.takeError()), kWrongCommand);
  if (!options.timelines.empty() && options.emit != "html")
    return session.fail("--timeline is shown by --emit=html alone; an executable writes one: ./train --timeline FILE",
                        kWrongCommand);
  if (options.stripsExportInfo && options.emit != "dfg" && options.emit != "dist")
    return session.fail("--strip-export-info is for what --emit=dfg and --emit=dist print, not for --emit=" +
                            options.emit,
                        kWrongCommand);
  if (options.precision == "tf32" && !target->isDevice() && options.emit != "graphdef")
    return session.fail("--precision=tf32 is for GPUs' matrix units, --target=cuda; this target is " + target->name +
                            ", whose matmuls are fp32, bf16 or fp16",
                        kWrongCommand);
  if (options.emit == "ptx" && target->kernels != Target::Kernels::Cuda)
    return session.fail("--emit=ptx needs a target that has PTX, --target=cuda:sm_90; this one is " + target->name,
                        kWrongCommand);
  if (options.coresPerReplica && (target->isDevice() || options.emit == "graphdef"))
    return session.fail(
        std::string("--cores-per-replica is for executables of processors; ") +
            (target->isDevice() ? "on a GPU a replica has a device" : "TensorFlow's sessions choose their threads"),
        kWrongCommand);
  if (options.maxMemory && options.emit == "graphdef")
    return session.fail("--max-memory is for executables; TensorFlow's sessions plan their memory themselves",
                        kWrongCommand);
  if (options.tls && (target->isDevice() || options.emit == "graphdef"))
    return session.fail(std::string("--tls is for executables of processors; ") +
                            (target->isDevice() ? "gradients between GPUs travel by NCCL, which does not encrypt them"
                                                : "TensorFlow's servers have their own connections"),
                        kWrongCommand);
  if (options.maxIterations && options.emit == "graphdef")
    return session.fail("--max-iterations is for executables; TensorFlow has loops without a bound", kWrongCommand);
  if (options.padsBatch && options.emit == "graphdef")
    return session.fail("--pad-batch is for executables; a session of TensorFlow is fed batches of any size",
                        kWrongCommand);
  if (options.minWorkers)
    if (int status = checkElasticFlags(session, options, *target, *stage))
      return status;
  SmallVector<const Chip *> chips;
  if (options.emit == "roofline")
    if (int status = findChips(session, *target, chips))
      return status;
  if ((*stage == Stage::Plan && (options.emit == "dfg" || options.emit == "dist" || options.emit == "graphdef")) ||
      (*stage == Stage::Distributed && options.emit == "dfg"))
    return session.fail("the file is behind the stage that --emit=" + options.emit + " asks for", kWrongCommand);
  // The program of tasks that find no common memory is `module`'s.
  OwningOpRef<ModuleOp> joint;
  if (*stage == Stage::Plan) {
    FailureOr<OwningOpRef<ModuleOp>> given = takeJointPlan(*module);
    if (failed(given))
      return session.status();
    joint = std::move(*given);
  }
  auto verify = [&](ModuleOp given) {
    return session.verifyGiven(given, [&](OpPassManager &manager) { addVerifyStage(manager, *stage, *target); });
  };
  if (*stage != Stage::Graph && !(verify(*module) && (!joint || verify(*joint))))
    return session.status();
  // A stage has verified it. Locations are its nodes' names.
  auto write = [&](bool severalTasks = false) {
    noteCommand(*module, options, severalTasks);
    return writeText(session, options, [&](llvm::raw_ostream &os) {
      module->print(os, OpPrintingFlags().assumeVerified().enableDebugInfo());
      os << "\n";
    });
  };

  auto writeGraph = [&] {
    if (options.stripsExportInfo &&
        !session.run(*module, [](OpPassManager &manager) { manager.addPass(createStripExportInfo()); }))
      return session.status();
    return write();
  };

  if (options.emit == "dfg")
    return session.run(*module, [](OpPassManager &manager) { addGraphStage(manager); }) ? writeGraph()
                                                                                        : session.status();
  if (*stage == Stage::Graph && options.emit != "graphdef" && failed(settleFeeds(*module, options)))
    return session.status();
  // What the programs of fewer workers are made of.
  OwningOpRef<ModuleOp> graph;
  if (options.minWorkers)
    graph = module->clone();
  // Both stages at once, so that a large graph is verified once.
  if (*stage == Stage::Graph && !session.run(*module, [&](OpPassManager &manager) {
        addGraphStage(manager, /*exports=*/options.emit == "graphdef");
        addDistributeStage(manager, options);
      }))
    return session.status();
  if (options.padsBatch && *stage == Stage::Graph && failed(checkPadded(*module)))
    return session.status();
  if (options.emit == "dist")
    return writeGraph();
  LinkedParts parts;
  parts.collectives = hasSeveralTasks(*module);
  parts.tls = options.tls;
  if (options.tls && !parts.collectives)
    return session.fail("--tls is for several tasks, and this plan has one, which speaks to nobody", kWrongCommand);
  if (*stage != Stage::Plan) {
    FailureOr<int64_t> replicaBatch = getReplicaBatch(*module, options);
    if (failed(replicaBatch))
      return session.status();
    if (options.emit == "graphdef")
      return exportGraphs(session, *module, options.output, *replicaBatch == 0 ? 0 : options.batch);
    if (int status = checkNative(session, *module, options, target->isDevice()))
      return status;
    if (options.minWorkers && failed(checkElastic(*module)))
      return session.status();
    // Of workers that come and go none holds the others' memory.
    const bool isWhole =
        options.emit == "exe" || options.emit == "drt" || options.emit == "llvm" || options.timelines.size();
    if (isWhole && !target->isDevice() && !options.minWorkers && canShareMemory(*module)) {
      joint = module->clone();
      (*joint)->removeAttr(dfg::kCommandAttr); // of what was printed, which the other says
    }
    if (!session.run(*module, [&](OpPassManager &manager) { addLowerStage(manager, options, *replicaBatch); }) ||
        (joint && !session.run(*joint, [&](OpPassManager &manager) {
          addLowerStage(manager, options, *replicaBatch, /*joint=*/true);
        })))
      return session.status();
  }
  if (options.emit == kEmitNothing)
    return kDone;
  SmallVector<OwningOpRef<ModuleOp>> fewer; // by number of workers
  for (int workers = options.minWorkers; workers && workers < options.replicas; ++workers) {
    if (options.batch % (workers * dfg::getBatchMultiple(*graph)) != 0) {
      module->emitRemark() << "--min-workers: " << workers << " workers are left out, since the batch of "
                           << options.batch << " has no equal shares for them";
      continue;
    }
    CompileOptions those = options;
    those.replicas = workers;
    fewer.push_back(graph->clone());
    // A strategy may decide otherwise for fewer workers.
    if (!session.run(*fewer.back(),
                     [&](OpPassManager &manager) {
                       addGraphStage(manager);
                       addDistributeStage(manager, those);
                     }) ||
        failed(checkElastic(*fewer.back())))
      return session.status();
    FailureOr<int64_t> replicaBatch = getReplicaBatch(*fewer.back(), those);
    if (failed(replicaBatch) ||
        !session.run(*fewer.back(), [&](OpPassManager &manager) { addLowerStage(manager, those, *replicaBatch); }))
      return session.status();
    auto getBatch = [](ModuleOp plan) { return (*plan.getOps<drt::ProgramOp>().begin()).getBatch(); };
    if (getBatch(*fewer.back()) != getBatch(*module))
      return session.internalError("the program of fewer workers has another batch");
  }
  if (options.minWorkers && fewer.empty())
    return session.fail("--min-workers " + llvm::Twine(options.minWorkers).str() + ": the batch of " +
                        llvm::Twine(options.batch).str() + " has equal shares for no number of workers from " +
                        llvm::Twine(options.minWorkers).str() + " to " + llvm::Twine(options.replicas - 1).str() +
                        "; give another --batch, or a smaller --min-workers");
  auto anyPlan = [&](bool (*has)(ModuleOp)) {
    return has(*module) || (joint && has(*joint)) ||
           llvm::any_of(fewer, [has](OwningOpRef<ModuleOp> &plan) { return has(*plan); });
  };
  parts.library = anyPlan(hasLargeMatmuls);
  parts.convolutions = anyPlan(hasConvolutions);
  if (options.emit == "drt" && joint)
    addJointPlan(*module, *joint);
  if (options.emit == "drt")
    return write(parts.collectives);
  if (options.emit == "html") {
    std::string page;
    if (int status = makePlanPage(session, *module, joint ? *joint : ModuleOp(), options, page))
      return status;
    return writeText(session, options, [&](llvm::raw_ostream &os) { os << page; });
  }
  if (options.emit == "roofline")
    return writeRoofline(session, *module, options, chips);
  if (target->isDevice() &&
      !session.run(*module, [&](OpPassManager &manager) { addImagesStage(manager, options, *target); }))
    return session.status();
  if (options.emit == "ptx")
    return writeText(session, options, [&](llvm::raw_ostream &os) { os << getPtx(*module); });
  llvm::LLVMContext context;
  auto toLLVM = [&](ModuleOp plan, std::unique_ptr<llvm::Module> &code) -> int {
    if (!session.run(plan, [&](OpPassManager &manager) { addLLVMStage(manager); }))
      return session.status();
    TimingScope timing = session.time("translate to LLVM IR");
    code = emitLLVM(plan, context);
    return code ? kDone : session.internalError("LLVM IR could not be made");
  };
  std::unique_ptr<llvm::Module> code, jointCode;
  if (int status = toLLVM(*module, code))
    return status;
  if (joint) {
    if (int status = toLLVM(*joint, jointCode))
      return status;
    if (!addProgram(*code, std::move(jointCode), "drt_the_joint_program"))
      return session.internalError("the joint program could not be linked to the other");
  }
  SmallVector<std::string> names;
  for (OwningOpRef<ModuleOp> &plan : fewer) {
    std::unique_ptr<llvm::Module> fewerCode;
    if (int status = toLLVM(*plan, fewerCode))
      return status;
    names.push_back("drt_the_program_" + std::to_string(names.size()));
    if (!addProgram(*code, std::move(fewerCode), names.back()))
      return session.internalError("the program of fewer workers could not be linked to the other");
  }
  if (!names.empty())
    addProgramTable(*code, names);
  if (options.emit == "llvm") {
    optimize(*code, *createHostMachine(*target));
    return writeText(session, options, [&](llvm::raw_ostream &os) { code->print(os, nullptr); });
  }
  TimingScope timing = session.time("generate code");
  llvm::Expected<std::vector<ObjectCode>> objects =
      emitObjects(*code, *target, options.cache ? ObjectCache::ofUser() : ObjectCache());
  if (!objects)
    return session.internalError(llvm::toString(objects.takeError()));
  timing = session.time("link");
  if (llvm::Error error = linkExecutable(*objects, findRuntime(options), *target, parts, options.output)) {
    // What the runtime lacks no user can give it.
    const bool ours = error.isA<MissingSymbolError>();
    std::string message = llvm::toString(std::move(error));
    return ours ? session.internalError(message) : session.fail(message);
  }
  return kDone;
}

/// An internal error is repeated for the reproducer.
int compile(Session &session, const CompileOptions &options) {
  const int status = compileOnce(session, options);
  if (status == kInternalError) {
    CompileOptions again = options;
    again.writesReproducer = true;
    Session repeated(again);
    (void)compileOnce(repeated, again);
  }
  return status;
}

} // namespace

int compileCommand(const CompileOptions &options) {
  Session session(options);
  if (options.emit != "report")
    return compile(session, options);
  // A report is what the executable says of itself.
  llvm::SmallString<64> path, report;
  if (llvm::sys::fs::createTemporaryFile("distc", "", path) || llvm::sys::fs::createTemporaryFile("distc", "", report))
    return session.fail("cannot write a temporary file");
  llvm::scope_exit remove([&] {
    llvm::sys::fs::remove(path);
    llvm::sys::fs::remove(report);
  });
  CompileOptions executable = options;
  executable.emit = "exe";
  executable.output = path.str().str();
  if (int status = compile(session, executable))
    return status;
  std::optional<StringRef> redirects[] = {std::nullopt, report, std::nullopt};
  std::string message;
  if (int status = llvm::sys::ExecuteAndWait(path, {path, "--plan=full"}, std::nullopt, redirects, 0, 0, &message))
    return session.internalError("the executable gives no plan: exit status " + llvm::Twine(status) + " " + message);
  auto text = llvm::MemoryBuffer::getFile(report);
  if (!text)
    return session.fail("cannot read '" + report + "': " + text.getError().message());
  return writeText(session, options, [&](llvm::raw_ostream &os) { os << (*text)->getBuffer(); });
}

int checkCommand(const CompileOptions &options) {
  // Shapes are checked with some batch; kernels that are small for it show what larger ones would.
  constexpr int64_t kBatch = 32;
  CompileOptions check = options;
  check.emit = kEmitNothing;
  check.batch = options.batch ? options.batch : kBatch;
  Session session(check);
  if (int status = compile(session, check))
    return status;
  llvm::outs() << options.graph << ": everything that the endpoints need has code for the target " << options.target
               << "\n";
  return kDone;
}

int runCommand(const CompileOptions &options) {
  Session session(options);
  llvm::SmallString<64> path;
  if (llvm::sys::fs::createTemporaryFile("distc-run", "", path))
    return session.fail("cannot write a temporary file");
  CompileOptions executable = options;
  executable.output = path.str().str();
  int status = compile(session, executable);
  if (status == kDone) {
    SmallVector<StringRef> arguments = {path};
    arguments.append(options.runArguments.begin(), options.runArguments.end());
    std::string message;
    status = llvm::sys::ExecuteAndWait(path, arguments, std::nullopt, {}, 0, 0, &message);
    if (status < 0)
      status = session.fail(message);
  }
  llvm::sys::fs::remove(path);
  return status;
}

} // namespace distc
