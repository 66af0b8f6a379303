//===- RaiseLoops.cpp - Frames of version-1 loops become While nodes ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A loop's variable is, in its frame (dialects/dfg/Frames.h),
//
//   Merge(Enter, NextIteration) -> Switch(., LoopCond) -> 0: Exit, 1: the body
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "dialects/dfg/NodeNames.h"
#include "dialects/dfg/NodeOrder.h"
#include "mlir/IR/IRMapping.h"
#include "passes/graph/EndpointNodes.h"
#include "passes/graph/Passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

using dfg::Frame;
using dfg::getKind;

#define GEN_PASS_DEF_RAISELOOPS
#include "passes/graph/Passes.h.inc"

namespace {

struct Variable {
  Operation *enter, *merge, *next;
};

class Raiser {
public:
  explicit Raiser(dfg::GraphOp graph) : graph(graph), block(graph.getBody().front()) {
    for (Operation &op : block)
      byName[dfg::getNodeName(&op)] = &op;
  }

  LogicalResult run() {
    FailureOr<dfg::Frames> all = dfg::Frames::find(block);
    if (failed(all))
      return failure();
    if (all->empty())
      return success();
    frames = std::move(*all);
    EndpointNodes endpoints(graph);
    FailureOr<DenseSet<Operation *>> found = endpoints.collect(endpoints.findEndpoints());
    if (failed(found))
      return failure();
    needed = std::move(*found);
    // A loop in a loop is one of its nodes.
    SmallVector<Frame *> order = frames.getAll();
    llvm::stable_sort(order, [](Frame *x, Frame *y) { return x->depth > y->depth; });
    for (Frame *frame : order)
      if (failed(raise(*frame)))
        return failure();
    return sort();
  }

private:
  InFlightDiagnostic fail(Operation *op) {
    return emitError(op->getLoc()) << "node '" << dfg::getNodeName(op) << "' (op '" << getKind(op) << "') ";
  }

  LogicalResult raise(Frame &frame) {
    SmallVector<Variable> variables;
    SmallVector<Operation *> invariants, exits, others;
    Operation *condition = nullptr;
    DenseMap<Value, unsigned> arguments; // merges and switches
    for (Operation *op : frame.nodes) {
      StringRef kind = getKind(op);
      if (kind == "Enter") {
        invariants.push_back(op);
      } else if (kind == "LoopCond") {
        if (condition)
          return fail(op) << "is the second condition of the loop '" << frame.name << "'";
        condition = op;
      } else if (kind == "Merge" && op->getNumOperands() == 2) {
        Operation *first = op->getOperand(0).getDefiningOp(), *second = op->getOperand(1).getDefiningOp();
        if (getKind(first) == "NextIteration")
          std::swap(first, second);
        if (getKind(second) != "NextIteration") {
          others.push_back(op);
        } else if (getKind(first) != "Enter" || frames.lookup(first) != &frame) {
          return fail(op) << "joins what comes back in a loop with what does not enter it";
        } else {
          arguments[op->getResult(0)] = variables.size();
          variables.push_back({first, op, second});
        }
      } else if (kind == "Exit") {
        exits.push_back(op);
      } else if (kind != "NextIteration") {
        others.push_back(op);
      }
    }
    if (!condition)
      return emitError(graph.getLoc()) << "the loop '" << frame.name << "' has no condition";
    llvm::erase_if(others, [&](Operation *op) {
      if (getKind(op) != "Switch" || op->getOperand(1) != condition->getResult(0))
        return false;
      auto it = arguments.find(op->getOperand(0));
      if (it == arguments.end())
        return false;
      arguments[op->getResult(0)] = arguments[op->getResult(1)] = it->second;
      return true;
    });
    // A session runs what it was asked for needs: of a loop, too.
    const bool isNeeded = llvm::any_of(frame.nodes, [&](Operation *op) { return needed.contains(op); });
    if (isNeeded)
      llvm::erase_if(others,
                     [&](Operation *op) { return !needed.contains(op) && op->use_empty() && !isMemoryEffectFree(op); });
    llvm::erase_if(invariants, [&](Operation *op) {
      return llvm::any_of(variables, [&](Variable &variable) { return variable.enter == op; });
    });

    SmallVector<Value> operands;
    SmallVector<Value> bodyResults;
    llvm::SetVector<Attribute> controls;
    auto addEnter = [&](Operation *enter) {
      operands.push_back(enter->getOperand(0));
      ArrayRef<Attribute> before = dfg::getControl(enter);
      controls.insert(before.begin(), before.end());
    };
    for (Variable &variable : variables) {
      addEnter(variable.enter);
      bodyResults.push_back(variable.next->getOperand(0));
    }
    for (Operation *enter : invariants) {
      arguments[enter->getResult(0)] = operands.size();
      addEnter(enter);
      bodyResults.push_back(enter->getResult(0));
    }
    // All that runs in an iteration is the body; what no result needs and has no effect goes with it.
    std::string name = "__raised/" + frame.name;
    FailureOr<FlatSymbolRefAttr> conditionFunction = outline(
        name + "/cond", findNeeded(condition->getOperand(0), others), operands, arguments, {condition->getOperand(0)});
    FailureOr<FlatSymbolRefAttr> bodyFunction = outline(name + "/body", others, operands, arguments, bodyResults);
    if (failed(conditionFunction) || failed(bodyFunction))
      return failure();

    OpBuilder builder(exits.empty() ? frame.nodes.back() : exits.front());
    auto empty = builder.getDictionaryAttr({});
    SmallVector<Type> types;
    for (Value operand : operands)
      types.push_back(operand.getType());
    for (auto [type, variable] : llvm::zip(types, variables))
      if (auto tensor = llvm::dyn_cast<TensorType>(type))
        type = UnrankedTensorType::get(tensor.getElementType());
    auto loop = dfg::OpaqueOp::create(builder, NameLoc::get(builder.getStringAttr(makeName(frame.name))), types,
                                      "While", operands);
    dfg::setSourceAttribute(loop, "body", dfg::FuncAttr::get(builder.getContext(), *bodyFunction, empty));
    dfg::setSourceAttribute(loop, "cond", dfg::FuncAttr::get(builder.getContext(), *conditionFunction, empty));
    if (!controls.empty())
      loop->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls.getArrayRef()));
    for (Operation *exit : exits) {
      // Gradients of a Merge leave through an identity that waits for both.
      Value left = exit->getOperand(0);
      for (auto identity = left.getDefiningOp<dfg::IdentityOp>(); identity && !arguments.contains(left);
           identity = left.getDefiningOp<dfg::IdentityOp>())
        left = identity.getX();
      auto it = arguments.find(left);
      if (it == arguments.end())
        return fail(exit) << "leaves the loop with what is no variable of it";
      exit->getResult(0).replaceAllUsesWith(loop->getResult(it->second));
      keepName(exit, loop->getResult(it->second));
    }
    if (isNeeded)
      needed.insert(loop);
    // A loop in it stands in for its nodes.
    for (Operation *op : frame.nodes) {
      if (getKind(op) != "Exit")
        inLoop[dfg::getNodeName(op)] = loop;
      gone.push_back(op);
    }
    if (frame.parent) {
      frames.add(loop, frame.parent);
      frame.parent->nodes.push_back(loop);
    }
    return success();
  }

  /// An exit that is an endpoint, or that others wait for, is an identity of its name.
  void keepName(Operation *exit, Value result) {
    OpBuilder builder(exit);
    auto identity = dfg::IdentityOp::create(builder, exit->getLoc(), result.getType(), result);
    if (Frame *frame = frames.lookup(exit); frame && frame->parent) {
      frames.add(identity, frame->parent);
      frame->parent->nodes.push_back(identity);
    }
    byName[dfg::getNodeName(exit)] = identity;
    if (needed.contains(exit))
      needed.insert(identity);
  }

  std::string makeName(StringRef frame) {
    std::string name = frame.str();
    while (byName.contains(name))
      name += "_loop";
    byName[name] = nullptr;
    return name;
  }

  /// Of `nodes` those that `result` needs, by data.
  SmallVector<Operation *> findNeeded(Value result, ArrayRef<Operation *> nodes) {
    DenseSet<Operation *> inside(nodes.begin(), nodes.end()), needed;
    SmallVector<Operation *> worklist = {result.getDefiningOp()};
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      if (!op || !inside.contains(op) || !needed.insert(op).second)
        continue;
      for (Value operand : op->getOperands())
        worklist.push_back(operand.getDefiningOp());
    }
    SmallVector<Operation *> sorted;
    for (Operation *op : nodes)
      if (needed.contains(op))
        sorted.push_back(op);
    return sorted;
  }

  FailureOr<FlatSymbolRefAttr> outline(StringRef name, ArrayRef<Operation *> nodes, ArrayRef<Value> operands,
                                       const DenseMap<Value, unsigned> &arguments, ArrayRef<Value> results) {
    OpBuilder builder(graph.getContext());
    OperationState state(graph.getLoc(), dfg::FuncOp::getOperationName());
    Block *body = &state.addRegion()->emplaceBlock();
    SmallVector<Type> types;
    for (Value operand : operands) {
      Type type = operand.getType();
      if (auto tensor = llvm::dyn_cast<TensorType>(type))
        type = UnrankedTensorType::get(tensor.getElementType());
      types.push_back(type);
    }
    body->addArguments(types, SmallVector<Location>(types.size(), graph.getLoc()));
    IRMapping mapping;
    for (auto [value, number] : arguments)
      mapping.map(value, body->getArgument(number));
    builder.setInsertionPointToEnd(body);
    // In an order that satisfies their edges: loops among them were put at the end.
    FailureOr<SmallVector<Operation *>> sorted = sortNodes(nodes);
    if (failed(sorted))
      return failure();
    for (Operation *op : *sorted) {
      for (Value operand : op->getOperands())
        if (!mapping.contains(operand))
          return emitError(op->getLoc()) << "node '" << dfg::getNodeName(op)
                                         << "' is in a loop, but takes a value from outside that "
                                            "does not enter it",
                 failure();
      readReferences(builder.clone(*op, mapping), op);
    }
    SmallVector<Value> returned;
    SmallVector<Type> resultTypes;
    for (Value result : results) {
      returned.push_back(mapping.lookupOrNull(result));
      if (!returned.back())
        return emitError(graph.getLoc()) << "the function '" << name << "' of a loop gives what it does not make",
               failure();
      resultTypes.push_back(returned.back().getType());
    }
    dfg::ReturnOp::create(builder, graph.getLoc(), returned);
    std::string symbol = name.str();
    while (SymbolTable::lookupSymbolIn(graph->getParentOp(), symbol))
      symbol += "_";
    state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(symbol));
    state.addAttribute("function_type", TypeAttr::get(builder.getFunctionType(types, resultTypes)));
    builder.setInsertionPointAfter(graph);
    builder.create(state);
    return FlatSymbolRefAttr::get(graph.getContext(), symbol);
  }

  /// `copy` of `op` in a loop: where it takes the value of a reference variable that enters the loop, it takes what
  /// that holds then. Opaque nodes are given the variable.
  void readReferences(Operation *copy, Operation *op) {
    if (llvm::isa<dfg::OpaqueOp, dfg::IdentityOp>(op))
      return;
    for (auto [index, operand] : llvm::enumerate(copy->getOpOperands())) {
      Type type = op->getOperand(index).getType();
      if (!llvm::isa<dfg::RefType>(operand.get().getType()) || dfg::isHandle(type))
        continue;
      std::string name = makeName(dfg::getNodeName(op).str() + "/reference");
      // It is read when the node runs: behind its other operands, too.
      llvm::SetVector<Attribute> before(dfg::getControl(op).begin(), dfg::getControl(op).end());
      for (Value other : copy->getOperands())
        if (Operation *def = other.getDefiningOp();
            def && !(llvm::isa<dfg::ConstOp>(def) && dfg::getControl(def).empty()))
          if (StringAttr waited = dfg::getNodeNameAttr(def))
            before.insert(waited);
      OpBuilder builder(copy);
      auto read = dfg::IdentityOp::create(builder, NameLoc::get(builder.getStringAttr(name)), type, operand.get());
      if (!before.empty())
        read->setAttr(dfg::kControlAttr, builder.getArrayAttr(before.getArrayRef()));
      operand.set(read.getResult());
    }
  }

  /// `nodes`, which need each other by data and control edges, in an order that satisfies both.
  FailureOr<SmallVector<Operation *>> sortNodes(ArrayRef<Operation *> nodes) {
    DenseMap<Operation *, int> numbers;
    for (auto [number, op] : llvm::enumerate(nodes))
      numbers[op] = number;
    dfg::Predecessors edges;
    llvm::BitVector writes(nodes.size());
    for (auto [number, op] : llvm::enumerate(nodes)) {
      edges.begin.push_back(edges.predecessors.size());
      auto add = [&](Operation *before) {
        auto it = before ? numbers.find(before) : numbers.end();
        if (it != numbers.end() && it->second != static_cast<int>(number))
          edges.predecessors.push_back(it->second);
      };
      for (Value operand : op->getOperands())
        add(operand.getDefiningOp());
      for (StringRef control : dfg::getControlInputs(op)) {
        Operation *loop = inLoop.lookup(control);
        while (loop && !numbers.contains(loop))
          loop = inLoop.lookup(dfg::getNodeName(loop));
        add(loop ? loop : byName.lookup(control));
      }
      writes[number] = llvm::isa<dfg::UpdateInterface>(op);
    }
    edges.begin.push_back(edges.predecessors.size());
    SmallVector<Operation *> sorted;
    for (int number : dfg::sortNodes(edges, writes))
      sorted.push_back(nodes[number]);
    if (sorted.size() != nodes.size())
      return emitError(graph.getLoc()) << "the graph has a cycle of edges that is no loop", failure();
    return sorted;
  }

  LogicalResult sort() {
    // What waited for a node in a loop waits for the loop.
    for (Operation &op : block) {
      llvm::SetVector<Attribute> controls;
      for (Attribute control : dfg::getControl(&op)) {
        Operation *loop = inLoop.lookup(llvm::cast<StringAttr>(control).getValue());
        while (loop)
          if (Operation *outer = inLoop.lookup(dfg::getNodeName(loop)))
            loop = outer;
          else
            break;
        controls.insert(loop ? Attribute(dfg::getNodeNameAttr(loop)) : control);
      }
      if (!controls.empty())
        op.setAttr(dfg::kControlAttr, ArrayAttr::get(graph.getContext(), controls.getArrayRef()));
    }
    for (Operation *op : gone)
      op->dropAllReferences();
    for (Operation *op : gone)
      op->erase();
    inLoop.clear();
    byName.clear();
    SmallVector<Operation *> nodes;
    for (Operation &op : block) {
      byName[dfg::getNodeName(&op)] = &op;
      nodes.push_back(&op);
    }
    FailureOr<SmallVector<Operation *>> sorted = sortNodes(nodes);
    if (failed(sorted))
      return failure();
    for (Operation *op : *sorted)
      op->moveBefore(&block, block.end());
    return success();
  }

  dfg::GraphOp graph;
  Block &block;
  dfg::Frames frames;
  llvm::StringMap<Operation *> byName;
  /// By the name of a node that is gone: the loop that it was in.
  llvm::StringMap<Operation *> inLoop;
  SmallVector<Operation *> gone;
  /// What the graph's endpoints need.
  DenseSet<Operation *> needed;
};

struct RaiseLoops : impl::RaiseLoopsBase<RaiseLoops> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(Raiser(graph).run()))
        return signalPassFailure();
  }
};

} // namespace
} // namespace distc
