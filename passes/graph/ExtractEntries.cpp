//===- ExtractEntries.cpp - What the endpoints need, as functions -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeEdges.h"
#include "dialects/dist/BatchNodes.h"
#include "mlir/IR/IRMapping.h"
#include "passes/graph/EndpointNodes.h"
#include "passes/graph/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_EXTRACTENTRIES
#include "passes/graph/Passes.h.inc"

namespace {

struct Entry {
  StringRef name;
  /// The operation that must run, "" for none.
  std::string target;
  SmallVector<std::string> fetches;
};

struct ExtractEntries : impl::ExtractEntriesBase<ExtractEntries> {
  using ExtractEntriesBase::ExtractEntriesBase;

  void runOnOperation() override {
    auto graphs = getOperation().getOps<dfg::GraphOp>();
    if (graphs.empty()) {
      getOperation().emitError("holds no dfg.graph to take entries from");
      return signalPassFailure();
    }
    graph = *graphs.begin();
    EndpointNodes nodes(graph);
    endpoints = &nodes;

    std::string trainTarget = getEndpoint(trainOp, graph.getTrainOp()),
                initTarget = getEndpoint(initOp, graph.getInitOp());
    lossName = getEndpoint(loss, graph.getLoss());
    SmallVector<std::string> outputs;
    auto add = [&](StringRef name) {
      std::string tensor = getTensor(name);
      if (!llvm::is_contained(outputs, tensor))
        outputs.push_back(tensor);
    };
    if (!lossName.empty())
      add(lossName);
    if (!fetches.empty())
      llvm::for_each(fetches, add);
    else if (ArrayAttr declared = graph.getFetchesAttr())
      for (StringAttr name : declared.getAsRange<StringAttr>())
        add(name.getValue());

    SmallVector<std::string> ofStep = outputs;
    if (failed(addSummaries(ofStep)))
      return signalPassFailure();

    SmallVector<Entry> entries;
    if (!initTarget.empty())
      entries.push_back({"init", initTarget, {}});
    if (!trainTarget.empty()) {
      SmallVector<std::string> ofUpdate;
      if (isServed() && failed(giveToServers(ofStep, outputs, ofUpdate)))
        return signalPassFailure();
      entries.push_back({"step", trainTarget, ofStep});
      if (isServed())
        entries.push_back({"update", trainTarget, ofUpdate});
      if (!graph.getBody().front().getOps<dist::AccumulateOp>().empty())
        entries.push_back({"accumulate", trainTarget, ofStep});
    }
    FailureOr<SmallVector<std::string>> evaluated = dropBehindUpdates(outputs);
    if (failed(evaluated))
      return signalPassFailure();
    if (!lossName.empty())
      warnOfNoNumber(outputs.front());
    if (!evaluated->empty())
      entries.push_back({"eval", "", *evaluated});
    if (entries.empty()) {
      emitError(graph.getLoc(),
                "has no endpoint: name the operation that trains (--train-op) or a tensor to fetch (--loss, --fetch)")
          << listCandidates();
      return signalPassFailure();
    }
    if (trainTarget.empty() && hasCandidates(graph.getTrainOpAttrName()))
      emitWarning(graph.getLoc(),
                  "names several operations that train, so the program can only evaluate: name one with --train-op")
          << listCandidates();
    for (const Entry &entry : entries)
      if (failed(extract(entry)))
        return signalPassFailure();
    notePlaceholders();
    DictionaryAttr objects = graph.getObjectsAttr();
    if (objects)
      getOperation()->setAttr(dfg::kProgramObjectsAttr, objects);
    if (auto slices = graph->getAttrOfType<DictionaryAttr>(dfg::kSlicesAttr))
      getOperation()->setAttr(dfg::kSlicesAttr, slices);
    removeUnused();
    if (objects)
      removeCopies(objects);
  }

  /// A loss that is not one number is given like a fetch, and is not in the log.
  void warnOfNoNumber(StringRef tensor) {
    Value value = endpoints->findTensor(tensor);
    auto type = value ? llvm::dyn_cast<RankedTensorType>(value.getType()) : RankedTensorType();
    if (!type || (type.getElementType().isFloat() && type.hasStaticShape() && type.getNumElements() == 1))
      return;
    emitWarning(value.getLoc()) << "the loss '" << tensor << "' is " << type
                                << ", and not one floating-point number: the log has no loss" << listCandidates();
  }

  /// Of the fetches those that evaluation can give: it changes no variable, so nothing that is computed of what an
  /// update leaves. Others are left to the step, with a warning. That a value waits for an update it does not see, as
  /// the results of a tf.function do, is no reason.
  FailureOr<SmallVector<std::string>> dropBehindUpdates(ArrayRef<std::string> outputs) {
    SmallVector<std::string> kept;
    behindUpdates = dfg::findBehind(graph.getBody().front(), llvm::IsaPred<dfg::UpdateInterface>);
    for (const std::string &output : outputs) {
      Value tensor = endpoints->findTensor(output);
      if (!tensor)
        return failure();
      FailureOr<DenseSet<Operation *>> needed = endpoints->collect({tensor.getDefiningOp()}, behindUpdates);
      if (failed(needed))
        return failure();
      Operation *update = nullptr; // the first one
      for (Operation *op : *needed)
        if (llvm::isa<dfg::UpdateInterface>(op) && (!update || op->isBeforeInBlock(update)))
          update = op;
      if (!update) {
        kept.push_back(output);
        continue;
      }
      emitWarning(tensor.getLoc()) << "'" << output << "' stands behind the update '" << dfg::getNodeName(update)
                                   << "' of a variable; --eval, which changes no variable, does not give it";
    }
    return kept;
  }

  /// Numbers that are computed of what servers have made of all gradients (a norm of them) are given by the update,
  /// once for all replicas; evaluation makes no gradients that servers would take.
  LogicalResult giveToServers(SmallVector<std::string> &ofStep, SmallVector<std::string> &ofEvaluation,
                              SmallVector<std::string> &ofUpdate) {
    for (const std::string &output : ofStep) {
      Value tensor = endpoints->findTensor(output);
      FailureOr<DenseSet<Operation *>> needed = failure();
      if (tensor)
        needed = endpoints->collect({tensor.getDefiningOp()});
      if (failed(needed))
        return failure();
      auto type = llvm::dyn_cast<RankedTensorType>(tensor.getType());
      const bool isNumber = type && type.hasStaticShape() && type.getNumElements() == 1;
      if (isNumber && llvm::any_of(*needed, isServers))
        ofUpdate.push_back(output);
    }
    // The loss is what each replica says of its step.
    llvm::erase(ofUpdate, getTensor(lossName));
    for (const std::string &output : ofUpdate) {
      llvm::erase(ofStep, output);
      if (llvm::is_contained(ofEvaluation, output))
        emitWarning(endpoints->findTensor(output).getLoc())
            << "'" << output << "' is what servers make of an update's gradients; --eval, which makes none, does not "
            << "give it";
      llvm::erase(ofEvaluation, output);
    }
    return success();
  }

  /// What the graph's scalar summaries say of a step, behind its other fetches. What has no code is no reason not to
  /// train: it is left out, with a warning.
  LogicalResult addSummaries(SmallVector<std::string> &outputs) {
    DictionaryAttr summaries = graph.getSummariesAttr();
    if (!summaries)
      return success();
    NamedAttrList kept;
    for (NamedAttribute summary : summaries) {
      Value tensor = endpoints->findTensor(summary.getName());
      FailureOr<DenseSet<Operation *>> needed = failure();
      if (tensor)
        needed = endpoints->collect({tensor.getDefiningOp()});
      if (failed(needed))
        return failure();
      auto opaques = graph.getBody().front().getOps<dfg::OpaqueOp>();
      auto opaque = llvm::find_if(opaques, [&](dfg::OpaqueOp op) { return needed->contains(op); });
      if (opaque != opaques.end()) {
        emitWarning(tensor.getLoc()) << "the summary " << summary.getValue() << " is left out: it needs node '"
                                     << dfg::getNodeName(*opaque) << "', which distc has no code for";
        continue;
      }
      kept.push_back(summary);
      if (!llvm::is_contained(outputs, summary.getName().getValue()))
        outputs.push_back(summary.getName().str());
    }
    if (!kept.empty())
      getOperation()->setAttr(dfg::kSummariesAttr, kept.getDictionary(&getContext()));
    return success();
  }

  /// "NODE:OUTPUT" of a name that may be without its output.
  static std::string getTensor(StringRef name) { return name.contains(':') ? name.str() : name.str() + ":0"; }

  static std::string getEndpoint(const std::string &option, std::optional<StringRef> declared) {
    return option.empty() ? declared.value_or("").str() : option;
  }

  bool hasCandidates(StringAttr endpoint) {
    DictionaryAttr candidates = graph.getCandidatesAttr();
    return candidates && candidates.contains(endpoint);
  }

  std::string listCandidates() {
    std::string text;
    if (DictionaryAttr candidates = graph.getCandidatesAttr())
      for (NamedAttribute entry : candidates) {
        text += "; candidates for " + entry.getName().str() + ":";
        for (Attribute name : llvm::cast<ArrayAttr>(entry.getValue()))
          text += " '" + llvm::cast<StringAttr>(name).str() + "'";
      }
    return text;
  }

  /// What a fetch gives over all replicas. A graph that was not distributed does not say; the batch is still open here,
  /// so a batched tensor shows.
  StringRef getJoin(StringRef name, Type type) {
    if (auto joins = graph->getAttrOfType<DictionaryAttr>(dist::kJoinsAttr))
      if (auto join = joins.getAs<StringAttr>(name))
        return join.getValue();
    auto tensor = llvm::dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return "first";
    if (tensor.getRank() > 0 && tensor.isDynamicDim(0))
      return "concat:0";
    return tensor.getRank() == 0 && llvm::isa<FloatType>(tensor.getElementType()) ? "mean" : "first";
  }

  /// Of what a step needs, what runs for a batch whose gradients are only kept: all that leads to them, fetches, and
  /// variables that change with each batch (moving averages over it). What follows from an update, by data or by order,
  /// does not; nor does what changes without seeing the batch, which counts updates (the global step, a schedule).
  FailureOr<DenseSet<Operation *>> keepWhatAccumulates(const DenseSet<Operation *> &step, SmallVector<Value> &results,
                                                       SmallVector<std::string> &fetched) {
    dist::BatchNodes nodes =
        dist::findBatchNodes(graph.getBody().front(), [&](Operation *op) { return step.contains(op); });
    SmallVector<Operation *> roots;
    for (Operation &op : graph.getBody().front()) {
      bool countsBatches = llvm::isa<dfg::UpdateInterface>(op) && !nodes.runPerUpdate.contains(&op);
      if (step.contains(&op) && (llvm::isa<dist::AccumulateOp>(op) || countsBatches))
        roots.push_back(&op);
    }
    for (size_t i = results.size(); i-- > 0;) {
      if (nodes.runPerUpdate.contains(results[i].getDefiningOp())) {
        results.erase(results.begin() + i);
        fetched.erase(fetched.begin() + i);
      } else {
        roots.push_back(results[i].getDefiningOp());
      }
    }
    return endpoints->collect(roots);
  }

  /// Whether replicas hand their gradients to servers in their process (dist-serve-updates): what trains is then the
  /// entry "update", and "step" what leads to it.
  bool isServed() { return !graph.getBody().front().getOps<dist::TakeOp>().empty(); }

  /// What a replica does not have: a server computes it.
  static bool isServers(Operation *op) {
    return llvm::isa<dist::TakeOp>(op) || (op->hasAttr(dist::kPlaceAttr) && !llvm::isa<dfg::VarHandleOp>(op));
  }

  LogicalResult checkFetches(const Entry &entry, const DenseSet<Operation *> &needed) {
    for (Operation &op : graph.getBody().front())
      if (needed.contains(&op) && isServers(&op)) {
        InFlightDiagnostic error =
            emitError(op.getLoc())
            << "node '" << dfg::getNodeName(&op)
            << "' is computed from what servers have made of all gradients, but a fetch of entry '" << entry.name
            << "' needs it:";
        for (const std::string &fetch : entry.fetches)
          error << " '" << fetch << "'";
        return error << "; leave it out, or take a synchronous strategy";
      }
    return success();
  }

  LogicalResult extract(const Entry &entry) {
    SmallVector<Operation *> roots;
    Block &block = graph.getBody().front();
    if (isServed() && entry.name == "step") {
      for (Operation &op : block)
        if (llvm::isa<dist::PushOp, dist::TokensOp>(op))
          roots.push_back(&op);
    } else if (!entry.target.empty()) {
      roots.push_back(endpoints->findNode(entry.target, "operation"));
      if (!roots.back())
        return failure();
    }
    // What updates leave to do nobody asks for by name.
    if (entry.name == "step")
      llvm::append_range(roots, block.getOps<dist::AllGatherVariablesOp>());
    // What replicas push is taken, whether something needs it or not.
    if (entry.name == "update")
      for (Operation &op : block)
        if (llvm::isa<dist::TakeOp>(op) || (llvm::isa<dfg::UpdateInterface>(op) && isServers(&op)))
          roots.push_back(&op);
    SmallVector<Value> results;
    for (const std::string &fetch : entry.fetches) {
      results.push_back(endpoints->findTensor(fetch));
      if (!results.back())
        return failure();
      roots.push_back(results.back().getDefiningOp());
    }
    FailureOr<DenseSet<Operation *>> needed =
        endpoints->collect(roots, entry.name == "eval" ? behindUpdates : DenseSet<Operation *>());
    SmallVector<std::string> fetched(entry.fetches);
    if (succeeded(needed) && entry.name == "accumulate")
      needed = keepWhatAccumulates(*needed, results, fetched);
    if (failed(needed))
      return failure();
    if (isServed() && entry.name != "update" && failed(checkFetches(entry, *needed)))
      return failure();
    endpoints->noteMissingCode(*needed, entry.target.empty() ? entry.fetches.front() : entry.target);
    if (failed(endpoints->reportMissingCode()))
      return failure();

    OpBuilder builder(&getContext());
    builder.setInsertionPointToEnd(getOperation().getBody());
    OperationState state(graph.getLoc(), dfg::FuncOp::getOperationName());
    Block *body = &state.addRegion()->emplaceBlock();
    builder.setInsertionPointToEnd(body);
    IRMapping mapping;
    for (Operation &op : graph.getBody().front())
      if (needed->contains(&op)) {
        for (Value operand : op.getOperands())
          if (!mapping.contains(operand))
            return emitError(op.getLoc()) << "node '" << dfg::getNodeName(&op)
                                          << "' is part of a loop of version 1, which distc has no code for";
        // Here everything runs, in order: control edges have had their effect.
        if (!llvm::isa<dfg::GroupOp>(op))
          builder.clone(op, mapping)->removeAttr(dfg::kControlAttr);
      }
    SmallVector<Value> returned;
    SmallVector<Type> types;
    SmallVector<StringRef> joins;
    for (auto [result, name] : llvm::zip(results, fetched)) {
      joins.push_back(isServed() && entry.name == "update" ? "first" : getJoin(name, result.getType()));
      returned.push_back(mapping.lookup(result));
      types.push_back(result.getType());
    }
    dfg::ReturnOp::create(builder, graph.getLoc(), returned);
    DictionaryAttr shownAs = graph.getShownAsAttr();
    auto names = llvm::map_to_vector(fetched, [&](StringRef name) {
      auto shown = shownAs ? shownAs.getAs<StringAttr>(name) : StringAttr();
      return shown ? shown.getValue() : name;
    });
    // A variable may have the entry's name already; `dfg.entry` tells it in any case.
    std::string symbol = entry.name.str();
    while (SymbolTable::lookupSymbolIn(getOperation(), symbol))
      symbol += "_entry";
    state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(symbol));
    state.addAttribute("function_type", TypeAttr::get(builder.getFunctionType({}, types)));
    state.addAttribute(dfg::kEntryAttr, builder.getStringAttr(entry.name));
    state.addAttribute(dfg::kFetchesAttr, builder.getStrArrayAttr(names));
    state.addAttribute(dfg::kEntryJoinsAttr, builder.getStrArrayAttr(joins));
    builder.setInsertionPointToEnd(getOperation().getBody());
    builder.create(state);
    return success();
  }

  /// All that the graph is fed: data has arrays for it, also where nothing that is left needs them.
  void notePlaceholders() {
    SmallVector<StringRef> names;
    for (auto placeholder : graph.getBody().front().getOps<dfg::PlaceholderOp>())
      names.push_back(dfg::getNodeName(placeholder));
    if (!names.empty())
      getOperation()->setAttr(dfg::kPlaceholdersAttr, Builder(&getContext()).getStrArrayAttr(names));
  }

  /// Variables that no object owns and no entry needs: a SavedModel has copies of Keras 3's.
  void removeCopies(DictionaryAttr objects) {
    auto keys = objects.getAs<DictionaryAttr>("keys");
    llvm::StringSet<> used;
    getOperation().walk([&](dfg::VarHandleOp handle) { used.insert(handle.getVariable()); });
    for (auto variable : llvm::make_early_inc_range(getOperation().getOps<dfg::VariableOp>()))
      if (!used.contains(variable.getSymName()) && keys && !keys.contains(variable.getSymName()))
        variable.erase();
  }

  /// The graph, and library functions that no entry reaches: layers of Keras have variants for GPUs beside, which call
  /// others.
  void removeUnused() {
    graph.erase();
    SymbolTable symbols(getOperation());
    SetVector<Operation *> reached;
    for (Operation &op : getOperation().getOps())
      if (!llvm::isa<dfg::FuncOp>(op) || op.hasAttr(dfg::kEntryAttr))
        reached.insert(&op);
    for (size_t i = 0; i < reached.size(); ++i) {
      std::optional<SymbolTable::UseRange> uses = SymbolTable::getSymbolUses(reached[i]);
      if (!uses)
        return; // what an operation refers to is not known
      for (SymbolTable::SymbolUse use : *uses)
        if (Operation *used = symbols.lookup(use.getSymbolRef().getRootReference()))
          reached.insert(used);
    }
    for (auto function : llvm::make_early_inc_range(getOperation().getOps<dfg::FuncOp>()))
      if (!reached.contains(function))
        function.erase();
  }

  dfg::GraphOp graph;
  EndpointNodes *endpoints = nullptr;
  std::string lossName; // "" where there is none
  DenseSet<Operation *> behindUpdates;
};

} // namespace
} // namespace distc
