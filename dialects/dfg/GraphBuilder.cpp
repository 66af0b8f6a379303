//===- GraphBuilder.cpp - Nodes that a node is made of -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/GraphBuilder.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"

#include <numeric>

using namespace mlir;

namespace distc::dfg {

// ---- What is known ------------------------------------------------------------------------

LogicalResult GraphBuilder::fail(const Twine &why) {
  if (!failed())
    reason = why.str();
  return failure();
}

FailureOr<Dims> GraphBuilder::getShape(Value value) {
  std::optional<Dims> shape = value ? shapes.getShape(value) : std::nullopt;
  if (!shape)
    return fail("the number of axes of an operand is not known");
  return *shape;
}

FailureOr<SmallVector<int64_t>> GraphBuilder::getStaticShape(Value value) {
  FailureOr<Dims> shape = getShape(value);
  if (llvm::failed(shape))
    return failure();
  SmallVector<int64_t> sizes;
  for (Dim size : *shape) {
    if (!size.isConstant() || size.isBound())
      return fail("the shape of an operand, " + shapes::print(*shape) + ", is not known");
    sizes.push_back(size.getConstant());
  }
  return sizes;
}

FailureOr<SmallVector<int64_t>> GraphBuilder::getConstants(Value value) {
  if (!value)
    return failure();
  std::optional<SmallVector<int64_t>> constants = shapes.getConstants(value);
  if (constants)
    return *constants;
  // No elements at all are known ones.
  if (auto shape = shapes.getShape(value); shape && llvm::any_of(*shape, [](Dim size) { return size == Dim(0); }))
    return SmallVector<int64_t>();
  return fail("an operand that says sizes, axes or counts is not constant");
}

FailureOr<int64_t> GraphBuilder::getConstant(Value value) {
  FailureOr<SmallVector<int64_t>> constants = getConstants(value);
  if (llvm::failed(constants))
    return failure();
  if (constants->size() != 1)
    return fail("an operand that should be one number has " + Twine(constants->size()));
  return constants->front();
}

FailureOr<SmallVector<double>> GraphBuilder::getReals(Value value) {
  if (!value)
    return failure();
  if (std::optional<SmallVector<double>> reals = shapes.getReals(value))
    return *reals;
  return fail("an operand that says scales or shifts is not constant");
}

// ---- Nodes ------------------------------------------------------------------------------------

GraphBuilder::Values GraphBuilder::create(StringRef name, ValueRange operands, ArrayRef<Type> elements,
                                          ArrayRef<NamedAttribute> attributes) {
  if (failed() || llvm::any_of(operands, [](Value operand) { return !operand; }))
    return Values(elements.size());
  StringRef kind = name;
  kind.consume_front("dfg.");
  OperationState state(NameLoc::get(builder.getStringAttr(getNodeName(node) + "/" + kind)), name);
  state.addOperands(operands);
  state.addAttributes(attributes);
  for (Type element : elements)
    state.addTypes(UnrankedTensorType::get(element));
  Operation *op = builder.create(state);
  made.push_back(op);
  if (auto device = node->getDiscardableAttr(kDeviceAttr))
    op->setDiscardableAttr(kDeviceAttr, device);
  if (auto inferred = llvm::dyn_cast<ShapeInterface>(op); inferred && llvm::failed(inferred.inferShapes(shapes))) {
    invalid = true;
    return Values(elements.size());
  }
  for (Value result : op->getResults())
    if (auto sizes = shapes.getShape(result))
      result.setType(getTensorType(*sizes, elementOf(result)));
  return Values(op->getResults());
}

void GraphBuilder::takeBack() {
  for (Operation *op : llvm::reverse(made)) {
    for (Value result : op->getResults())
      shapes.forget(result);
    op->erase();
  }
  made.clear();
}

Value GraphBuilder::takeName(Value first) {
  Operation *maker = first.getDefiningOp();
  if (!maker || !llvm::is_contained(made, maker) || maker->getNumResults() != 1)
    first = make<IdentityOp>(first);
  first.getDefiningOp()->setLoc(node->getLoc());
  if (auto control = node->getDiscardableAttr(kControlAttr))
    for (Operation *op : made)
      op->setDiscardableAttr(kControlAttr, control);
  return first;
}

Value GraphBuilder::constant(DenseElementsAttr value) {
  if (failed())
    return {};
  OperationState state(NameLoc::get(builder.getStringAttr(getNodeName(node) + "/const")), ConstOp::getOperationName());
  state.addAttribute("value", value);
  state.addTypes(value.getType());
  Operation *op = builder.create(state);
  made.push_back(op);
  if (llvm::failed(llvm::cast<ShapeInterface>(op).inferShapes(shapes)))
    invalid = true;
  return op->getResult(0);
}

Value GraphBuilder::scalar(Type element, double value) {
  if (failed() || !element)
    return {};
  auto type = RankedTensorType::get({}, element);
  if (llvm::isa<FloatType>(element))
    return constant(DenseElementsAttr::get(type, Attribute(builder.getFloatAttr(element, value))));
  if (auto complex = llvm::dyn_cast<ComplexType>(element)) {
    auto part = llvm::cast<FloatType>(complex.getElementType());
    APFloat real = llvm::cast<FloatAttr>(builder.getFloatAttr(part, value)).getValue();
    return constant(
        DenseElementsAttr::get(type, std::complex<APFloat>(real, APFloat::getZero(part.getFloatSemantics()))));
  }
  if (!element.isInteger())
    return (void)fail("there are no constants of its type"), Value();
  if (element.isInteger(1))
    return constant(DenseElementsAttr::get(type, Attribute(builder.getBoolAttr(value != 0))));
  return constant(DenseElementsAttr::get(
      type, Attribute(IntegerAttr::get(element, APInt(element.getIntOrFloatBitWidth(), static_cast<int64_t>(value),
                                                      /*isSigned=*/true, /*implicitTrunc=*/true)))));
}

Value GraphBuilder::integers(ArrayRef<int64_t> values, bool wide) {
  auto type = RankedTensorType::get({static_cast<int64_t>(values.size())}, builder.getIntegerType(wide ? 64 : 32));
  return constant(DenseElementsAttr::get(type, llvm::map_to_vector(values, [&](int64_t value) {
                                           return APInt(wide ? 64 : 32, value, /*isSigned=*/true);
                                         })));
}

Value GraphBuilder::integer(int64_t value, bool wide) { return scalar(builder.getIntegerType(wide ? 64 : 32), value); }

Value GraphBuilder::table(ArrayRef<int64_t> shape, ArrayRef<float> values) {
  return constant(DenseElementsAttr::get(RankedTensorType::get(shape, builder.getF32Type()), values));
}

Value GraphBuilder::sizeOf(Value of, int64_t axis, Type element) {
  FailureOr<Dims> shape = getShape(of);
  if (llvm::failed(shape))
    return {};
  if ((*shape)[axis].isConstant() && !(*shape)[axis].isBound())
    return scalar(element, (*shape)[axis].getConstant());
  return askSizeOf(of, axis, element);
}

Value GraphBuilder::askSizeOf(Value of, int64_t axis, Type element) {
  Value all = make<ShapeOp>(of, {}, builder.getI32Type());
  Value size = make<StridedSliceOp>({all, integers({axis}), integers({axis + 1}), integers({1})},
                                    attribute("shrink_axis_mask", builder.getI64IntegerAttr(1)));
  return cast(size, element);
}

/// A size that depends on the batch, by an axis of `like` that does; null where there is none.
static Value sizeFrom(GraphBuilder &g, Dim size, Value like, ArrayRef<Dim> shape) {
  for (auto [axis, given] : llvm::enumerate(shape)) {
    if (!given.dependsOnBatch() || given.isBound() || given.dependsOnWholeBatch() || size.dependsOnWholeBatch() ||
        given.getScale() < 0)
      continue;
    // scale * b + offset, of which the axis says b.
    int64_t common = std::gcd(size.getScale(), given.getScale());
    int64_t times = size.getScale() / common, by = given.getScale() / common;
    Value found = g.sizeOf(like, axis, g.builder.getI32Type());
    if (given.getOffset() != 0)
      found = g.sub(found, g.integer(given.getOffset()));
    if (by != 1)
      found = g.make<FloorDivOp>({found, g.integer(by)});
    if (times != 1)
      found = g.mul(found, g.integer(times));
    return size.getOffset() == 0 ? found : g.add(found, g.integer(size.getOffset()));
  }
  return {};
}

Value GraphBuilder::sizes(ArrayRef<Dim> sizes, Value like) {
  if (llvm::all_of(sizes, [](Dim size) { return size.isConstant(); }))
    return integers(llvm::map_to_vector(sizes, [](Dim size) { return size.getConstant(); }));
  FailureOr<Dims> shape = getShape(like);
  if (llvm::failed(shape))
    return {};
  Values parts;
  for (Dim size : sizes) {
    if (size.isConstant()) {
      parts.push_back(integer(size.getConstant()));
      continue;
    }
    // A multiple of an axis that is there.
    Value found;
    for (auto [axis, given] : llvm::enumerate(*shape))
      if (Dim factor = floorDiv(size, given); !found && given.dependsOnBatch() && factor.isConstant()) {
        found = sizeOf(like, axis, builder.getI32Type());
        if (factor.getConstant() != 1)
          found = mul(found, integer(factor.getConstant()));
      }
    if (!found)
      found = sizeFrom(*this, size, like, *shape);
    if (!found)
      return (void)fail("a size that depends on the data is not known"), Value();
    parts.push_back(found);
  }
  return pack(parts, 0);
}

Value GraphBuilder::positions(Value of, int64_t axis, Type element) {
  Value count = sizeOf(of, axis, builder.getI32Type());
  Value range = make<RangeOp>({integer(0), count, integer(1)});
  return cast(range, element);
}

// ---- Arithmetic --------------------------------------------------------------------------------

Value GraphBuilder::add(Value x, Value y) { return make<AddV2Op>({x, y}); }
Value GraphBuilder::sub(Value x, Value y) { return make<SubOp>({x, y}); }
Value GraphBuilder::mul(Value x, Value y) { return make<MulOp>({x, y}); }
Value GraphBuilder::div(Value x, Value y) { return make<RealDivOp>({x, y}); }
Value GraphBuilder::maximum(Value x, Value y) { return make<MaximumOp>({x, y}); }
Value GraphBuilder::minimum(Value x, Value y) { return make<MinimumOp>({x, y}); }
Value GraphBuilder::neg(Value x) { return make<NegOp>(x); }
Value GraphBuilder::exp(Value x) { return make<ExpOp>(x); }
Value GraphBuilder::log(Value x) { return make<LogOp>(x); }
Value GraphBuilder::rsqrt(Value x) { return make<RsqrtOp>(x); }
Value GraphBuilder::pow(Value x, Value y) { return make<PowOp>({x, y}); }
Value GraphBuilder::equal(Value x, Value y) { return make<EqualOp>({x, y}, {}, builder.getI1Type()); }
Value GraphBuilder::less(Value x, Value y) { return make<LessOp>({x, y}, {}, builder.getI1Type()); }
Value GraphBuilder::lessEqual(Value x, Value y) { return make<LessEqualOp>({x, y}, {}, builder.getI1Type()); }
Value GraphBuilder::both(Value x, Value y) { return make<LogicalAndOp>({x, y}); }
Value GraphBuilder::either(Value x, Value y) { return make<LogicalOrOp>({x, y}); }
Value GraphBuilder::negate(Value x) { return make<LogicalNotOp>(x); }
Value GraphBuilder::select(Value condition, Value x, Value y) {
  return x ? make<SelectV2Op>({condition, x, y}, {}, elementOf(x)) : Value();
}
Value GraphBuilder::cast(Value x, Type element) {
  return !x || elementOf(x) == element ? x : make<CastOp>(x, {}, element);
}
Value GraphBuilder::addAll(ArrayRef<Value> values) { return values.size() == 1 ? values[0] : make<AddNOp>(values); }
Value GraphBuilder::zerosLike(Value x) { return make<ZerosLikeOp>(x); }

// ---- Layout --------------------------------------------------------------------------------------

/// `x` of shape `from` as one of shape `to` where axes of size 1 alone come and go; null where others do.
static Value moveOnes(GraphBuilder &g, Value x, ArrayRef<Dim> from, ArrayRef<Dim> to) {
  SmallVector<int64_t> gone, come;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    if (i < from.size() && j < to.size() && from[i] == to[j]) {
      ++i;
      ++j;
    } else if (i < from.size() && from[i] == Dim(1)) {
      gone.push_back(i++);
    } else if (j < to.size() && to[j] == Dim(1)) {
      come.push_back(j++);
    } else {
      return {};
    }
  }
  if (!gone.empty())
    x = g.make<SqueezeOp>({x}, g.attribute("squeeze_dims", g.builder.getI64ArrayAttr(gone)));
  for (int64_t axis : come)
    x = g.expandDims(x, axis);
  return x;
}

Value GraphBuilder::reshape(Value x, ArrayRef<Dim> shape) {
  auto isOpen = [](Dim size) { return !size.isConstant() || size.isBound(); };
  if (llvm::count_if(shape, isOpen) > 1)
    if (std::optional<Dims> from = shapes.getShape(x))
      if (Value moved = moveOnes(*this, x, *from, shape))
        return moved;
  SmallVector<int64_t> sizes;
  bool open = false, isZero = false;
  for (Dim size : shape) {
    if (isOpen(size)) {
      if (open)
        return (void)fail("two sizes of " + shapes::print(shape) + " depend on the batch"), Value();
      open = true;
      sizes.push_back(-1);
      continue;
    }
    isZero |= size.getConstant() == 0;
    sizes.push_back(size.getConstant());
  }
  if (open && isZero)
    return (void)fail("it has no elements"), Value();
  return make<ReshapeOp>({x, integers(sizes)});
}

Value GraphBuilder::transpose(Value x, ArrayRef<int64_t> permutation) {
  if (llvm::is_sorted(permutation))
    return x;
  return make<TransposeOp>({x, integers(permutation)});
}

Value GraphBuilder::expandDims(Value x, int64_t axis) { return make<ExpandDimsOp>({x, integer(axis)}); }

Value GraphBuilder::slice(Value x, int64_t axis, int64_t begin, int64_t size, int64_t stride) {
  FailureOr<Dims> shape = getShape(x);
  if (llvm::failed(shape))
    return {};
  if (begin == 0 && stride == 1 && (*shape)[axis] == Dim(size))
    return x;
  // Of nothing there is no last element.
  const int64_t end = size == 0 ? begin : begin + (size - 1) * stride + 1;
  return sliceBetween(x, shape->size(), axis, begin, end, stride);
}

Value GraphBuilder::sliceTo(Value x, int64_t axis, int64_t begin, Dim limit, int64_t stride) {
  FailureOr<Dims> shape = getShape(x);
  if (llvm::failed(shape))
    return {};
  if (limit.isConstant())
    return slice(x, axis, begin, llvm::divideCeil(limit.getConstant() - begin, stride), stride);
  const Dim rest = (*shape)[axis] - limit;
  if (!rest.isConstant() || rest.getConstant() < 0)
    return (void)fail("takes as much of an axis as the data say"), Value();
  if (begin == 0 && stride == 1 && rest == Dim(0))
    return x;
  // Counted from the end.
  return sliceBetween(x, shape->size(), axis, begin, rest == Dim(0) ? std::nullopt : std::optional(-rest.getConstant()),
                      stride);
}

Value GraphBuilder::sliceBetween(Value x, int64_t rank, int64_t axis, int64_t begin, std::optional<int64_t> end,
                                 int64_t stride) {
  SmallVector<int64_t> first(rank, 0), last(rank, 0), step(rank, 1);
  first[axis] = begin;
  last[axis] = end.value_or(0);
  step[axis] = stride;
  // Of the other axes all; up to the end where nothing is left out there.
  const int64_t others = ((int64_t(1) << rank) - 1) & ~(int64_t(1) << axis);
  return make<StridedSliceOp>(
      {x, integers(first), integers(last), integers(step)},
      {attribute("begin_mask", builder.getI64IntegerAttr(others)),
       attribute("end_mask", builder.getI64IntegerAttr(end ? others : others | int64_t(1) << axis))});
}

Value GraphBuilder::concat(ArrayRef<Value> values, int64_t axis) {
  if (values.size() == 1)
    return values[0];
  Values operands(values);
  operands.push_back(integer(axis));
  return make<ConcatV2Op>(operands);
}

Value GraphBuilder::pack(ArrayRef<Value> values, int64_t axis) {
  return make<PackOp>(values, attribute("axis", builder.getI64IntegerAttr(axis)));
}

Value GraphBuilder::reverse(Value x, int64_t axis) { return make<ReverseV2Op>({x, integers({axis})}); }

Value GraphBuilder::pad(Value x, ArrayRef<int64_t> paddings, Value value) {
  if (llvm::all_of(paddings, [](int64_t size) { return size == 0; }))
    return x;
  if (failed())
    return {};
  auto type = RankedTensorType::get({static_cast<int64_t>(paddings.size()) / 2, 2}, builder.getI32Type());
  Value table =
      constant(DenseElementsAttr::get(type, ArrayRef<int32_t>(SmallVector<int32_t>(paddings.begin(), paddings.end()))));
  return value ? make<PadV2Op>({x, table, value}) : make<PadOp>({x, table});
}

Value GraphBuilder::padAxis(Value x, int64_t axis, int64_t before, int64_t behind, Value value) {
  FailureOr<Dims> shape = getShape(x);
  if (llvm::failed(shape))
    return {};
  SmallVector<int64_t> paddings(2 * shape->size(), 0);
  paddings[2 * axis] = before;
  paddings[2 * axis + 1] = behind;
  return pad(x, paddings, value);
}

Value GraphBuilder::tile(Value x, ArrayRef<int64_t> multiples) { return make<TileOp>({x, integers(multiples)}); }
Value GraphBuilder::broadcastTo(Value x, Value shape) { return make<BroadcastToOp>({x, shape}); }
Value GraphBuilder::gather(Value x, Value indices, int64_t axis, int64_t batchDims) {
  return make<GatherV2Op>({x, indices, integer(axis)}, attribute("batch_dims", builder.getI64IntegerAttr(batchDims)));
}

// ---- Reductions and products ------------------------------------------------------------------------

Value GraphBuilder::reduce(StringRef op, Value x, ArrayRef<int64_t> axes, bool keepDims) {
  if (!x)
    return {};
  Values results = create(op, {x, integers(axes)}, elementOf(x), flag("keep_dims", keepDims));
  return results[0];
}
Value GraphBuilder::sum(Value x, ArrayRef<int64_t> axes, bool keepDims) {
  return reduce(SumOp::getOperationName(), x, axes, keepDims);
}
Value GraphBuilder::mean(Value x, ArrayRef<int64_t> axes, bool keepDims) {
  return reduce(MeanOp::getOperationName(), x, axes, keepDims);
}
Value GraphBuilder::matMul(Value a, Value b, bool transposeA, bool transposeB) {
  return make<MatMulOp>({a, b}, {flag("transpose_a", transposeA), flag("transpose_b", transposeB)});
}
Value GraphBuilder::batchMatMul(Value a, Value b, bool transposeA, bool transposeB) {
  return make<BatchMatMulV2Op>({a, b}, {flag("adj_x", transposeA), flag("adj_y", transposeB)});
}
Value GraphBuilder::segmentSum(Value data, Value ids, Value count) {
  return make<UnsortedSegmentSumOp>({data, ids, count});
}

// ---- Shapes of composites ---------------------------------------------------------------------------

LogicalResult shapes::composite(Operation *op, ShapeContext &context) {
  // Made beside the graph, looked at, and thrown away.
  Block scratch;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointToStart(&scratch);
  GraphBuilder g(builder, context, op);
  FailureOr<SmallVector<Value>> values = llvm::cast<CompositeInterface>(op).decompose(g);
  const bool isKnown = succeeded(values) && !g.failed();
  if (isKnown)
    for (auto [result, value] : llvm::zip(op->getResults(), *values)) {
      if (auto shape = context.getShape(value))
        context.setShape(result, *shape);
      if (auto elements = context.getElements(value))
        context.setElements(result, *elements);
    }
  g.takeBack();
  // Where it is not known, for want of a shape or of a constant, nothing is said.
  return success(isKnown || !g.getReason().empty() || !g.failed());
}

} // namespace distc::dfg
