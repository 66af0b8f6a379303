//===- Stage.cpp - Going on from a stage that was printed --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "tools/distc/Stage.h"
#include "dialects/dfg/AttachedAttributes.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/IR/Builders.h"
#include "passes/lower/program/Target.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace distc {

namespace {

Stage findStage(ModuleOp module) {
  for (Operation &op : *module.getBody())
    if (llvm::isa<dfg::GraphOp>(op))
      return module.getOps<dist::TopologyOp>().empty() ? Stage::Graph : Stage::Distributed;
  return Stage::Plan;
}

/// The flags whose values differ from a command line that does not name them.
SmallVector<StringRef> getSettled(const CompileOptions &options, Stage stage) {
  const CompileOptions unsaid;
  SmallVector<StringRef> flags;
  auto add = [&](StringRef flag, bool isSaid) {
    if (isSaid)
      flags.push_back(flag);
  };
  add("--strategy", options.strategy != unsaid.strategy);
  add("--resources", options.resources != unsaid.resources);
  add("--replicas", options.resources.empty() && options.replicas != unsaid.replicas);
  add("--ps", options.servers != unsaid.servers);
  add("--one-process-per-replica", options.oneProcessPerReplica);
  add("--min-workers", options.minWorkers != 0);
  add("--train-op", !options.trainOp.empty());
  add("--loss", !options.loss.empty());
  add("--init-op", !options.initOp.empty());
  add("--no-init", !options.init);
  add("--fetch", !options.fetches.empty());
  add("--summaries", options.summaries);
  add("--pad-batch", options.padsBatch);
  add("--max-iterations", options.maxIterations != 0);
  if (stage == Stage::Plan) {
    add("--batch", options.batch != 0);
    add("--feed", !options.feeds.empty());
    add("--target", options.target != unsaid.target);
    add("--no-asserts", !options.asserts);
    add("--cores-per-replica", options.coresPerReplica != 0);
    add("--max-memory", options.maxMemory != 0);
    add("--precision", options.precision != unsaid.precision);
  }
  return flags;
}

} // namespace

bool isIr(llvm::StringRef path) {
  if (path.ends_with(".mlir"))
    return true;
  constexpr llvm::StringLiteral bytecode = "ML\xefR"; // MLIR's magic number
  auto begin = llvm::MemoryBuffer::getFileSlice(path, bytecode.size(), 0);
  return begin && (*begin)->getBuffer() == bytecode;
}

void noteCommand(ModuleOp module, const CompileOptions &options, bool severalTasks) {
  Builder builder(module.getContext());
  NamedAttrList said;
  said.set("graph", builder.getStringAttr(options.graph));
  said.set("strategy", builder.getStringAttr(options.strategy));
  said.set("target", builder.getStringAttr(options.target));
  said.set("precision", builder.getStringAttr(options.precision));
  if (options.batch)
    said.set("batch", builder.getI64IntegerAttr(options.batch));
  if (!options.feeds.empty())
    said.set("feeds", builder.getStrArrayAttr(SmallVector<StringRef>(options.feeds.begin(), options.feeds.end())));
  if (!options.asserts)
    said.set("no_asserts", builder.getUnitAttr());
  // What earlier stages than a distributed graph have not settled.
  if (findStage(module) == Stage::Graph) {
    if (options.replicas > 1)
      said.set("replicas", builder.getI64IntegerAttr(options.replicas));
    if (options.servers)
      said.set("ps", builder.getI64IntegerAttr(options.servers));
    if (options.oneProcessPerReplica)
      said.set("one_process_per_replica", builder.getUnitAttr());
    if (!options.resources.empty())
      said.set("resources", builder.getStringAttr(options.resources));
  }
  if (options.coresPerReplica)
    said.set("cores_per_replica", builder.getI64IntegerAttr(options.coresPerReplica));
  if (options.maxMemory)
    said.set("max_memory", builder.getI64IntegerAttr(static_cast<int64_t>(options.maxMemory)));
  if (options.padsBatch)
    said.set("pad_batch", builder.getUnitAttr());
  if (options.tls)
    said.set("tls", builder.getUnitAttr());
  if (severalTasks)
    said.set("several_tasks", builder.getUnitAttr());
  module->setAttr(dfg::kCommandAttr, said.getDictionary(module.getContext()));
}

FailureOr<Stage> resume(ModuleOp module, CompileOptions &options) {
  const Stage stage = findStage(module);
  if (stage == Stage::Plan && module.getOps<drt::EntryOp>().empty())
    return module.emitError("has neither a graph nor a plan"), failure();
  // A graph that is distributed says over what.
  if (stage == Stage::Graph) {
    WalkResult found = module.walk([](Operation *op) {
      const bool isDistributed = llvm::isa_and_nonnull<dist::DISTDialect>(op->getDialect()) ||
                                 llvm::any_of(op->getDiscardableAttrs(), [](NamedAttribute attribute) {
                                   return attribute.getName().strref().starts_with("dist.");
                                 });
      return isDistributed && !llvm::isa<ModuleOp>(op) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (found.wasInterrupted())
      return module.emitError("has nodes of a distributed graph, and no 'dist.topology'"), failure();
  }
  if (stage != Stage::Graph)
    if (SmallVector<StringRef> settled = getSettled(options, stage); !settled.empty())
      return module.emitError() << settled.front() << " was settled when '" << options.graph
                                << "' was printed; give it where the graph is compiled, or leave it out",
             failure();
  auto said = module->getAttrOfType<DictionaryAttr>(dfg::kCommandAttr);
  if (!said)
    return stage;
  const CompileOptions unsaid;
  auto text = [&](StringRef key, std::string &to, const std::string &none) {
    if (auto value = said.getAs<StringAttr>(key); value && to == none)
      to = value.getValue().str();
  };
  // It is the graph's name that the executable tells.
  if (auto graph = said.getAs<StringAttr>("graph"))
    options.graph = graph.getValue().str();
  text("strategy", options.strategy, unsaid.strategy);
  text("target", options.target, unsaid.target);
  // What the command line says is checked there.
  if (auto target = said.getAs<StringAttr>("target"); target && target.getValue() == options.target)
    if (llvm::Error error = Target::parse(options.target).takeError())
      return module.emitError() << "'" << dfg::kCommandAttr << "': " << llvm::toString(std::move(error)), failure();
  text("precision", options.precision, unsaid.precision);
  if (!llvm::is_contained(kPrecisions, options.precision))
    return module.emitError() << "'" << dfg::kCommandAttr << "' says precision '" << options.precision
                              << "'; it can be " << llvm::join(kPrecisions, ", "),
           failure();
  if (auto batch = said.getAs<IntegerAttr>("batch"); batch && options.batch == 0)
    options.batch = batch.getInt();
  auto feeds = said.getAs<ArrayAttr>("feeds");
  if (feeds && !dfg::isStrings(feeds))
    return module.emitError() << "'" << dfg::kCommandAttr << "' has feeds that are no strings", failure();
  if (feeds && options.feeds.empty())
    for (auto feed : feeds.getAsRange<StringAttr>())
      options.feeds.push_back(feed.getValue().str());
  if (auto cores = said.getAs<IntegerAttr>("cores_per_replica"); cores && options.coresPerReplica == 0)
    options.coresPerReplica = static_cast<int>(cores.getInt());
  if (auto bytes = said.getAs<IntegerAttr>("max_memory"); bytes && options.maxMemory == 0)
    options.maxMemory = static_cast<uint64_t>(bytes.getInt());
  options.asserts &= !said.contains("no_asserts");
  options.tls |= said.contains("tls");
  // In later stages it is done.
  options.padsBatch |= said.contains("pad_batch") && (stage == Stage::Graph || options.emit == "graphdef");
  if (stage != Stage::Graph || options.saysWhere)
    return stage;
  // Where it runs is said as a whole.
  auto number = [&](StringRef key, int &to) -> LogicalResult {
    auto value = said.getAs<IntegerAttr>(key);
    if (!value)
      return success();
    if (value.getInt() < 0 || value.getInt() > kMostReplicas)
      return module.emitError() << "'" << dfg::kCommandAttr << "' says " << key << " " << value.getInt()
                                << "; it can be 0 to " << kMostReplicas;
    to = static_cast<int>(value.getInt());
    return success();
  };
  if (failed(number("replicas", options.replicas)) || failed(number("ps", options.servers)))
    return failure();
  options.oneProcessPerReplica |= said.contains("one_process_per_replica");
  text("resources", options.resources, unsaid.resources);
  if (!options.resources.empty())
    options.replicas = 0;
  return stage;
}

FailureOr<OwningOpRef<ModuleOp>> takeJointPlan(ModuleOp module) {
  OwningOpRef<ModuleOp> joint;
  for (auto other : llvm::make_early_inc_range(module.getOps<ModuleOp>())) {
    if (joint)
      return other.emitError("a program has two plans at most: of tasks that share their memory, and of others"),
             failure();
    other->remove();
    joint = other;
  }
  if (!joint)
    return joint;
  auto getProgram = [](ModuleOp plan) {
    auto programs = plan.getOps<drt::ProgramOp>();
    return programs.empty() ? drt::ProgramOp() : *programs.begin();
  };
  drt::ProgramOp program = getProgram(module), other = getProgram(*joint);
  if (!program || !other || program.getJoint() || !other.getJoint() || program.getBatch() != other.getBatch() ||
      program.getTasks() != other.getTasks())
    return joint->emitError(
               "stands beside a plan, and is none of the same tasks and batch for tasks that share their memory"),
           failure();
  return joint;
}

void addJointPlan(ModuleOp module, ModuleOp joint) { module.getBody()->push_back(joint->clone()); }

bool hasSeveralTasks(ModuleOp module) {
  for (auto topology : module.getOps<dist::TopologyOp>())
    return topology.getTasks().size() > 1;
  auto said = module->getAttrOfType<DictionaryAttr>(dfg::kCommandAttr);
  return said && said.contains("several_tasks");
}

} // namespace distc
