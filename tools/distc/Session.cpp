//===- Session.cpp - One run of the compiler: context, diagnostics, stages --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "tools/distc/Session.h"
#include "dialects/dfg/GraphNames.h"
#include "dialects/dfg/IrText.h"
#include "dialects/dfg/stablehlo/Import.h"
#include "dialects/dfg/tensorflow/Import.h"
#include "dialects/dfg/tensorflow/Types.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "tools/distc/Stage.h"
#include "tools/distc/tensor_file.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <unistd.h>

using namespace mlir;

namespace distc {

/// Notes the tensors of the graph's scalar summaries, with their tags.
static void noteSummaries(dfg::GraphOp graph) {
  NamedAttrList summaries;
  for (auto node : graph.getBody().front().getOps<dfg::OpaqueOp>()) {
    if (node.getOp() != "ScalarSummary" || node->getNumOperands() != 2)
      continue;
    auto tag = node->getOperand(0).getDefiningOp<dfg::ConstOp>();
    auto text = tag ? llvm::dyn_cast<DenseStringElementsAttr>(tag.getValue()) : DenseStringElementsAttr();
    auto value = llvm::dyn_cast<OpResult>(node->getOperand(1));
    if (text && value && text.getNumElements() == 1)
      summaries.set((dfg::getNodeName(value.getOwner()) + ":" + llvm::Twine(value.getResultNumber())).str(),
                    StringAttr::get(graph.getContext(), text.getRawStringData().front()));
  }
  if (!summaries.empty())
    graph.setSummariesAttr(summaries.getDictionary(graph.getContext()));
}

/// Sets a flag while a pass runs that verifies what other passes made.
class WatchPlanVerifiers : public PassInstrumentation {
public:
  explicit WatchPlanVerifiers(bool &running) : running(running) {}
  void runBeforePass(Pass *pass, Operation *) override { running = pass->getArgument().starts_with("drt-verify-"); }
  void runAfterPass(Pass *, Operation *) override { running = false; }
  void runAfterPassFailed(Pass *, Operation *) override { running = false; }

private:
  bool &running;
};

static DialectRegistry makeRegistry() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registry.insert<dfg::DFGDialect, dist::DISTDialect, drt::DRTDialect>();
  return registry;
}

Session::Session(const CompileOptions &options)
    : file(options.graph), context(makeRegistry(), MLIRContext::Threading::DISABLED),
      writesReproducer(options.writesReproducer) {
  // What makes attributes and locations unique asks only this call: without it each look-up takes locks and a second
  // table.
  context.disableMultithreading();
  timing.setEnabled(options.timing);
  timer = timing.getRootScope();
  // Messages name nodes. What the IR around them looks like, --emit shows.
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    std::string message = diagnostic.str();
    // A message about an operation of ours says which node of the graph that is.
    auto name = diagnostic.getLocation()->findInstanceOf<NameLoc>();
    if (llvm::is_contained({DiagnosticSeverity::Warning, DiagnosticSeverity::Remark}, diagnostic.getSeverity()))
      remarks.push_back({diagnostic.getSeverity() == DiagnosticSeverity::Warning,
                         name ? name.getName().getValue().str() : "", message});
    if (name)
      if (std::string quoted = ("'" + name.getName().getValue() + "'").str(); message.find(quoted) == std::string::npos)
        message = "node " + quoted + ": " + message;
    // It was said when it happened first.
    if (writesReproducer && diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    switch (diagnostic.getSeverity()) {
    case DiagnosticSeverity::Error:
      verifiesPlan && !isPlanGiven ? internalError(message) : fail(message);
      break;
    case DiagnosticSeverity::Warning:
      llvm::errs() << this->file << ": warning: " << message << "\n";
      break;
    case DiagnosticSeverity::Remark:
      llvm::errs() << this->file << ": remark: " << message << "\n";
      break;
    case DiagnosticSeverity::Note:
      break;
    }
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error && !writesReproducer)
      for (Diagnostic &note : diagnostic.getNotes())
        llvm::errs() << this->file << ": note: " << note.str() << "\n";
    return success();
  });
}

int Session::fail(const llvm::Twine &message, int status) {
  // What follows an error is its consequence.
  if (failed != kDone)
    return failed;
  failed = status;
  if (writesReproducer)
    return status;
  std::string text = message.str();
  bool namesFile = llvm::StringRef(text).starts_with(file);
  llvm::errs() << (namesFile ? "" : file + ": ") << "error: " << text << "\n";
  return status;
}

int Session::internalError(const llvm::Twine &message) {
  return fail("internal error: " + message + "; please report it with the graph and the command line", kInternalError);
}

/// The tensors of an .npz, a .safetensors or a checkpoint.
static llvm::Error readTensorFile(StringRef path, MLIRContext *context, stablehlo::TakeTensor take) {
  std::string error = readTensors(path.str(), [&](const TensorHead &head, const std::vector<char> &bytes) {
    take(head.name, tf::getElementType(static_cast<tf::DataType>(head.dtype), context), head.shape, bytes);
  });
  return error.empty() ? llvm::Error::success() : llvm::createStringError(error);
}

static OwningOpRef<ModuleOp> readIr(const std::string &path, MLIRContext *context) {
  // What cannot be read is the parser's to say.
  if (auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
      text && !isBytecode((*text)->getMemBufferRef()) && failed(dfg::checkIrText((*text)->getBuffer(), path, context)))
    return nullptr;
  OwningOpRef<ModuleOp> module;
  if (!dfg::survivesParsing([&] { module = parseSourceFile<ModuleOp>(path, ParserConfig(context)); }, path)) {
    llvm::errs() << path << ": error: MLIR's parser breaks off at this text, which no printer writes\n";
    _exit(kWrongInput); // where it broke off, destructors may not come through
  }
  return module;
}

OwningOpRef<ModuleOp> Session::import(const CompileOptions &options) {
  TimingScope scope = time("import");
  OwningOpRef<ModuleOp> module = stablehlo::isStableHlo(options.graph)
                                     ? stablehlo::importStep(options.graph, &context, readTensorFile)
                                 : isIr(options.graph) ? readIr(options.graph, &context)
                                                       : tf::importGraph(options.graph, &context);
  if (!module) {
    if (failed == kDone)
      fail("cannot be read");
    return nullptr;
  }
  Builder builder(&context);
  for (auto graph : module->getOps<dfg::GraphOp>()) {
    // Endpoints and control edges name nodes, whose names are locations.
    Block &nodes = graph.getBody().front();
    auto lacksName = [](Operation &op) { return dfg::isNamed(&op) && dfg::getNodeName(&op).empty(); };
    if (auto nameless = llvm::find_if(nodes, lacksName); nameless != nodes.end()) {
      fail("has a '" + nameless->getName().getStringRef() +
           "' without a name: names are locations, which distc and distc-opt print, and other tools with "
           "--mlir-print-debuginfo");
      return nullptr;
    }
    if (!options.trainOp.empty())
      graph.setTrainOp(options.trainOp);
    if (!options.loss.empty())
      graph.setLoss(options.loss);
    if (!options.initOp.empty())
      graph.setInitOp(options.initOp);
    if (!options.init)
      graph.removeInitOpAttr();
    if (options.summaries)
      noteSummaries(graph);
    if (!options.fetches.empty())
      graph.setFetchesAttr(
          builder.getStrArrayAttr(llvm::SmallVector<StringRef>(options.fetches.begin(), options.fetches.end())));
  }
  return module;
}

bool Session::verifyGiven(ModuleOp module, llvm::function_ref<void(OpPassManager &)> addStage) {
  isPlanGiven = true;
  bool done = run(module, addStage);
  isPlanGiven = false;
  return done;
}

bool Session::run(ModuleOp module, llvm::function_ref<void(OpPassManager &)> addStage) {
  PassManager &manager = *stages.emplace_back(std::make_unique<PassManager>(&context));
  manager.enableTiming(timer);
  // Once a stage: after every pass it would cost a large graph more than the passes.
  manager.enableVerifier(false);
  manager.addInstrumentation(std::make_unique<WatchPlanVerifiers>(verifiesPlan));
  addStage(manager);
  OwningOpRef<ModuleOp> before;
  if (writesReproducer)
    before = module.clone();
  LogicalResult ran = manager.run(module);
  TimingScope scope = time("verify");
  if (succeeded(ran) && succeeded(verify(module)))
    return true;
  if (failed == kDone)
    internalError("a pass failed");
  if (writesReproducer && failed == kInternalError)
    writeReproducer(*before, manager);
  return false;
}

/// As MLIR writes one, with the names of nodes.
static void printReproducer(ModuleOp module, OpPassManager &pipeline, raw_ostream &os) {
  std::string text;
  llvm::raw_string_ostream textOs(text);
  pipeline.printAsTextualPipeline(textOs);
  AsmState state(module, OpPrintingFlags().enableDebugInfo());
  state.attachResourcePrinter("mlir_reproducer", [&](Operation *, AsmResourceBuilder &builder) {
    builder.buildString("pipeline", text);
    builder.buildBool("disable_threading", true);
    builder.buildBool("verify_each", true);
  });
  module->print(os, state);
}

void Session::writeReproducer(ModuleOp module, OpPassManager &pipeline) {
  const llvm::StringRef path = "distc-reproducer.mlir";
  std::error_code code;
  llvm::raw_fd_ostream os(path, code);
  if (code)
    return;
  printReproducer(module, pipeline, os);
  os.flush();
  if (os.has_error())
    os.clear_error();
  else
    llvm::errs() << file << ": note: 'distc-opt --run-reproducer " << path << "' repeats it\n";
}

int Session::checkOutput(llvm::StringRef path) {
  if (path == "-")
    return fail("an executable cannot go to standard output: name a file with -o", kWrongCommand);
  if (llvm::sys::fs::is_directory(path))
    return fail("cannot write '" + path + "': it is a folder; name a file with -o");
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (!folder.empty() && !llvm::sys::fs::is_directory(folder))
    return fail("cannot write '" + path + "': there is no folder '" + folder + "'");
  return kDone;
}

} // namespace distc
