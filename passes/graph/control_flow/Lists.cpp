//===- Lists.cpp - TensorLists and stacks, element by element -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/control_flow/StraightLine.h"

using namespace mlir;

namespace distc {

/// As many elements as a list can have.
static constexpr int64_t kMaxElements = 1 << 20;

static std::shared_ptr<Container> copyOf(const Container &list) { return std::make_shared<Container>(list); }
// ---- What operands say ----------------------------------------------------------------------------------------------

FailureOr<const Container *> StraightLine::getList(const Node &node, unsigned operand) {
  if (!node.operands[operand].container)
    return fail(node) << "takes operand " << operand
                      << ", which is not known to be a list, an optional or a tensor array",
           failure();
  return node.operands[operand].container.get();
}

FailureOr<int64_t> StraightLine::getIndex(const Node &node, unsigned operand, StringRef what) {
  std::optional<int64_t> known = getConstant(node.operands[operand]);
  std::optional<dfg::Dims> symbolic =
      node.operands[operand].value ? shapes.getElements(node.operands[operand].value) : std::nullopt;
  if (!known && symbolic && symbolic->size() == 1 && symbolic->front().dependsOnBatch())
    return fail(node) << "takes " << what
                      << " that is the batch's: distc has no code for a loop over the examples of a batch",
           failure();
  if (!known)
    return fail(node) << "takes " << what << " that depends on data; lists are resolved when the graph is compiled",
           failure();
  if (*known > kMaxElements)
    return fail(node) << "takes " << what << " " << *known << "; a list can have " << kMaxElements << " elements",
           failure();
  return *known;
}

bool StraightLine::countsKnown(Value shape) const {
  std::optional<dfg::Dims> sizes = shapes.getElements(shape);
  return sizes && llvm::none_of(*sizes, [](dfg::Dim size) { return size.isConstant() && size.getConstant() < 0; });
}

std::shared_ptr<Container> StraightLine::makeList(const Node &node, Value elementShape) {
  auto list = std::make_shared<Container>();
  for (StringRef name : {"element_dtype", "dtype", "elem_type"})
    if (auto type = node.getAttr<TypeAttr>(name))
      list->elementType = type.getValue();
  list->elementShape = elementShape;
  return list;
}

FailureOr<Data> StraightLine::unpack(const Node &node, Value tensor) {
  std::optional<dfg::Dims> sizes = shapes.getShape(tensor);
  if (!sizes || sizes->empty() || !(*sizes)[0].isConstant() || (*sizes)[0].getConstant() > kMaxElements)
    return fail(node) << "takes apart a tensor along its first axis, whose size "
                      << (sizes && !sizes->empty() && (*sizes)[0].dependsOnBatch()
                              ? "is the batch's: distc has no code for a loop over the examples of a batch"
                              : "is not known when it is compiled (--feed NAME=SHAPE fixes a placeholder's)"),
           failure();
  SmallVector<Value> &parts = unpacked[tensor];
  const int64_t count = (*sizes)[0].getConstant();
  if (parts.empty() && count > 0) {
    Type element = llvm::cast<TensorType>(tensor.getType()).getElementType();
    SmallVector<Type> types(count, UnrankedTensorType::get(element));
    auto op = dfg::UnpackOp::create(builder, locate(node.name + "/unstack"), types, tensor, 0);
    if (failed(infer(op)))
      return failure();
    parts.append(op->result_begin(), op->result_end());
  }
  return Data(parts.begin(), parts.end());
}

FailureOr<Value> StraightLine::getLength(const Node &, const Container &list) {
  Value length = list.length     ? list.length
                 : list.examples ? list.examples
                 : list.counted  ? list.counted
                                 : countElements(list);
  return ifMade(length);
}

FailureOr<SmallVector<Value>> StraightLine::getElements(const Node &node, const Container &list) {
  if (list.examples)
    return fail(node) << "joins the elements of a list that has one for each example of the batch", failure();
  if (list.length)
    return fail(node) << "joins a list whose length depends on data; distc has no code for a tensor of such a size",
           failure();
  SmallVector<Value> values;
  for (size_t i = 0; i < list.elements.size(); ++i) {
    FailureOr<Datum> element = getElement(list, i, node);
    if (failed(element))
      return failure();
    if (!element->value)
      return fail(node) << "joins the elements of a list of lists", failure();
    values.push_back(element->value);
  }
  return values;
}

FailureOr<Value> StraightLine::pack(const Node &node, const Container &list) {
  if (list.examples)
    return packExamples(node, list);
  FailureOr<SmallVector<Value>> elements = getElements(node, list);
  if (failed(elements))
    return failure();
  ArrayRef<Value> values = *elements;
  if (values.empty()) {
    std::optional<dfg::Dims> sizes = list.elementShape ? shapes.getElements(list.elementShape) : std::nullopt;
    SmallVector<int64_t> extents = {0};
    for (dfg::Dim size : sizes.value_or(dfg::Dims()))
      extents.push_back(size.isConstant() && size.getConstant() >= 0 ? size.getConstant() : -1);
    if (!sizes || llvm::is_contained(extents, -1) || !list.elementType || !list.elementType.isIntOrFloat())
      return fail(node) << "joins a list without elements, whose shape is not known", failure();
    auto type = RankedTensorType::get(extents, list.elementType);
    auto empty = dfg::ConstOp::create(builder, locate(node.name + "/empty"), type,
                                      DenseElementsAttr::get(type, ArrayRef<Attribute>()));
    return failed(infer(empty)) ? FailureOr<Value>(failure()) : FailureOr<Value>(empty.getResult());
  }
  // What was taken apart is there as a whole.
  if (auto unpack = values[0].getDefiningOp<dfg::UnpackOp>();
      unpack && llvm::equal(unpack.getParts(), values) && unpack.getAxis() == 0)
    return uncounted.contains(unpack.getValue()) ? uncounted[unpack.getValue()] : unpack.getValue();
  Value packed = make<dfg::PackOp>(node.name + "/stack", llvm::cast<TensorType>(values[0].getType()).getElementType(),
                                   ValueRange(values), 0);
  return packed && list.counted ? uncount(node, packed, list.counted) : ifMade(packed);
}

FailureOr<Value> StraightLine::concatRows(const Node &node, const Container &list) {
  FailureOr<SmallVector<Value>> elements = getElements(node, list);
  if (failed(elements))
    return failure();
  ArrayRef<Value> values = *elements;
  if (values.empty())
    return fail(node) << "joins the rows of a list without elements", failure();
  if (values.size() == 1)
    return values[0];
  Value joined =
      make<dfg::ConcatV2Op>(node.name + "/concat", llvm::cast<TensorType>(values[0].getType()).getElementType(),
                            ValueRange(values), getInt32(0));
  return ifMade(joined);
}

FailureOr<Datum> StraightLine::getAt(const Node &node, const Container &list, const Datum &index) {
  if (list.examples)
    return getExample(list, index, node);
  if (std::optional<int64_t> known = getConstant(index)) {
    const std::string what =
        "takes element " + std::to_string(*known) + " of a list of " + std::to_string(list.elements.size());
    if (*known >= 0 && *known < static_cast<int64_t>(list.elements.size()))
      return getElement(list, *known, node);
    // In a branch that data choose it may be that nothing is taken.
    if (!active || list.elements.empty())
      return fail(node) << what, failure();
    if (failed(assertNot(active, node.name + "/is_there", "'" + node.name + "' " + what)))
      return failure();
    FailureOr<Datum> any = getElement(list, 0, node);
    if (failed(any) || !any->value)
      return fail(node) << what, failure();
    Value zeros = zerosLike(any->value, node.name + "/zeros");
    return datumIfMade(zeros);
  }
  if (!index.value)
    return failure();
  // All of them in one tensor, once for every such index.
  Value &whole = packed[&list];
  if (!whole) {
    Container all = list;
    all.length = {};
    FailureOr<Value> joined = pack(node, all);
    if (failed(joined))
      return failure();
    whole = *joined;
  }
  Value item = make<dfg::GatherV2Op>(node.name + "/gather", llvm::cast<TensorType>(whole.getType()).getElementType(),
                                     whole, index.value, getInt32(0));
  return datumIfMade(item);
}

FailureOr<std::shared_ptr<Container>> StraightLine::setAt(const Node &node, const Container &list, const Datum &index,
                                                          const Datum &item) {
  auto changed = copyOf(list);
  if (list.examples) {
    if (!isOwn(index))
      return fail(node) << "sets an element of a list that has one for each example of the batch, and not in the "
                           "iteration of that example",
             failure();
    changed->own = item;
    return changed;
  }
  if (std::optional<int64_t> known = getConstant(index)) {
    auto resize = node.getAttr<BoolAttr>("resize_if_index_out_of_bounds");
    if (*known >= static_cast<int64_t>(list.elements.size()) && *known < kMaxElements &&
        ((resize && resize.getValue()) || list.grows))
      changed->elements.resize(*known + 1), changed->counted = {};
    const std::string what =
        "sets element " + std::to_string(*known) + " of a list of " + std::to_string(changed->elements.size());
    if (*known >= 0 && *known < static_cast<int64_t>(changed->elements.size()))
      changed->elements[*known] = item;
    else if (!active)
      return fail(node) << what, failure();
    else if (failed(assertNot(active, node.name + "/is_there", "'" + node.name + "' " + what)))
      return failure();
    return changed;
  }
  if (!index.value || !item.value)
    return fail(node) << "sets an element of a list by an index that is not known", failure();
  for (size_t i = 0; i < list.elements.size(); ++i) {
    Value isHere = equal(index.value, i, node.name + "/is_" + std::to_string(i));
    Datum old = list.elements[i].isUnset() ? Datum(zerosLike(item.value, node.name + "/zeros")) : list.elements[i];
    FailureOr<Datum> element = isHere ? select(isHere, item, old, node) : FailureOr<Datum>(failure());
    if (failed(element))
      return failure();
    changed->elements[i] = *element;
  }
  return changed;
}

// ---- TensorList -----------------------------------------------------------------------------------------------------

StraightLine::Results StraightLine::emptyList(Node &node) {
  return Data{Datum(makeList(node, node.operands[0].value))};
}

StraightLine::Results StraightLine::reserve(Node &node) {
  if (countsExamples(node.operands[1].value))
    return Data{Datum(makeExamples(*makeList(node, node.operands[0].value), node.operands[1].value, {}))};
  FailureOr<int64_t> count = getIndex(node, 1, "a number of elements");
  if (failed(count) || *count < 0)
    return failure();
  auto list = makeList(node, node.operands[0].value);
  list->elements.resize(*count);
  return Data{Datum(list)};
}

StraightLine::Results StraightLine::fromTensor(Node &node) {
  FailureOr<Value> count = countRows(node, node.operands[0].value);
  if (failed(count))
    return failure();
  if (*count)
    return Data{Datum(makeExamples(*makeList(node, node.operands[1].value), *count, node.operands[0]))};
  FailureOr<Data> parts = unpack(node, node.operands[0].value);
  if (failed(parts))
    return failure();
  auto list = makeList(node, node.operands[1].value);
  list->elements = *parts;
  return Data{Datum(list)};
}

StraightLine::Results StraightLine::stack(Node &node) {
  FailureOr<const Container *> list = getList(node, 0);
  if (failed(list))
    return failure();
  Container shaped = **list;
  if (node.operands.size() > 1 && node.operands[1].value && shaped.elements.size() + !shaped.elementShape)
    if (std::optional<dfg::Dims> sizes = shapes.getElements(node.operands[1].value))
      if (llvm::all_of(*sizes, [](dfg::Dim size) { return size.isConstant() && size.getConstant() >= 0; }))
        shaped.elementShape = node.operands[1].value;
  FailureOr<Value> packed = pack(node, shaped);
  return failed(packed) ? Results(failure()) : Results(Data{*packed});
}

StraightLine::Results StraightLine::pushBack(Node &node) {
  FailureOr<const Container *> list = getList(node, 0);
  if (failed(list))
    return failure();
  if ((*list)->length || (*list)->examples)
    return fail(node) << "adds to a list whose length depends on data", failure();
  auto longer = copyOf(**list);
  longer->elements.push_back(node.operands[1]);
  longer->counted = {};
  return Data{Datum(longer)};
}

StraightLine::Results StraightLine::popBack(Node &node) {
  if (failed(countOutOperand(node, 0)))
    return failure();
  FailureOr<const Container *> list = getList(node, 0);
  if (failed(list))
    return failure();
  if ((*list)->length)
    return fail(node) << "takes the last element of a list whose length depends on data", failure();
  if ((*list)->examples) {
    FailureOr<Datum> own = getOwn(**list, node);
    if (iteration)
      iteration->takesLast = true;
    auto rest = copyOf(**list);
    rest->examples = {};
    rest->elements.clear();
    return failed(own) ? Results(failure()) : Results(Data{Datum(rest), *own});
  }
  if ((*list)->elements.empty())
    return fail(node) << "takes the last element of a list that has none", failure();
  FailureOr<Datum> last = getElement(**list, (*list)->elements.size() - 1, node);
  if (failed(last))
    return failure();
  auto shorter = copyOf(**list);
  shorter->elements.pop_back();
  return Data{Datum(shorter), *last};
}

StraightLine::Results StraightLine::setItem(Node &node) {
  if (failed(countOutOperand(node, 0)))
    return failure();
  FailureOr<const Container *> list = getList(node, 0);
  if (failed(list))
    return failure();
  FailureOr<std::shared_ptr<Container>> changed = setAt(node, **list, node.operands[1], node.operands[2]);
  return failed(changed) ? Results(failure()) : Results(Data{Datum(*changed)});
}

StraightLine::Results StraightLine::getItem(Node &node) {
  if (failed(countOutOperand(node, 0)))
    return failure();
  FailureOr<const Container *> list = getList(node, 0);
  if (failed(list))
    return failure();
  std::optional<int64_t> index = getConstant(node.operands[1]);
  if ((*list)->examples) {
    Container shaped = **list;
    if (!shaped.like && node.operands[2].value && countsKnown(node.operands[2].value))
      shaped.elementShape = node.operands[2].value;
    FailureOr<Datum> item = getExample(shaped, node.operands[1], node);
    return failed(item) ? Results(failure()) : Results(Data{*item});
  }
  if (index && *index >= 0 && *index < static_cast<int64_t>((*list)->elements.size()) &&
      (*list)->elements[*index].isUnset() && !(*list)->like) {
    // The node may know more of the shape than the list.
    Container shaped = **list;
    if (node.operands[2].value && countsKnown(node.operands[2].value))
      shaped.elementShape = node.operands[2].value;
    FailureOr<Datum> zeros = getElement(shaped, *index, node);
    return failed(zeros) ? Results(failure()) : Results(Data{*zeros});
  }
  kept.push_back(node.operands[0].container);
  FailureOr<Datum> item = getAt(node, **list, node.operands[1]);
  return failed(item) ? Results(failure()) : Results(Data{*item});
}

StraightLine::Results StraightLine::length(Node &node) {
  FailureOr<const Container *> list = getList(node, 0);
  FailureOr<Value> length = failed(list) ? FailureOr<Value>(failure()) : getLength(node, **list);
  return failed(length) ? Results(failure()) : Results(Data{*length});
}

StraightLine::Results StraightLine::elementShape(Node &node) {
  FailureOr<const Container *> list = getList(node, 0);
  if (failed(list))
    return failure();
  Type element = llvm::cast<TensorType>(node.op->getResult(0).getType()).getElementType();
  // An element that is there knows best.
  Value like = (*list)->like;
  if ((*list)->examples) {
    FailureOr<Datum> own = getOwn(**list, node);
    if (failed(own))
      return failure();
    like = own->value;
  }
  for (const Datum &datum : (*list)->elements)
    if (datum.value && !(*list)->examples)
      like = datum.value;
  Value shape = like ? make<dfg::ShapeOp>(node.name + "/shape", element, like) : (*list)->elementShape;
  if (!shape)
    return fail(node) << "asks for the shape of a list's elements, which is not known", failure();
  if (Value known = getKnown(shape))
    shape = known;
  if (llvm::cast<TensorType>(shape.getType()).getElementType() != element)
    shape = make<dfg::CastOp>(node.name + "/cast", element, shape);
  return shape ? Results(Data{shape}) : Results(failure());
}

StraightLine::Results StraightLine::resize(Node &node) {
  FailureOr<const Container *> list = getList(node, 0);
  if (succeeded(list) && ((*list)->examples || (*list)->counted) && hasAsMany(**list, node.operands[1].value))
    return Data{node.operands[0]};
  FailureOr<int64_t> count = getIndex(node, 1, "a number of elements");
  if (failed(list) || failed(count) || *count < 0)
    return failure();
  auto resized = copyOf(**list);
  resized->elements.resize(*count);
  resized->length = resized->counted = {};
  return Data{Datum(resized)};
}

StraightLine::Results StraightLine::concat(Node &node) {
  FailureOr<const Container *> list = getList(node, 0);
  return failed(list) ? Results(failure()) : concatWithLengths(node, **list);
}

StraightLine::Results StraightLine::concatWithLengths(const Node &node, const Container &list) {
  FailureOr<Value> joined = concatRows(node, list);
  if (failed(joined))
    return failure();
  SmallVector<int64_t> lengths;
  for (const Datum &element : list.elements) {
    std::optional<dfg::Dims> sizes = element.value ? shapes.getShape(element.value) : std::nullopt;
    bool isKnown = sizes && !sizes->empty() && (*sizes)[0].isConstant();
    if (!isKnown && !node.op->getResult(1).use_empty())
      return fail(node) << "gives the lengths of elements, which are not known when it is compiled", failure();
    lengths.push_back(isKnown ? (*sizes)[0].getConstant() : 0);
  }
  return Data{*joined, getVector(builder.getI64Type(), lengths)};
}

FailureOr<Data> StraightLine::splitRows(const Node &node, Value tensor, Value lengths) {
  std::optional<SmallVector<int64_t>> known = shapes.getConstants(lengths);
  if (!known)
    return fail(node) << "splits a tensor by lengths that are not known when it is compiled", failure();
  Type element = llvm::cast<TensorType>(tensor.getType()).getElementType();
  SmallVector<Type> types(known->size(), UnrankedTensorType::get(element));
  auto op = dfg::SplitVOp::create(builder, locate(node.name + "/split"), types, tensor, lengths, getInt32(0));
  if (failed(infer(op)))
    return failure();
  return Data(op->result_begin(), op->result_end());
}

StraightLine::Results StraightLine::split(Node &node) {
  FailureOr<Data> parts = splitRows(node, node.operands[0].value, node.operands[2].value);
  if (failed(parts))
    return failure();
  auto list = makeList(node, node.operands[1].value);
  list->elements = *parts;
  return Data{Datum(list)};
}

StraightLine::Results StraightLine::gather(Node &node) {
  FailureOr<const Container *> list = getList(node, 0);
  std::optional<SmallVector<int64_t>> indices =
      node.operands[1].value ? shapes.getConstants(node.operands[1].value) : std::nullopt;
  if (failed(list))
    return failure();
  if (((*list)->examples || (*list)->counted) && areAll(**list, node.operands[1].value)) {
    FailureOr<Value> packed = pack(node, **list);
    return failed(packed) ? Results(failure()) : Results(Data{*packed});
  }
  if (!indices)
    return fail(node) << "takes elements by indices that are not known when it is compiled", failure();
  Container taken = **list;
  taken.length = taken.counted = {};
  taken.elements.clear();
  for (int64_t index : *indices) {
    if (index < 0 || index >= static_cast<int64_t>((*list)->elements.size()))
      return fail(node) << "takes element " << index << " of a list of " << (*list)->elements.size(), failure();
    taken.elements.push_back((*list)->elements[index]);
  }
  FailureOr<Value> packed = pack(node, taken);
  return failed(packed) ? Results(failure()) : Results(Data{*packed});
}

StraightLine::Results StraightLine::scatter(Node &node) {
  const bool intoExisting = node.kind == "TensorListScatterIntoExistingList";
  Value tensor = node.operands[intoExisting ? 1 : 0].value, at = node.operands[intoExisting ? 2 : 1].value;
  FailureOr<Data> parts = unpack(node, tensor);
  std::optional<SmallVector<int64_t>> indices = shapes.getConstants(at);
  if (failed(parts))
    return failure();
  if (!indices || indices->size() != parts->size())
    return fail(node) << "sets elements by indices that are not known when it is compiled", failure();
  std::shared_ptr<Container> list;
  if (intoExisting) {
    FailureOr<const Container *> old = getList(node, 0);
    if (failed(old))
      return failure();
    list = copyOf(**old);
  } else {
    list = makeList(node, node.operands[2].value);
  }
  int64_t count = list->elements.size();
  if (node.kind == "TensorListScatterV2") {
    FailureOr<int64_t> wanted = getIndex(node, 3, "a number of elements");
    if (failed(wanted))
      return failure();
    count = std::max<int64_t>(count, *wanted);
  }
  for (int64_t index : *indices) {
    if (index < 0 || index >= kMaxElements)
      return fail(node) << "sets element " << index << " of a list", failure();
    count = std::max(count, index + 1);
  }
  list->elements.resize(count);
  for (auto [index, part] : llvm::zip(*indices, *parts))
    list->elements[index] = part;
  return Data{Datum(list)};
}

StraightLine::Results StraightLine::concatLists(Node &node) {
  FailureOr<const Container *> first = getList(node, 0), second = getList(node, 1);
  if (failed(first) || failed(second))
    return failure();
  if ((*first)->length || (*second)->length || (*first)->examples || (*second)->examples)
    return fail(node) << "joins lists whose lengths depend on data", failure();
  auto joined = copyOf(**first);
  joined->counted = {};
  llvm::append_range(joined->elements, (*second)->elements);
  return Data{Datum(joined)};
}

// ---- Stacks, which version-1 loops keep what their gradients need in
// ---------------------------------------------------

StraightLine::Results StraightLine::newStack(Node &node) {
  auto handle = makeList(node, {});
  kept.push_back(handle);
  auto stack = makeList(node, {});
  stack->continuing = continuing;
  stacks[handle.get()] = stack;
  return Data{Datum(handle)};
}

StraightLine::Results StraightLine::stackPush(Node &node) {
  FailureOr<const Container *> handle = getList(node, 0);
  if (failed(handle))
    return failure();
  std::shared_ptr<const Container> &state = stacks[*handle];
  if (!state || state->examples)
    return fail(node) << "takes what is no stack", failure();
  auto longer = copyOf(*state);
  longer->elements.push_back(node.operands[1]);
  longer->guards.push_back(guarded);
  if (continuing != longer->continuing) {
    // A loop that has ended does not go on: what is there comes first.
    if (!continuing)
      return fail(node) << "adds to a stack of a loop that data end, outside of the loop", failure();
    Value old = state->length ? state->length : getInt32(state->elements.size());
    FailureOr<Datum> length = select(continuing, getInt32(longer->elements.size()), old, node);
    if (failed(length))
      return failure();
    longer->length = length->value;
  } else if (longer->length) {
    return fail(node) << "adds to a stack whose length depends on data", failure();
  }
  state = longer;
  return Data{node.operands[1]};
}

StraightLine::Results StraightLine::stackPop(Node &node) {
  FailureOr<const Container *> handle = getList(node, 0);
  if (failed(handle))
    return failure();
  std::shared_ptr<const Container> &state = stacks[*handle];
  if (!state || state->elements.empty())
    return fail(node) << "takes an element of a stack that has none", failure();
  if (state->examples) {
    if (!iteration || !isSameCount(state->examples, iteration->count))
      return fail(node) << "takes an element of a stack that has some for each example of the batch, and not in a loop "
                           "over the examples",
             failure();
    iteration->takesLast = true;
    FailureOr<Datum> own = takeOwn(state->elements.back(), node);
    FailureOr<Guard> guard = takeOwn(state->guards.back(), node);
    if (failed(own) || failed(guard))
      return failure();
    if (continuing != state->continuing || guarded != *guard)
      return fail(node) << "takes an element of a stack under other conditions than it was added", failure();
    auto rest = copyOf(*state);
    rest->elements.pop_back();
    rest->guards.pop_back();
    state = rest;
    return Data{*own};
  }
  if (state->length)
    return fail(node) << "takes the last element of a stack whose length depends on data", failure();
  // Under a condition an element is there only where it was added under the same; it is then the last.
  if (continuing != state->continuing || guarded != state->guards.back())
    return fail(node) << "takes an element of a stack under other conditions than it was added", failure();
  Datum last = state->elements.back();
  auto shorter = copyOf(*state);
  shorter->elements.pop_back();
  shorter->guards.pop_back();
  state = shorter;
  return Data{last};
}

} // namespace distc
