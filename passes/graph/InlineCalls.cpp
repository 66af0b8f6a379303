//===- InlineCalls.cpp - Functions' bodies where they are called --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Colocations.h"
#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeNames.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/graph/Passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_INLINECALLS
#include "passes/graph/Passes.h.inc"

namespace {

/// What bodies may become where they are put in, in nodes, and how deep calls may stand in each other: functions that
/// call another one twice double it at each level.
constexpr int64_t kMostInlinedNodes = 1 << 19;
constexpr int kDeepestCall = 1000;

struct InlineCalls : impl::InlineCallsBase<InlineCalls> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    if (failed(checkSizes(symbols)))
      return signalPassFailure();
    for (Operation &op : getOperation().getOps()) {
      Block *block = nullptr;
      if (auto graph = llvm::dyn_cast<dfg::GraphOp>(op)) {
        block = &graph.getBody().front();
        keepEndpoints(graph);
      } else if (auto function = llvm::dyn_cast<dfg::FuncOp>(op)) {
        block = &function.getBody().front();
      }
      if (block && failed(inlineBlock(*block, symbols)))
        return signalPassFailure();
    }
  }

  LogicalResult checkSizes(SymbolTable &symbols) {
    llvm::DenseMap<Operation *, int64_t> sizes; // of functions with all that they call
    int64_t sum = 0;
    for (Operation &owner : getOperation().getOps())
      for (Region &region : owner.getRegions())
        for (Operation &op : region.getOps()) {
          dfg::FuncOp callee = findCallee(&op, symbols);
          if (!callee)
            continue;
          sum += getInlinedSize(callee, symbols, sizes, 0);
          if (sum > kMostInlinedNodes)
            return emitError(op.getLoc())
                   << "node '" << dfg::getNodeName(&op) << "' calls function '" << callee.getSymName()
                   << "'; functions are put in where they are called, and these calls would become "
                      "more than "
                   << kMostInlinedNodes << " nodes";
        }
    return success();
  }

  /// Nodes that a call becomes, or more than there may be. A function that calls itself is found where it is put in.
  static int64_t getInlinedSize(dfg::FuncOp function, SymbolTable &symbols, llvm::DenseMap<Operation *, int64_t> &sizes,
                                int depth) {
    auto [known, isNew] = sizes.try_emplace(function, 0);
    if (!isNew)
      return known->second;
    if (depth > kDeepestCall)
      return kMostInlinedNodes + 1;
    int64_t size = 0;
    for (Operation &op : function.getBody().getOps()) {
      dfg::FuncOp callee = findCallee(&op, symbols);
      size = std::min(size + (callee ? getInlinedSize(callee, symbols, sizes, depth + 1) : 1), kMostInlinedNodes + 1);
    }
    return sizes[function] = size;
  }

  /// Of an endpoint that names a call, which will be gone: its run becomes a group's, its tensors those of Identities.
  void keepEndpoints(dfg::GraphOp graph) {
    Block &block = graph.getBody().front();
    dfg::NodeEdges nodes(block);
    auto findCall = [&](Attribute endpoint) {
      StringAttr name = dfg::getEndpointNode(endpoint);
      return name ? llvm::dyn_cast_or_null<dfg::CallOp>(nodes.find(name.getValue())) : dfg::CallOp();
    };
    Builder attributes(&getContext());
    auto getName = [&](const Twine &name) {
      std::string unique = name.str();
      while (nodes.find(unique))
        unique += "_";
      return unique;
    };
    auto keepRun = [&](StringAttr endpoint) {
      dfg::CallOp call = findCall(endpoint);
      if (!call)
        return endpoint;
      OpBuilder builder(&getContext());
      builder.setInsertionPointAfter(call);
      std::string name = getName(dfg::getNodeName(call) + "/run");
      auto run = dfg::GroupOp::create(builder, NameLoc::get(builder.getStringAttr(name)));
      run->setAttr(dfg::kControlAttr, builder.getStrArrayAttr({dfg::getNodeName(call)}));
      nodes.add(run);
      return builder.getStringAttr(name);
    };
    graph.setTrainOpAttr(keepRun(graph.getTrainOpAttr()));
    graph.setInitOpAttr(keepRun(graph.getInitOpAttr()));
    NamedAttrList shown;
    auto keep = [&](StringAttr endpoint) {
      dfg::CallOp call = findCall(endpoint);
      unsigned number = 0;
      StringRef tensor = call ? endpoint.getValue() : "";
      StringRef output = tensor.split(':').second;
      if (!call || (!output.empty() && output.getAsInteger(10, number)) || number >= call->getNumResults() ||
          !llvm::isa<TensorType>(call->getResult(number).getType()))
        return endpoint;
      Value result = call->getResult(number);
      std::string name = (dfg::getNodeName(call) + "/output_" + Twine(number)).str();
      auto identity = llvm::dyn_cast_or_null<dfg::IdentityOp>(nodes.find(name));
      if (!identity || identity.getX() != result) {
        OpBuilder builder(&getContext());
        builder.setInsertionPointAfter(call);
        name = getName(name);
        identity =
            dfg::IdentityOp::create(builder, NameLoc::get(builder.getStringAttr(name)), result.getType(), result);
        nodes.add(identity);
      }
      shown.set(name + ":0", attributes.getStringAttr(tensor.contains(':') ? tensor.str() : tensor.str() + ":0"));
      return attributes.getStringAttr(name + ":0");
    };
    graph.setLossAttr(keep(graph.getLossAttr()));
    if (ArrayAttr fetches = graph.getFetchesAttr())
      graph.setFetchesAttr(attributes.getArrayAttr(llvm::map_to_vector(
          fetches, [&](Attribute fetch) -> Attribute { return keep(llvm::cast<StringAttr>(fetch)); })));
    if (!shown.empty())
      graph.setShownAsAttr(shown.getDictionary(&getContext()));
  }

  /// What stands for a call that is gone: nodes that must run before what had to run after it.
  using Replacements = llvm::StringMap<SmallVector<Attribute>>;

  LogicalResult inlineBlock(Block &block, SymbolTable &symbols) {
    Replacements replacements;
    edges = dfg::NodeEdges(block);
    behindEffects.clear();
    // Calls in a body that was put in are found on the way; `until` says where each body ends, for recursion.
    SmallVector<std::pair<Operation *, StringRef>> open;
    for (Operation *op = block.empty() ? nullptr : &block.front(), *next; op; op = next) {
      while (!open.empty() && open.back().first == op)
        open.pop_back();
      next = op->getNextNode();
      dfg::FuncOp callee = findCallee(op, symbols);
      if (!callee) {
        if (isBehindEffect(op, replacements))
          behindEffects.insert(op);
        continue;
      }
      StringRef name = callee.getSymName();
      auto recursive = llvm::any_of(open, [&](auto &body) { return body.second == name; });
      if (recursive || callee.getBody().isAncestor(block.getParent()))
        return emitError(op->getLoc())
               << "node '" << dfg::getNodeName(op) << "' calls function '" << name
               << "', which calls itself; functions are put in where they are called, so none may recurse";
      if (failed(inlineCall(op, callee, replacements, next)))
        return failure();
      open.emplace_back(nextAfter, name);
    }
    rewriteReferences(block, replacements);
    return success();
  }

  /// A function is called by a node of its own, or is the operation itself.
  static dfg::FuncOp findCallee(Operation *op, SymbolTable &symbols) {
    if (auto call = llvm::dyn_cast<dfg::CallOp>(op))
      return symbols.lookup<dfg::FuncOp>(call.getCallee());
    auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op);
    return opaque ? symbols.lookup<dfg::FuncOp>(opaque.getOp()) : dfg::FuncOp();
  }

  static bool isCompiledByXla(Operation *call) {
    auto must = dfg::getSourceAttribute<BoolAttr>(call, dfg::kCompiledByXla);
    return must && must.getValue();
  }

  /// Of what stood in a function that XLA compiles (see dfg-divide-convolutions).
  static void noteCompiled(Operation *op) {
    dfg::setSourceAttribute(op, dfg::kCompiledByXla, BoolAttr::get(op->getContext(), true));
  }

  LogicalResult inlineCall(Operation *call, dfg::FuncOp callee, Replacements &replacements, Operation *&next) {
    Block &body = callee.getBody().front();
    if (body.getNumArguments() != call->getNumOperands() ||
        body.getTerminator()->getNumOperands() != call->getNumResults())
      return emitError(call->getLoc()) << "node '" << dfg::getNodeName(call) << "' calls function '"
                                       << callee.getSymName() << "' with " << call->getNumOperands() << " operands for "
                                       << call->getNumResults() << " results, but it has " << body.getNumArguments()
                                       << " arguments and " << body.getTerminator()->getNumOperands() << " results";
    OpBuilder builder(call);
    IRMapping mapping;
    mapping.map(body.getArguments(), call->getOperands());
    std::string scope = dfg::getNodeName(call).str() + "/";
    llvm::StringSet<> bodyNames;
    for (Operation &op : body)
      bodyNames.insert(dfg::getNodeName(&op));
    auto rename = [&](StringRef name) { return builder.getStringAttr(scope + name); };
    auto callControls = call->getAttrOfType<ArrayAttr>(dfg::kControlAttr);
    const AccessesBefore before = findAccessesBefore(call, replacements);
    const bool isCompiled = isCompiledByXla(call);
    nextAfter = next;
    Operation *first = nullptr;
    for (Operation &op : body.without_terminator()) {
      Operation *copy = builder.clone(op, mapping);
      first = first ? first : copy;
      StringRef name = dfg::getNodeName(&op);
      if (!name.empty())
        copy->setLoc(NameLoc::get(rename(name)));
      // Within the body; what one of its arguments is made by may be anywhere.
      dfg::mapColocations(copy, [&](StringRef other) -> SmallVector<std::string> {
        if (!bodyNames.contains(other))
          return {};
        return {scope + other.str()};
      });
      SmallVector<Attribute> controls;
      for (StringRef control : dfg::getControlInputs(&op))
        controls.push_back(rename(control));
      // What the call waited for, its first nodes wait for.
      if (callControls && op.getNumOperands() == 0 && controls.empty())
        llvm::append_range(controls, callControls);
      // A call runs when all that it takes is there: what of its body touches a variable comes behind the updates that
      // the call did, and what writes one behind the reads, too.
      auto waitFor = [&](ArrayRef<Attribute> names) {
        for (Attribute access : names)
          if (!llvm::is_contained(controls, access))
            controls.push_back(access);
      };
      for (auto [number, operand] : llvm::enumerate(copy->getOperands())) {
        if (!dfg::isHandle(operand.getType()))
          continue;
        if (auto handle = dfg::getVariableHandle(operand)) {
          waitFor(before.updates.lookup(handle.getVariable()));
          if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(copy);
              update && llvm::is_contained(update.getWrittenOperands(), number))
            waitFor(before.reads.lookup(handle.getVariable()));
        }
        if (before.hasHidden)
          waitFor(before.starts);
      }
      if (isCompiled && llvm::isa<dfg::Conv2DOp, dfg::Conv2DBackpropInputOp, dfg::Conv2DBackpropFilterOp>(copy))
        noteCompiled(copy);
      edges.add(copy);
      if (!controls.empty())
        copy->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls));
    }
    const SmallVector<Attribute> waitedFor = getWaitedFor(call, replacements);
    SmallVector<Attribute> &after = replacements[dfg::getNodeName(call)];
    for (StringRef control : dfg::getControlInputs(callee))
      after.push_back(rename(control));
    for (auto [result, value] : llvm::zip(call->getResults(), body.getTerminator()->getOperands())) {
      Value inlined = mapping.lookup(value);
      // Where the call stood for its results' nodes, they stand for it.
      if (Operation *made = inlined.getDefiningOp(); made && !dfg::getNodeName(made).empty())
        after.push_back(builder.getStringAttr(dfg::getNodeName(made)));
      for (Operation *user : result.getUsers())
        addControls(user, waitedFor);
      result.replaceAllUsesWith(inlined);
    }
    if (callControls)
      llvm::append_range(after, callControls);
    llvm::append_range(after, waitedFor);
    edges.remove(call);
    call->erase();
    next = first ? first : next;
    return success();
  }

  /// What a stateful call waits for that changes something, whether its body uses it or not: who takes a result of the
  /// call waits for it, too. (Of other calls TensorFlow drops what they do not use.)
  SmallVector<Attribute> getWaitedFor(Operation *call, const Replacements &replacements) const {
    SmallVector<Attribute> names;
    if (auto known = llvm::dyn_cast<dfg::CallOp>(call); !known || !known.getStateful())
      return names;
    for (Value operand : call->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && behindEffects.contains(def) && !dfg::getNodeName(def).empty())
        names.push_back(dfg::getNodeNameAttr(def));
    for (Attribute control : dfg::getControl(call))
      if (isBehindEffect(llvm::cast<StringAttr>(control).getValue(), replacements))
        names.push_back(control);
    return names;
  }

  static void addControls(Operation *op, ArrayRef<Attribute> names) {
    // A function's results have no node.
    if (names.empty() || op->hasTrait<OpTrait::IsTerminator>())
      return;
    llvm::SetVector<Attribute> controls(dfg::getControl(op).begin(), dfg::getControl(op).end());
    controls.insert(names.begin(), names.end());
    op->setAttr(dfg::kControlAttr, ArrayAttr::get(op->getContext(), controls.getArrayRef()));
  }

  /// Whether the run of a node, which is met behind those that it waits for, changes something, or waits for what does.
  bool isBehindEffect(Operation *op, const Replacements &replacements) const {
    auto effects = llvm::dyn_cast<MemoryEffectOpInterface>(op);
    if ((effects && effects.hasEffect<MemoryEffects::Write>()) ||
        (llvm::isa<dfg::OpaqueOp>(op) && llvm::any_of(op->getOperandTypes(), dfg::isHandle)))
      return true;
    return llvm::any_of(op->getOperands(),
                        [&](Value operand) { return behindEffects.contains(operand.getDefiningOp()); }) ||
           llvm::any_of(dfg::getControlInputs(op),
                        [&](StringRef control) { return isBehindEffect(control, replacements); });
  }

  /// The same of a name, which may be that of a call that is gone.
  bool isBehindEffect(StringRef name, const Replacements &replacements) const {
    auto gone = replacements.find(name);
    if (gone == replacements.end())
      return behindEffects.contains(edges.find(name));
    return llvm::any_of(gone->second, [&](Attribute replacement) {
      return isBehindEffect(llvm::cast<StringAttr>(replacement).getValue(), replacements);
    });
  }

  /// What accesses variables before a call, which waits for it by its operands or its control edges.
  struct AccessesBefore {
    llvm::StringMap<SmallVector<Attribute>> updates, reads; // names, by variable
    /// Whether there are updates of a variable that is not known: in loops and conditions. Those are not named from
    /// outside; what the call itself waits for comes behind them.
    bool hasHidden = false;
    SmallVector<Attribute> starts;
  };

  AccessesBefore findAccessesBefore(Operation *call, const Replacements &replacements) const {
    AccessesBefore accesses;
    if (llvm::none_of(call->getOperandTypes(), [](Type type) { return dfg::isHandle(type); }))
      return accesses;
    SmallVector<Operation *> pending;
    llvm::DenseSet<Operation *> seen;
    auto add = [&](Operation *op) {
      if (op && seen.insert(op).second)
        pending.push_back(op);
    };
    auto addNamed = [&](auto &self, StringRef name) -> void {
      auto gone = replacements.find(name);
      if (gone == replacements.end())
        return add(edges.find(name));
      for (Attribute replacement : gone->second)
        self(self, llvm::cast<StringAttr>(replacement).getValue());
    };
    auto addBefore = [&](Operation *op) {
      for (Value operand : op->getOperands())
        add(operand.getDefiningOp());
      for (StringRef control : dfg::getControlInputs(op))
        addNamed(addNamed, control);
    };
    addBefore(call);
    while (!pending.empty()) {
      Operation *op = pending.pop_back_val();
      auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
      const SmallVector<unsigned> written = update ? update.getWrittenOperands() : SmallVector<unsigned>();
      for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
        if (!dfg::isHandle(operand.getType()))
          continue;
        const bool isWritten = llvm::is_contained(written, number);
        if (auto handle = dfg::getVariableHandle(operand))
          (isWritten ? accesses.updates : accesses.reads)[handle.getVariable()].push_back(dfg::getNodeNameAttr(op));
        else
          accesses.hasHidden |= isWritten;
      }
      if (llvm::isa<dfg::OpaqueOp>(op))
        accesses.hasHidden |= llvm::any_of(op->getOperandTypes(), dfg::isHandle);
      addBefore(op);
    }
    if (!accesses.hasHidden)
      return accesses;
    if (auto controls = call->getAttrOfType<ArrayAttr>(dfg::kControlAttr))
      llvm::append_range(accesses.starts, controls);
    for (Value operand : call->getOperands())
      if (Operation *def = operand.getDefiningOp();
          def && !dfg::isHandle(operand.getType()) && !dfg::getNodeName(def).empty())
        accesses.starts.push_back(dfg::getNodeNameAttr(def));
    return accesses;
  }

  void rewriteReferences(Block &block, const Replacements &replacements) {
    if (replacements.empty())
      return;
    for (Operation &op : block) {
      // A call's nodes may be anywhere.
      dfg::mapColocations(&op, [&](StringRef name) -> SmallVector<std::string> {
        if (replacements.contains(name))
          return {};
        return {name.str()};
      });
      llvm::SetVector<Attribute> controls;
      auto add = [&](auto &self, StringAttr name) -> void {
        auto it = replacements.find(name.getValue());
        if (it == replacements.end()) {
          controls.insert(name);
          return;
        }
        for (Attribute replacement : it->second)
          self(self, llvm::cast<StringAttr>(replacement));
      };
      auto old = op.getAttrOfType<ArrayAttr>(dfg::kControlAttr);
      if (!old)
        continue;
      for (Attribute name : old)
        add(add, llvm::cast<StringAttr>(name));
      op.setAttr(dfg::kControlAttr, ArrayAttr::get(&getContext(), controls.getArrayRef()));
    }
  }

  /// The operation after the call that was put in last.
  Operation *nextAfter = nullptr;
  /// Of the block: its edges, and the nodes that were met so far and wait for what changes something.
  dfg::NodeEdges edges;
  llvm::DenseSet<Operation *> behindEffects;
};

} // namespace
} // namespace distc
