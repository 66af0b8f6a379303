//===- Loops.cpp - Loops as straight-line code ----------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A loop runs here as long as its condition is known, or not known to be false.
// Where data decide when it ends, its body runs as often as it can at most, on the
// values that it would have if it went on, and the values from where it ended are
// selected: counters stay known. It can no more often than there are elements of
// what each iteration takes the next one of: behind the last, TensorFlow's program
// ends with an error.
//
// The gradient of such a loop takes from lists, last element first, what each
// iteration has left there: how many there are depends on data. It runs the other
// way round: its last iteration, which takes the first element, always stands at
// the end, and those of iterations that never were change nothing. So every
// iteration knows which elements it takes.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/control_flow/Loops.h"
#include "dialects/dfg/NodeNames.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace distc {

static constexpr StringRef kTooManyIterations =
    "is a loop of more than 100000 iterations; distc makes straight-line code of loops";

FailureOr<Value> StraightLine::evaluateCondition(Loop &loop, ArrayRef<Datum> state, StringRef prefix) {
  Results results = call(loop.node, loop.condition, state, prefix);
  if (failed(results) || results->size() != 1)
    return failure();
  return getPredicate(loop.node, results->front());
}

/// Whether the loop ends if its counters go on as they did: its condition is known to be false once they are far away.
/// Any other loop has no bound.
bool StraightLine::mayEnd(Loop &loop, ArrayRef<Datum> before, ArrayRef<Datum> now) {
  Data far(now);
  bool counts = false;
  for (auto [datum, old] : llvm::zip(far, before)) {
    std::optional<int64_t> from = getConstant(old), to = getConstant(datum);
    if (!from || !to || *from == *to)
      continue;
    Type element = llvm::cast<TensorType>(datum.value.getType()).getElementType();
    if (!element.isInteger(32) && !element.isInteger(64))
      continue;
    datum = getInteger(element, *from < *to ? int64_t(1) << 30 : -(int64_t(1) << 30));
    counts = true;
  }
  if (!counts)
    return false;
  FailureOr<Value> goesOn = evaluateCondition(loop, far, loop.node.name + "/bound/");
  return succeeded(goesOn) && shapes.getConstant(*goesOn) == 0;
}

/// Whether the condition sees the same as an iteration before.
bool StraightLine::isUnchanged(Loop &loop, ArrayRef<Datum> before, ArrayRef<Datum> now) {
  return llvm::all_of(llvm::zip(loop.condition.getBody().getArguments(), before, now), [&](auto variable) {
    auto [argument, old, datum] = variable;
    if (argument.use_empty())
      return true;
    if (!old.value || !datum.value)
      return false;
    std::optional<int64_t> from = getConstant(old), to = getConstant(datum);
    return from && to ? *from == *to : stripIdentities(old.value) == stripIdentities(datum.value);
  });
}

StraightLine::Results StraightLine::whileLoop(Node &node) {
  Loop loop{node, getFunction(node, "cond"), getFunction(node, "body")};
  if (!loop.condition || !loop.body)
    return failure();
  bool wasRepeated = isRepeated;
  llvm::scope_exit restore([&] { isRepeated = wasRepeated; });
  isRepeated = true;
  if (!wasRepeated)
    outermostLoop = node.name;
  LoopVariables variables(*this, loop, node.operands);
  if (Value count = variables.getExampleCount())
    return runEach(loop, node.operands, count);
  if (variables.hasMoreThan(kMaxIterations))
    return fail(loop.node) << kTooManyIterations, failure();
  for (const Datum &datum : node.operands) {
    if (!datum.container)
      continue;
    const Container *list =
        stacks.contains(datum.container.get()) ? stacks[datum.container.get()].get() : datum.container.get();
    if (list->length)
      return runBackward(loop, node.operands);
  }
  return runForward(loop, node.operands);
}

/// Where a loop would go on, the program ends: behind the last element of what it takes one of in each iteration, as
/// TensorFlow's does.
LogicalResult StraightLine::assertEnd(Loop &loop, Value goesOn, StringRef limit) {
  return assertNot(goesOn, loop.node.name + "/ends", ("loop '" + loop.node.name + "' goes on behind " + limit).str());
}

LogicalResult StraightLine::assertNot(Value condition, const std::string &name, StringRef text) {
  if (condition && active && condition != active)
    condition = logicalAnd(active, condition, name + "/active");
  Value holds = condition ? logicalNot(condition, name + "/not") : Value();
  if (!holds)
    return failure();
  auto type = RankedTensorType::get({}, dfg::StringType::get(builder.getContext()));
  auto message =
      dfg::ConstOp::create(builder, locate(name + "/message"), type, DenseStringElementsAttr::get(type, {text}));
  auto assertion =
      dfg::AssertOp::create(builder, locate(name), holds, ValueRange{message.getResult()}, /*summarize=*/3);
  dfg::setSourceAttribute(assertion, "T", builder.getTypeArrayAttr({type.getElementType()}));
  if (failed(infer(message)) || failed(infer(assertion)))
    return failure();
  effects.push_back(dfg::getNodeNameAttr(assertion));
  return success();
}

SmallVector<bool> StraightLine::findLive(const Loop &loop) const {
  return llvm::map_to_vector(loop.node.op->getResults(),
                             [&](Value result) { return running ? running->takes(result) : !result.use_empty(); });
}

StraightLine::Results StraightLine::runForward(Loop &loop, Data state) {
  // What the loop gives if it has ended; `goesOn` is whether it has not, null while that is certain.
  const Data initial = state;
  Data results = state, before = state;
  Value goesOn, outside = active, continuingOutside = continuing;
  std::optional<int64_t> most;
  std::string limit = "the last of the elements that it takes one of in each iteration";
  // Of a loop that data end: what is needed. One that could have a gradient leaves values to it in lists, also where
  // nothing takes them.
  SmallVector<bool> live = findLive(loop);
  const NeededNodes needed = LoopVariables(*this, loop, state).findNeeded(live);
  const NeededNodes *part = nullptr;
  llvm::scope_exit restore([&] {
    active = outside;
    continuing = continuingOutside;
  });
  for (int64_t iteration = 0;; ++iteration) {
    std::string prefix = loop.prefix(iteration);
    FailureOr<Value> condition = evaluateCondition(loop, state, prefix + "condition/");
    if (failed(condition))
      return failure();
    std::optional<int64_t> known = shapes.getConstant(*condition);
    if (known && dependsOnRows(*condition)) {
      LoopVariables variables(*this, loop, initial);
      SmallVector<std::pair<Value, int64_t>> reads;
      // A loop that takes the next element of something until there are none is one of more only where there are more.
      if (known == 0 && variables.getMostByReads() == iteration)
        reads = variables.getWhatIsRead(iteration);
      noteDecision(loop.node.name, *condition, reads);
    }
    if (known == 0)
      return goesOn ? results : state;
    if (known && iteration == 1 && isUnchanged(loop, before, state))
      return fail(loop.node)
                 << "is a loop without an end: an iteration leaves all as it is that its condition looks at",
             failure();
    if (!known && iteration == 0)
      part = &needed;
    // Of what data may end from some iteration on (`go_on | (i < 8)`), that is where the loop begins.
    if (!known && (iteration == 1 || (iteration > 1 && !goesOn)) && !mayEnd(loop, before, state)) {
      const Data &first = iteration == 1 ? before : state;
      const int64_t done = iteration == 1 ? 0 : iteration;
      most = LoopVariables(*this, loop, first).getMostByReads();
      if (most)
        *most += done;
      // TensorFlow has loops of its own.
      const bool isRefused = !most && (keepsOrder || needsBound(loop, first));
      // As often as a branch that data choose takes an element of something, and once more where it takes none.
      if (isRefused && !keepsOrder) {
        most = LoopVariables(*this, loop, first).getMostByReadsInBranches();
        if (most)
          *most += done;
      }
      if (isRefused && !most && maxIterations > 0 && !keepsOrder) {
        most = maxIterations;
        limit = "the " + std::to_string(maxIterations) + " iterations that --max-iterations allows";
      }
      if (!most) {
        active = outside;
        continuing = continuingOutside;
        return isRefused ? refuseUnbounded(loop) : runUnbounded(loop, first);
      }
    }
    if (most && iteration >= *most) {
      if (failed(assertEnd(loop, logicalAnd(goesOn, *condition, prefix + "goes_on"), limit)))
        return failure();
      return goesOn ? results : state;
    }
    if (iteration >= kMaxIterations)
      return fail(loop.node) << kTooManyIterations, failure();
    if (!known) {
      goesOn = logicalAnd(goesOn, *condition, prefix + "goes_on");
      active = goesOn ? logicalAnd(outside, goesOn, prefix + "active") : Value();
      continuing = goesOn ? logicalAnd(continuingOutside, goesOn, prefix + "continuing") : Value();
      if (!active || !continuing)
        return failure();
    }
    Results next = call(loop.node, loop.body, state, prefix, {}, {}, part);
    if (failed(next))
      return failure();
    if (next->size() != state.size())
      return fail(loop.node) << "has a body with " << next->size() << " results for " << state.size() << " variables",
             failure();
    before = std::move(state);
    state = std::move(*next);
    if (!goesOn) {
      results = state;
      continue;
    }
    for (auto [result, datum, isLive] : llvm::zip(results, state, live)) {
      if (part && !isLive)
        continue;
      FailureOr<Datum> either = select(goesOn, datum, result, loop.node);
      if (failed(either))
        return failure();
      result = *either;
    }
  }
}

StraightLine::Results StraightLine::runBackward(Loop &loop, Data state) {
  Value count = LoopVariables(*this, loop, state).getTripCount();
  auto refuse = [&]() -> Results {
    return fail(loop.node)
               << "is a loop over a list whose length depends on data, and distc cannot tell that it takes one element "
                  "in each iteration until there are none",
           failure();
  };
  if (!count)
    return refuse();
  // All lists of that length are as long as they can be.
  std::optional<size_t> most;
  SmallVector<bool> isAligned(state.size(), false);
  SmallVector<bool> isStack(state.size(), false);
  // What left the loop behind its effects is what it was inside.
  Value inLoop = stripIdentities(count);
  auto isAsLong = [&](const Container &list) {
    Value length = stripIdentities(list.length);
    return length == inLoop || (getKnown(length) && getKnown(length) == getKnown(inLoop));
  };
  for (auto [index, datum] : llvm::enumerate(state)) {
    if (!datum.container)
      continue;
    isStack[index] = stacks.contains(datum.container.get());
    const Container &list = isStack[index] ? *stacks[datum.container.get()] : *datum.container;
    if (!list.length)
      continue;
    if (!isAsLong(list) || (most && *most != list.elements.size()))
      return refuse();
    most = list.elements.size();
    isAligned[index] = true;
  }
  auto trim = [&](const Container &list, size_t size, Value length) {
    auto trimmed = std::make_shared<Container>(list);
    trimmed->elements.resize(std::min(size, trimmed->elements.size()));
    trimmed->guards.resize(std::min(trimmed->guards.size(), trimmed->elements.size()));
    trimmed->length = trimmed->elements.empty() ? Value() : length;
    return std::shared_ptr<const Container>(trimmed);
  };
  Value outside = active;
  llvm::scope_exit restore([&] { active = outside; });
  Type countType = llvm::cast<TensorType>(count.getType()).getElementType();
  for (size_t left = *most; left > 0; --left) {
    std::string prefix = loop.prefix(left - 1);
    // Whether the loop has as many iterations.
    Value runs = make<dfg::GreaterEqualOp>(prefix + "runs", builder.getI1Type(), count, getInteger(countType, left));
    active = runs ? logicalAnd(outside, runs, prefix + "active") : Value();
    if (!active)
      return failure();
    Data inside = state;
    for (size_t i = 0; i < state.size(); ++i) {
      if (!isAligned[i])
        continue;
      // Where it has, that many elements are left.
      if (isStack[i]) {
        auto &stack = stacks[state[i].container.get()];
        stack = trim(*stack, left, {});
      } else {
        inside[i] = Datum(trim(*state[i].container, left, {}));
      }
    }
    Results next = call(loop.node, loop.body, inside, prefix);
    if (failed(next))
      return failure();
    for (size_t i = 0; i < state.size(); ++i) {
      if (isAligned[i]) {
        const Container *after = isStack[i] ? stacks[state[i].container.get()].get() : (*next)[i].container.get();
        if (!after || after->elements.size() != left - 1)
          return refuse();
        // Where it has not, no more are left either.
        if (isStack[i])
          stacks[state[i].container.get()] = trim(*after, left - 1, count);
        else
          state[i] = Datum(trim(*after, left - 1, count));
        continue;
      }
      FailureOr<Datum> either = select(runs, (*next)[i], state[i], loop.node);
      if (failed(either))
        return failure();
      state[i] = *either;
    }
  }
  return state;
}

} // namespace distc
