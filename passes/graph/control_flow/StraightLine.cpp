//===- StraightLine.cpp - The walk over a graph that is evaluated ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/control_flow/StraightLine.h"
#include "dialects/dfg/CheckedOperand.h"
#include "dialects/dfg/Generators.h"
#include "dialects/dfg/NodeNames.h"
#include "dialects/dfg/Numbers.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace distc {

/// As many nodes as control flow may become. A plan of more takes too long to compile.
static constexpr size_t kMaxNodes = 1 << 18;

Location StraightLine::Node::getLoc() const { return op->getLoc(); }

// ---- What has to go -------------------------------------------------------------------------------------------------

StringRef StraightLine::getKind(Operation *op) {
  if (auto opaque = llvm::dyn_cast<dfg::OpaqueOp>(op))
    return opaque.getOp();
  if (auto node = llvm::dyn_cast<dfg::NodeInterface>(op))
    return node.getTensorFlowNames().front();
  return "";
}

StraightLine::Handler StraightLine::findHandler(StringRef kind) {
  using S = StraightLine;
  return llvm::StringSwitch<Handler>(kind)
      .Case("IdentityN", &S::identity)
      .Cases({"If", "StatelessIf"}, &S::ifElse)
      .Cases({"Case", "StatelessCase"}, &S::caseOf)
      .Cases({"While", "StatelessWhile"}, &S::whileLoop)
      .Cases({"PartitionedCall", "StatefulPartitionedCall"}, &S::callFunction)
      .Cases({"Switch", "RefSwitch"}, &S::switchOf)
      .Cases({"Merge", "RefMerge"}, &S::merge)
      .Case("ControlTrigger", &S::nothing)
      .Case("VariableShape", &S::variableShape)
      .Cases({"OptionalFromValue", "OptionalNone"}, &S::optionalFromValue)
      .Case("OptionalGetValue", &S::optionalGetValue)
      .Case("OptionalHasValue", &S::optionalHasValue)
      .Case("EmptyTensorList", &S::emptyList)
      .Case("TensorListReserve", &S::reserve)
      .Case("TensorListFromTensor", &S::fromTensor)
      .Case("TensorListStack", &S::stack)
      .Case("TensorListPushBack", &S::pushBack)
      .Case("TensorListPopBack", &S::popBack)
      .Case("TensorListSetItem", &S::setItem)
      .Case("TensorListGetItem", &S::getItem)
      .Case("TensorListLength", &S::length)
      .Case("TensorListElementShape", &S::elementShape)
      .Case("TensorListResize", &S::resize)
      .Cases({"TensorListConcat", "TensorListConcatV2"}, &S::concat)
      .Case("TensorListSplit", &S::split)
      .Case("TensorListGather", &S::gather)
      .Cases({"TensorListScatter", "TensorListScatterV2", "TensorListScatterIntoExistingList"}, &S::scatter)
      .Case("TensorListConcatLists", &S::concatLists)
      .Case("StackV2", &S::newStack)
      .Case("StackPushV2", &S::stackPush)
      .Case("StackPopV2", &S::stackPop)
      .Cases({"StackCloseV2", "TensorArrayCloseV3"}, &S::nothing)
      .Case("TensorArrayV3", &S::newArray)
      .Case("TensorArrayGradV3", &S::arrayGradient)
      .Case("TensorArrayWriteV3", &S::arrayWrite)
      .Case("TensorArrayReadV3", &S::arrayRead)
      .Case("TensorArrayGatherV3", &S::arrayGather)
      .Case("TensorArrayScatterV3", &S::arrayScatter)
      .Case("TensorArrayConcatV3", &S::arrayConcat)
      .Case("TensorArraySplitV3", &S::arraySplit)
      .Case("TensorArraySizeV3", &S::arraySize)
      .Default(nullptr);
}

bool StraightLine::isControlFlow(Operation *op) {
  return llvm::isa<dfg::OpaqueOp, dfg::CallOp>(op) && findHandler(getKind(op));
}

// ---- The graph ------------------------------------------------------------------------------------------------------

StraightLine::StraightLine(dfg::GraphOp graph, const DenseSet<Operation *> &needed, const DenseSet<Operation *> &steps,
                           dfg::ShapeContext &shapes, bool keepsOrder, int64_t maxIterations, int64_t batch)
    : graph(graph), needed{needed, {}}, shapes(shapes), symbols(graph->getParentOfType<ModuleOp>()),
      builder(graph.getContext()), fixedRows(dfg::findFixedBatch(graph)), steps(steps), keepsOrder(keepsOrder),
      maxIterations(maxIterations), batch(batch) {
  top.inPlace = true;
  for (Operation &op : graph.getBody().front())
    if (StringRef name = dfg::getNodeName(&op); !name.empty()) {
      names.insert(name);
      nodesByName[name] = &op;
    }
  auto addEndpoint = [&](StringAttr tensor) {
    if (Operation *op = nodesByName.lookup(tensor.getValue().split(':').first))
      this->needed.results.insert_range(op->getResults());
  };
  if (StringAttr loss = graph.getLossAttr())
    addEndpoint(loss);
  if (ArrayAttr fetches = graph.getFetchesAttr())
    llvm::for_each(fetches.getAsRange<StringAttr>(), addEndpoint);
}

LogicalResult StraightLine::run() {
  if (failed(runBlock(graph.getBody().front(), top, &needed)))
    return failure();
  if (!decisions.empty()) {
    SmallVector<NamedAttribute> named;
    for (const auto &entry : decisions)
      named.emplace_back(builder.getStringAttr(entry.first()), entry.second);
    graph->setAttr(dfg::kDecidedByRowsAttr, builder.getDictionaryAttr(named));
  }
  return finish();
}

InFlightDiagnostic StraightLine::fail(const Node &node) {
  return emitError(node.getLoc()) << "node '" << node.name << "' (op '" << node.kind << "') ";
}

LogicalResult StraightLine::runBlock(Block &block, Scope &scope, const NeededNodes *part) {
  llvm::scope_exit restore([&, outside = running] { running = outside; });
  running = part;
  SmallVector<Operation *> nodes;
  for (Operation &op : block)
    if (!op.hasTrait<OpTrait::IsTerminator>() && (!part || part->nodes.contains(&op)))
      nodes.push_back(&op);
  for (Operation *op : nodes) {
    if (scope.inPlace)
      builder.setInsertionPoint(op);
    if (failed(runNode(*op, scope)))
      return failure();
  }
  return success();
}

Datum StraightLine::resolve(Datum datum) {
  while (datum.container && datum.container->predicate) {
    auto it = known.find(datum.container->predicate);
    if (it == known.end())
      break;
    datum = it->second ? datum.container->chosen : datum.container->otherwise;
  }
  return datum;
}

Datum StraightLine::lookup(Scope &scope, Value value) {
  auto it = scope.data.find(value);
  return it == scope.data.end() ? Datum(value) : resolve(it->second);
}

SmallVector<Attribute> StraightLine::getControls(Operation *op, Scope &scope) {
  llvm::SetVector<Attribute> controls;
  for (Attribute control : dfg::getControl(op)) {
    auto it = scope.replacements.find(llvm::cast<StringAttr>(control).getValue());
    if (it != scope.replacements.end())
      controls.insert(it->second.begin(), it->second.end());
    else if (scope.inPlace)
      controls.insert(control);
  }
  return controls.takeVector();
}

bool StraightLine::isRelevant(Attribute control) {
  Operation *op = nodesByName.lookup(llvm::cast<StringAttr>(control).getValue());
  return !op || !isMemoryEffectFree(op) || !dfg::getControl(op).empty();
}

/// Adds to `guard` what `more` says; fails where they cannot both hold.
static bool join(Guard &guard, const Guard &more) {
  for (auto &[predicate, value] : more) {
    auto *known = llvm::find_if(guard, [&](auto &entry) { return entry.first == predicate; });
    if (known == guard.end())
      guard.emplace_back(predicate, value);
    else if (known->second != value)
      return false;
  }
  return true;
}

bool StraightLine::isDead(Operation &op, Scope &scope, Guard &guard) {
  StringRef kind = getKind(&op);
  if (kind == "Merge" || kind == "RefMerge")
    return llvm::all_of(op.getOperands(), [&](Value operand) { return scope.dead.contains(operand); });
  for (Value operand : op.getOperands())
    if (scope.dead.contains(operand) || !join(guard, scope.guards.lookup(operand)))
      return true;
  for (StringRef control : dfg::getControlInputs(&op))
    if (scope.deadNodes.contains(control) || !join(guard, scope.controlGuards.lookup(control)))
      return true;
  return false;
}

LogicalResult StraightLine::enter(const Guard &guard, StringRef name) {
  for (auto &[predicate, value] : guard) {
    Value holds = value ? predicate : logicalNot(predicate, name.str() + "/not");
    if (!holds)
      return failure();
    active = logicalAnd(active, holds, name.str() + "/and");
    if (!active)
      return failure();
    if (!llvm::is_contained(guarded, std::pair(predicate, value)))
      guarded.emplace_back(predicate, value);
  }
  llvm::sort(guarded, [](auto &x, auto &y) {
    return std::pair(x.first.getAsOpaquePointer(), x.second) < std::pair(y.first.getAsOpaquePointer(), y.second);
  });
  return success();
}

/// Whether it is an Identity of a reference variable, which gives the value that the variable has when it runs.
static bool readsReference(Operation *op, ArrayRef<Datum> operands) {
  return llvm::isa<dfg::IdentityOp>(op) && operands[0].value && llvm::isa<dfg::RefType>(operands[0].value.getType()) &&
         !dfg::isHandle(op->getResult(0).getType());
}

LogicalResult StraightLine::runNode(Operation &op, Scope &scope) {
  StringRef ownName = dfg::getNodeName(&op);
  Guard guard;
  if (isDead(op, scope, guard)) {
    scope.dead.insert(op.result_begin(), op.result_end());
    scope.deadNodes.insert(ownName);
    scope.replacements[ownName];
    if (scope.inPlace)
      replaced.emplace_back(&op, Data(op.getNumResults()));
    return success();
  }
  for (Value result : op.getResults())
    if (!guard.empty())
      scope.guards[result] = guard;
  if (!guard.empty())
    scope.controlGuards[ownName] = guard;

  if (scope.inPlace)
    isOfStep = steps.contains(&op);
  Node node{&op, getKind(&op), scope.prefix + ownName.str(), {}, getControls(&op, scope), scope};
  for (Value operand : op.getOperands())
    node.operands.push_back(lookup(scope, operand));
  // Only effects, and errors, are not to happen where a condition does not hold.
  llvm::scope_exit restore([&, outside = active, guardedOutside = guarded] {
    active = outside;
    guarded = guardedOutside;
  });
  if ((!isMemoryEffectFree(&op) || isControlFlow(&op) || dfg::getCheckedOperand(&op)) &&
      failed(enter(guard, node.name)))
    return failure();

  if (FailureOr<Operation *> update = recognizeUpdate(node); failed(update))
    return failure();
  else if (*update)
    return success();

  Handler handler = isControlFlow(&op) ? findHandler(node.kind) : nullptr;
  // What is known to hold needs no check.
  if (node.kind == "Assert" && getConstant(node.operands[0]) == 1)
    handler = &StraightLine::nothing;
  bool takesContainer = llvm::any_of(node.operands, [](const Datum &operand) { return !operand.value; });
  if (!handler && (takesContainer || llvm::isa<dfg::IdentityOp>(op))) {
    if (llvm::isa<dfg::ZerosLikeOp>(op))
      handler = &StraightLine::zerosLikeContainer;
    else if (takesContainer && llvm::isa<dfg::ShapeOp>(op))
      handler = &StraightLine::containerShape;
    else if (op.hasTrait<dfg::Adds>() || llvm::isa<dfg::AddNOp>(op))
      handler = &StraightLine::sum;
    else if (takesContainer ? op.hasTrait<dfg::Forwards>()
                            : !scope.inPlace && dfg::isHandle(node.operands[0].value.getType()) &&
                                  !readsReference(&op, node.operands))
      handler = &StraightLine::identity;
    else if (takesContainer)
      return fail(node) << "takes a list, an optional or a tensor array, which distc resolves when it compiles; it "
                           "knows no meaning of this operation for one";
  }
  if (handler)
    return runControlFlow(node, handler);
  if (failed(readReferences(node)))
    return failure();
  if (scope.inPlace) {
    for (auto [index, operand] : llvm::enumerate(node.operands))
      op.setOperand(index, operand.value);
    orderRead(&op);
    if (active &&
        (failed(checkEffects(node)) || failed(predicateErrors(&op, node)) || failed(predicateUpdate(&op, node))))
      return failure();
    return infer(&op);
  }
  FailureOr<Data> results = copy(node);
  if (failed(results))
    return failure();
  for (auto [result, datum] : llvm::zip(op.getResults(), *results))
    scope.data[result] = datum;
  return success();
}

SmallVector<Attribute> StraightLine::getBefore(const Node &node) {
  llvm::SetVector<Attribute> before(node.scope.before.begin(), node.scope.before.end());
  for (Attribute control : node.controls)
    if (isRelevant(control))
      before.insert(control);
  for (const Datum &operand : node.operands)
    if (Operation *def = operand.value ? operand.value.getDefiningOp() : nullptr; def && ordered.contains(def))
      if (StringAttr name = dfg::getNodeNameAttr(def))
        before.insert(name);
  // Of iterations before this one, and of a branch that is told by the same predicate.
  before.insert(effects.begin() + effectsBefore, effects.end());
  return before.takeVector();
}

void StraightLine::setControls(Operation *op, const Node &node, ArrayRef<Attribute> others) {
  llvm::SetVector<Attribute> controls(node.controls.begin(), node.controls.end());
  if (!isMemoryEffectFree(op))
    controls.insert(node.scope.before.begin(), node.scope.before.end());
  controls.insert(others.begin(), others.end());
  if (controls.empty())
    op->removeAttr(dfg::kControlAttr);
  else
    op->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls.getArrayRef()));
}

LogicalResult StraightLine::readReferences(Node &node) {
  for (auto [index, operand] : llvm::enumerate(node.operands)) {
    auto ref = operand.value ? llvm::dyn_cast<dfg::RefType>(operand.value.getType()) : dfg::RefType();
    if (!ref || (dfg::isHandle(node.op->getOperand(index).getType()) && !readsReference(node.op, node.operands)))
      continue;
    std::string name = node.name + "/reference";
    if (index > 0)
      name += "_" + std::to_string(index);
    auto read =
        dfg::ReadVariableOp::create(builder, locate(name), ref.getValueType(), operand.value, /*implicit=*/false);
    // When the node runs is behind its other operands, too.
    SmallVector<Attribute> others;
    for (const Datum &other : node.operands)
      if (Operation *def = other.value ? other.value.getDefiningOp() : nullptr; def && ordered.contains(def))
        if (StringAttr name = dfg::getNodeNameAttr(def))
          others.push_back(name);
    setControls(read, node, others);
    orderRead(read);
    if (failed(infer(read)))
      return failure();
    operand = Datum(read.getValue());
  }
  return success();
}

/// Whether `value` is `operand`, or made of it by one node.
static bool takes(Value value, Value operand) {
  Operation *def = value.getDefiningOp();
  return value == operand || (def && llvm::is_contained(def->getOperands(), operand));
}

LogicalResult StraightLine::runControlFlow(Node &node, Handler handler) {
  size_t firstEffect = effects.size();
  llvm::scope_exit restore([&, outside = effectsBefore] { effectsBefore = outside; });
  effectsBefore = firstEffect;
  FailureOr<Data> results = (this->*handler)(node);
  if (failed(results))
    return failure();
  // Who takes a result waits for the node's effects and for what it waited for, too.
  llvm::SetVector<Attribute> always;
  for (Attribute control : node.controls)
    if (isRelevant(control))
      always.insert(control);
  always.insert(effects.begin() + firstEffect, effects.end());
  // Functions run when all operands are there, those too that no result is made of (a counter whose values are known).
  using S = StraightLine;
  const Handler calling[] = {&S::ifElse, &S::caseOf, &S::whileLoop, &S::callFunction};
  if (llvm::is_contained(calling, handler))
    for (const Datum &operand : node.operands)
      if (Operation *def = operand.value ? operand.value.getDefiningOp() : nullptr; def && behindUpdates.contains(def))
        if (StringAttr name = dfg::getNodeNameAttr(def))
          always.insert(name);
  // Who only waits for the node waits for what it is made of (a Merge, for what its branches did before they gave it).
  SmallVector<Attribute> &after = node.scope.replacements[dfg::getNodeName(node.op)];
  after.assign(always.begin(), always.end());
  for (const Datum &operand : node.operands)
    if (Operation *def = operand.value ? operand.value.getDefiningOp() : nullptr; def && ordered.contains(def))
      if (StringAttr name = dfg::getNodeNameAttr(def); name && !always.contains(name))
        after.push_back(name);
  for (auto [index, result] : llvm::enumerate(*results)) {
    Value &value = result.value;
    llvm::SetVector<Attribute> before = always;
    // A Merge of what its predicate tells, or of the same from both branches, is there without what they did before.
    if (handler == &S::merge && value && !node.op->getResult(index).use_empty())
      for (const Datum &operand : node.operands)
        if (Operation *def = operand.value ? operand.value.getDefiningOp() : nullptr;
            def && ordered.contains(def) && !takes(value, operand.value))
          if (StringAttr name = dfg::getNodeNameAttr(def))
            before.insert(name);
    if (!before.empty() && value && llvm::isa<TensorType>(value.getType()) && !dfg::isHandle(value.getType())) {
      auto identity = dfg::IdentityOp::create(builder, locate(node.name + "/output_" + llvm::Twine(index).str()),
                                              value.getType(), value);
      identity->setAttr(dfg::kControlAttr, builder.getArrayAttr(before.getArrayRef()));
      if (failed(infer(identity)))
        return failure();
      value = identity.getResult();
    }
  }
  for (auto [result, datum] : llvm::zip(node.op->getResults(), *results))
    node.scope.data[result] = datum;
  if (node.scope.inPlace)
    replaced.emplace_back(node.op, *results);
  return success();
}

// ---- Single nodes ---------------------------------------------------------------------------------------------------

void StraightLine::forget(Operation *op) {
  // One of the last.
  auto it = std::find(made.rbegin(), made.rend(), op);
  if (it != made.rend())
    made.erase(std::next(it).base());
  if (auto named = nodesByName.find(dfg::getNodeName(op)); named != nodesByName.end() && named->second == op)
    nodesByName.erase(named);
  ordered.erase(op);
  behindUpdates.erase(op);
}

LogicalResult StraightLine::infer(Operation *op) {
  if (op->getParentOp() != graph || !nodesByName.contains(dfg::getNodeName(op)) ||
      nodesByName.lookup(dfg::getNodeName(op)) != op) {
    made.push_back(op);
    if (StringRef name = dfg::getNodeName(op); !name.empty())
      nodesByName.try_emplace(name, op);
  }
  if (op->hasTrait<dfg::Reports>() || llvm::isa<dfg::UpdateInterface, dfg::OpaqueOp>(op) ||
      !dfg::getControl(op).empty() ||
      llvm::any_of(op->getOperands(), [&](Value operand) { return ordered.contains(operand.getDefiningOp()); }))
    ordered.insert(op);
  auto isBehind = [&](Operation *before) { return before && behindUpdates.contains(before); };
  if (llvm::isa<dfg::UpdateInterface>(op) ||
      llvm::any_of(op->getOperands(), [&](Value operand) { return isBehind(operand.getDefiningOp()); }) ||
      llvm::any_of(dfg::getControlInputs(op), [&](StringRef control) { return isBehind(nodesByName.lookup(control)); }))
    behindUpdates.insert(op);
  if (made.size() > kMaxNodes)
    return emitError(op->getLoc()) << "node '" << dfg::getNodeName(op)
                                   << "': the graph's control flow becomes more than " << kMaxNodes << " nodes";
  auto node = llvm::dyn_cast<dfg::ShapeInterface>(op);
  if (node && failed(node.inferShapes(shapes)))
    return failure();
  for (Value result : op->getResults())
    if (auto type = llvm::dyn_cast<TensorType>(result.getType()))
      if (std::optional<dfg::Dims> sizes = shapes.getShape(result)) {
        if (failed(dfg::checkSizes(op, *sizes)))
          return failure();
        result.setType(dfg::refine(type, *sizes));
      }
  llvm::scope_exit note([&] { noteRows(op); });
  if (op->getNumResults() != 1)
    return success();
  Value result = op->getResult(0);
  auto type = llvm::dyn_cast<TensorType>(result.getType());
  if (!type || !type.getElementType().isInteger())
    return success();
  if (type.getElementType().isInteger(1)) {
    std::optional<bool> holds = shapes.getConstant(result) ? std::nullopt : inferTruth(op);
    auto ranked = llvm::dyn_cast<RankedTensorType>(type);
    if (holds && ranked && ranked.getRank() == 0)
      shapes.setElements(result, {dfg::Dim(*holds)});
    else if (holds)
      truths[result] = *holds;
    else
      truths.erase(result);
    return success();
  }
  ranges[result] = inferRange(op);
  return success();
}

} // namespace distc
