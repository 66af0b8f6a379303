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
    else if (op.hasTrait<dfg::Adds>() || llvm::isa<dfg::AddNOp>(op))
      handler = &StraightLine::sum;
    else if (takesContainer ? op.hasTrait<dfg::Forwards>()
                            : !scope.inPlace && dfg::isHandle(node.operands[0].value.getType()))
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

LogicalResult StraightLine::readReferences(Node &node) {
  for (auto [index, operand] : llvm::enumerate(node.operands)) {
    auto ref = operand.value ? llvm::dyn_cast<dfg::RefType>(operand.value.getType()) : dfg::RefType();
    if (!ref || dfg::isHandle(node.op->getOperand(index).getType()))
      continue;
    std::string name = node.name + "/reference";
    if (index > 0)
      name += "_" + std::to_string(index);
    auto read =
        dfg::ReadVariableOp::create(builder, locate(name), ref.getValueType(), operand.value, /*implicit=*/false);
    if (!node.controls.empty())
      read->setAttr(dfg::kControlAttr, builder.getArrayAttr(node.controls));
    orderRead(read);
    if (failed(infer(read)))
      return failure();
    operand = Datum(read.getValue());
  }
  return success();
}

FailureOr<Operation *> StraightLine::recognizeUpdate(const Node &node) {
  Operation *op = node.op;
  Value handle = !node.operands.empty() ? node.operands[0].value : Value();
  auto ref = handle ? llvm::dyn_cast<dfg::RefType>(handle.getType()) : dfg::RefType();
  if (!ref || !llvm::isa<dfg::OpaqueOp>(op) || isControlFlow(op))
    return static_cast<Operation *>(nullptr);
  std::optional<RegisteredOperationName> known;
  for (RegisteredOperationName name : op->getContext()->getRegisteredOperationsByDialect("dfg"))
    if (auto *interface = name.getInterface<dfg::NodeInterface>();
        interface && name.hasInterface<dfg::UpdateInterface>() &&
        llvm::is_contained(interface->getTensorFlowNames(), node.kind))
      known = name;
  if (!known)
    return static_cast<Operation *>(nullptr);
  OperationState state(op->getLoc(), *known);
  for (const Datum &operand : node.operands) {
    if (!operand.value)
      return fail(node) << "takes an element that was never written", failure();
    state.addOperands(operand.value);
  }
  state.addTypes(SmallVector<Type>(op->getNumResults(), ref.getValueType()));
  for (StringAttr attribute : known->getAttributeNames())
    if (Attribute value = node.getAttr<Attribute>(attribute.getValue()))
      state.addAttribute(attribute, value);
  if (!node.scope.inPlace)
    state.location = locate(node.name);
  else
    // Its name goes over.
    op->setLoc(builder.getUnknownLoc());
  if (!node.controls.empty())
    state.addAttribute(dfg::kControlAttr, builder.getArrayAttr(node.controls));
  Operation *update = builder.create(state);
  nodesByName[dfg::getNodeName(update)] = update;
  Node known_{update, node.kind, node.name, node.operands, node.controls, node.scope};
  effects.push_back(dfg::getNodeNameAttr(update));
  if (failed(infer(update)) || (active && failed(predicateUpdate(update, known_))))
    return failure();
  Data results;
  for (Value result : update->getResults())
    results.push_back(chosenResults.contains(result) ? chosenResults.lookup(result) : result);
  for (auto [result, datum] : llvm::zip(op->getResults(), results))
    node.scope.data[result] = datum;
  if (node.scope.inPlace)
    replaced.emplace_back(op, results);
  return update;
}

LogicalResult StraightLine::runControlFlow(Node &node, Handler handler) {
  size_t firstEffect = effects.size();
  llvm::scope_exit restore([&, outside = effectsBefore] { effectsBefore = outside; });
  effectsBefore = firstEffect;
  FailureOr<Data> results = (this->*handler)(node);
  if (failed(results))
    return failure();
  // Who takes a result waits for the node's effects and for what it waited for, too.
  llvm::SetVector<Attribute> before;
  for (Attribute control : node.controls)
    if (isRelevant(control))
      before.insert(control);
  before.insert(effects.begin() + firstEffect, effects.end());
  // Functions run when all operands are there, those too that no result is made of (a counter whose values are known).
  using S = StraightLine;
  const Handler calling[] = {&S::ifElse, &S::caseOf, &S::whileLoop, &S::callFunction};
  if (llvm::is_contained(calling, handler))
    for (const Datum &operand : node.operands)
      if (Operation *def = operand.value ? operand.value.getDefiningOp() : nullptr; def && behindUpdates.contains(def))
        if (StringAttr name = dfg::getNodeNameAttr(def))
          before.insert(name);
  // Who only waits for the node waits for what it is made of (a Merge, for what its branches did before they gave it).
  SmallVector<Attribute> &after = node.scope.replacements[dfg::getNodeName(node.op)];
  after.assign(before.begin(), before.end());
  for (const Datum &operand : node.operands)
    if (Operation *def = operand.value ? operand.value.getDefiningOp() : nullptr; def && ordered.contains(def))
      if (StringAttr name = dfg::getNodeNameAttr(def); name && !before.contains(name))
        after.push_back(name);
  for (auto [index, result] : llvm::enumerate(*results)) {
    Value &value = result.value;
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

/// Whether the value follows from constants and from feeds of one element, which a run is given once.
static bool isOfScalarFeeds(Value value) {
  SmallVector<Value> pending = {value};
  llvm::DenseSet<Value> seen = {value};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val().getDefiningOp();
    if (!op || !(isMemoryEffectFree(op) || llvm::isa<dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>(op)))
      return false;
    auto type = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (llvm::isa<dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>(op) && (!type || type.getRank() != 0))
      return false;
    for (Value operand : op->getOperands())
      if (seen.insert(operand).second)
        pending.push_back(operand);
  }
  return true;
}

static bool isSeeded(Operation *op) {
  return llvm::any_of(ArrayRef<StringRef>{"seed", "seed2"}, [&](StringRef name) {
    auto seed = op->getAttrOfType<IntegerAttr>(name);
    return seed && seed.getInt() != 0;
  });
}

/// Whether `op`, which is being copied, draws from the generator of all of its copies: one of a loop. TensorFlow has a
/// generator a node, which goes on from iteration to iteration.
bool StraightLine::sharesGenerator(Operation *op) const {
  return !keepsOrder && !isMemoryEffectFree(op) && op->hasTrait<dfg::DrawsNumbers>() && isSeeded(op) && isRepeated &&
         (!active || active == continuing);
}

std::string StraightLine::getGenerator(const Node &node) const {
  auto function = node.op->getParentOfType<dfg::FuncOp>();
  return outermostLoop + "/" + (function ? function.getSymName().str() + "/" : "") + dfg::getNodeName(node.op).str();
}

/// The variable that a node does nothing but read, whole or rows of it; null for others.
static Value getReadVariable(Operation *op) { return op->hasTrait<dfg::ReadsVariable>() ? op->getOperand(0) : Value(); }

LogicalResult StraightLine::checkEffects(const Node &node) {
  if (isMemoryEffectFree(node.op) || llvm::isa<dfg::GroupOp, dfg::IsInitializedOp>(node.op) || getReadVariable(node.op))
    return success();
  // Each node that draws has a generator of its own, which goes on with each run of the node.
  auto seed = node.op->getAttrOfType<IntegerAttr>("seed"), seed2 = node.op->getAttrOfType<IntegerAttr>("seed2");
  if (seed && seed2) {
    if (!isSeeded(node.op) || (!active && !isRepeated))
      return success();
    // A run's scalars are the same in each of its steps: the generator goes on in all of them, or what it gives is
    // never taken.
    if (!isRepeated && isOfScalarFeeds(active)) {
      // Sessions are fed as they are run.
      if (keepsOrder)
        emitRemark(node.op->getLoc())
            << "node '" << node.name
            << "' draws random numbers with a seed under a condition that is fed: here also in runs in which it does "
               "not hold, behind which its numbers are others than those of one device";
      return success();
    }
    if (sharesGenerator(node.op)) {
      // TensorFlow's iterations run side by side and take from the generator in any order: which numbers one gets,
      // seeds do not say. How many are taken they do.
      if (active && loopsEndedWhileDrawing.insert(outermostLoop).second)
        emitWarning(node.op->getLoc())
            << "loop '" << outermostLoop << "' draws random numbers with a seed (node '" << node.name
            << "'), and data decide when it ends: its generators go on as if it always ran as often as it can, so that "
               "behind an earlier end its numbers are others than TensorFlow's, of the same distribution";
      return success();
    }
    return fail(node)
           << "draws random numbers with a seed in a "
           << (isRepeated ? "loop, where each iteration goes on with the generator of the last, as often as data decide"
                          : "condition, where data decide whether its generator goes on")
           << "; distc has no code for that: draw outside of it, without a seed, or by a stateless operation";
  }
  if (active && !llvm::isa<dfg::UpdateInterface, dfg::AssertOp>(node.op))
    return fail(node)
           << "has effects, and data decide whether it runs; distc has no code for that: only variables can be "
              "changed under a condition that depends on data";
  return success();
}

FailureOr<Data> StraightLine::copy(Node &node) {
  for (const Datum &operand : node.operands)
    if (!operand.value)
      return fail(node) << "takes an element that was never written", failure();
  if (failed(checkEffects(node)))
    return failure();
  IRMapping mapping;
  for (auto [operand, datum] : llvm::zip(node.op->getOperands(), node.operands))
    mapping.map(operand, datum.value);
  Operation *op = builder.clone(*node.op, mapping);
  op->setLoc(locate(node.name));
  std::string generator = sharesGenerator(node.op) ? getGenerator(node) : "";
  if (!generator.empty()) {
    op->setAttr(dfg::kGeneratorAttr, builder.getStringAttr(generator));
  }
  llvm::SetVector<Attribute> controls(node.controls.begin(), node.controls.end());
  if (!isMemoryEffectFree(op))
    controls.insert(node.scope.before.begin(), node.scope.before.end());
  // In the order in which they draw.
  if (!generator.empty()) {
    Attribute &last = lastDraws[generator];
    if (last)
      controls.insert(last);
    last = dfg::getNodeNameAttr(op);
  }
  if (controls.empty())
    op->removeAttr(dfg::kControlAttr);
  else
    op->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls.getArrayRef()));
  orderRead(op);
  if (failed(predicateErrors(op, node)) || failed(infer(op)))
    return failure();
  SmallVector<Attribute> &after = node.scope.replacements[dfg::getNodeName(node.op)];
  const bool hasEffects = !isMemoryEffectFree(op);
  if (hasEffects || ordered.contains(op))
    after.assign({dfg::getNodeNameAttr(op)});
  if (hasEffects && !llvm::isa<dfg::ReadVariableOp, dfg::IsInitializedOp>(op) && !op->hasTrait<dfg::DrawsNumbers>())
    effects.push_back(dfg::getNodeNameAttr(op));
  if (isWrittenOut(op))
    return failed(writeOutUpdate(op, node)) ? FailureOr<Data>() : Data();
  if (active && failed(predicateUpdate(op, node)))
    return failure();
  Data results;
  for (Value result : op->getResults()) {
    Value known = !hasEffects && !mayBeRows(result) && !rowVectors.contains(result) ? getKnown(result) : Value();
    if (Value chosen = chosenResults.lookup(result))
      known = chosen;
    results.push_back(known ? known : result);
  }
  // Where nothing is added to zeros, gradients of loops begin.
  if (op->hasTrait<dfg::Adds>() && op->getOperand(0).getType() == op->getOperand(1).getType() &&
      llvm::cast<TensorType>(op->getResult(0).getType()).hasRank() &&
      op->getResult(0).getType() == op->getOperand(0).getType()) {
    for (unsigned zero : {0, 1})
      if (node.controls.empty() && isZero(op->getOperand(zero)))
        results[0] = op->getOperand(1 - zero);
  }
  return results;
}

/// Whether a value is the distinct ones among others, of which there are fewer than room for them.
static bool isDistinctValues(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (op->hasTrait<dfg::FindsDistinct>())
      return llvm::cast<OpResult>(value).getResultNumber() == 0;
    if (!op->hasTrait<dfg::Forwards>() && !op->hasTrait<dfg::Reshapes>() && !llvm::isa<dfg::CastOp>(op))
      return false;
    value = op->getOperand(0);
  }
  return false;
}

LogicalResult StraightLine::predicateErrors(Operation *op, const Node &node) {
  std::optional<dfg::CheckedOperand> checked = active ? dfg::getCheckedOperand(op) : std::nullopt;
  if (!checked)
    return success();
  OpOperand &operand = op->getOpOperand(checked->index);
  if (getKnown(operand.get()))
    return success(); // an error, if it is one, when it is compiled
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  Type element = llvm::cast<TensorType>(operand.get().getType()).getElementType();
  // Rows of distinct values: none of them. What is behind the last is marked so, and must stay so.
  auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
  const bool isDistinct = update && isDistinctValues(operand.get());
  Value harmless = element.isInteger() ? getInteger(element, isDistinct ? -1 : checked->harmless)
                                       : zerosLike(operand.get(), node.name + "/harmless");
  Value value =
      harmless ? make<dfg::SelectV2Op>(node.name + "/checked", element, active, operand.get(), harmless) : Value();
  if (!value)
    return failure();
  operand.set(value);
  return success();
}

void StraightLine::orderAccess(Operation *op, Value handle, bool writes) {
  dfg::VarHandleOp variable = keepsOrder && active ? dfg::getVariableHandle(handle) : dfg::VarHandleOp();
  StringAttr name = dfg::getNodeNameAttr(op);
  if (!variable || !name)
    return;
  Accesses &before = accesses[variable.getVariable()];
  llvm::SetVector<Attribute> controls(dfg::getControl(op).begin(), dfg::getControl(op).end());
  // A Switch waited for its predicate.
  for (auto &[predicate, value] : guarded)
    if (Operation *def = predicate.getDefiningOp(); def && ordered.contains(def))
      if (StringAttr waited = dfg::getNodeNameAttr(def))
        controls.insert(waited);
  if (before.write)
    controls.insert(before.write);
  if (writes)
    controls.insert(before.reads.begin(), before.reads.end());
  else
    before.reads.push_back(name);
  if (controls.empty())
    return;
  op->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls.getArrayRef()));
  ordered.insert(op);
}

void StraightLine::orderRead(Operation *op) {
  if (Value handle = getReadVariable(op))
    orderAccess(op, handle, /*writes=*/false);
}

LogicalResult StraightLine::predicateUpdate(Operation *op, const Node &node) {
  if (auto assertion = llvm::dyn_cast<dfg::AssertOp>(op)) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(op);
    Value inactive = logicalNot(active, node.name + "/inactive"), holds;
    // A guard runs the assertion where it does not hold.
    if (inactive == assertion.getCondition())
      return success();
    if (inactive)
      holds = make<dfg::LogicalOrOp>(node.name + "/holds", builder.getI1Type(), assertion.getCondition(), inactive);
    if (!holds)
      return failure();
    assertion.getConditionMutable().assign(holds);
    return success();
  }
  auto update = llvm::dyn_cast<dfg::UpdateInterface>(op);
  if (!update)
    return success();
  // Where nothing but control edges keeps others from it, nothing writes a variable to give it its old value again.
  if (keepsOrder) {
    dfg::VarHandleOp handle = dfg::getVariableHandle(op->getOperand(update.getWrittenOperands().front()));
    auto variable = handle ? symbols.lookup<dfg::VariableOp>(handle.getVariable()) : dfg::VariableOp();
    if (!llvm::isa<dfg::AssignOp, dfg::AssignAddOp, dfg::AssignSubOp>(op) || !variable || variable.getKind() == "ref")
      return fail(node) << "is an update under a condition that depends on data; of those only assignments of resource "
                           "variables, and dense updates of them, are written out";
  }
  OpBuilder::InsertionGuard guard(builder);
  auto read = [&](Value handle, StringRef what, ArrayRef<Attribute> before) -> Value {
    auto ref = llvm::dyn_cast<dfg::RefType>(handle.getType());
    if (!ref)
      return {};
    auto op =
        dfg::ReadVariableOp::create(builder, locate(node.name + "/" + what.str()), ref.getValueType(), handle, false);
    if (keepsOrder && !before.empty())
      op->setAttr(dfg::kControlAttr, builder.getArrayAttr(before));
    return failed(infer(op)) ? Value() : op.getValue();
  };
  SmallVector<unsigned> written = update.getWrittenOperands();
  for (unsigned operand : written)
    orderAccess(op, op->getOperand(operand), /*writes=*/true);
  auto noteWrite = [&](unsigned operand, Operation *by) {
    if (dfg::VarHandleOp variable = dfg::getVariableHandle(op->getOperand(operand)))
      accesses[variable.getVariable()] = {dfg::getNodeNameAttr(by), {}};
  };
  if (keepsOrder && !llvm::isa<dfg::AssignOp>(op)) {
    builder.setInsertionPoint(op);
    Value nothing = zerosLike(op->getOperand(1), node.name + "/nothing");
    FailureOr<Datum> added = nothing ? select(active, op->getOperand(1), nothing, node) : FailureOr<Datum>();
    if (failed(added))
      return failure();
    op->setOperand(1, added->value);
    noteWrite(written.front(), op);
    return success();
  }
  // What the update itself runs behind.
  llvm::SetVector<Attribute> before(dfg::getControl(op).begin(), dfg::getControl(op).end());
  for (Value operand : op->getOperands())
    if (Operation *def = operand.getDefiningOp(); def && ordered.contains(def) && !dfg::isHandle(operand.getType()))
      if (StringAttr name = dfg::getNodeNameAttr(def))
        before.insert(name);
  builder.setInsertionPoint(op);
  SmallVector<Value> old;
  for (unsigned operand : written) {
    old.push_back(read(op->getOperand(operand), "old", before.getArrayRef()));
    if (!old.back())
      return fail(node) << "updates a variable that is not known where it is compiled";
  }
  auto selectNew = [&](Value value, Value before) -> Value {
    FailureOr<Datum> chosen = select(active, value, before, node);
    return failed(chosen) ? Value() : chosen->value;
  };
  if (llvm::isa<dfg::AssignOp>(op)) {
    Value value = selectNew(op->getOperand(1), old[0]);
    if (value)
      op->setOperand(1, value);
    noteWrite(written.front(), op);
    return success(value != nullptr);
  }
  builder.setInsertionPointAfter(op);
  for (auto [operand, before] : llvm::zip(written, old)) {
    Value handle = op->getOperand(operand), after = read(handle, "new", {});
    Value value = after ? selectNew(after, before) : Value();
    if (!value)
      return failure();
    auto assign = dfg::AssignOp::create(builder, locate(node.name + "/assign"), TypeRange(), handle, value);
    assign->setAttr(dfg::kControlAttr, builder.getStrArrayAttr({dfg::getNodeName(op)}));
    if (failed(infer(assign)))
      return failure();
    noteWrite(operand, assign);
    // Where it gives a value, it is the first variable's; who takes it has the choice made.
    for (Value result : op->getResults()) {
      if (operand != written.front())
        continue;
      auto identity = dfg::IdentityOp::create(builder, locate(node.name + "/output"), value.getType(), value);
      identity->setAttr(dfg::kControlAttr, builder.getArrayAttr({dfg::getNodeNameAttr(assign)}));
      if (failed(infer(identity)))
        return failure();
      chosenResults[result] = identity.getResult();
      result.replaceAllUsesWith(identity.getResult());
    }
    effects.push_back(dfg::getNodeNameAttr(assign));
    if (node.scope.inPlace)
      node.scope.replacements[dfg::getNodeName(node.op)].push_back(dfg::getNodeNameAttr(assign));
  }
  // Whoever waits for the update waits for the choice.
  if (node.scope.inPlace)
    node.scope.replacements[dfg::getNodeName(node.op)].push_back(dfg::getNodeNameAttr(op));
  return success();
}

// ---- The graph that is left
// -------------------------------------------------------------------------------------------

/// An endpoint's node has its name again.
void StraightLine::keepEndpoints() {
  llvm::StringMap<std::pair<Operation *, Data>> byName;
  for (auto &[op, results] : replaced)
    byName[dfg::getNodeName(op)] = {op, results};
  builder.setInsertionPointToEnd(&graph.getBody().front());
  auto keep = [&](StringAttr endpoint, bool isTensor) {
    auto it = endpoint ? byName.find(endpoint.getValue().split(':').first) : byName.end();
    if (it == byName.end() || !it->second.first)
      return;
    auto &[op, results] = it->second;
    auto loc = NameLoc::get(builder.getStringAttr(it->getKey()));
    SmallVector<Attribute> controls = top.replacements.lookup(it->getKey());
    Operation *made;
    if (isTensor && !results.empty() && results[0].value)
      made = dfg::IdentityOp::create(builder, loc, results[0].value.getType(), results[0].value);
    else
      made = dfg::GroupOp::create(builder, loc);
    if (!controls.empty())
      made->setAttr(dfg::kControlAttr, builder.getArrayAttr(controls));
    op->setLoc(builder.getUnknownLoc());
    top.replacements.erase(it->getKey());
    op = nullptr;
  };
  keep(graph.getTrainOpAttr(), /*isTensor=*/false);
  keep(graph.getInitOpAttr(), /*isTensor=*/false);
  keep(graph.getLossAttr(), /*isTensor=*/true);
  if (ArrayAttr fetches = graph.getFetchesAttr())
    for (StringAttr fetch : fetches.getAsRange<StringAttr>())
      keep(fetch, /*isTensor=*/true);
}

/// What evaluation has replaced goes, with what no endpoint needs of it.
void StraightLine::eraseReplaced() {
  llvm::SetVector<Operation *> gone;
  for (auto &[op, results] : replaced) {
    gone.insert(op);
    for (auto [result, datum] : llvm::zip(op->getResults(), results))
      if (datum.value)
        result.replaceAllUsesWith(datum.value);
  }
  for (size_t i = 0; i < gone.size(); ++i)
    for (Operation *user : gone[i]->getUsers())
      gone.insert(user);
  for (Operation *op : gone) {
    if (StringRef name = dfg::getNodeName(op); !name.empty())
      top.replacements[name];
    op->dropAllReferences();
  }
  for (Operation *op : gone)
    op->erase();
}

LogicalResult StraightLine::eraseDead() {
  for (Operation *op : llvm::reverse(made)) {
    if (!op->use_empty() && dependOnExample.contains(op))
      return emitError(op->getLoc()) << "node '" << dfg::getNodeName(op)
                                     << "' of a loop over the examples of a batch is taken outside of it; distc has no "
                                        "code for that: write it as an operation on the whole batch";
    if (!op->use_empty() || !(isMemoryEffectFree(op) || ofOneExample.contains(op)))
      continue;
    if (StringAttr name = dfg::getNodeNameAttr(op)) {
      ArrayRef<Attribute> controls = dfg::getControl(op);
      SmallVector<Attribute> &after = top.replacements[name.getValue()];
      after.assign(controls.begin(), controls.end());
      for (Value operand : op->getOperands())
        if (Operation *def = operand.getDefiningOp(); def && ordered.contains(def))
          if (StringAttr before = dfg::getNodeNameAttr(def))
            after.push_back(before);
    }
    op->erase();
  }
  return success();
}

LogicalResult StraightLine::finish() {
  keepEndpoints();
  eraseReplaced();
  // What reads stay for alone is nothing.
  if (failed(eraseDead()))
    return failure();
  for (Operation &op : graph.getBody().front()) {
    ArrayRef<Attribute> old = dfg::getControl(&op);
    if (old.empty())
      continue;
    llvm::SetVector<Attribute> controls;
    llvm::DenseSet<Attribute> seen;
    const Attribute own = dfg::getNodeNameAttr(&op);
    auto add = [&](auto &self, Attribute control) -> void {
      auto it = top.replacements.find(llvm::cast<StringAttr>(control).getValue());
      // What a node became in part waits for the node, and not for its other parts.
      if (it == top.replacements.end() || llvm::is_contained(it->second, own)) {
        controls.insert(control);
        return;
      }
      if (!seen.insert(control).second)
        return;
      for (Attribute next : it->second)
        if (next == control)
          controls.insert(control);
        else
          self(self, next);
    };
    for (Attribute control : old)
      add(add, control);
    controls.remove(own);
    if (controls.empty())
      op.removeAttr(dfg::kControlAttr);
    else
      op.setAttr(dfg::kControlAttr, builder.getArrayAttr(controls.getArrayRef()));
  }
  return success();
}

} // namespace distc
