//===- LoopsOverExamples.cpp - Loops with an iteration for each example --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// How many examples a batch has is not known here, and a loop over them has no
// straight-line form, iteration by iteration. Where iterations have nothing to do with
// each other (tf.map_fn), one of them is evaluated, for an example of any number, and
// what it became is made again for all examples at once (Examples.h).
//
// A list with an element for each example is a tensor, along whose first axis they lie.
// An iteration takes and sets its own element only. What a loop adds to the end of a
// list in each iteration becomes such a list, and its gradient's iterations, in the
// opposite order, take their own from it. A variable that each iteration adds something
// to is a sum over the examples. All else that goes from one iteration to the next is
// refused.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/control_flow/Examples.h"
#include "passes/graph/control_flow/Loops.h"

using namespace mlir;

namespace distc {

// ---- Lists of examples ----------------------------------------------------------------------------------------------

bool StraightLine::countsExamples(Value count) const {
  std::optional<dfg::Dims> size = count ? shapes.getElements(count) : std::nullopt;
  return size && size->size() == 1 && size->front().isMultipleOfBatch() && size->front().getScale() > 0;
}

bool StraightLine::isSameCount(Value x, Value y) const {
  std::optional<dfg::Dims> sizes = shapes.getElements(x), others = shapes.getElements(y);
  return sizes && others && sizes->size() == 1 && others->size() == 1 && sizes->front() == others->front();
}

bool StraightLine::hasAsMany(const Container &list, Value count) const {
  return count && isSameCount(list.examples ? list.examples : list.counted, count);
}

bool StraightLine::areNumbers(Value indices, Value count) const {
  auto range = indices ? stripIdentities(indices).getDefiningOp<dfg::RangeOp>() : dfg::RangeOp();
  return range && shapes.getConstant(range.getStart()) == 0 && shapes.getConstant(range.getDelta()) == 1 &&
         isSameCount(range.getLimit(), count);
}

bool StraightLine::areAll(const Container &list, Value indices) const {
  return areNumbers(indices, list.examples ? list.examples : list.counted);
}

FailureOr<Value> StraightLine::countRows(const Node &node, Value tensor) {
  std::optional<dfg::Dims> sizes = tensor ? shapes.getShape(tensor) : std::nullopt;
  if (!sizes || sizes->empty() || !sizes->front().isMultipleOfBatch() || sizes->front().getScale() < 0)
    return Value();
  Value shape = make<dfg::ShapeOp>(node.name + "/shape", builder.getI32Type(), tensor);
  Value count = shape
                    ? make<dfg::GatherV2Op>(node.name + "/count", builder.getI32Type(), shape, getInt32(0), getInt32(0))
                    : Value();
  return ifMade(count);
}

std::shared_ptr<Container> StraightLine::makeExamples(const Container &list, Value count, Datum all) const {
  auto examples = std::make_shared<Container>(list);
  examples->examples = count;
  examples->elements.assign(1, all);
  examples->own = {};
  return examples;
}

FailureOr<Datum> StraightLine::spread(const Container &list, const Node &node) {
  const Datum &all = list.elements[0];
  if (!all.value || !sameForAll.contains(all.value))
    return all;
  Value shape = make<dfg::ShapeOp>(node.name + "/shape", builder.getI32Type(), all.value);
  Value first =
      shape ? make<dfg::PackOp>(node.name + "/first", builder.getI32Type(), ValueRange{list.examples}, 0) : Value();
  Value sizes =
      first ? make<dfg::ConcatV2Op>(node.name + "/sizes", builder.getI32Type(), ValueRange{first, shape}, getInt32(0))
            : Value();
  return datumIfMade(sizes ? make<dfg::BroadcastToOp>(node.name + "/spread",
                                                      llvm::cast<TensorType>(all.value.getType()).getElementType(),
                                                      all.value, sizes)
                           : Value());
}

FailureOr<Value> StraightLine::packExamples(const Node &node, const Container &list) {
  FailureOr<Datum> spread = this->spread(list, node);
  if (failed(spread))
    return failure();
  const Datum &all = *spread;
  if (!list.own.isUnset() || all.container)
    return fail(node) << "joins the elements of a list that has one for each example of the batch, in a loop over them",
           failure();
  if (all.value)
    return all.value;
  if (list.like)
    return ifMade(zerosLike(list.like, node.name + "/zeros"));
  if (!list.elementShape || !countsKnown(list.elementShape) || !list.elementType)
    return fail(node) << "joins the elements of a list that was never written, whose shape is not known", failure();
  Type integer = llvm::cast<TensorType>(list.elementShape.getType()).getElementType();
  Value count = make<dfg::CastOp>(node.name + "/count", integer, list.examples);
  Value first = count ? make<dfg::PackOp>(node.name + "/first", integer, ValueRange{count}, 0) : Value();
  Value sizes =
      first ? make<dfg::ConcatV2Op>(node.name + "/sizes", integer, ValueRange{first, list.elementShape}, getInt32(0))
            : Value();
  auto type = RankedTensorType::get({}, list.elementType);
  auto zero = dfg::ConstOp::create(builder, locate(node.name + "/zero"), type,
                                   llvm::cast<DenseElementsAttr>(builder.getZeroAttr(type)));
  if (!sizes || failed(infer(zero)))
    return failure();
  return ifMade(make<dfg::FillOp>(node.name + "/zeros", list.elementType, sizes, zero.getResult()));
}

// ---- In an iteration ------------------------------------------------------------------------------------------------

bool StraightLine::isOwn(const Datum &index) const {
  return iteration && index.value && stripIdentities(index.value) == iteration->number;
}

FailureOr<Datum> StraightLine::takeOwn(const Datum &all, const Node &node) {
  if (all.value) {
    if (sameForAll.contains(all.value))
      return Datum(all.value.getDefiningOp()->getOperand(0));
    if (areNumbers(all.value, iteration->count))
      return Datum(iteration->number);
    Value &own = iteration->own[all.value];
    if (!own) {
      Value made =
          make<dfg::GatherV2Op>(node.name + "/own", llvm::cast<TensorType>(all.value.getType()).getElementType(),
                                all.value, iteration->number, getInt32(0));
      iteration->own[all.value] = made;
      return datumIfMade(made);
    }
    return Datum(own);
  }
  if (!all.container)
    return all;
  // Optionals are told apart by what they are.
  std::shared_ptr<const Container> &known = iteration->ownContainers[all.container.get()];
  if (known)
    return Datum(known);
  if (stacks.contains(all.container.get()))
    return all;
  auto own = std::make_shared<Container>(*all.container);
  // Of a list with elements of all iterations, of which those behind this one's were not there.
  if (own->examples) {
    FailureOr<Datum> taken = takeOwn(own->elements[0], node);
    if (failed(taken))
      return failure();
    own->own = *taken;
    iteration->ownContainers[all.container.get()] = own;
    kept.push_back(all.container);
    return Datum(std::shared_ptr<const Container>(own));
  }
  for (Value *value : {&own->length, &own->hasValue, &own->predicate, &own->like})
    if (*value) {
      FailureOr<Datum> taken = takeOwn(Datum(*value), node);
      if (failed(taken))
        return failure();
      *value = taken->value;
    }
  SmallVector<Datum *> parts = {&own->chosen, &own->otherwise};
  for (Datum &element : own->elements)
    parts.push_back(&element);
  for (Datum *part : parts) {
    FailureOr<Datum> taken = takeOwn(*part, node);
    if (failed(taken))
      return failure();
    *part = *taken;
  }
  kept.push_back(all.container);
  iteration->ownContainers[all.container.get()] = own;
  return Datum(std::shared_ptr<const Container>(own));
}

FailureOr<Guard> StraightLine::takeOwn(const Guard &all, const Node &node) {
  Guard own;
  for (auto &[predicate, value] : all) {
    FailureOr<Datum> taken = takeOwn(Datum(predicate), node);
    if (failed(taken))
      return failure();
    own.emplace_back(taken->value, value);
  }
  llvm::sort(own, [](auto &x, auto &y) {
    return std::pair(x.first.getAsOpaquePointer(), x.second) < std::pair(y.first.getAsOpaquePointer(), y.second);
  });
  return own;
}

FailureOr<Datum> StraightLine::getOwn(const Container &list, const Node &node) {
  if (!iteration || !isSameCount(list.examples, iteration->count))
    return fail(node)
               << "takes one element of a list that has one for each example of the batch, and not in a loop over "
                  "the examples",
           failure();
  if (!list.own.isUnset())
    return list.own;
  if (!list.elements[0].isUnset())
    return takeOwn(list.elements[0], node);
  // Zeros, of the shape that others have or that the list was made with.
  Container one = list;
  one.examples = {};
  if (list.like) {
    FailureOr<Datum> like = takeOwn(Datum(list.like), node);
    if (failed(like))
      return failure();
    one.like = like->value;
  }
  return getElement(one, 0, node);
}

FailureOr<Datum> StraightLine::getExample(const Container &list, const Datum &index, const Node &node) {
  if (isOwn(index))
    return getOwn(list, node);
  // Another one's, of what does not change.
  if (!list.own.isUnset() || !list.elements[0].value || !index.value)
    return fail(node) << "takes an element of a list that has one for each example of the batch, and not that of the "
                         "iteration's own example",
           failure();
  FailureOr<Datum> all = spread(list, node);
  if (failed(all))
    return failure();
  Value item =
      make<dfg::GatherV2Op>(node.name + "/gather", llvm::cast<TensorType>(all->value.getType()).getElementType(),
                            all->value, index.value, getInt32(0));
  return datumIfMade(item);
}

FailureOr<Datum> StraightLine::addExamples(const Datum &x, const Datum &y, const Node &node) {
  const Container &first = *x.container, &second = *y.container;
  if (!first.examples || !second.examples || !isSameCount(first.examples, second.examples))
    return fail(node) << "adds lists that are not known to have the same length", failure();
  const bool isWritten = !first.own.isUnset() || !second.own.isUnset();
  FailureOr<Datum> firstElements = spread(first, node), secondElements = spread(second, node);
  if (failed(firstElements) || failed(secondElements))
    return failure();
  const Datum &all = *firstElements, &others = *secondElements;
  // What the other iterations' elements are is the first's: a list that is added in each of them has none but its own.
  if (isWritten && !all.isUnset() && !others.isUnset())
    return fail(node) << "adds lists with an element for each example of the batch, in a loop over the examples",
           failure();
  auto sum = std::make_shared<Container>(all.isUnset() ? second : first);
  if (!sum->like)
    sum->like = first.like ? first.like : second.like;
  if (isWritten) {
    auto ownOf = [&](const Container &list) {
      return list.own.isUnset() && list.elements[0].isUnset() ? FailureOr<Datum>(Datum()) : getOwn(list, node);
    };
    FailureOr<Datum> own = ownOf(first), other = ownOf(second);
    FailureOr<Datum> total = failed(own) || failed(other) ? FailureOr<Datum>(failure()) : add(*own, *other, node);
    if (failed(total))
      return failure();
    sum->own = *total;
    return Datum(std::shared_ptr<const Container>(sum));
  }
  FailureOr<Datum> total = add(all, others, node);
  if (failed(total))
    return failure();
  sum->elements[0] = *total;
  return Datum(std::shared_ptr<const Container>(sum));
}

FailureOr<Datum> StraightLine::selectExamples(Value predicate, const Datum &chosen, const Datum &otherwise,
                                              const Node &node) {
  const Container &x = *chosen.container, &y = *otherwise.container;
  if (!x.examples || !y.examples || !isSameCount(x.examples, y.examples) || !(x.elements[0] == y.elements[0]))
    return fail(node) << "gives one of two lists with an element for each example of the batch, by a predicate that "
                         "depends on data",
           failure();
  auto both = std::make_shared<Container>(x);
  if (x.own == y.own)
    return Datum(std::shared_ptr<const Container>(both));
  Datum owns[2];
  for (auto [own, list, other] : {std::tuple(&owns[0], &x, &y), std::tuple(&owns[1], &y, &x)}) {
    *own = list->own;
    if (own->isUnset() && list->elements[0].isUnset() && !list->like && other->own.value) {
      *own = Datum(zerosLike(other->own.value, node.name + "/zeros"));
    } else if (own->isUnset()) {
      FailureOr<Datum> taken = getOwn(*list, node);
      if (failed(taken))
        return failure();
      *own = *taken;
    }
  }
  FailureOr<Datum> own = select(predicate, owns[0], owns[1], node);
  if (failed(own))
    return failure();
  both->own = *own;
  return Datum(std::shared_ptr<const Container>(both));
}

// ---- The loop -------------------------------------------------------------------------------------------------------

namespace {

/// What is added to `carried` to make `value`; false where it is anything else.
bool findAddends(Value value, Value carried, llvm::function_ref<bool(Value)> dependsOnCarried,
                 SmallVector<Value> &addends) {
  SmallVector<Value> pending = {value};
  unsigned count = 0;
  while (!pending.empty()) {
    Value next = stripIdentities(pending.pop_back_val());
    if (next == carried) {
      ++count;
    } else if (!dependsOnCarried(next)) {
      addends.push_back(next);
    } else {
      Operation *op = next.getDefiningOp();
      if (!op->hasTrait<dfg::Adds>() && !llvm::isa<dfg::AddNOp>(op))
        return false;
      // Of the same shape: what is added to more of it than there is would be another sum.
      for (Value operand : op->getOperands()) {
        if (dependsOnCarried(operand) && operand.getType() != next.getType())
          return false;
        pending.push_back(operand);
      }
    }
  }
  return count == 1;
}

} // namespace

FailureOr<Data> StraightLine::unpackExamples(const Node &node, Value all, int64_t count) {
  std::optional<dfg::Dims> sizes = shapes.getShape(all);
  SmallVector<int64_t> extents = {count};
  for (dfg::Dim size : sizes ? ArrayRef(*sizes).drop_front() : ArrayRef<dfg::Dim>())
    extents.push_back(size.isConstant() ? size.getConstant() : -1);
  if (!sizes || llvm::is_contained(extents, -1))
    return fail(node) << "takes the examples of a batch one after the other, which have other sizes that are not known "
                         "when it is compiled",
           failure();
  Value &rows = counted[all];
  if (!rows)
    rows = make<dfg::ReshapeOp>(node.name + "/rows", llvm::cast<TensorType>(all.getType()).getElementType(), all,
                                getVector(builder.getI32Type(), extents));
  if (!rows)
    return failure();
  uncounted[rows] = all;
  return unpack(node, rows);
}

FailureOr<Value> StraightLine::uncount(const Node &node, Value rows, Value count) {
  Type i32 = builder.getI32Type();
  std::optional<dfg::Dims> sizes = shapes.getShape(rows);
  SmallVector<int64_t> inner;
  for (dfg::Dim size : ArrayRef(*sizes).drop_front())
    inner.push_back(size.isConstant() ? size.getConstant() : -1);
  if (llvm::is_contained(inner, -1))
    return fail(node) << "joins elements of which there is one for each example of the batch, whose sizes are not "
                         "known when it is compiled",
           failure();
  if (llvm::cast<TensorType>(count.getType()).getElementType() != i32)
    count = make<dfg::CastOp>(node.name + "/count", i32, count);
  Value first = count ? make<dfg::PackOp>(node.name + "/first", i32, ValueRange{count}, 0) : Value();
  Value shape = first && !inner.empty() ? make<dfg::ConcatV2Op>(node.name + "/sizes", i32,
                                                                ValueRange{first, getVector(i32, inner)}, getInt32(0))
                                        : first;
  return ifMade(shape ? make<dfg::ReshapeOp>(node.name + "/examples",
                                             llvm::cast<TensorType>(rows.getType()).getElementType(), rows, shape)
                      : Value());
}

int64_t StraightLine::countIterations(Value count) const {
  std::optional<dfg::Dims> size = shapes.getElements(count);
  return batch > 0 && !keepsOrder && size ? size->front().getScale() * batch : 0;
}

FailureOr<Datum> StraightLine::countOut(const Datum &list, const Node &node) {
  const int64_t count = list.container && list.container->examples && !stacks.contains(list.container.get())
                            ? countIterations(list.container->examples)
                            : 0;
  if (iteration || count == 0)
    return list;
  const Container &old = *list.container;
  if (old.elements[0].container || !old.own.isUnset())
    return fail(node) << "takes the examples of a batch one after the other, and a list of lists of them", failure();
  auto known = std::make_shared<Container>(old);
  known->examples = {};
  known->counted = old.examples;
  known->elements.assign(count, Datum());
  if (old.elements[0].value) {
    FailureOr<Datum> all = spread(old, node);
    FailureOr<Data> rows = failed(all) ? FailureOr<Data>(failure()) : unpackExamples(node, all->value, count);
    if (failed(rows))
      return failure();
    known->elements = *rows;
  }
  kept.push_back(list.container);
  kept.push_back(known);
  auto before = countedOut.find(&old);
  const Container *origin = before == countedOut.end() ? &old : before->second;
  countedOut[known.get()] = origin;
  return Datum(std::shared_ptr<const Container>(known));
}

LogicalResult StraightLine::countOutOperand(Node &node, unsigned operand) {
  FailureOr<Datum> known = countOut(node.operands[operand], node);
  if (succeeded(known))
    node.operands[operand] = *known;
  return success(succeeded(known));
}

/// What every replica computes on the whole batch: its rows are gathered, and each takes its own of what follows.
StraightLine::Results StraightLine::runEach(Loop &loop, Data state, Value count) {
  const int64_t iterations = countIterations(count);
  if (iteration || iterations == 0)
    return runExamples(loop, state, count);
  // Should no operation on all examples do, nothing of what was tried is to be left.
  auto stacksBefore = stacks;
  auto selectedBefore = selected;
  auto conjunctionsBefore = conjunctions, comparisonsBefore = comparisons;
  auto unpackedBefore = unpacked;
  auto packedBefore = packed;
  auto lastDrawsBefore = lastDraws;
  auto accessesBefore = accesses;
  const size_t effectsAtFirst = effects.size(), firstMade = made.size();
  Iteration *outer = iteration;
  SmallVector<Diagnostic> said;
  auto runAll = [&] {
    ScopedDiagnosticHandler keep(builder.getContext(), [&](Diagnostic &diagnostic) {
      said.push_back(std::move(diagnostic));
      return success();
    });
    return runExamples(loop, state, count);
  };
  if (Results all = runAll(); succeeded(all) || iterations > kMaxIterations) {
    for (Diagnostic &diagnostic : said)
      builder.getContext()->getDiagEngine().emit(std::move(diagnostic));
    return all;
  }
  iteration = outer;
  emitRemark(loop.node.getLoc()) << "node '" << loop.node.name << "' is a loop over the examples of a batch, "
                                 << iterations
                                 << " of them, with iterations that no operation on all of them does: each replica "
                                    "runs them one after the other";
  stacks = std::move(stacksBefore);
  selected = std::move(selectedBefore);
  conjunctions = std::move(conjunctionsBefore);
  comparisons = std::move(comparisonsBefore);
  unpacked = std::move(unpackedBefore);
  packed = std::move(packedBefore);
  lastDraws = std::move(lastDrawsBefore);
  accesses = std::move(accessesBefore);
  effects.truncate(effectsAtFirst);
  ofOneExample.insert(made.begin() + firstMade, made.end());

  for (Datum &datum : state) {
    FailureOr<Datum> known = countOut(datum, loop.node);
    if (failed(known))
      return failure();
    datum = *known;
  }
  for (int64_t number = 0; number < iterations; ++number) {
    Results next = call(loop.node, loop.body, state, loop.prefix(number));
    if (failed(next))
      return failure();
    if (next->size() != state.size())
      return fail(loop.node) << "has a body with " << next->size() << " results for " << state.size() << " variables",
             failure();
    state = std::move(*next);
  }
  return state;
}

StraightLine::Results StraightLine::runExamples(Loop &loop, Data state, Value count) {
  const Node &node = loop.node;
  LoopVariables variables(*this, loop, state);
  Type i32 = builder.getI32Type();
  if (llvm::cast<TensorType>(count.getType()).getElementType() != i32)
    count = make<dfg::CastOp>(node.name + "/count", i32, count);
  Iteration own;
  own.count = count;
  own.numbers = count ? make<dfg::RangeOp>(node.name + "/examples", i32, getInt32(0), count, getInt32(1)) : Value();
  own.number =
      own.numbers ? make<dfg::GatherV2Op>(node.name + "/example", i32, own.numbers, getInt32(0), getInt32(0)) : Value();
  if (!own.number)
    return failure();
  ranges[own.number].least = 0;
  // The gradient's iterations take what the loop's have left, in the opposite order.
  const bool isBackward = llvm::any_of(loop.body.getBody().front(), [](Operation &op) {
    return getKind(&op) == "TensorListPopBack" || getKind(&op) == "StackPopV2";
  });
  Value ordinal = own.number;
  if (isBackward) {
    Value last = make<dfg::SubOp>(node.name + "/last", i32, count, getInt32(1));
    ordinal = last ? make<dfg::SubOp>(node.name + "/ordinal", i32, last, own.number) : Value();
  }

  // What an iteration begins with.
  const size_t firstMade = made.size();
  Data before(state.size());
  for (auto [index, datum] : llvm::enumerate(state)) {
    if (datum.container || variables.isCarried(index)) {
      before[index] = datum;
      continue;
    }
    if (!datum.value)
      return fail(node) << "takes an element that was never written", failure();
    Type element = llvm::cast<TensorType>(datum.value.getType()).getElementType();
    if (std::optional<int64_t> step = variables.getCounterStep(index)) {
      Value value = element == i32 ? ordinal : make<dfg::CastOp>(node.name + "/counter", element, ordinal);
      if (value && *step != 1)
        value = make<dfg::MulOp>(node.name + "/counter", element, value, getInteger(element, *step));
      if (value && getConstant(datum) != 0)
        value = make<dfg::AddV2Op>(node.name + "/counter", element, datum.value, value);
      before[index] = Datum(value);
    } else {
      // A value that nothing is known of but its shape.
      Value only = make<dfg::ExpandDimsOp>(node.name + "/carried", element, datum.value, getInt32(0));
      before[index] =
          Datum(only ? make<dfg::GatherV2Op>(node.name + "/carried", element, only, own.number, getInt32(0)) : Value());
    }
    if (!before[index].value)
      return failure();
    if (isZero(datum.value))
      own.zeros.insert(before[index].value);
  }
  auto stacksBefore = stacks;
  Iteration *outer = iteration;
  iteration = &own;
  Results after = call(node, loop.body, before, node.name + "/each/");
  iteration = outer;
  if (failed(after))
    return failure();
  if (after->size() != state.size())
    return fail(node) << "has a body with " << after->size() << " results for " << state.size() << " variables",
           failure();

  // What it became.
  SmallVector<Operation *> nodes(made.begin() + firstMade, made.end());
  llvm::DenseSet<Value> carried, behindCarried;
  for (auto [index, datum] : llvm::enumerate(before))
    if (!state[index].container && !variables.isCarried(index) && !variables.getCounterStep(index))
      carried.insert(datum.value);
  for (Operation *op : nodes) {
    const bool draws = op->hasTrait<dfg::DrawsNumbers>() && !op->hasAttr("generator");
    if (!isMemoryEffectFree(op) && !op->hasTrait<dfg::ReadsVariable>() && !llvm::isa<dfg::GroupOp>(op) && !draws)
      return fail(node) << "is a loop over the examples of a batch in which node '" << dfg::getNodeName(op)
                        << "' has effects, or draws random numbers with a seed; distc makes one operation on all "
                           "examples of such a loop: do that in front of it",
             failure();
    if (llvm::any_of(op->getOperands(),
                     [&](Value operand) { return carried.contains(operand) || behindCarried.contains(operand); }))
      behindCarried.insert(op->result_begin(), op->result_end());
  }
  for (Value value : carried)
    behindCarried.insert(value);
  Examples examples(builder, shapes, nodes, own.number, own.numbers);
  ofOneExample.insert(nodes.begin(), nodes.end());
  dependOnExample.insert(own.number.getDefiningOp());
  for (Operation *op : nodes)
    if (llvm::any_of(op->getResults(), [&](Value result) { return examples.dependsOnExample(result); }))
      dependOnExample.insert(op);
  size_t noted = 0;
  auto note = [&](Value value) -> FailureOr<Value> {
    for (; noted < examples.made.size(); ++noted)
      if (failed(infer(examples.made[noted])))
        return failure();
    if (!value)
      return fail(node)
                 << "is a loop over the examples of a batch, of which distc makes operations on all of them at once: "
                 << examples.getReason() << ". Write it as an operation on the whole batch",
             failure();
    return value;
  };
  auto refuse = [&]() -> Results {
    return fail(node)
               << "is a loop over the examples of a batch whose iterations depend on each other; distc has no code "
                  "for that: only sums go from one to the next",
           failure();
  };
  if (own.takesLast && !isBackward)
    return refuse();
  // The values of all examples in the place of one's.
  auto getAll = [&](auto &self, Datum datum) -> FailureOr<Datum> {
    if (datum.value) {
      if (behindCarried.contains(datum.value))
        return (void)refuse(), failure();
      // One for all stays one.
      if (Value one = examples.getSame(datum.value)) {
        if (failed(note(one)))
          return failure();
        Value same =
            make<dfg::IdentityOp>(node.name + "/same", llvm::cast<TensorType>(one.getType()).getElementType(), one);
        sameForAll.insert(same);
        return datumIfMade(same);
      }
      FailureOr<Value> all = note(examples.getAll(datum.value));
      return failed(all) ? FailureOr<Datum>(failure()) : FailureOr<Datum>(*all);
    }
    if (!datum.container)
      return datum;
    if (stacks.contains(datum.container.get()))
      return datum;
    auto all = std::make_shared<Container>(*datum.container);
    // What the other iterations set is theirs to take.
    if (all->examples) {
      if (!all->own.isUnset()) {
        FailureOr<Datum> set = self(self, all->own);
        if (failed(set))
          return failure();
        return Datum(std::shared_ptr<const Container>(makeExamples(*all, all->examples, *set)));
      }
      const Value elements = all->elements[0].value;
      if (all->elements[0].container ||
          (elements && (examples.dependsOnExample(elements) || behindCarried.contains(elements))))
        return fail(node) << "is a loop over the examples of a batch that makes a list of lists of them", failure();
      return datum;
    }
    SmallVector<Value *> values = {&all->length, &all->hasValue, &all->predicate, &all->like};
    for (Value *value : values)
      if (*value) {
        FailureOr<Datum> found = self(self, Datum(*value));
        if (failed(found))
          return failure();
        *value = found->value;
      }
    SmallVector<Datum *> parts = {&all->chosen, &all->otherwise};
    for (Datum &element : all->elements)
      parts.push_back(&element);
    for (Datum *part : parts) {
      FailureOr<Datum> found = self(self, *part);
      if (failed(found))
        return failure();
      *part = *found;
    }
    return Datum(std::shared_ptr<const Container>(all));
  };

  // A list's own element, or what was added to it, is one of each example.
  auto join = [&](const Container &old, const Container &now) -> FailureOr<std::shared_ptr<const Container>> {
    if (now.examples) {
      if (now.own.isUnset())
        return std::make_shared<const Container>(now);
      FailureOr<Datum> all = getAll(getAll, now.own);
      if (failed(all))
        return failure();
      return std::shared_ptr<const Container>(makeExamples(now, now.examples, *all));
    }
    if (old.examples || (now.elements.size() == old.elements.size() && now.elements == old.elements))
      return std::make_shared<const Container>(now);
    // What is added in the opposite order would have another.
    if (!old.elements.empty() || now.elements.size() != 1 || now.length || isBackward)
      return (void)refuse(), failure();
    FailureOr<Datum> all = getAll(getAll, now.elements[0]);
    if (failed(all))
      return failure();
    return std::shared_ptr<const Container>(makeExamples(now, count, *all));
  };
  const auto nothing = std::make_shared<const Container>();
  for (auto &[handle, now] : stacks) {
    std::shared_ptr<const Container> old = stacksBefore.lookup(handle);
    if (old == now)
      continue;
    // Each example has its own of those that were made here.
    if (!old)
      old = nothing;
    auto all = std::make_shared<Container>(*now);
    // Each has taken what it had added.
    if (old->examples ? !now->elements.empty() : isBackward || !old->elements.empty() || now->length != old->length)
      return refuse();
    all->examples = old->examples ? Value() : count;
    for (auto [element, guard] : llvm::zip(all->elements, all->guards)) {
      FailureOr<Datum> added = getAll(getAll, element);
      if (failed(added))
        return failure();
      element = *added;
      for (auto &entry : guard) {
        FailureOr<Datum> predicate = getAll(getAll, Datum(entry.first));
        if (failed(predicate))
          return failure();
        entry.first = predicate->value;
      }
    }
    now = all;
  }
  Data results = state;
  for (auto [index, result] : llvm::enumerate(results)) {
    const Datum &datum = (*after)[index];
    if (variables.isCarried(index))
      continue;
    if (state[index].container || datum.container) {
      // Flows of gradients begin as zero.
      if (!datum.container ||
          (!state[index].container && (!isZero(state[index].value) || datum.container->own.isUnset())))
        return refuse();
      if (stacks.contains(datum.container.get()))
        continue;
      auto joined = join(state[index].container ? *state[index].container : *nothing, *datum.container);
      if (failed(joined))
        return failure();
      result = Datum(*joined);
      continue;
    }
    Type element = llvm::cast<TensorType>(result.value.getType()).getElementType();
    if (std::optional<int64_t> step = variables.getCounterStep(index)) {
      Value added = element == i32 ? count : make<dfg::CastOp>(node.name + "/end", element, count);
      if (added && *step != 1)
        added = make<dfg::MulOp>(node.name + "/end", element, added, getInteger(element, *step));
      if (added && getConstant(result) != 0)
        added = make<dfg::AddV2Op>(node.name + "/end", element, result.value, added);
      if (!added)
        return failure();
      result = Datum(added);
      continue;
    }
    SmallVector<Value> addends;
    auto dependsOnCarried = [&](Value value) { return behindCarried.contains(value); };
    if (!dependsOnCarried(datum.value)) {
      // What the last one leaves.
      if (!examples.dependsOnExample(datum.value)) {
        result = datum;
        continue;
      }
      FailureOr<Value> all = note(examples.getAll(datum.value));
      Value last = isBackward ? getInt32(0) : make<dfg::SubOp>(node.name + "/last", i32, count, getInt32(1));
      if (failed(all) || !last)
        return failure();
      result = Datum(make<dfg::GatherV2Op>(node.name + "/last", element, *all, last, getInt32(0)));
      if (!result.value)
        return failure();
      continue;
    }
    if (!findAddends(datum.value, before[index].value, dependsOnCarried, addends))
      return refuse();
    for (Value addend : addends) {
      FailureOr<Value> sum = note(examples.getSum(addend));
      if (failed(sum))
        return failure();
      FailureOr<Datum> total = add(result, Datum(*sum), node);
      if (failed(total))
        return failure();
      result = *total;
    }
  }
  return results;
}

} // namespace distc
