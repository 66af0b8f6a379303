//===- LayoutShapes.cpp - Shapes of what moves elements ------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeSupport.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace distc::dfg::shapes {

LogicalResult reshape(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto target = context.getElements(op->getOperand(1));
  if (auto elements = context.getElements(op->getOperand(0)))
    context.setElements(op->getResult(0), *elements);
  if (!target) {
    // Only the rank is known.
    auto length = context.getShape(op->getOperand(1));
    if (length && length->size() == 1 && (*length)[0].isConstant() &&
        (*length)[0].getConstant() > static_cast<int64_t>(kMaxRank))
      return op->emitOpError() << "gives " << (*length)[0].getConstant() << " axes to a tensor, which can have "
                               << kMaxRank;
    if (length && length->size() == 1 && (*length)[0].isConstant() && !context.getShape(op->getResult(0)))
      context.setShape(op->getResult(0), Dims((*length)[0].getConstant()));
    return success();
  }
  Dims sizes = *target;
  Dim rest = 1;
  int64_t open = -1;
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    if (!size.isConstant() || size.getConstant() != -1) {
      rest = rest * size;
      continue;
    }
    if (open >= 0)
      return op->emitOpError("leaves two sizes open (-1)");
    open = axis;
  }
  if (input) {
    Dim count = product(*input);
    if (open >= 0) {
      sizes[open] = floorDiv(count, rest);
      if (count.isConstant() && rest.isConstant() &&
          (rest.getConstant() == 0 ? count.getConstant() != 0 : count.getConstant() % rest.getConstant() != 0))
        return op->emitOpError() << "cannot give shape " << print(*target) << " to a tensor of shape " << print(*input);
    } else if (count.isConstant() && rest.isConstant() && !(count == rest)) {
      return op->emitOpError() << "cannot give shape " << print(*target) << " to a tensor of shape " << print(*input);
    }
  } else if (open >= 0) {
    sizes[open] = Dim();
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult transpose(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto permutation = context.getConstants(op->getOperand(1));
  if (!input || !permutation)
    return success();
  if (permutation->size() != input->size())
    return op->emitOpError() << "permutes " << permutation->size() << " axes of a tensor of shape " << print(*input);
  Dims sizes;
  SmallVector<bool> taken(input->size());
  for (int64_t axis : *permutation) {
    FailureOr<int64_t> from = normalizeAxis(op, axis, input->size());
    if (failed(from))
      return failure();
    if (taken[*from])
      return op->emitOpError() << "names axis " << *from << " twice";
    taken[*from] = true;
    sizes.push_back((*input)[*from]);
  }
  // The gradient of Tile interleaves sizes by a transpose.
  auto elements = context.getElements(op->getOperand(0));
  if (elements && sizes.size() == 2 && Dim(elements->size()) == sizes[0] * sizes[1]) {
    bool swaps = permutation->front() != 0 && permutation->front() != -2;
    int64_t rows = sizes[0].getConstant(), columns = sizes[1].getConstant();
    Dims moved;
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j)
        moved.push_back((*elements)[swaps ? j * rows + i : i * columns + j]);
    context.setElements(op->getResult(0), std::move(moved));
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult expandDims(Operation *op, ShapeContext &context) {
  if (auto elements = context.getElements(op->getOperand(0)))
    context.setElements(op->getResult(0), *elements);
  auto input = context.getShape(op->getOperand(0));
  auto axis = context.getConstant(op->getOperand(1));
  if (!input || !axis)
    return success();
  FailureOr<int64_t> at = normalizeAxis(op, *axis, input->size() + 1);
  if (failed(at))
    return failure();
  input->insert(input->begin() + *at, Dim(1));
  context.setShape(op->getResult(0), *input);
  return success();
}

LogicalResult squeeze(Operation *op, ShapeContext &context) {
  if (auto elements = context.getElements(op->getOperand(0)))
    context.setElements(op->getResult(0), *elements);
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  llvm::SmallSet<int64_t, 4> axes;
  for (Attribute attr : llvm::cast<SqueezeOp>(op).getSqueezeDims()) {
    FailureOr<int64_t> axis = normalizeAxis(op, llvm::cast<IntegerAttr>(attr).getInt(), input->size());
    if (failed(axis))
      return failure();
    Dim size = (*input)[*axis];
    if (size.isConstant() && size.getConstant() != 1)
      return op->emitOpError() << "cannot squeeze axis " << *axis << " of shape " << print(*input);
    axes.insert(*axis);
  }
  Dims sizes;
  for (auto [axis, size] : llvm::enumerate(*input)) {
    if (axes.empty() ? !(size.isConstant() && size.getConstant() == 1) : !axes.contains(axis))
      sizes.push_back(size);
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

LogicalResult tile(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto multiples = context.getElements(op->getOperand(1));
  if (!input)
    return success();
  if (multiples && multiples->size() != input->size())
    return op->emitOpError() << "repeats " << multiples->size() << " axes of a tensor of shape " << print(*input);
  if (multiples && failed(checkSizes(op, *multiples)))
    return failure();
  for (size_t axis = 0; axis < input->size(); ++axis)
    (*input)[axis] = multiples ? (*input)[axis] * (*multiples)[axis] : Dim();
  context.setShape(op->getResult(0), *input);
  // Sizes, repeated: the ones around the batch's in the gradient of a gather with batch_dims, the numbers of examples
  // of tf.repeat.
  auto elements = context.getElements(op->getOperand(0));
  auto times = context.getConstants(op->getOperand(1));
  auto isConstant = [](Dim size) { return size.isConstant(); };
  if (!elements || !times || !llvm::all_of(*input, isConstant))
    return success();
  int64_t count = 1;
  for (Dim size : *input)
    count = std::min(count * size.getConstant(), ShapeContext::kMaxElements + 1);
  if (count > ShapeContext::kMaxElements)
    return success();
  Dims repeated;
  for (int64_t place = 0; place < count; ++place) {
    int64_t from = 0, rest = place, stride = 1;
    for (size_t axis = input->size(); axis-- > 0;) {
      const int64_t size = (*input)[axis].getConstant(), own = size / (*times)[axis];
      from += rest % size % own * stride;
      rest /= size;
      stride *= own;
    }
    repeated.push_back((*elements)[from]);
  }
  context.setElements(op->getResult(0), std::move(repeated));
  return success();
}

LogicalResult broadcastTo(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 1);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  if (auto input = context.getShape(op->getOperand(0))) {
    bool canBroadcast = input->size() <= (*sizes)->size();
    for (size_t axis = 0; canBroadcast && axis < input->size(); ++axis)
      canBroadcast =
          fits((*input)[axis], 1) || fits((*input)[axis], (**sizes)[(*sizes)->size() - input->size() + axis]);
    if (!canBroadcast)
      return op->emitOpError() << "cannot broadcast shape " << print(*input) << " to " << print(**sizes);
  }
  context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult fill(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 0);
  if (failed(sizes) || failed(checkScalar(op, context, 1)))
    return failure();
  if (!*sizes)
    return success();
  Dim count = product(**sizes);
  auto value = context.getElements(op->getOperand(1));
  if (value && value->size() == 1 && count.isConstant() && count.getConstant() <= ShapeContext::kMaxElements)
    context.setElements(op->getResult(0), Dims(count.getConstant(), value->front()));
  context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult concat(Operation *op, ShapeContext &context) {
  bool axisFirst = llvm::isa<ConcatOp>(op);
  OperandRange operands = op->getOperands();
  Value axisOperand = axisFirst ? operands.front() : operands.back();
  OperandRange values = axisFirst ? operands.drop_front() : operands.drop_back();
  auto axis = context.getConstant(axisOperand);
  if (!axis || values.empty())
    return success();
  std::optional<Dims> sizes;
  std::optional<SmallVector<Dims>> parts = SmallVector<Dims>();
  bool someKnown = false;
  for (Value value : values) {
    auto next = context.getShape(value);
    if (!next)
      return success();
    if (!sizes) {
      FailureOr<int64_t> along = normalizeAxis(op, *axis, next->size());
      if (failed(along))
        return failure();
      axis = *along;
      sizes = *next;
    } else {
      if (next->size() != sizes->size())
        return op->emitOpError() << "joins shapes " << print(*sizes) << " and " << print(*next);
      for (size_t i = 0; i < sizes->size(); ++i) {
        if (static_cast<int64_t>(i) == *axis)
          (*sizes)[i] = (*sizes)[i] + (*next)[i];
        else if ((*sizes)[i].isConstant() && (*next)[i].isConstant() && !((*sizes)[i] == (*next)[i]))
          return op->emitOpError() << "joins shapes " << print(*sizes) << " and " << print(*next) << " along axis "
                                   << *axis;
        else if (!(*sizes)[i].isKnown())
          (*sizes)[i] = (*next)[i];
      }
    }
    auto part = context.getElements(value);
    someKnown |= part.has_value();
    // Of some elements nothing is known; of the others there is.
    if (Dim count = product(*next); !part && isInteger(value) && count.isConstant() && count.getConstant() >= 0 &&
                                    count.getConstant() <= ShapeContext::kMaxElements)
      part = Dims(count.getConstant());
    if (!part)
      parts.reset();
    else if (parts)
      parts->push_back(std::move(*part));
  }
  Dim outer = product(ArrayRef<Dim>(*sizes).take_front(*axis));
  context.setShape(op->getResult(0), std::move(*sizes));
  if (!parts || !someKnown || !outer.isConstant() || outer.getConstant() <= 0)
    return success();
  // Row by row of the axes before: a piece of each part.
  Dims elements;
  for (int64_t row = 0; row < outer.getConstant(); ++row)
    for (const Dims &part : *parts) {
      size_t piece = part.size() / outer.getConstant();
      elements.append(part.begin() + row * piece, part.begin() + (row + 1) * piece);
    }
  context.setElements(op->getResult(0), std::move(elements));
  return success();
}

/// Sizes that a vector of them is split into.
static void followParts(Operation *op, ShapeContext &context, Value vector) {
  auto shape = context.getShape(vector);
  auto elements = context.getElements(vector);
  if (!elements || !shape || shape->size() != 1)
    return;
  ArrayRef<Dim> rest = *elements;
  for (Value result : op->getResults()) {
    auto part = context.getShape(result);
    if (!part || part->size() != 1 || !part->front().isConstant() || part->front().getConstant() < 0 ||
        part->front().getConstant() > static_cast<int64_t>(rest.size()))
      return;
    context.setElements(result, Dims(rest.take_front(part->front().getConstant())));
    rest = rest.drop_front(part->front().getConstant());
  }
}

LogicalResult split(Operation *op, ShapeContext &context) {
  auto axis = context.getConstant(op->getOperand(0));
  auto input = context.getShape(op->getOperand(1));
  if (!axis || !input)
    return success();
  FailureOr<int64_t> along = normalizeAxis(op, *axis, input->size());
  if (failed(along))
    return failure();
  int64_t parts = op->getNumResults();
  if (parts == 0)
    return op->emitOpError("splits into no parts");
  Dim size = (*input)[*along];
  if (size.isConstant() && size.getConstant() % parts != 0)
    return op->emitOpError() << "cannot split axis " << *along << " of shape " << print(*input) << " into " << parts
                             << " equal parts";
  (*input)[*along] = floorDiv(size, parts);
  for (Value result : op->getResults())
    context.setShape(result, *input);
  followParts(op, context, op->getOperand(1));
  return success();
}

LogicalResult splitV(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto parts = context.getElements(op->getOperand(1));
  auto axis = context.getConstant(op->getOperand(2));
  if (!axis || !input)
    return success();
  FailureOr<int64_t> along = normalizeAxis(op, *axis, input->size());
  if (failed(along))
    return failure();
  Dim total = (*input)[*along], given = 0;
  if (parts && parts->size() != op->getNumResults())
    return op->emitOpError() << "names " << parts->size() << " sizes of " << op->getNumResults() << " parts";
  bool isOpen = false;
  for (Dim part : parts.value_or(Dims())) {
    bool isRest = part.isConstant() && part.getConstant() == -1;
    if ((isRest && isOpen) || (!isRest && failed(checkSizes(op, part))))
      return isRest ? op->emitOpError("leaves two sizes open (-1)") : failure();
    isOpen |= isRest;
    given = isRest ? given : given + part;
  }
  if (parts && (isOpen ? total.isConstant() && given.isConstant() && given.getConstant() > total.getConstant()
                       : !fits(total, given)))
    return op->emitOpError() << "splits axis " << *along << " of shape " << print(*input) << " into parts of sizes "
                             << print(*parts);
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    Dims sizes = *input;
    Dim part = parts && i < parts->size() ? (*parts)[i] : Dim();
    sizes[*along] = part.isConstant() && part.getConstant() == -1 ? total - given : part;
    context.setShape(result, std::move(sizes));
  }
  followParts(op, context, op->getOperand(0));
  return success();
}

LogicalResult pack(Operation *op, ShapeContext &context) {
  std::optional<Dims> sizes;
  bool known = isInteger(op->getResult(0));
  int64_t axis = llvm::cast<PackOp>(op).getAxisAttr().getInt();
  for (Value value : op->getOperands()) {
    auto next = context.getShape(value);
    if (!next)
      return success();
    if (sizes && !fits(*next, *sizes))
      return op->emitOpError() << "stacks shapes " << print(*sizes) << " and " << print(*next);
    sizes = sizes ? *sizes : *next;
    Dim count = product(*next);
    known &= count.isConstant() && count.getConstant() <= ShapeContext::kMaxElements;
  }
  if (!sizes)
    return op->emitOpError("stacks nothing");
  FailureOr<int64_t> at = normalizeAxis(op, axis, sizes->size() + 1);
  if (failed(at))
    return failure();
  if (known) {
    // Runs of what lies behind the new axis, an operand's behind the other's.
    int64_t run = product(ArrayRef(*sizes).drop_front(*at)).getConstant(), count = product(*sizes).getConstant();
    SmallVector<Dims> parts;
    for (Value value : op->getOperands()) {
      auto part = context.getElements(value);
      parts.push_back(part && static_cast<int64_t>(part->size()) == count ? *part : Dims(count));
    }
    Dims elements;
    for (int64_t first = 0; first < count; first += run)
      for (const Dims &part : parts)
        llvm::append_range(elements, ArrayRef(part).slice(first, run));
    context.setElements(op->getResult(0), std::move(elements));
  }
  sizes->insert(sizes->begin() + *at, Dim(op->getNumOperands()));
  context.setShape(op->getResult(0), *sizes);
  return success();
}

LogicalResult unpack(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  FailureOr<int64_t> axis = normalizeAxis(op, llvm::cast<UnpackOp>(op).getAxisAttr().getInt(), input->size());
  if (failed(axis))
    return failure();
  if (!fits((*input)[*axis], op->getNumResults()))
    return op->emitOpError() << "unstacks axis " << *axis << " of shape " << print(*input) << " as "
                             << op->getNumResults() << " tensors";
  auto elements = context.getElements(op->getOperand(0));
  bool isVector = input->size() == 1;
  input->erase(input->begin() + *axis);
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    context.setShape(result, *input);
    if (elements && isVector && i < elements->size())
      context.setElements(result, {(*elements)[i]});
  }
  return success();
}

} // namespace distc::dfg::shapes
