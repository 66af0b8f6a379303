//===- LowerLayout.cpp - Nodes that move elements --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/lower/entries/EntryLowering.h"

using namespace mlir;

namespace distc::lower {
namespace {

using dfg::ScalarBuilder;

/// Reshape, ExpandDims, Squeeze: the same elements.
LogicalResult lowerReshape(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  lowering.set(op->getResult(0), lowering.reshape(op->getLoc(), lowering.get(op->getOperand(0)), type->getShape()));
  return success();
}

LogicalResult lowerConst(EntryLowering &lowering, Operation *op) {
  // Read by those that print it.
  if (llvm::isa<dfg::StringType>(getElementTypeOrSelf(op->getResult(0).getType())))
    return success();
  FailureOr<RankedTensorType> type = getStaticType(op);
  auto value = llvm::dyn_cast<TypedAttr>(llvm::cast<dfg::ConstOp>(op).getValue());
  if (failed(type) || !value)
    return failure();
  if (isEmpty(*type))
    lowering.set(op->getResult(0), lowering.empty(op->getLoc(), *type));
  else
    lowering.set(op->getResult(0), arith::ConstantOp::create(lowering.builder, op->getLoc(), value));
  return success();
}

LogicalResult lowerTranspose(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  FailureOr<SmallVector<int64_t>> permutation = lowering.getConstants(op, 1);
  if (failed(type) || failed(permutation))
    return failure();
  // Axis p[i] of the input is axis i of the result.
  SmallVector<AffineExpr> expressions(permutation->size());
  for (auto [i, axis] : llvm::enumerate(*permutation))
    expressions[axis < 0 ? axis + type->getRank() : axis] = lowering.builder.getAffineDimExpr(i);
  AffineMap map = AffineMap::get(permutation->size(), 0, expressions, op->getContext());
  lowering.set(op->getResult(0), lowering.mapped(op->getLoc(), *type, lowering.get(op->getOperand(0)), map,
                                                 [](ScalarBuilder &, ValueRange elements) { return elements[0]; }));
  return success();
}

/// BroadcastTo and Fill: the operand's elements wherever they broadcast.
LogicalResult lowerBroadcast(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  Value input = lowering.get(op->getOperand(llvm::isa<dfg::FillOp>(op) ? 1 : 0));
  if (TypedAttr splat = EntryLowering::getSplat(input))
    lowering.set(op->getResult(0),
                 arith::ConstantOp::create(lowering.builder, op->getLoc(), DenseElementsAttr::get(*type, splat)));
  else
    lowering.set(op->getResult(0),
                 lowering.elementwise(op->getLoc(), *type, input,
                                      [](ScalarBuilder &, ValueRange elements) { return elements[0]; }));
  return success();
}

LogicalResult lowerTile(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  Value input = lowering.get(op->getOperand(0));
  auto inputType = llvm::cast<RankedTensorType>(input.getType());
  if (TypedAttr splat = EntryLowering::getSplat(input)) {
    lowering.set(op->getResult(0),
                 arith::ConstantOp::create(lowering.builder, op->getLoc(), DenseElementsAttr::get(*type, splat)));
    return success();
  }
  bool onlyBroadcasts = true;
  for (auto [from, to] : llvm::zip(inputType.getShape(), type->getShape()))
    onlyBroadcasts &= from == 1 || from == to;
  if (onlyBroadcasts)
    lowering.set(op->getResult(0),
                 lowering.elementwise(op->getLoc(), *type, input,
                                      [](ScalarBuilder &, ValueRange elements) { return elements[0]; }));
  else
    lowering.set(op->getResult(0), lowering.gather(op->getLoc(), *type, [&](ScalarBuilder &s, ValueRange at) {
      SmallVector<Value> from;
      for (auto [position, size] : llvm::zip(at, inputType.getShape()))
        from.push_back(arith::RemUIOp::create(s.builder, s.loc, position, index(s, size)));
      return EntryLowering::load(s, input, from);
    }));
  return success();
}

/// Element `at` of the first input that reaches beyond it along `axis`, the inputs lying one behind the other. Of many
/// inputs each branch has half, so that thousands are not branches in branches.
Value loadFromParts(ScalarBuilder &s, ArrayRef<Value> parts, int64_t axis, SmallVector<Value> at) {
  constexpr size_t few = 16;
  if (parts.size() == 1)
    return EntryLowering::load(s, parts[0], at);
  ArrayRef<Value> first = parts.take_front(parts.size() <= few ? 1 : parts.size() / 2);
  int64_t sum = 0;
  for (Value part : first)
    sum += llvm::cast<RankedTensorType>(part.getType()).getDimSize(axis);
  Value size = index(s, sum);
  Value inside = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ult, at[axis], size);
  auto branch = scf::IfOp::create(
      s.builder, s.loc, inside,
      [&](OpBuilder &builder, Location loc) {
        ScalarBuilder inner(builder, loc);
        scf::YieldOp::create(builder, loc, loadFromParts(inner, first, axis, at));
      },
      [&](OpBuilder &builder, Location loc) {
        ScalarBuilder inner(builder, loc);
        SmallVector<Value> rest = at;
        rest[axis] = arith::SubIOp::create(builder, loc, at[axis], size);
        scf::YieldOp::create(builder, loc, loadFromParts(inner, parts.drop_front(first.size()), axis, rest));
      });
  return branch.getResult(0);
}

LogicalResult lowerConcat(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  bool axisFirst = llvm::isa<dfg::ConcatOp>(op);
  unsigned axisOperand = axisFirst ? 0 : op->getNumOperands() - 1;
  FailureOr<SmallVector<int64_t>> axis = lowering.getConstants(op, axisOperand);
  if (failed(type) || failed(axis))
    return failure();
  int64_t along = axis->front() < 0 ? axis->front() + type->getRank() : axis->front();
  SmallVector<Value> parts;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (i != axisOperand)
      parts.push_back(lowering.get(op->getOperand(i)));
  lowering.set(op->getResult(0), lowering.gather(op->getLoc(), *type, [&](ScalarBuilder &s, ValueRange at) {
    return loadFromParts(s, parts, along, SmallVector<Value>(at));
  }));
  return success();
}

LogicalResult lowerPack(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  int64_t axis = llvm::cast<dfg::PackOp>(op).getAxisAttr().getInt();
  axis = axis < 0 ? axis + type->getRank() : axis;
  // Stacking is joining along an axis of size 1.
  SmallVector<int64_t> shape(type->getShape());
  shape[axis] = 1;
  SmallVector<Value> parts = llvm::map_to_vector(
      op->getOperands(), [&](Value operand) { return lowering.reshape(op->getLoc(), lowering.get(operand), shape); });
  lowering.set(op->getResult(0), lowering.gather(op->getLoc(), *type, [&](ScalarBuilder &s, ValueRange at) {
    return loadFromParts(s, parts, axis, SmallVector<Value>(at));
  }));
  return success();
}

/// The part of `input` that begins at `begin` and takes every `stride`-th element.
Value window(EntryLowering &lowering, Location loc, Value input, RankedTensorType type, ArrayRef<int64_t> begin,
             ArrayRef<int64_t> stride) {
  return lowering.gather(loc, type, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<Value> from;
    for (auto [position, first, step] : llvm::zip(at, begin, stride)) {
      Value scaled = step == 1 ? position : Value(arith::MulIOp::create(s.builder, s.loc, position, index(s, step)));
      from.push_back(arith::AddIOp::create(s.builder, s.loc, scaled, index(s, first)));
    }
    return EntryLowering::load(s, input, from);
  });
}

LogicalResult lowerSplit(EntryLowering &lowering, Operation *op) {
  bool isSplitV = llvm::isa<dfg::SplitVOp>(op);
  Value input = lowering.get(op->getOperand(isSplitV ? 0 : 1));
  FailureOr<SmallVector<int64_t>> axis = lowering.getConstants(op, isSplitV ? 2 : 0);
  if (failed(axis))
    return failure();
  int64_t rank = llvm::cast<RankedTensorType>(input.getType()).getRank();
  int64_t along = axis->front() < 0 ? axis->front() + rank : axis->front();
  SmallVector<int64_t> begin(rank, 0), stride(rank, 1);
  for (OpResult result : op->getResults()) {
    FailureOr<RankedTensorType> type = getStaticType(op, result.getResultNumber());
    if (failed(type))
      return failure();
    lowering.set(result, window(lowering, op->getLoc(), input, *type, begin, stride));
    begin[along] += type->getDimSize(along);
  }
  return success();
}

LogicalResult lowerUnpack(EntryLowering &lowering, Operation *op) {
  Value input = lowering.get(op->getOperand(0));
  auto inputType = llvm::cast<RankedTensorType>(input.getType());
  int64_t axis = llvm::cast<dfg::UnpackOp>(op).getAxisAttr().getInt();
  axis = axis < 0 ? axis + inputType.getRank() : axis;
  SmallVector<int64_t> begin(inputType.getRank(), 0), stride(inputType.getRank(), 1), shape(inputType.getShape());
  shape[axis] = 1;
  for (OpResult result : op->getResults()) {
    FailureOr<RankedTensorType> type = getStaticType(op, result.getResultNumber());
    if (failed(type))
      return failure();
    begin[axis] = result.getResultNumber();
    Value part =
        window(lowering, op->getLoc(), input, RankedTensorType::get(shape, inputType.getElementType()), begin, stride);
    lowering.set(result, lowering.reshape(op->getLoc(), part, type->getShape()));
  }
  return success();
}

LogicalResult lowerSlice(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  FailureOr<SmallVector<int64_t>> begin = lowering.getConstants(op, 1);
  if (failed(type) || failed(begin))
    return failure();
  SmallVector<int64_t> stride(type->getRank(), 1);
  lowering.set(op->getResult(0),
               window(lowering, op->getLoc(), lowering.get(op->getOperand(0)), *type, *begin, stride));
  return success();
}

SmallVector<int64_t> getBegin(const dfg::shapes::ResolvedSlice &slice) {
  return llvm::map_to_vector(slice.begin, [](dfg::Dim begin) { return begin.getConstant(); });
}

/// The slice's axes against a tensor of shape `whole`; fails with a diagnostic where it is not constant.
FailureOr<dfg::shapes::ResolvedSlice> resolve(EntryLowering &lowering, Operation *op, ArrayRef<int64_t> whole) {
  FailureOr<SmallVector<int64_t>> begin = lowering.getConstants(op, 1), end = lowering.getConstants(op, 2),
                                  strides = lowering.getConstants(op, 3);
  if (failed(begin) || failed(end) || failed(strides))
    return failure();
  auto slice = dfg::shapes::resolveStridedSlice(op, dfg::Dims(whole.begin(), whole.end()),
                                                dfg::Dims(begin->begin(), begin->end()),
                                                dfg::Dims(end->begin(), end->end()), *strides);
  if (!slice) {
    op->emitError() << "node '" << dfg::getNodeName(op) << "' takes a slice that does not fit its input";
    return failure();
  }
  return *slice;
}

LogicalResult lowerStridedSlice(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  Value input = lowering.get(op->getOperand(0));
  auto inputType = llvm::cast<RankedTensorType>(input.getType());
  FailureOr<dfg::shapes::ResolvedSlice> slice = resolve(lowering, op, inputType.getShape());
  if (failed(type) || failed(slice))
    return failure();
  SmallVector<int64_t> shape = llvm::map_to_vector(slice->size, [](dfg::Dim size) { return size.getConstant(); });
  auto taken = RankedTensorType::get(shape, type->getElementType());
  Value part = window(lowering, op->getLoc(), input, taken, getBegin(*slice), slice->stride);
  lowering.set(op->getResult(0), lowering.reshape(op->getLoc(), part, type->getShape()));
  return success();
}

/// A tensor of zeros (or `padding`) with `input` inside: element i of axis a lies at begin[a] + i * stride[a].
Value embed(EntryLowering &lowering, Location loc, Value input, RankedTensorType type, ArrayRef<int64_t> begin,
            ArrayRef<int64_t> stride, Value padding) {
  auto inputType = llvm::cast<RankedTensorType>(input.getType());
  return lowering.gather(loc, type, [&](ScalarBuilder &s, ValueRange at) -> Value {
    Value inside = arith::ConstantOp::create(s.builder, s.loc, s.builder.getBoolAttr(true));
    SmallVector<Value> from;
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      // A negative stride lays the elements out backwards.
      int64_t step = stride[axis];
      Value distance = step > 0 ? Value(arith::SubIOp::create(s.builder, s.loc, at[axis], index(s, begin[axis])))
                                : Value(arith::SubIOp::create(s.builder, s.loc, index(s, begin[axis]), at[axis]));
      int64_t length = std::abs(step);
      Value position = distance;
      if (length != 1) {
        position = arith::DivSIOp::create(s.builder, s.loc, distance, index(s, length));
        Value rest = arith::RemSIOp::create(s.builder, s.loc, distance, index(s, length));
        inside = s.bitAnd(inside, arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::eq, rest, index(s, 0)));
      }
      // Unsigned: a negative distance is a large one.
      inside = s.bitAnd(inside, arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ult, distance,
                                                      index(s, inputType.getDimSize(axis) * length)));
      from.push_back(position);
    }
    auto branch = scf::IfOp::create(
        s.builder, s.loc, inside,
        [&](OpBuilder &builder, Location loc) {
          ScalarBuilder inner(builder, loc);
          scf::YieldOp::create(builder, loc, EntryLowering::load(inner, input, from));
        },
        [&](OpBuilder &builder, Location loc) {
          ScalarBuilder inner(builder, loc);
          scf::YieldOp::create(builder, loc,
                               padding ? EntryLowering::load(inner, padding, {})
                                       : inner.constant(type.getElementType(), 0.0));
        });
    return branch.getResult(0);
  });
}

LogicalResult lowerPad(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  FailureOr<SmallVector<int64_t>> paddings = lowering.getConstants(op, 1);
  if (failed(type) || failed(paddings))
    return failure();
  SmallVector<int64_t> begin, stride(type->getRank(), 1);
  for (int64_t axis = 0; axis < type->getRank(); ++axis)
    begin.push_back((*paddings)[2 * axis]);
  Value padding = op->getNumOperands() > 2 ? lowering.get(op->getOperand(2)) : Value();
  lowering.set(op->getResult(0),
               embed(lowering, op->getLoc(), lowering.get(op->getOperand(0)), *type, begin, stride, padding));
  return success();
}

LogicalResult lowerStridedSliceGrad(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  FailureOr<dfg::shapes::ResolvedSlice> slice = resolve(lowering, op, type->getShape());
  if (failed(slice))
    return failure();
  SmallVector<int64_t> shape = llvm::map_to_vector(slice->size, [](dfg::Dim size) { return size.getConstant(); });
  Value gradient = lowering.reshape(op->getLoc(), lowering.get(op->getOperand(4)), shape);
  lowering.set(op->getResult(0),
               embed(lowering, op->getLoc(), gradient, *type, getBegin(*slice), slice->stride, Value()));
  return success();
}

LogicalResult lowerReverse(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  FailureOr<SmallVector<int64_t>> axes = lowering.getConstants(op, 1);
  if (failed(type) || failed(axes))
    return failure();
  SmallVector<int64_t> begin(type->getRank(), 0), stride(type->getRank(), 1);
  for (int64_t axis : *axes) {
    axis = axis < 0 ? axis + type->getRank() : axis;
    begin[axis] = type->getDimSize(axis) - 1;
    stride[axis] = -1;
  }
  lowering.set(op->getResult(0), window(lowering, op->getLoc(), lowering.get(op->getOperand(0)), *type, begin, stride));
  return success();
}

LogicalResult lowerOneHot(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  int64_t axis = llvm::cast<dfg::OneHotOp>(op).getAxisAttr().getInt();
  axis = axis < 0 ? axis + type->getRank() : axis;
  Value indices = lowering.get(op->getOperand(0)), on = lowering.get(op->getOperand(2)),
        off = lowering.get(op->getOperand(3));
  lowering.set(op->getResult(0), lowering.gather(op->getLoc(), *type, [&](ScalarBuilder &s, ValueRange at) {
    SmallVector<Value> where(at);
    where.erase(where.begin() + axis);
    Value hot = toIndex(s, EntryLowering::load(s, indices, where));
    Value isHot = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::eq, hot, at[axis]);
    return s.select(isHot, EntryLowering::load(s, on, {}), EntryLowering::load(s, off, {}));
  }));
  return success();
}

LogicalResult lowerRange(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  Value start = lowering.get(op->getOperand(0)), delta = lowering.get(op->getOperand(2));
  lowering.set(op->getResult(0), lowering.gather(op->getLoc(), *type, [&](ScalarBuilder &s, ValueRange at) {
    Value position = arith::IndexCastOp::create(s.builder, s.loc, s.builder.getI64Type(), at[0]);
    Value steps = s.cast(position, type->getElementType());
    return s.add(EntryLowering::load(s, start, {}), s.mul(steps, EntryLowering::load(s, delta, {})));
  }));
  return success();
}

/// The first position of the largest (smallest) element: a reduction of the values, then of the positions that have it.
LogicalResult lowerArgReduction(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  FailureOr<SmallVector<int64_t>> given = lowering.getConstants(op, 1);
  if (failed(type) || failed(given))
    return failure();
  Value input = lowering.get(op->getOperand(0));
  auto inputType = llvm::cast<RankedTensorType>(input.getType());
  int64_t axis = given->front() < 0 ? given->front() + inputType.getRank() : given->front();
  bool largest = llvm::isa<dfg::ArgMaxOp>(op);
  Type element = inputType.getElementType();
  if (inputType.getDimSize(axis) == 0 && !isEmpty(*type)) {
    op->emitError() << "node '" << dfg::getNodeName(op) << "' asks for a position along axis " << axis << " of "
                    << inputType << ", which has none";
    return failure();
  }
  // As TensorFlow's: what is not better than the worst finite number (NaN, an infinity of the other sign) is not looked
  // at, and where nothing else is there the position is 0.
  auto worst = [&](ScalarBuilder &s) { return largest ? s.lowestFinite(element) : s.highestFinite(element); };
  Value best =
      lowering.reduce(op->getLoc(), input, axis, element, worst, [&](ScalarBuilder &s, Value accumulator, Value next) {
        return s.select(largest ? s.greater(next, accumulator) : s.less(next, accumulator), next, accumulator);
      });
  SmallVector<int64_t> kept(inputType.getShape());
  kept[axis] = 1;
  Value bestAlong = lowering.reshape(op->getLoc(), best, kept);
  auto positionType = RankedTensorType::get(inputType.getShape(), type->getElementType());
  SmallVector<AffineMap> maps = {lowering.builder.getMultiDimIdentityMap(inputType.getRank())};
  SmallVector<AffineExpr> expressions;
  for (int64_t i = 0; i < inputType.getRank(); ++i)
    expressions.push_back(i == axis || kept[i] == 1 ? lowering.builder.getAffineConstantExpr(0)
                                                    : lowering.builder.getAffineDimExpr(i));
  maps.push_back(AffineMap::get(inputType.getRank(), 0, expressions, op->getContext()));
  Value positions =
      lowering.mapped(op->getLoc(), positionType, {input, bestAlong}, maps, [&](ScalarBuilder &s, ValueRange elements) {
        Value at = arith::IndexCastOp::create(s.builder, s.loc, type->getElementType(),
                                              linalg::IndexOp::create(s.builder, s.loc, axis));
        return s.select(s.equal(elements[0], elements[1]), at, s.highest(type->getElementType()));
      });
  Value first = lowering.reduce(
      op->getLoc(), positions, axis, type->getElementType(),
      [&](ScalarBuilder &s) { return s.highest(type->getElementType()); },
      [](ScalarBuilder &s, Value accumulator, Value next) { return s.minimum(accumulator, next); });
  first = lowering.elementwise(op->getLoc(), typeOf(first), {best, first}, [&](ScalarBuilder &s, ValueRange x) {
    return s.select(s.equal(x[0], worst(s)), s.constant(type->getElementType(), 0.0), x[1]);
  });
  lowering.set(op->getResult(0), lowering.reshape(op->getLoc(), first, type->getShape()));
  return success();
}

} // namespace

void addLayoutLowerings(LoweringTable &table, MLIRContext *context) {
  addLowering<dfg::ConstOp>(table, context, lowerConst);
  addLowering<dfg::ReshapeOp>(table, context, lowerReshape);
  addLowering<dfg::ExpandDimsOp>(table, context, lowerReshape);
  addLowering<dfg::SqueezeOp>(table, context, lowerReshape);
  addLowering<dfg::TransposeOp>(table, context, lowerTranspose);
  addLowering<dfg::TileOp>(table, context, lowerTile);
  addLowering<dfg::BroadcastToOp>(table, context, lowerBroadcast);
  addLowering<dfg::FillOp>(table, context, lowerBroadcast);
  addLowering<dfg::ConcatV2Op>(table, context, lowerConcat);
  addLowering<dfg::ConcatOp>(table, context, lowerConcat);
  addLowering<dfg::PackOp>(table, context, lowerPack);
  addLowering<dfg::UnpackOp>(table, context, lowerUnpack);
  addLowering<dfg::SplitOp>(table, context, lowerSplit);
  addLowering<dfg::SplitVOp>(table, context, lowerSplit);
  addLowering<dfg::SliceOp>(table, context, lowerSlice);
  addLowering<dfg::StridedSliceOp>(table, context, lowerStridedSlice);
  addLowering<dfg::StridedSliceGradOp>(table, context, lowerStridedSliceGrad);
  addLowering<dfg::PadOp>(table, context, lowerPad);
  addLowering<dfg::PadV2Op>(table, context, lowerPad);
  addLowering<dfg::ReverseV2Op>(table, context, lowerReverse);
  addLowering<dfg::EnsureShapeOp>(table, context, lowerReshape);
  addLowering<dfg::OneHotOp>(table, context, lowerOneHot);
  addLowering<dfg::RangeOp>(table, context, lowerRange);
  addLowering<dfg::ArgMaxOp>(table, context, lowerArgReduction);
  addLowering<dfg::ArgMinOp>(table, context, lowerArgReduction);
}

} // namespace distc::lower
