//===- Pipeline.cpp - From the distributed graph to the runtime's plan ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/distribute/Passes.h"
#include "passes/graph/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/lower/program/Target.h"
#include "llvm/Support/Error.h"

using namespace mlir;

namespace distc {

/// Of the passes on a plan, those that a CPU's replicas gain from: they share memory, and every operation has code.
static void addCPUPasses(OpPassManager &manager, const std::string &precision, int64_t maxMemory, int64_t cores) {
  OpPassManager &products = manager.nest<drt::EntryOp>();
  // What indices and rows are made by, and what reads them, is still in operations that move one by one.
  products.addPass(createJoinRowExchanges());
  products.addPass(createFoldTransposes());
  // What the gradients of a loop's iterations add up to.
  products.addPass(createSumContractions());
  products.addPass(createFuseEpilogues());
  products.addPass(createConvolutionsToMatmuls());
  // Products have their epilogues; what rounds and widens is fused.
  products.addPass(createSetPrecision({precision}));
  // What two equal operations read has two readers, and would be written for them; each iteration of a loop reads the
  // loop's variables.
  products.addPass(createEliminateCommonSubexpressions());
  products.addPass(createFuseAttention({/*device=*/false}));
  // Which matmuls are float32, and which share a right operand, is known.
  StackContractionsOptions stacks;
  stacks.stackRows *= std::max<int64_t>(cores, 1);
  products.addPass(createStackContractions(stacks));
  // A gradient's product is computed once for the replicas of a task.
  manager.addPass(createJoinContractions());
  OpPassManager &entries = manager.nest<drt::EntryOp>();
  entries.addPass(createFuseElementwise());
  entries.addPass(createEliminateCommonSubexpressions());
  // Sums of few results are many cores' work too.
  if (cores > 1)
    entries.addPass(createSplitReductions({/*cores=*/true}));
  manager.addPass(createFuseUpdates());
  manager.addNestedPass<drt::EntryOp>(createDrawInUpdates());
  // What element-wise fusion left of softmax and the like; a row stays in the cache while they go through it.
  FuseRowsOptions rows;
  rows.maxRowBytes = 128 * 1024;
  rows.minRows = 16 * std::max<int64_t>(cores, 1);
  rows.columnSums = false;
  manager.addNestedPass<drt::EntryOp>(createFuseRows(rows));
  // Which matmuls there are, and which are joined, is known.
  manager.addPass(createPackOperands());
  manager.addPass(createOutlineKernels());
  // So far tensors are values; from here on they are memory. Every operation that reads or writes it is there.
  manager.addPass(createInsertCopies());
  manager.addPass(createInsertBarriers());
  if (maxMemory) {
    manager.addPass(createRecomputeValues({maxMemory}));
    // Variables are read later.
    manager.addPass(createInsertBarriers());
  }
  manager.addPass(createPlanMemory());
  manager.addPass(createPipelineOwners());
}

static void addDevicePasses(OpPassManager &manager, const Target &target, const std::string &precision,
                            int64_t maxMemory) {
  manager.addPass(createAccumulateInVariables());
  manager.addNestedPass<drt::EntryOp>(createPrepareForGpu());
  manager.addPass(createRandomKernels());
  manager.addPass(createRowKernels());
  manager.addPass(createCheckForGpu());
  OpPassManager &entries = manager.nest<drt::EntryOp>();
  // Filters have the order that the libraries of GPUs want.
  entries.addPass(createFoldTransposes({/*filters=*/false}));
  FuseEpiloguesOptions epilogues;
  epilogues.activations = {"relu"};
  entries.addPass(createFuseEpilogues(epilogues));
  // What matmuls read is rounded for all of its readers: those of an equal value too.
  entries.addPass(createEliminateCommonSubexpressions());
  // Products have their epilogues, and are not written anew behind it; what rounds and widens is fused.
  entries.addPass(createSetPrecision({precision, /*device=*/true}));
  entries.addPass(createExpandAroundTransposes());
  entries.addPass(createEliminateCommonSubexpressions());
  // Equal values are one, and each operation is still for itself.
  if (target.hasMatrixUnits())
    entries.addPass(createFuseAttention());
  // What gradients of attentions are read by is known.
  entries.addPass(createFuseBiasGradients());
  entries.addPass(createFuseAdditions());
  // To write an element to memory takes a chip as long as some 80 instructions: an erf, done by each of three readers.
  FuseElementwiseOptions fusion;
  fusion.maxRepeated = 40;
  entries.addPass(createFuseElementwise(fusion));
  entries.addPass(createEliminateCommonSubexpressions());
  manager.addPass(createFuseUpdates());
  // What is large is read as seldom as can be, by as many threads as there are.
  manager.addNestedPass<drt::EntryOp>(createJoinReductions());
  manager.addPass(createGroupSums());
  // Alone, each can be computed again.
  if (!maxMemory)
    manager.addPass(createGroupRoundings());
  manager.addNestedPass<drt::EntryOp>(createSplitReductions());
  // What element-wise fusion left of softmax and the like.
  manager.addNestedPass<drt::EntryOp>(createFuseRows());
  // Which kernels read a row is known.
  manager.addNestedPass<drt::EntryOp>(createRepeatInRows());
  // Parts of columns' sums are made by these kernels.
  if (!maxMemory)
    manager.addPass(createGroupRowSums());
  manager.addPass(createOutlineKernels());
  manager.addNestedPass<drt::EntryOp>(createReadInPlace());
  manager.addPass(createInsertCopies());
  if (maxMemory)
    manager.addPass(createRecomputeValues({maxMemory}));
  manager.addPass(createPlanMemory({/*device=*/true}));
  // The tables of its kernels say where tensors and variables lie.
  manager.addPass(createGroupUpdates());
}

void addPlanVerifiers(OpPassManager &manager, bool device) {
  if (device)
    manager.addNestedPass<drt::EntryOp>(createVerifyStreamOrder());
  else
    manager.addPass(createVerifyOrder());
}

void buildLowerToRuntimePipeline(OpPassManager &manager, const LowerToRuntimeOptions &options) {
  const Target target = llvm::ExitOnError("error: ")(Target::parse(options.target));
  manager.addPass(createExtractEntries());
  // From here on every size is a number.
  InferShapesOptions shapes;
  shapes.batch = options.replicaBatch;
  shapes.feeds.assign(options.feeds.begin(), options.feeds.end());
  manager.addPass(createInferShapes(shapes));
  // Here gradients' shapes are known; what it makes is decomposed and folded like the graph.
  if (target.isDevice()) {
    manager.addPass(createDistSpellOutExchange());
    manager.addPass(createInferShapes(shapes));
  }
  manager.addPass(createDecompose({/*last=*/true}));
  manager.addPass(createFold());
  manager.addPass(createCancelTransposes());
  DescribeProgramOptions program;
  program.graph = options.graph;
  program.strategy = options.strategy;
  program.target = options.target;
  program.replicaBatch = options.replicaBatch;
  program.cores = options.cores;
  program.joint = options.joint;
  manager.addPass(createDescribeProgram(program));
  // Within one task there is nothing to scatter or to gather, where its replicas share memory.
  manager.addPass(createMergeShares({/*device=*/target.isDevice()}));
  if (target.isDevice())
    manager.addPass(createAlignShares());
  manager.addPass(createConvertDfgToDrt({options.asserts, /*device=*/target.isDevice()}));
  if (target.isDevice())
    addDevicePasses(manager, target, options.precision, options.maxMemory);
  else
    addCPUPasses(manager, options.precision, options.maxMemory, options.cores);
  // What moved, and where everything lies now, is what will run.
  addPlanVerifiers(manager, target.isDevice());
}

#define GEN_PASS_REGISTRATION
#include "passes/lower/Passes.h.inc"

void registerLowering() {
  registerLowerPasses();
  PassPipelineRegistration<>("lower-kernels", "Kernels from linalg on buffers to LLVM functions",
                             buildLowerKernelsPipeline);
  PassPipelineRegistration<>("lower-gpu-kernels", "Kernels of a grid's threads to NVVM", buildLowerGpuKernelsPipeline);
  PassPipelineRegistration<LowerToRuntimeOptions>("lower-to-runtime", "A distributed graph to the runtime's plan",
                                                  buildLowerToRuntimePipeline);
}

} // namespace distc
