//===- SliceShapes.cpp - Shapes of slices, of any batch, and of padding --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeSupport.h"

using namespace mlir;

namespace distc::dfg::shapes {

LogicalResult slice(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto begin = context.getElements(op->getOperand(1)), size = context.getElements(op->getOperand(2));
  if (!input || !size)
    return success();
  Dims sizes = *size;
  if (sizes.size() != input->size() || (begin && begin->size() != input->size()))
    return op->emitOpError() << "takes a slice of " << sizes.size() << " axes from shape " << print(*input);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    Dim first = begin ? (*begin)[axis] : Dim(), whole = (*input)[axis];
    if (sizes[axis].isConstant() && sizes[axis].getConstant() == -1)
      sizes[axis] = begin ? whole - first : Dim();
    Dim last = first + sizes[axis];
    if ((first.isConstant() && first.getConstant() < 0) ||
        (sizes[axis].isConstant() && sizes[axis].getConstant() < 0) ||
        (last.isConstant() && whole.isConstant() && last.getConstant() > whole.getConstant()))
      return op->emitOpError() << "takes a slice that begins at " << print(begin.value_or(Dims()))
                               << " and is of shape " << print(*size) << " from shape " << print(*input);
  }
  auto elements = context.getElements(op->getOperand(0));
  auto from = context.getConstants(op->getOperand(1));
  bool fits = elements && from && from->size() == input->size() && sizes.size() == input->size();
  for (size_t axis = 0; fits && axis < sizes.size(); ++axis) {
    Dim whole = (*input)[axis];
    fits = whole.isConstant() && sizes[axis].isConstant() && (*from)[axis] >= 0 &&
           (*from)[axis] + sizes[axis].getConstant() <= whole.getConstant();
  }
  if (fits) {
    // Axis by axis, from the last: how far elements of the result lie from the slice's first, in the input.
    SmallVector<int64_t> offsets = {0};
    int64_t stride = 1;
    for (size_t axis = sizes.size(); axis-- > 0; stride *= (*input)[axis].getConstant()) {
      SmallVector<int64_t> next;
      for (int64_t i = 0; i < sizes[axis].getConstant(); ++i)
        for (int64_t offset : offsets)
          next.push_back(((*from)[axis] + i) * stride + offset);
      offsets = std::move(next);
    }
    context.setElements(op->getResult(0),
                        llvm::map_to_vector<4>(offsets, [&](int64_t offset) { return (*elements)[offset]; }));
  }
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

/// Whether x <= y for any b of `smallest` or more.
static bool isAtMost(Dim x, Dim y, int64_t smallest) {
  Dim rest = y - x;
  int64_t slope, least;
  return rest.growsWithBatch() && !llvm::AddOverflow(rest.getScale(), rest.getWholeScale(), slope) &&
         !llvm::MulOverflow(slope, smallest, least) && !llvm::AddOverflow(least, rest.getOffset(), least) &&
         least >= 0 && !x.isBound() && !y.isBound();
}

/// Sets where a slice of an axis that has the batch's size begins and ends; false where that is not known.
static bool resolveBatchSlice(Dim size, std::optional<Dim> begin, std::optional<Dim> end, int64_t smallest, Dim &from,
                              Dim &to) {
  from = begin.value_or(Dim(0));
  to = end.value_or(size);
  if (to.isConstant() && to.getConstant() < 0)
    to = size + to;
  if (!from.isKnown() || !to.isKnown() || (from.isConstant() && from.getConstant() < 0))
    return false;
  // To the open end: a slice that begins behind it is TensorFlow's to refuse, or empty.
  if (!end && from.isConstant())
    return true;
  return !to.isConstant() && isAtMost(Dim(0), from, smallest) && isAtMost(from, to, smallest) &&
         isAtMost(to, size, smallest);
}

std::optional<ResolvedSlice> resolveStridedSlice(Operation *op, ArrayRef<Dim> input, ArrayRef<Dim> begin,
                                                 ArrayRef<Dim> end, ArrayRef<int64_t> strides) {
  auto mask = [&](StringRef name) -> int64_t {
    auto attr = op->getAttrOfType<IntegerAttr>(name);
    return attr ? attr.getInt() : 0;
  };
  int64_t beginMask = mask("begin_mask"), endMask = mask("end_mask"), ellipsisMask = mask("ellipsis_mask"),
          newAxisMask = mask("new_axis_mask"), shrinkMask = mask("shrink_axis_mask");
  if (begin.size() != end.size() || begin.size() != strides.size())
    return std::nullopt;
  int64_t specified = 0;
  bool sawEllipsis = false;
  for (size_t i = 0; i < begin.size(); ++i) {
    if (ellipsisMask >> i & 1) {
      if (sawEllipsis)
        return std::nullopt;
      sawEllipsis = true;
    } else if (!(newAxisMask >> i & 1))
      ++specified;
  }
  int64_t rank = input.size();
  if (specified > rank)
    return std::nullopt;

  ResolvedSlice slice;
  auto takeWhole = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      slice.resultAxes.push_back(slice.begin.size());
      slice.size.push_back(input[slice.begin.size()]);
      slice.begin.push_back(0);
      slice.stride.push_back(1);
    }
  };
  for (size_t i = 0; i < begin.size(); ++i) {
    if (ellipsisMask >> i & 1) {
      takeWhole(rank - specified);
      continue;
    }
    if (newAxisMask >> i & 1) {
      slice.resultAxes.push_back(-1);
      continue;
    }
    int64_t axis = slice.begin.size(), stride = strides[i];
    Dim size = input[axis];
    if (stride == 0 || stride == std::numeric_limits<int64_t>::min())
      return std::nullopt;
    if (shrinkMask >> i & 1) {
      if (!begin[i].isConstant())
        return std::nullopt;
      int64_t at = begin[i].getConstant();
      if (at < 0) {
        if (!size.isConstant())
          return std::nullopt;
        at += size.getConstant();
      }
      if (at < 0 || (size.isConstant() && at >= size.getConstant()))
        return std::nullopt;
      slice.begin.push_back(at);
      slice.stride.push_back(1);
      slice.size.push_back(1);
      continue;
    }
    bool wholeBegin = beginMask >> i & 1, wholeEnd = endMask >> i & 1;
    slice.resultAxes.push_back(axis);
    slice.stride.push_back(stride);
    // Also where it is the bound of one that depends on data.
    if (wholeBegin && wholeEnd && stride == 1) {
      slice.begin.push_back(0);
      slice.size.push_back(size);
      continue;
    }
    if (!size.isConstant()) {
      Dim from, to;
      const int64_t smallest = llvm::divideCeilSigned(getSmallestBatch(op), getBatchMultiple(op));
      if (stride != 1 || !resolveBatchSlice(size, wholeBegin ? std::nullopt : std::optional(begin[i]),
                                            wholeEnd ? std::nullopt : std::optional(end[i]), smallest, from, to))
        return std::nullopt;
      slice.begin.push_back(from);
      slice.size.push_back(to - from);
      continue;
    }
    if ((!wholeBegin && !begin[i].isConstant()) || (!wholeEnd && !end[i].isConstant()))
      return std::nullopt;
    int64_t extent = size.getConstant();
    int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? extent : extent - 1;
    auto clamp = [&](int64_t at) { return std::clamp(at < 0 ? at + extent : at, low, high); };
    int64_t from = wholeBegin ? (stride > 0 ? low : high) : clamp(begin[i].getConstant());
    int64_t to = wholeEnd ? (stride > 0 ? high : low) : clamp(end[i].getConstant());
    int64_t span = to - from;
    int64_t count = (span == 0 || (span < 0) != (stride < 0)) ? 0 : (span + stride - (stride > 0 ? 1 : -1)) / stride;
    slice.begin.push_back(from);
    slice.size.push_back(count);
  }
  if (!sawEllipsis)
    takeWhole(rank - static_cast<int64_t>(slice.begin.size()));
  return slice;
}

/// The slice of shape `input` that operands 1, 2 and 3 say; none where they are not known. Fails with a diagnostic
/// where it is none.
static FailureOr<std::optional<ResolvedSlice>> getStridedSlice(Operation *op, ShapeContext &context,
                                                               ArrayRef<Dim> input) {
  auto begin = context.getElements(op->getOperand(1)), end = context.getElements(op->getOperand(2));
  auto strides = context.getConstants(op->getOperand(3));
  if (!begin || !end || !strides)
    return std::optional<ResolvedSlice>();
  // A mask has a bit an entry.
  constexpr size_t kMaxEntries = 32;
  if (begin->size() != end->size() || begin->size() != strides->size() || begin->size() > kMaxEntries)
    return op->emitOpError() << "takes a slice by " << begin->size() << " begins, " << end->size() << " ends and "
                             << strides->size() << " strides";
  std::optional<ResolvedSlice> slice = resolveStridedSlice(op, input, *begin, *end, *strides);
  auto areConstant = [](ArrayRef<Dim> sizes) {
    return llvm::all_of(sizes, [](Dim size) { return size.isConstant(); });
  };
  if (!slice && areConstant(input) && areConstant(*begin) && areConstant(*end))
    return op->emitOpError() << "takes a slice that does not fit shape " << print(input);
  return slice;
}

/// Of the result: sizes of axes that are taken, and 1 of new ones.
static Dims getShape(const ResolvedSlice &slice) {
  return llvm::map_to_vector<4>(slice.resultAxes, [&](int64_t axis) { return axis < 0 ? Dim(1) : slice.size[axis]; });
}

LogicalResult stridedSlice(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (!input)
    return success();
  FailureOr<std::optional<ResolvedSlice>> resolved = getStridedSlice(op, context, *input);
  if (failed(resolved))
    return failure();
  if (!*resolved)
    return success();
  const ResolvedSlice &slice = **resolved;
  auto elements = context.getElements(op->getOperand(0));
  if (elements && input->size() == 1 && slice.size[0].isConstant() && slice.begin[0].isConstant()) {
    Dims taken;
    for (int64_t i = 0; i < slice.size[0].getConstant(); ++i) {
      int64_t at = slice.begin[0].getConstant() + i * slice.stride[0];
      if (at < 0 || at >= static_cast<int64_t>(elements->size()))
        return op->emitOpError() << "index " << at << " is outside of a vector of " << elements->size();
      taken.push_back((*elements)[at]);
    }
    context.setElements(op->getResult(0), std::move(taken));
  }
  // A size that becomes a vector of one: x[tf.newaxis].
  if (elements && input->empty())
    context.setElements(op->getResult(0), *elements);
  context.setShape(op->getResult(0), getShape(slice));
  return success();
}

LogicalResult stridedSliceGrad(Operation *op, ShapeContext &context) {
  FailureOr<std::optional<Dims>> sizes = getSizes(op, context, 0);
  if (failed(sizes))
    return failure();
  if (!*sizes)
    return success();
  FailureOr<std::optional<ResolvedSlice>> slice = getStridedSlice(op, context, **sizes);
  if (failed(slice))
    return failure();
  auto gradient = context.getShape(op->getOperand(4));
  if (*slice && gradient && !fits(getShape(**slice), *gradient))
    return op->emitOpError() << "takes a gradient of shape " << print(*gradient) << " of a slice of shape "
                             << print(getShape(**slice));
  context.setShape(op->getResult(0), **sizes);
  return success();
}

LogicalResult pad(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto paddings = context.getElements(op->getOperand(1));
  if (!input)
    return success();
  if (paddings && paddings->size() != 2 * input->size())
    return op->emitOpError() << "pads " << paddings->size() / 2 << " axes of a tensor of shape " << print(*input);
  if (paddings && failed(checkSizes(op, *paddings)))
    return failure();
  if (op->getNumOperands() > 2 && failed(checkScalar(op, context, 2)))
    return failure();
  for (size_t axis = 0; axis < input->size(); ++axis)
    (*input)[axis] = paddings ? (*input)[axis] + (*paddings)[2 * axis] + (*paddings)[2 * axis + 1] : Dim();
  context.setShape(op->getResult(0), *input);
  return success();
}

LogicalResult ensureShape(Operation *op, ShapeContext &context) {
  TensorShapeAttr required = llvm::cast<EnsureShapeOp>(op).getShape();
  auto input = context.getShape(op->getOperand(0));
  if (required.getUnknownRank()) {
    if (input)
      context.setShape(op->getResult(0), *input);
    return success();
  }
  Dims sizes;
  for (int64_t size : required.getSizes())
    sizes.push_back(size < 0 ? Dim() : Dim(size));
  const Dims asked = sizes;
  bool fits = !input || input->size() == sizes.size();
  for (size_t i = 0; input && fits && i < sizes.size(); ++i) {
    fits = !(*input)[i].isConstant() || !sizes[i].isConstant() || (*input)[i] == sizes[i];
    if ((*input)[i].isKnown())
      sizes[i] = (*input)[i];
  }
  if (!fits)
    return op->emitOpError() << "requires shape " << print(asked) << " of a value of shape " << print(*input);
  context.setShape(op->getResult(0), std::move(sizes));
  return success();
}

} // namespace distc::dfg::shapes
