//===- EntryLowering.cpp - From a graph's entry to the runtime's plan ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/entries/EntryLowering.h"
#include "dialects/dist/Dist.h"
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/Matchers.h"
#include "passes/lower/kernels/FusionPlan.h"
#include "passes/lower/kernels/Reshapes.h"
#include "runtime/include/drt/drt.h"

using namespace mlir;

namespace distc::lower {

LogicalResult EntryLowering::lowerComputation(Operation *node) {
  // What has no elements is computed by nothing.
  const bool computes = isMemoryEffectFree(node) || node->hasTrait<dfg::DrawsNumbers>();
  if (computes && node->getNumResults() && llvm::all_of(node->getResultTypes(), [](Type type) {
        auto tensor = llvm::dyn_cast<RankedTensorType>(type);
        return tensor && isEmpty(tensor);
      })) {
    for (OpResult result : node->getResults())
      set(result, empty(node->getLoc(), typeOf(result)));
    return success();
  }
  if (NodeLowering fn = table.lookup(node->getName()))
    return fn(*this, node);
  if (auto scalar = llvm::dyn_cast<dfg::ScalarInterface>(node))
    return lowerElementwise(*this, scalar);
  if (auto reduction = llvm::dyn_cast<dfg::ReductionInterface>(node))
    return lowerReduction(*this, reduction);
  return node->emitError() << "node '" << dfg::getNodeName(node) << "' (" << node->getName().stripDialect()
                           << ") must run, but there is no code for it on this target";
}

Value EntryLowering::empty(Location loc, RankedTensorType type) {
  return drt::EmptyOp::create(builder, loc, type, DenseI64ArrayAttr());
}

TypedAttr EntryLowering::getSplat(Value tensor) {
  auto constant = tensor.getDefiningOp<arith::ConstantOp>();
  auto splat = constant ? llvm::dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
  return splat ? splat.getSplatValue<TypedAttr>() : TypedAttr();
}

FailureOr<SmallVector<int64_t>> EntryLowering::getConstants(Operation *node, unsigned operand) {
  DenseIntElementsAttr elements;
  if (isEmpty(typeOf(get(node->getOperand(operand)))))
    return SmallVector<int64_t>();
  if (auto constant = get(node->getOperand(operand)).getDefiningOp<arith::ConstantOp>())
    elements = llvm::dyn_cast<DenseIntElementsAttr>(constant.getValue());
  if (!elements) {
    node->emitError()
        << "node '" << dfg::getNodeName(node) << "': operand " << operand
        << " must be a constant when code is generated, but depends on values that are only known when it runs";
    return failure();
  }
  // Axes, shapes and paddings; more than that is no operand of this kind, whose elements are taken one by one.
  constexpr int64_t kMaxConstants = 1 << 16;
  if (elements.getNumElements() > kMaxConstants) {
    node->emitError() << "node '" << dfg::getNodeName(node) << "': operand " << operand << " has "
                      << elements.getNumElements() << " elements, more than code can be generated for";
    return failure();
  }
  return llvm::map_to_vector(elements.getValues<APInt>(), [](const APInt &element) { return element.getSExtValue(); });
}

namespace {

/// Of indices, those for which something else stands where they are of no use here: another shard's rows of a split
/// variable and labels that do not count are a constant, what counts from the end counts from the begin. Null where
/// there are none.
Value getOtherThanFixed(dfg::SelectV2Op select) {
  auto isFixed = [](Value value, Value other) {
    Operation *made = value.getDefiningOp();
    while (made && (made->hasTrait<dfg::Reshapes>() || llvm::isa<dfg::BroadcastToOp, dfg::CastOp>(made)))
      made = made->getOperand(0).getDefiningOp();
    return made && (llvm::isa<dfg::ConstOp>(made) || (llvm::isa<dfg::AddV2Op>(made) && made->getOperand(0) == other &&
                                                      made->getOperand(1).getDefiningOp<dfg::ConstOp>()));
  };
  return isFixed(select.getY(), select.getZ())   ? select.getZ()
         : isFixed(select.getZ(), select.getY()) ? select.getY()
                                                 : Value();
}

/// Where a tensor of indices comes from, for messages: the feed whose elements it has, in their order, and how many of
/// them belong to a row; else the node that makes it.
std::pair<std::string, int64_t> getOrigin(Value indices) {
  auto rowsOf = [](Value value) -> int64_t {
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() && type.getRank() > 0 ? type.getDimSize(0) : 0;
  };
  Value origin = indices;
  // Of a row's elements there may be copies; what is copied otherwise has no rows.
  std::optional<int64_t> rowsCopied;
  auto follow = [&](Value from) {
    auto source = llvm::dyn_cast<RankedTensorType>(from.getType());
    auto copy = llvm::dyn_cast<RankedTensorType>(origin.getType());
    const bool isSame = source && copy && source.getShape() == copy.getShape();
    if (!origin.getDefiningOp()->hasTrait<dfg::Reshapes>() && !isSame) {
      const int64_t rows = rowsOf(from);
      const bool keepsRows = source && copy && source.getRank() == copy.getRank() && rows == rowsOf(origin) &&
                             rowsCopied.value_or(rows) == rows;
      rowsCopied = keepsRows ? rows : 0;
    }
    origin = from;
  };
  while (Operation *node = origin.getDefiningOp()) {
    if (auto select = llvm::dyn_cast<dfg::SelectV2Op>(node)) {
      Value other = getOtherThanFixed(select);
      if (!other)
        break;
      follow(other);
    } else if (node->hasTrait<dfg::Forwards>() || node->hasTrait<dfg::Reshapes>() ||
               llvm::isa<dfg::CastOp, dfg::BroadcastToOp>(node)) {
      follow(node->getOperand(0));
    } else {
      break;
    }
  }
  if (auto feed = origin.getDefiningOp<dfg::PlaceholderOp>()) {
    auto share = feed->getAttrOfType<StringAttr>("dist.feed");
    const int64_t rows = rowsOf(origin);
    auto type = llvm::dyn_cast<RankedTensorType>(indices.getType());
    bool batched = share && share.getValue() == "sharded" && type && type.hasStaticShape() && rows > 0 &&
                   rowsCopied.value_or(rows) == rows && type.getNumElements() % rows == 0;
    return {("the feed '" + dfg::getNodeName(feed) + "'").str(), batched ? type.getNumElements() / rows : 0};
  }
  Operation *maker = indices.getDefiningOp();
  return {maker ? ("'" + dfg::getNodeName(maker) + "'").str() : "its operand", 0};
}

} // namespace

void EntryLowering::notePadding(Operation *node) {
  // What a server takes its replicas have checked.
  auto take = llvm::dyn_cast<dist::TakeOp>(node);
  auto slices = llvm::dyn_cast<dist::AllGatherSlicesOp>(node);
  bool makes = (take && take.getRows()) || (slices && slices.getShards()) || node->hasAttr(dfg::kPaddingAttr) ||
               node->hasTrait<dfg::FindsDistinct>() || node->hasTrait<dfg::FillsUp>() ||
               llvm::isa<dist::OwnRowsOp>(node);
  if (makes || llvm::any_of(node->getOperands(), [&](Value operand) { return padded.contains(operand); }))
    padded.insert_range(node->getResults());
}

LogicalResult EntryLowering::checkIndices(Operation *node, unsigned operand, ArrayRef<int64_t> sizes) {
  // On GPUs an index that is outside gives what TensorFlow's kernels give there: zeros, and NaN for a label.
  if (!asserts || isForDevices || sizes.size() > DRT_MAX_INDEX_DEPTH)
    return success();
  Value given = node->getOperand(operand), indices = get(given);
  if (typeOf(indices).getNumElements() == 0 || sizes.empty())
    return success();
  if (sizes.size() == 1 && !checked.insert({indices, sizes.front()}).second)
    return success();
  auto constant = indices.getDefiningOp<arith::ConstantOp>();
  if (auto elements = constant ? llvm::dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr()) {
    for (auto [i, element] : llvm::enumerate(elements.getValues<APInt>())) {
      int64_t size = sizes[i % sizes.size()], index = element.getSExtValue();
      if (index < 0 || index >= size)
        return node->emitError() << "node '" << dfg::getNodeName(node) << "' has the index " << index
                                 << ", which is outside of [0, " << size << ")";
    }
    return success();
  }
  auto [name, perRow] = getOrigin(given);
  if (perRow % static_cast<int64_t>(sizes.size()) != 0)
    perRow = 0;
  drt::CheckIndicesOp::create(builder, node->getLoc(), name, sizes, perRow / static_cast<int64_t>(sizes.size()),
                              padded.contains(given), indices);
  return success();
}

Value EntryLowering::mapped(Location loc, RankedTensorType type, ValueRange inputs, ArrayRef<AffineMap> maps,
                            ScalarFn fn) {
  if (isEmpty(type))
    return empty(loc, type);
  // Constants with equal elements become scalars of the kernel instead of inputs.
  SmallVector<Value> operands;
  SmallVector<AffineMap> operandMaps;
  SmallVector<int> position;
  for (auto [input, map] : llvm::zip(inputs, maps)) {
    if (getSplat(input)) {
      position.push_back(-1);
      continue;
    }
    position.push_back(operands.size());
    operands.push_back(input);
    operandMaps.push_back(map);
  }
  operandMaps.push_back(builder.getMultiDimIdentityMap(type.getRank()));
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(), type.getElementType());
  SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, type, operands, init, operandMaps, iterators,
      [&](OpBuilder &body, Location bodyLoc, ValueRange arguments) {
        dfg::ScalarBuilder s(body, bodyLoc);
        SmallVector<Value> elements;
        for (auto [input, at] : llvm::zip(inputs, position))
          elements.push_back(at < 0 ? Value(arith::ConstantOp::create(body, bodyLoc, getSplat(input))) : arguments[at]);
        linalg::YieldOp::create(body, bodyLoc, fn(s, elements));
      });
  return generic.getResult(0);
}

Value EntryLowering::elementwise(Location loc, RankedTensorType type, ValueRange inputs, ScalarFn fn) {
  SmallVector<AffineMap> maps;
  for (Value input : inputs) {
    auto inputType = llvm::cast<RankedTensorType>(input.getType());
    int64_t lead = type.getRank() - inputType.getRank();
    SmallVector<AffineExpr> expressions;
    for (int64_t axis = 0; axis < inputType.getRank(); ++axis)
      expressions.push_back(inputType.getDimSize(axis) == 1 && type.getDimSize(lead + axis) != 1
                                ? builder.getAffineConstantExpr(0)
                                : builder.getAffineDimExpr(lead + axis));
    maps.push_back(AffineMap::get(type.getRank(), 0, expressions, builder.getContext()));
  }
  return mapped(loc, type, inputs, maps, fn);
}

Value EntryLowering::gather(Location loc, RankedTensorType type, ElementFn fn) {
  return mapped(loc, type, {}, {}, [&](dfg::ScalarBuilder &s, ValueRange) {
    SmallVector<Value> indices;
    for (int64_t axis = 0; axis < type.getRank(); ++axis)
      indices.push_back(linalg::IndexOp::create(s.builder, s.loc, axis));
    return fn(s, indices);
  });
}

Value EntryLowering::load(dfg::ScalarBuilder &s, Value tensor, ValueRange indices) {
  if (TypedAttr splat = getSplat(tensor))
    return arith::ConstantOp::create(s.builder, s.loc, splat);
  // Never reached: what the position is compared with says so.
  if (isEmpty(typeOf(tensor)))
    return s.constant(typeOf(tensor).getElementType(), 0.0);
  return tensor::ExtractOp::create(s.builder, s.loc, tensor, indices);
}

Value EntryLowering::reduce(Location loc, Value input, ArrayRef<int64_t> axes, Type elementType,
                            llvm::function_ref<Value(dfg::ScalarBuilder &)> initial,
                            llvm::function_ref<Value(dfg::ScalarBuilder &, Value, Value)> combine) {
  auto inputType = llvm::cast<RankedTensorType>(input.getType());
  // Over an axis of one element nothing is combined: what a gradient sums of a batch of one, say.
  if (llvm::any_of(axes, [&](int64_t axis) { return inputType.getDimSize(axis) == 1; })) {
    SmallVector<int64_t> sizes, longAxes;
    for (int64_t axis = 0; axis < inputType.getRank(); ++axis) {
      const bool isReduced = llvm::is_contained(axes, axis);
      if (isReduced && inputType.getDimSize(axis) == 1)
        continue;
      if (isReduced)
        longAxes.push_back(static_cast<int64_t>(sizes.size()));
      sizes.push_back(inputType.getDimSize(axis));
    }
    return longAxes.empty() ? reshape(loc, reduce(loc, input, {}, elementType, initial, combine), sizes)
                            : reduce(loc, reshape(loc, input, sizes), longAxes, elementType, initial, combine);
  }
  // Over no axes it is element-wise: as a sum that starts from a filled result, it would keep that result as an operand
  // of whatever it is fused into.
  if (axes.empty())
    return elementwise(loc, inputType.clone(elementType), input,
                       [&](dfg::ScalarBuilder &s, ValueRange elements) { return combine(s, initial(s), elements[0]); });
  int64_t rank = inputType.getRank();
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  for (int64_t axis : axes)
    iterators[axis] = utils::IteratorType::reduction;
  SmallVector<int64_t> shape;
  SmallVector<AffineExpr> kept;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (iterators[axis] == utils::IteratorType::parallel) {
      shape.push_back(inputType.getDimSize(axis));
      kept.push_back(builder.getAffineDimExpr(axis));
    }
  auto resultType = RankedTensorType::get(shape, elementType);
  if (isEmpty(resultType))
    return empty(loc, resultType);
  dfg::ScalarBuilder outside(builder, loc);
  Value first = initial(outside);
  TypedAttr start;
  if (!matchPattern(first, m_Constant(&start)))
    llvm::report_fatal_error("a reduction starts from a constant");
  if (isEmpty(inputType))
    return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(resultType, start));
  // Without a loop that reduces, the result is computed once and must not be read as what was accumulated before.
  if (axes.empty())
    return elementwise(loc, resultType, input, [&](dfg::ScalarBuilder &s, ValueRange x) {
      return combine(s, arith::ConstantOp::create(s.builder, s.loc, start), x[0]);
    });
  RankedTensorType type = resultType;
  const bool isNarrow = isNarrowFloat(elementType);
  if (isNarrow) {
    type = resultType.clone(builder.getF32Type());
    first = arith::ConstantOp::create(
        builder, loc, builder.getF32FloatAttr(llvm::cast<FloatAttr>(start).getValue().convertToFloat()));
  }
  Value output = tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
  Value init = linalg::FillOp::create(builder, loc, ValueRange{first}, ValueRange{output}).getResult(0);
  SmallVector<AffineMap> maps = {builder.getMultiDimIdentityMap(rank),
                                 AffineMap::get(rank, 0, kept, builder.getContext())};
  auto generic = linalg::GenericOp::create(
      builder, loc, type, input, init, maps, iterators, [&](OpBuilder &body, Location bodyLoc, ValueRange arguments) {
        dfg::ScalarBuilder s(body, bodyLoc);
        Value element = isNarrow ? s.cast(arguments[0], type.getElementType()) : arguments[0];
        linalg::YieldOp::create(body, bodyLoc, combine(s, arguments[1], element));
      });
  return isNarrow ? cast(loc, generic.getResult(0), elementType) : generic.getResult(0);
}

Value EntryLowering::cast(Location loc, Value tensor, Type elementType) {
  RankedTensorType type = typeOf(tensor);
  if (type.getElementType() == elementType)
    return tensor;
  return elementwise(loc, type.clone(elementType), tensor,
                     [&](dfg::ScalarBuilder &s, ValueRange x) { return s.cast(x[0], elementType); });
}

Value EntryLowering::reshape(Location loc, Value tensor, ArrayRef<int64_t> shape) {
  auto type = llvm::cast<RankedTensorType>(tensor.getType());
  if (type.getShape() == shape)
    return tensor;
  if (Operation *made = tensor.getDefiningOp(); isReshape(made))
    if (Value before = made->getOperand(0); typeOf(before).getShape() == shape)
      return before;
  auto target = RankedTensorType::get(shape, type.getElementType());
  if (isEmpty(type))
    return empty(loc, target);
  if (auto constant = tensor.getDefiningOp<arith::ConstantOp>())
    if (auto elements = llvm::dyn_cast<DenseElementsAttr>(constant.getValue()))
      return arith::ConstantOp::create(builder, loc, elements.reshape(target));
  auto direct = [&](RankedTensorType from, RankedTensorType to) { return getReassociationIndicesForReshape(from, to); };
  if (auto groups = direct(type, target)) {
    if (type.getRank() > target.getRank())
      return tensor::CollapseShapeOp::create(builder, loc, target, tensor, *groups);
    return tensor::ExpandShapeOp::create(builder, loc, target, tensor, *groups);
  }
  // Through one axis.
  Value flat = tensor;
  if (type.getRank() != 1)
    flat = reshape(loc, tensor, {type.getNumElements()});
  return reshape(loc, flat, shape);
}

Value EntryLowering::constant(Location loc, RankedTensorType type, double value) {
  Type element = type.getElementType();
  Attribute splat = llvm::isa<FloatType>(element) ? Attribute(builder.getFloatAttr(element, value))
                    : element.isInteger(1) ? Attribute(builder.getBoolAttr(value != 0))
                                           : Attribute(builder.getIntegerAttr(element, static_cast<int64_t>(value)));
  return arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, splat));
}

/// The operand whose elements say how large what `node` makes of tensors of known sizes is; null for any other node.
static Operation *findSizes(Operation *node) {
  auto isStatic = [](Type type) {
    auto ranked = llvm::dyn_cast<RankedTensorType>(type);
    return ranked && ranked.hasStaticShape();
  };
  if (!llvm::all_of(node->getOperandTypes(), isStatic))
    return nullptr;
  for (Value operand : node->getOperands())
    if (Operation *op = operand.getDefiningOp(); op && !llvm::isa<dfg::ConstOp>(op) && !dfg::getNodeName(op).empty())
      return op;
  return nullptr;
}

/// A number that is fed, of which a size of `node` is made; null where there is none.
static Operation *findFedSize(Operation *node) {
  SmallVector<std::pair<Operation *, int>> work = {{node, 0}};
  constexpr int kMaxDepth = 8;
  llvm::DenseSet<Operation *> seen;
  while (!work.empty()) {
    auto [op, depth] = work.pop_back_val();
    for (Value operand : op->getOperands()) {
      Operation *def = operand.getDefiningOp();
      auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
      // Sizes are integers, as scalars or vectors.
      if (!def || !type || type.getRank() > 1 || !type.getElementType().isInteger() ||
          type.getElementType().isInteger(1) || depth == kMaxDepth || !seen.insert(def).second)
        continue;
      if (llvm::isa<dfg::PlaceholderOp, dfg::PlaceholderWithDefaultOp>(def) && type.getRank() == 0)
        return def;
      if (!def->hasTrait<dfg::AsksShapes>())
        work.emplace_back(def, depth + 1);
    }
  }
  return nullptr;
}

FailureOr<RankedTensorType> getStaticType(Operation *node, unsigned result) {
  auto type = llvm::dyn_cast<RankedTensorType>(node->getResult(result).getType());
  if (!type || !type.hasStaticShape()) {
    InFlightDiagnostic error = node->emitError() << "node '" << dfg::getNodeName(node) << "' has no static shape ("
                                                 << node->getResult(result).getType() << "): ";
    if (Operation *feed = findFedSize(node))
      error << "a size of it is what '" << dfg::getNodeName(feed)
            << "' is fed, which is known when the program runs; take the batch's size of a feed (tf.shape(x)[0]), and "
               "other sizes as constants";
    else if (Operation *sizes = findSizes(node))
      error << "what '" << dfg::getNodeName(sizes)
            << "' computes says how large it is, when the program runs; make its size a number (maxlen of "
               "tf.sequence_mask, for example)";
    else
      error << "give the global batch with --batch, or the shapes of its feeds with --feed NAME=SHAPE";
    return failure();
  }
  Type element = type.getElementType();
  if (!llvm::isa<FloatType>(element) && !element.isSignlessInteger()) {
    node->emitError() << "node '" << dfg::getNodeName(node) << "': no code can be generated for elements of type "
                      << element
                      << (element.isUnsignedInteger() ? "; cast them to int32, int64 or float32 before what uses them"
                                                      : "");
    return failure();
  }
  return type;
}

LogicalResult lowerElementwise(EntryLowering &lowering, dfg::ScalarInterface node) {
  Operation *op = node;
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  SmallVector<Value> inputs =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return lowering.get(operand); });
  // What hands its operand on is no work.
  if (inputs.size() == 1 && op->hasTrait<dfg::Forwards>()) {
    lowering.set(op->getResult(0), inputs[0]);
    return success();
  }
  if (llvm::isa<dfg::BitcastOp>(op) && typeOf(inputs[0]).getShape() != type->getShape()) {
    op->emitError() << "node '" << dfg::getNodeName(op) << "' takes " << typeOf(inputs[0]) << " for " << *type
                    << "; there is code for elements of one width only";
    return failure();
  }
  // Version 1 of Select chooses rows by a condition of rank 1.
  if (llvm::isa<dfg::SelectOp>(op)) {
    auto condition = llvm::cast<RankedTensorType>(inputs[0].getType());
    if (condition.getRank() == 1 && type->getRank() > 1) {
      SmallVector<int64_t> shape(type->getRank(), 1);
      shape[0] = condition.getDimSize(0);
      inputs[0] = lowering.reshape(op->getLoc(), inputs[0], shape);
    }
  }
  auto emit = [&](dfg::ScalarBuilder &s, ValueRange elements) {
    // Narrow floats are rounded once, when everything is computed.
    if (llvm::isa<dfg::BitcastOp>(op))
      return node.emitScalar(s, elements);
    SmallVector<Value> wide = llvm::map_to_vector(
        elements, [&](Value x) { return isNarrowFloat(x.getType()) ? s.cast(x, s.builder.getF32Type()) : x; });
    return s.cast(node.emitScalar(s, wide), type->getElementType());
  };
  // A sum of very many tensors goes on from what the first of them gave, in the same order.
  if (llvm::isa<dfg::AddNOp>(op))
    while (inputs.size() > kMaxKernelInputs) {
      inputs[kMaxKernelInputs - 1] =
          lowering.elementwise(op->getLoc(), *type, ArrayRef(inputs).take_front(kMaxKernelInputs), emit);
      inputs.erase(inputs.begin(), inputs.begin() + kMaxKernelInputs - 1);
    }
  lowering.set(op->getResult(0), lowering.elementwise(op->getLoc(), *type, inputs, emit));
  return success();
}

LogicalResult lowerReduction(EntryLowering &lowering, dfg::ReductionInterface node) {
  Operation *op = node;
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  Value input = lowering.get(op->getOperand(0));
  auto inputType = llvm::cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> axes;
  if (op->getNumOperands() > 1) {
    FailureOr<SmallVector<int64_t>> given = lowering.getConstants(op, 1);
    if (failed(given))
      return failure();
    for (int64_t axis : *given)
      axes.push_back(axis < 0 ? axis + inputType.getRank() : axis);
    llvm::sort(axes);
    axes.erase(llvm::unique(axes), axes.end());
  } else {
    axes = llvm::to_vector(llvm::seq<int64_t>(0, inputType.getRank()));
  }
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= inputType.getDimSize(axis);
  const bool isMean = llvm::isa<dfg::MeanOp>(op);
  if (isMean && count == 0 && !isEmpty(*type) && !llvm::isa<FloatType>(type->getElementType())) {
    op->emitError() << "node '" << dfg::getNodeName(op)
                    << "' divides by the number of its elements, which is 0: the mean of no " << type->getElementType()
                    << " is no number";
    return failure();
  }
  // As in TensorFlow's kernels: narrow floats are accumulated in float32, what is averaged of integers in int64.
  Type element = type->getElementType(), wide = element;
  if (isNarrowFloat(element))
    wide = lowering.builder.getF32Type();
  else if (isMean && element.isInteger())
    wide = lowering.builder.getI64Type();
  Value reduced = lowering.reduce(
      op->getLoc(), lowering.cast(op->getLoc(), input, wide), axes, wide,
      [&](dfg::ScalarBuilder &s) { return node.emitInitial(s, wide); },
      [&](dfg::ScalarBuilder &s, Value accumulator, Value element) {
        return node.emitCombine(s, accumulator, element);
      });
  // A final step, where the operation has one.
  auto reducedType = llvm::cast<RankedTensorType>(reduced.getType());
  if (isMean || llvm::isa<dfg::EuclideanNormOp, dfg::L2LossOp>(op))
    reduced = lowering.elementwise(op->getLoc(), reducedType, reduced, [&](dfg::ScalarBuilder &s, ValueRange elements) {
      return node.emitFinal(s, elements[0], count);
    });
  lowering.set(op->getResult(0),
               lowering.reshape(op->getLoc(), lowering.cast(op->getLoc(), reduced, element), type->getShape()));
  return success();
}

} // namespace distc::lower
