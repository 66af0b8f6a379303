//===- UnboundedLoops.cpp - Loops of which data alone say when they end ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What nothing bounds cannot be written out. Such a loop is one node with regions, a
// function of its variables' first values: the batch's flow sees it as a whole, and all
// replicas run it on the same values. So nothing inside has an effect, and lists, whose
// lengths would depend on how often it ran, are no variables of it.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeNames.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/graph/control_flow/Loops.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc {

/// Kernels know integers with a sign: what a loop carries of unsigned ones is wider (dfg-widen-unsigned).
static Type getCarriedType(Type type) {
  auto element = llvm::dyn_cast<IntegerType>(getElementTypeOrSelf(type));
  if (!element || !element.isUnsigned() || element.getWidth() > 32)
    return getElementTypeOrSelf(type);
  return IntegerType::get(type.getContext(), element.getWidth() == 32 ? 64 : 32);
}

StraightLine::Results StraightLine::refuseUnbounded(const Loop &loop) {
  return fail(loop.node)
             << "is a loop that distc knows no bound for, and more than tensors goes on from an iteration, or to its "
                "gradient: data decide when it ends, or the batch does. Give it maximum_iterations, a counter that its "
                "condition compares with a number or with a size that is known (--feed NAME=SHAPE fixes a "
                "placeholder's), or one by which it takes elements of something that has a known number of them; in "
                "JAX, lax.fori_loop or lax.scan of a known length, which may leave what has ended as it is, and "
                "jax.vmap for lax.map over the batch; or compile with --max-iterations N, and a run that would go on "
                "longer ends with an error",
         failure();
}

bool StraightLine::needsBound(Loop &loop, const Data &initial) {
  LoopVariables variables(*this, loop, initial);
  SmallVector<bool> live = findLive(loop);
  const NeededNodes needed = variables.findNeeded(live);
  return llvm::any_of(needed.nodes, [](Operation *op) { return getKind(op).starts_with("Stack"); }) ||
         llvm::any_of(llvm::enumerate(initial), [&](auto variable) {
           auto [index, datum] = variable;
           return live[index] && !variables.isCarried(index) && (!datum.value || dfg::isHandle(datum.value.getType()));
         });
}

StraightLine::Results StraightLine::runUnbounded(Loop &loop, const Data &initial) {
  LoopVariables variables(*this, loop, initial);
  SmallVector<bool> live = findLive(loop);
  const NeededNodes needed = variables.findNeeded(live);
  SmallVector<unsigned> carried;
  SmallVector<Value> operands;
  auto cast = [&](Value value, Type element, const Twine &name) -> Value {
    return getElementTypeOrSelf(value.getType()) == element ? value : make<dfg::CastOp>(name.str(), element, value);
  };
  for (auto [index, datum] : llvm::enumerate(initial)) {
    if (!live[index] || variables.isCarried(index))
      continue;
    carried.push_back(index);
    operands.push_back(cast(datum.value, getCarriedType(datum.value.getType()), loop.node.name + "/first"));
    if (!operands.back())
      return failure();
  }
  const size_t madeBefore = made.size();
  auto op = dfg::WhileOp::create(builder, locate(loop.node.name + "/while"), ValueRange(operands).getTypes(), operands);
  for (Region &region : op->getRegions())
    region.emplaceBlock().addArguments(ValueRange(operands).getTypes(),
                                       SmallVector<Location>(operands.size(), op.getLoc()));
  auto makeCondition = [&](const Data &state) -> Results {
    FailureOr<Value> goesOn = evaluateCondition(loop, state, loop.node.name + "/condition/");
    if (failed(goesOn))
      return failure();
    // A loop in a branch that is not taken need not end.
    Value runs = active ? logicalAnd(active, *goesOn, loop.node.name + "/active") : *goesOn;
    if (!runs)
      return failure();
    return Data{Datum(runs)};
  };
  auto makeBody = [&](const Data &state) -> Results {
    llvm::scope_exit restore([&, outside = active] { active = outside; });
    active = {};
    Results next = call(loop.node, loop.body, state, loop.node.name + "/body/", {}, {}, &needed);
    if (failed(next))
      return failure();
    if (next->size() != state.size())
      return fail(loop.node) << "has a body with " << next->size() << " results for " << state.size() << " variables",
             failure();
    Data results;
    for (unsigned index : carried) {
      Value value = (*next)[index].value;
      if (!value)
        return fail(loop.node) << "has a body that makes a list of a tensor", failure();
      results.push_back(Datum(cast(value, getCarriedType(value.getType()), loop.node.name + "/next")));
      if (!results.back().value)
        return failure();
    }
    return results;
  };
  const auto stacksBefore = stacks;
  if (failed(makeRegion(op.getCondition().front(), carried, initial, makeCondition)) ||
      failed(makeRegion(op.getBody().front(), carried, initial, makeBody)) || failed(moveReads(loop, op)))
    return failure();
  if (llvm::any_of(stacks, [&](auto &stack) { return stacksBefore.lookup(stack.first) != stack.second; }))
    return refuseUnbounded(loop);
  FailureOr<dfg::WhileOp> whole = isolate(loop, op);
  if (failed(whole))
    return failure();
  // Nodes inside are the loop's own now.
  made.erase(std::remove_if(made.begin() + madeBefore, made.end(),
                            [&](Operation *inner) { return (*whole)->isProperAncestor(inner); }),
             made.end());
  if (failed(infer(*whole)))
    return failure();
  Data results = initial;
  for (auto [index, result] : llvm::enumerate(results))
    if (!live[index])
      result = Datum();
  for (auto [number, index] : llvm::enumerate(carried)) {
    results[index] = Datum(cast((*whole).getResult(number), getElementTypeOrSelf(initial[index].value.getType()),
                                loop.node.name + "/last"));
    if (!results[index].value)
      return failure();
  }
  return results;
}

LogicalResult StraightLine::makeRegion(Block &block, ArrayRef<unsigned> carried, const Data &initial,
                                       llvm::function_ref<Results(const Data &)> make) {
  // What is made inside is not there outside.
  llvm::scope_exit restore([&, constantsOutside = constants, selectedOutside = selected,
                            conjunctionsOutside = conjunctions, comparisonsOutside = comparisons,
                            unpackedOutside = unpacked, packedOutside = packed] {
    constants = constantsOutside;
    selected = selectedOutside;
    conjunctions = conjunctionsOutside;
    comparisons = comparisonsOutside;
    unpacked = unpackedOutside;
    packed = packedOutside;
  });
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  Data state = initial;
  for (auto [argument, index] : llvm::zip(block.getArguments(), carried)) {
    Value before = initial[index].value;
    if (auto sizes = shapes.getShape(before))
      shapes.setShape(argument, *sizes);
    truths.erase(argument);
    Type element = getElementTypeOrSelf(before.getType());
    state[index] = Datum(argument);
    if (getElementTypeOrSelf(argument.getType()) == element)
      continue;
    state[index] = Datum(this->make<dfg::CastOp>("variable", element, argument));
    if (!state[index].value)
      return failure();
  }
  Results results = make(state);
  if (failed(results))
    return failure();
  dfg::YieldOp::create(builder, block.getParentOp()->getLoc(),
                       llvm::map_to_vector(*results, [](const Datum &datum) { return datum.value; }));
  return success();
}

LogicalResult StraightLine::moveReads(const Loop &loop, dfg::WhileOp op) {
  SmallVector<Operation *> reads, groups;
  Operation *effect = nullptr;
  op->walk([&](Operation *inner) {
    if (inner == op || isMemoryEffectFree(inner))
      return;
    // What only keeps others in order: of values there is none.
    if (llvm::isa<dfg::GroupOp>(inner))
      groups.push_back(inner);
    else if (llvm::isa<dfg::ReadVariableOp>(inner) &&
             !op->isAncestor(inner->getOperand(0).getParentRegion()->getParentOp()))
      reads.push_back(inner);
    else
      effect = inner;
  });
  if (effect)
    return fail(loop.node)
           << "is a loop that distc knows no bound for, so that its iterations can only compute values: "
              "node '"
           << dfg::getNodeName(effect) << "' (" << effect->getName().stripDialect()
           << ") inside changes, draws or tells something. Give the loop maximum_iterations";
  for (Operation *read : reads) {
    read->moveBefore(op);
    read->removeAttr(dfg::kControlAttr);
  }
  if (groups.empty())
    return success();
  op->walk([&](Operation *inner) {
    if (inner != op)
      inner->removeDiscardableAttr(dfg::kControlAttr);
  });
  for (Operation *group : groups) {
    // Who waits for it waits for nothing.
    if (StringAttr name = dfg::getNodeNameAttr(group))
      top.replacements[name.getValue()];
    llvm::erase(made, group);
    group->erase();
  }
  return success();
}

FailureOr<dfg::WhileOp> StraightLine::isolate(const Loop &loop, dfg::WhileOp op) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  SmallVector<Value> operands(op.getOperands()), invariants;
  auto replaceInside = [](Region &region, Value value, llvm::function_ref<Value()> make) -> LogicalResult {
    auto isInside = [&](OpOperand &use) { return region.isAncestor(use.getOwner()->getParentRegion()); };
    if (llvm::none_of(value.getUses(), isInside))
      return success();
    Value inside = make();
    if (!inside)
      return failure();
    value.replaceUsesWithIf(inside, isInside);
    return success();
  };
  for (Value value : captured) {
    if (auto constant = value.getDefiningOp<dfg::ConstOp>()) {
      for (Region &region : op->getRegions())
        if (failed(replaceInside(region, value, [&]() -> Value {
              Operation *copy = OpBuilder::atBlockBegin(&region.front()).clone(*constant);
              copy->setLoc(locate(dfg::getNodeName(constant)));
              return succeeded(infer(copy)) ? copy->getResult(0) : Value();
            })))
          return failure();
      continue;
    }
    if (dfg::isHandle(value.getType()))
      return fail(loop.node) << "is a loop that distc knows no bound for, and uses a variable inside other than by "
                                "reading it whole; read it before the loop",
             failure();
    invariants.push_back(value);
  }
  for (Value value : invariants) {
    Type element = getCarriedType(value.getType());
    const bool isCast = element != getElementTypeOrSelf(value.getType());
    Value operand = isCast ? make<dfg::CastOp>(loop.node.name + "/first", element, value) : value;
    if (!operand)
      return failure();
    operands.push_back(operand);
    for (Region &region : op->getRegions()) {
      Value argument = region.addArgument(operand.getType(), op.getLoc());
      if (auto sizes = shapes.getShape(operand))
        shapes.setShape(argument, *sizes);
      if (failed(replaceInside(region, value, [&]() -> Value {
            if (!isCast)
              return argument;
            OpBuilder::InsertionGuard guard(builder);
            builder.setInsertionPointToStart(&region.front());
            return make<dfg::CastOp>(loop.node.name + "/variable", getElementTypeOrSelf(value.getType()), argument);
          })))
        return failure();
    }
    Operation *next = op.getBody().front().getTerminator();
    next->insertOperands(next->getNumOperands(), op.getBody().front().getArguments().back());
  }
  auto whole = dfg::WhileOp::create(builder, op.getLoc(), ValueRange(operands).getTypes(), operands);
  whole.getCondition().takeBody(op.getCondition());
  whole.getBody().takeBody(op.getBody());
  op.erase();
  return whole;
}

} // namespace distc
