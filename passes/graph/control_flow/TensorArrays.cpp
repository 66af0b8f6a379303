//===- TensorArrays.cpp - TensorArrays, element by element ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What an array holds goes with its flow, a scalar of no meaning that orders reads
// and writes: here the flow is the list. An array of gradients begins with nothing
// for each use of the array; where TensorFlow writes those of all uses to one
// array, it adds their flows, too.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/control_flow/StraightLine.h"

using namespace mlir;

namespace distc {

/// Whether a flow is of those gradients of an array, and not of the array itself.
static bool isOf(const Datum &flow, const Container &gradients) {
  return flow.container && flow.container->arrayOf == gradients.arrayOf && flow.container->source == gradients.source;
}

StraightLine::Results StraightLine::newArray(Node &node) {
  auto array = makeList(node, {});
  if (countsExamples(node.operands[0].value)) {
    array = makeExamples(*array, node.operands[0].value, {});
  } else {
    FailureOr<int64_t> size = getIndex(node, 0, "a number of elements");
    if (failed(size) || *size < 0)
      return failure();
    array->elements.resize(*size);
  }
  auto grows = node.getAttr<BoolAttr>("dynamic_size");
  array->grows = grows && grows.getValue();
  if (auto shape = node.getAttr<dfg::TensorShapeAttr>("element_shape"))
    if (!shape.getUnknownRank() && llvm::all_of(shape.getSizes(), [](int64_t extent) { return extent >= 0; }))
      array->elementShape = getVector(builder.getI32Type(), shape.getSizes());
  kept.push_back(array);
  Datum list = Datum(array);
  return Data{list, list};
}

StraightLine::Results StraightLine::arrayGradient(Node &node) {
  FailureOr<const Container *> handle = getList(node, 0);
  if (failed(handle))
    return failure();
  auto source = node.getAttr<StringAttr>("source");
  StringRef name = source ? source.getValue() : "";
  Datum flow = node.operands[1];
  auto gradients = std::make_shared<Container>(**handle);
  size_t size = flow.container ? flow.container->elements.size() : (*handle)->elements.size();
  if (flow.container && flow.container->counted) {
    gradients->examples = {};
    gradients->counted = flow.container->counted;
  }
  gradients->elements.assign(std::max(size, (*handle)->elements.size()), Datum());
  gradients->like = {};
  auto known = countedOut.find(*handle);
  gradients->arrayOf = known == countedOut.end() ? *handle : known->second;
  gradients->source = name;
  gradients->accumulates = true;
  // Elements of an array that was written know their shape.
  if (flow.container)
    for (const Datum &element : flow.container->elements)
      if (element.value)
        gradients->like = element.value;
  kept.push_back(gradients);
  // The flow of these gradients, or of the array itself, or of nothing yet.
  if (!isOf(flow, *gradients))
    flow = Datum(gradients);
  kept.push_back(flow.container);
  return Data{Datum(gradients), flow};
}

/// TensorFlow hands on the flow of the array itself beside the handle of its gradients: then there are none yet.
FailureOr<const Container *> StraightLine::getArray(Node &node, unsigned flow) {
  const Container *handle = node.operands[0].container.get();
  if (handle && handle->accumulates && !isOf(node.operands[flow], *handle))
    return handle;
  return getList(node, flow);
}

LogicalResult StraightLine::countOutArray(Node &node, unsigned flow) {
  const Container *handle = node.operands[0].container.get();
  const bool isHandle = handle && handle->accumulates && !isOf(node.operands[flow], *handle);
  return countOutOperand(node, isHandle ? 0 : flow);
}

/// Adds a gradient to the element whose number data say.
StraightLine::Results StraightLine::addWhere(Node &node, const Container &array) {
  const Datum &index = node.operands[1], &item = node.operands[2];
  if (!index.value || !item.value)
    return fail(node) << "writes a gradient to an element that is not known", failure();
  auto changed = std::make_shared<Container>(array);
  for (auto [i, element] : llvm::enumerate(changed->elements)) {
    Value isHere = equal(index.value, i, node.name + "/is_" + std::to_string(i));
    Datum old = element.isUnset() ? Datum(zerosLike(item.value, node.name + "/zeros")) : element;
    FailureOr<Datum> total = add(element, item, node);
    if (!isHere || failed(total))
      return failure();
    FailureOr<Datum> chosen = select(isHere, *total, old, node);
    if (failed(chosen))
      return failure();
    element = *chosen;
  }
  return Data{Datum(changed)};
}

StraightLine::Results StraightLine::arrayWrite(Node &node) {
  if (failed(countOutArray(node, 3)))
    return failure();
  FailureOr<const Container *> array = getArray(node, 3);
  if (failed(array))
    return failure();
  Datum item = node.operands[2];
  if ((*array)->accumulates && (*array)->examples) {
    FailureOr<Datum> total = (*array)->own.isUnset() && (*array)->elements[0].isUnset()
                                 ? FailureOr<Datum>(item)
                                 : getExample(**array, node.operands[1], node);
    if (succeeded(total) && total->value != item.value)
      total = add(*total, item, node);
    if (failed(total))
      return failure();
    item = *total;
  } else if ((*array)->accumulates) {
    std::optional<int64_t> index = getConstant(node.operands[1]);
    if (!index)
      return addWhere(node, **array);
    if (*index < 0 || *index >= static_cast<int64_t>((*array)->elements.size())) {
      // Where data choose the branch its read has ended the run, if it was taken (getAt).
      if (!active)
        return fail(node) << "writes a gradient to an element that is not there", failure();
      return Data{Datum(std::make_shared<Container>(**array))};
    }
    FailureOr<Datum> total = add((*array)->elements[*index], item, node);
    if (failed(total))
      return failure();
    item = *total;
  }
  FailureOr<std::shared_ptr<Container>> changed = setAt(node, **array, node.operands[1], item);
  return failed(changed) ? Results(failure()) : Results(Data{Datum(*changed)});
}

StraightLine::Results StraightLine::arrayRead(Node &node) {
  if (failed(countOutArray(node, 2)))
    return failure();
  FailureOr<const Container *> array = getArray(node, 2);
  if (failed(array))
    return failure();
  kept.push_back(node.operands[2].container);
  FailureOr<Datum> item = getAt(node, **array, node.operands[1]);
  return failed(item) ? Results(failure()) : Results(Data{*item});
}

StraightLine::Results StraightLine::arrayGather(Node &node) {
  FailureOr<const Container *> array = getArray(node, 2);
  if (failed(array))
    return failure();
  std::optional<SmallVector<int64_t>> indices =
      node.operands[1].value ? shapes.getConstants(node.operands[1].value) : std::nullopt;
  Container taken = **array;
  if ((taken.examples || taken.counted) && areAll(taken, node.operands[1].value)) {
    FailureOr<Value> packed = pack(node, taken);
    return failed(packed) ? Results(failure()) : Results(Data{*packed});
  }
  taken.counted = {};
  if (indices) {
    taken.elements.clear();
    for (int64_t index : *indices) {
      if (index < 0 || index >= static_cast<int64_t>((*array)->elements.size()))
        return fail(node) << "takes element " << index << " of an array of " << (*array)->elements.size(), failure();
      taken.elements.push_back((*array)->elements[index]);
    }
  } else if (std::optional<dfg::Dims> count =
                 node.operands[1].value ? shapes.getShape(node.operands[1].value) : std::nullopt;
             !count || count->size() != 1 || !(*count)[0].isConstant() ||
             (*count)[0].getConstant() != static_cast<int64_t>(taken.elements.size()) ||
             !node.operands[1].value.getDefiningOp<dfg::RangeOp>()) {
    // Indices of many elements are not followed; a range of as many as there are is all of them, in order.
    return fail(node) << "takes elements by indices that are not known when it is compiled", failure();
  }
  FailureOr<Value> packed = pack(node, taken);
  return failed(packed) ? Results(failure()) : Results(Data{*packed});
}

StraightLine::Results StraightLine::arrayScatter(Node &node) {
  FailureOr<const Container *> array = getArray(node, 3);
  if (succeeded(array) && (*array)->examples && areAll(**array, node.operands[1].value)) {
    const Datum &old = (*array)->elements[0];
    FailureOr<Datum> rows =
        (*array)->accumulates ? add(old, node.operands[2], node) : FailureOr<Datum>(node.operands[2]);
    return failed(rows) ? Results(failure()) : Results(Data{Datum(makeExamples(**array, (*array)->examples, *rows))});
  }
  const bool isCounted = succeeded(array) && (*array)->counted && areAll(**array, node.operands[1].value);
  FailureOr<Data> parts = failed(array) ? FailureOr<Data>(failure())
                          : isCounted   ? unpackExamples(node, node.operands[2].value, (*array)->elements.size())
                                        : unpack(node, node.operands[2].value);
  if (failed(parts))
    return failure();
  std::optional<SmallVector<int64_t>> indices = shapes.getConstants(node.operands[1].value);
  auto changed = std::make_shared<Container>(**array);
  auto range = node.operands[1].value.getDefiningOp<dfg::RangeOp>();
  if (!indices && range && getConstant(range.getStart()) == 0 && getConstant(range.getDelta()) == 1) {
    indices.emplace();
    for (size_t i = 0; i < parts->size(); ++i)
      indices->push_back(i);
  }
  if (!indices || indices->size() != parts->size())
    return fail(node) << "sets elements by indices that are not known when it is compiled", failure();
  for (auto [index, part] : llvm::zip(*indices, *parts)) {
    if (index < 0)
      return fail(node) << "sets element " << index << " of an array", failure();
    if (index >= static_cast<int64_t>(changed->elements.size()))
      changed->elements.resize(index + 1), changed->counted = {};
    Datum &element = changed->elements[index];
    FailureOr<Datum> item = changed->accumulates ? add(element, part, node) : FailureOr<Datum>(part);
    if (failed(item))
      return failure();
    element = *item;
  }
  return Data{Datum(changed)};
}

StraightLine::Results StraightLine::arrayConcat(Node &node) {
  FailureOr<const Container *> array = getArray(node, 1);
  return failed(array) ? Results(failure()) : concatWithLengths(node, **array);
}

StraightLine::Results StraightLine::arraySplit(Node &node) {
  FailureOr<const Container *> array = getArray(node, 3);
  FailureOr<Data> parts =
      failed(array) ? FailureOr<Data>(failure()) : splitRows(node, node.operands[1].value, node.operands[2].value);
  if (failed(parts))
    return failure();
  auto changed = std::make_shared<Container>(**array);
  if (changed->elements.size() < parts->size())
    changed->elements.resize(parts->size());
  for (auto [index, part] : llvm::enumerate(*parts)) {
    FailureOr<Datum> item = changed->accumulates ? add(changed->elements[index], part, node) : FailureOr<Datum>(part);
    if (failed(item))
      return failure();
    changed->elements[index] = *item;
  }
  return Data{Datum(changed)};
}

StraightLine::Results StraightLine::arraySize(Node &node) {
  FailureOr<const Container *> array = getArray(node, 1);
  if (failed(array))
    return failure();
  Value count = (*array)->examples  ? (*array)->examples
                : (*array)->counted ? (*array)->counted
                                    : countElements(**array);
  return count ? Results(Data{count}) : Results(failure());
}

} // namespace distc
