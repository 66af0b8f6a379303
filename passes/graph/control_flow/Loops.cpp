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

#include "dialects/dfg/Frames.h"
#include "dialects/dfg/NodeNames.h"
#include "passes/graph/control_flow/StraightLine.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace distc {

/// As many iterations as a loop can have.
static constexpr int64_t kMaxIterations = 100'000;

static Value stripIdentities(Value value) {
  while (auto identity = value.getDefiningOp<dfg::IdentityOp>())
    value = identity.getX();
  return value;
}

struct StraightLine::Loop {
  Node &node;
  dfg::FuncOp condition, body;

  std::string prefix(int64_t iteration) const { return node.name + "/" + std::to_string(iteration) + "/"; }
};

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

/// What a loop's functions say of how its variables change from one iteration to the next.
class StraightLine::LoopVariables {
public:
  LoopVariables(StraightLine &line, Loop &loop, ArrayRef<Datum> initial)
      : line(line), condition(loop.condition.getBody().front()), body(loop.body.getBody().front()), initial(initial) {}

  /// The number of iterations as a value, where the loop counts a variable up to another, or down to a constant; null
  /// else.
  Value getTripCount() const {
    Operation *compare = stripIdentities(condition.getTerminator()->getOperand(0)).getDefiningOp();
    if (!llvm::isa_and_nonnull<dfg::LessOp, dfg::GreaterOp, dfg::GreaterEqualOp>(compare))
      return {};
    Value x = stripIdentities(compare->getOperand(0)), y = stripIdentities(compare->getOperand(1));
    if (llvm::isa<dfg::GreaterOp>(compare))
      std::swap(x, y);
    std::optional<unsigned> counter = getVariable(x), limit = getVariable(y);
    if (!counter)
      return {};
    // x < y, x from 0 by 1.
    if (!llvm::isa<dfg::GreaterEqualOp>(compare))
      return limit && isCarried(*limit) && getStep(*counter) == 1 && line.getConstant(initial[*counter]) == 0
                 ? initial[*limit].value
                 : Value();
    // x >= 1, by -1.
    return getStep(*counter) == -1 && constantOf(y) == 1 ? initial[*counter].value : Value();
  }

  /// The most iterations that there can be without an error: each takes the next element of something that has so many.
  std::optional<int64_t> getMostByReads() const {
    std::optional<int64_t> most;
    for (Operation &op : body)
      for (const Read &read : getReads(&op))
        if (std::optional<int64_t> bound = getMost(read); bound && (!most || *bound < *most))
          most = bound;
    return most;
  }

private:
  /// The number of the variable that `value` is; none where it is anything else.
  std::optional<unsigned> getVariable(Value value) const {
    auto argument = llvm::dyn_cast<BlockArgument>(stripIdentities(value));
    if (!argument || argument.getArgNumber() >= initial.size())
      return std::nullopt;
    return argument.getArgNumber();
  }

  std::optional<int64_t> constantOf(Value value) const {
    if (auto constant = stripIdentities(value).getDefiningOp<dfg::ConstOp>()) {
      auto dense = llvm::dyn_cast<DenseIntElementsAttr>(constant.getValue());
      return dense && dense.getNumElements() == 1 ? std::optional(dense.getSplatValue<APInt>().getSExtValue())
                                                  : std::nullopt;
    }
    std::optional<unsigned> variable = getVariable(value);
    return variable && isCarried(*variable) ? line.getConstant(initial[*variable]) : std::nullopt;
  }

  Value getNext(unsigned variable) const { return stripIdentities(body.getTerminator()->getOperand(variable)); }
  bool isCarried(unsigned variable) const { return getNext(variable) == Value(body.getArgument(variable)); }

  /// What an iteration adds to a variable.
  std::optional<int64_t> getStep(unsigned variable) const {
    Operation *op = getNext(variable).getDefiningOp();
    const Value self = body.getArgument(variable);
    const bool adds = op && op->hasTrait<dfg::Adds>();
    if (!adds && !llvm::isa_and_nonnull<dfg::SubOp>(op))
      return std::nullopt;
    Value x = stripIdentities(op->getOperand(0)), y = stripIdentities(op->getOperand(1));
    if (adds && y == self)
      std::swap(x, y);
    std::optional<int64_t> by = x == self ? constantOf(y) : std::nullopt;
    return by && !adds ? -*by : by;
  }

  /// One element that an operation takes, by its index along an axis: there is an error where there is none of that
  /// index.
  struct Read {
    Value elements, index;
    unsigned axis = 0;
  };

  SmallVector<Read> getReads(Operation *op) const {
    if (auto slice = llvm::dyn_cast<dfg::StridedSliceOp>(op)) {
      SmallVector<Read> reads;
      auto begin = stripIdentities(slice.getBegin()).getDefiningOp<dfg::PackOp>();
      if (!begin || slice.getEllipsisMask() || slice.getNewAxisMask())
        return reads;
      for (auto [axis, index] : llvm::enumerate(begin->getOperands()))
        if ((slice.getShrinkAxisMask() & ~slice.getBeginMask()) >> axis & 1)
          reads.push_back({slice.getInput(), index, static_cast<unsigned>(axis)});
      return reads;
    }
    if (auto gather = llvm::dyn_cast<dfg::GatherV2Op>(op)) {
      std::optional<int64_t> axis = constantOf(gather.getAxis());
      if (axis && *axis >= 0)
        return {{gather.getParams(), gather.getIndices(), static_cast<unsigned>(*axis)}};
    }
    StringRef kind = dfg::getKind(op);
    if (kind == "TensorListGetItem" && op->getNumOperands() == 3)
      return {{op->getOperand(0), op->getOperand(1)}};
    if (kind == "TensorArrayReadV3" && op->getNumOperands() == 3)
      return {{op->getOperand(2), op->getOperand(1)}};
    return {};
  }

  /// Of a read by a counter.
  std::optional<int64_t> getMost(const Read &read) const {
    std::optional<unsigned> variable = getVariable(read.elements), counter = getVariable(read.index);
    if (!variable || !counter || !isCarried(*variable))
      return std::nullopt;
    std::optional<int64_t> first = line.getConstant(initial[*counter]), step = getStep(*counter), size;
    const Datum &datum = initial[*variable];
    if (datum.container && !datum.container->length && !datum.container->grows) {
      size = datum.container->elements.size();
    } else if (datum.value) {
      std::optional<dfg::Dims> sizes = line.shapes.getShape(datum.value);
      if (sizes && read.axis < sizes->size() && (*sizes)[read.axis].isConstant() && !(*sizes)[read.axis].isBound())
        size = (*sizes)[read.axis].getConstant();
    }
    if (!first || *first < 0 || !step || *step < 1 || !size)
      return std::nullopt;
    std::optional<dfg::Dims> scalar = line.shapes.getShape(initial[*counter].value);
    if (!scalar || !scalar->empty())
      return std::nullopt;
    return *first < *size ? (*size - *first + *step - 1) / *step : 0;
  }

  StraightLine &line;
  Block &condition, &body;
  ArrayRef<Datum> initial;
};

StraightLine::Results StraightLine::whileLoop(Node &node) {
  Loop loop{node, getFunction(node, "cond"), getFunction(node, "body")};
  if (!loop.condition || !loop.body)
    return failure();
  bool wasRepeated = isRepeated;
  llvm::scope_exit restore([&] { isRepeated = wasRepeated; });
  isRepeated = true;
  if (!wasRepeated)
    outermostLoop = node.name;
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

/// Where a loop would go on behind the last element of what it takes one of in each iteration, the program ends, as
/// TensorFlow's does.
LogicalResult StraightLine::assertEnd(Loop &loop, Value goesOn) {
  std::string name = loop.node.name + "/ends";
  if (goesOn && active)
    goesOn = logicalAnd(active, goesOn, name + "/active");
  Value ended = goesOn ? logicalNot(goesOn, name + "/ended") : Value();
  if (!ended)
    return failure();
  auto type = RankedTensorType::get({}, dfg::StringType::get(builder.getContext()));
  std::string text =
      "loop '" + loop.node.name + "' goes on behind the last of the elements that it takes one of in each iteration";
  auto message = dfg::ConstOp::create(builder, locate(name + "/message"), type,
                                      DenseStringElementsAttr::get(type, {StringRef(text)}));
  auto assertion =
      dfg::AssertOp::create(builder, locate(name), ended, ValueRange{message.getResult()}, /*summarize=*/3);
  assertion->setAttr(dfg::kTensorFlowAttr, builder.getDictionaryAttr(builder.getNamedAttr(
                                               "T", builder.getTypeArrayAttr({type.getElementType()}))));
  if (failed(infer(message)) || failed(infer(assertion)))
    return failure();
  effects.push_back(dfg::getNodeNameAttr(assertion));
  return success();
}

StraightLine::Results StraightLine::runForward(Loop &loop, Data state) {
  // What the loop gives if it has ended; `goesOn` is whether it has not, null while that is certain.
  Data results = state, before = state;
  Value goesOn, outside = active, continuingOutside = continuing;
  std::optional<int64_t> most;
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
    if (known == 0)
      return goesOn ? results : state;
    if (!known && iteration == 1 && !mayEnd(loop, before, state)) {
      most = LoopVariables(*this, loop, before).getMostByReads();
      if (!most)
        return fail(loop.node)
                   << "is a loop that distc knows no bound for: data decide when it ends, or the batch does. Give it "
                      "maximum_iterations, a counter that its condition compares with a number or with a size that is "
                      "known (--feed NAME=SHAPE fixes a placeholder's), or one by which it takes elements of something "
                      "that has a known number of them; in JAX, lax.fori_loop or lax.scan of a known length, which may "
                      "leave what has ended as it is, and jax.vmap for lax.map over the batch",
               failure();
    }
    if (most && iteration >= *most) {
      if (failed(assertEnd(loop, logicalAnd(goesOn, *condition, prefix + "goes_on"))))
        return failure();
      return goesOn ? results : state;
    }
    if (iteration >= kMaxIterations)
      return fail(loop.node) << "is a loop of more than " << kMaxIterations
                             << " iterations; distc makes straight-line code of loops",
             failure();
    if (!known) {
      goesOn = logicalAnd(goesOn, *condition, prefix + "goes_on");
      active = goesOn ? logicalAnd(outside, goesOn, prefix + "active") : Value();
      continuing = goesOn ? logicalAnd(continuingOutside, goesOn, prefix + "continuing") : Value();
      if (!active || !continuing)
        return failure();
    }
    Results next = call(loop.node, loop.body, state, prefix);
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
    for (auto [result, datum] : llvm::zip(results, state)) {
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
