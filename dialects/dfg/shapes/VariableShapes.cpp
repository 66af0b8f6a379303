//===- VariableShapes.cpp - Shapes of variables, feeds, updates; what has its operand's shape ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeSupport.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace distc::dfg::shapes {

LogicalResult unknown(Operation *, ShapeContext &) { return success(); }

/// Other elements in the shape of the first operand.
LogicalResult sameShape(Operation *op, ShapeContext &context) {
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setShape(op->getResult(0), *shape);
  return success();
}

/// The first operand itself.
LogicalResult same(Operation *op, ShapeContext &context) {
  if (failed(sameShape(op, context)))
    return failure();
  if (auto elements = context.getElements(op->getOperand(0)))
    context.setElements(op->getResult(0), *elements);
  return success();
}

LogicalResult loop(Operation *op, ShapeContext &context) {
  auto loop = llvm::cast<WhileOp>(op);
  for (Region *region : {&loop.getCondition(), &loop.getBody()}) {
    for (auto [number, argument] : llvm::enumerate(region->getArguments())) {
      if (auto shape = context.getShape(op->getOperand(number)))
        context.setShape(argument, *shape);
      auto elements = context.getElements(op->getOperand(number));
      if (elements && loop.isInvariant(number))
        context.setElements(argument, *elements);
    }
    if (failed(context.run(region->front())))
      return failure();
  }
  for (auto [number, next] : llvm::enumerate(loop.getBody().front().getTerminator()->getOperands())) {
    auto before = context.getShape(op->getOperand(number)), after = context.getShape(next);
    auto differ = [](Dim x, Dim y) { return x.isKnown() && y.isKnown() && !(x == y); };
    if (before && after && (before->size() != after->size() || llvm::any_of(llvm::zip(*before, *after), [&](auto both) {
                              return std::apply(differ, both);
                            })))
      return op->emitOpError() << "has variable " << number << " of shape " << print(*before)
                               << " that an iteration makes one of shape " << print(*after);
    if (before)
      context.setShape(op->getResult(number), *before);
    if (auto elements = context.getElements(op->getOperand(number)); elements && loop.isInvariant(number))
      context.setElements(op->getResult(number), *elements);
  }
  return success();
}

LogicalResult scan(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  if (failed(checkScalar(op, context, 1)))
    return failure();
  if (auto axis = context.getConstant(op->getOperand(1));
      input && axis && failed(normalizeAxis(op, *axis, input->size())))
    return failure();
  auto elements = context.getElements(op->getOperand(0));
  if (input && input->size() == 1 && elements && isInteger(op->getResult(0)) && llvm::isa<CumsumOp, CumprodOp>(op)) {
    auto isSet = [&](StringRef name) {
      auto flag = op->getAttrOfType<BoolAttr>(name);
      return flag && flag.getValue();
    };
    if (isSet("reverse"))
      std::reverse(elements->begin(), elements->end());
    Dim all = llvm::isa<CumsumOp>(op) ? 0 : 1;
    for (Dim &element : *elements) {
      Dim next = llvm::isa<CumsumOp>(op) ? all + element : all * element;
      element = isSet("exclusive") ? all : next;
      all = next;
    }
    if (isSet("reverse"))
      std::reverse(elements->begin(), elements->end());
    context.setElements(op->getResult(0), std::move(*elements));
  }
  return sameShape(op, context);
}

LogicalResult reverse(Operation *op, ShapeContext &context) {
  auto input = context.getShape(op->getOperand(0));
  auto axes = context.getConstants(op->getOperand(1));
  llvm::SmallSet<int64_t, 4> reversed;
  if (input && axes)
    for (int64_t axis : *axes) {
      FailureOr<int64_t> along = normalizeAxis(op, axis, input->size());
      if (failed(along))
        return failure();
      if (!reversed.insert(*along).second)
        return op->emitOpError() << "names axis " << *along << " twice";
    }
  if (!input)
    return success();
  context.setShape(op->getResult(0), *input);
  auto elements = context.getElements(op->getOperand(0));
  if (!axes || !elements || input->size() > 1)
    return success();
  if (!reversed.empty())
    std::reverse(elements->begin(), elements->end());
  context.setElements(op->getResult(0), std::move(*elements));
  return success();
}

LogicalResult rows(Operation *op, ShapeContext &context) {
  if (auto input = context.getShape(op->getOperand(0)); input && input->empty())
    return op->emitOpError("needs a tensor with an axis, not a scalar");
  return sameShape(op, context);
}

LogicalResult scalar(Operation *op, ShapeContext &context) {
  for (Value result : op->getResults())
    context.setShape(result, {});
  return success();
}

LogicalResult read(Operation *op, ShapeContext &context) {
  if (auto ref = llvm::dyn_cast<RefType>(op->getOperand(0).getType()))
    if (auto type = llvm::dyn_cast<RankedTensorType>(ref.getValueType())) {
      Dims sizes;
      for (int64_t size : type.getShape())
        sizes.push_back(ShapedType::isDynamic(size) ? Dim() : Dim(size));
      context.setShape(op->getResult(0), std::move(sizes));
    }
  return success();
}

/// The shape that values have which `indices` say the rows of, or the slices, of a variable of shape `sizes`.
static std::optional<Dims> getRowsShape(UpdateInterface update, ArrayRef<Dim> sizes, const Dims &indices) {
  size_t depth = 1;
  Dims rows = indices;
  if (update.hasIndexVectors()) {
    if (indices.empty() || !indices.back().isConstant() || indices.back().getConstant() < 0)
      return std::nullopt;
    depth = indices.back().getConstant();
    rows.pop_back();
  }
  if (depth > sizes.size())
    return std::nullopt;
  rows.append(sizes.begin() + depth, sizes.end());
  return rows;
}

/// Slots are of the variable's shape, its gradient too or of its rows', all else that an optimizer takes is scalar.
static LogicalResult checkUpdate(UpdateInterface update, ShapeContext &context, const Dims &sizes) {
  Operation *op = update;
  SmallVector<unsigned> written = update.getWrittenOperands();
  int gradient = update.getGradientOperand(), indicesOperand = update.getIndicesOperand();
  for (unsigned slot : written)
    if (auto shape = context.getShape(op->getOperand(slot)); shape && !fits(*shape, sizes))
      return op->emitOpError() << "updates a variable of shape " << print(sizes) << " with a slot of shape "
                               << print(*shape);
  if (update.isOptimizerUpdate())
    for (int operand = 0; operand < static_cast<int>(op->getNumOperands()); ++operand)
      if (operand != gradient && operand != indicesOperand &&
          !llvm::is_contained(written, static_cast<unsigned>(operand)) && failed(checkScalar(op, context, operand)))
        return failure();
  auto given = gradient >= 0 ? context.getShape(op->getOperand(gradient)) : std::nullopt;
  auto indices = indicesOperand >= 0 ? context.getShape(op->getOperand(indicesOperand)) : std::nullopt;
  if (!given || (indicesOperand >= 0 && !indices))
    return success();
  if (!indices) {
    if (!fits(*given, sizes))
      return op->emitOpError() << "updates a variable of shape " << print(sizes) << " with a value of shape "
                               << print(*given);
    return success();
  }
  // A scatter's value may be one for all.
  if (given->empty() && !update.isOptimizerUpdate())
    return success();
  std::optional<Dims> rows = getRowsShape(update, sizes, *indices);
  if (!rows || !fits(*given, *rows))
    return op->emitOpError() << "updates a variable of shape " << print(sizes) << " with a value of shape "
                             << print(*given) << " at indices of shape " << print(*indices);
  return success();
}

LogicalResult update(Operation *op, ShapeContext &context) {
  auto updateOp = llvm::cast<UpdateInterface>(op);
  Value handle = op->getOperand(updateOp.getWrittenOperands().front());
  auto ref = llvm::dyn_cast<RefType>(handle.getType());
  auto type = ref ? llvm::dyn_cast<RankedTensorType>(ref.getValueType()) : RankedTensorType();
  if (!type)
    return success();
  Dims sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(ShapedType::isDynamic(size) ? Dim() : Dim(size));
  if (failed(checkUpdate(updateOp, context, sizes)))
    return failure();
  for (Value result : op->getResults())
    context.setShape(result, sizes);
  return success();
}

LogicalResult constant(Operation *op, ShapeContext &context) {
  auto value = llvm::dyn_cast<DenseIntElementsAttr>(llvm::cast<ConstOp>(op).getValue());
  if (!value || value.getNumElements() > ShapeContext::kMaxElements)
    return success();
  Dims elements;
  for (const APInt &element : value.getValues<APInt>())
    elements.push_back(value.getElementType().isInteger(1) ? element.getZExtValue() : element.getSExtValue());
  context.setElements(op->getResult(0), std::move(elements));
  return success();
}

LogicalResult placeholder(Operation *op, ShapeContext &context) {
  Value result = op->getResult(0);
  if (const SmallVector<int64_t> *fixed = context.getFeedShape(getNodeName(op))) {
    context.setShape(result, Dims(fixed->begin(), fixed->end()));
    return success();
  }
  auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
  if (!type || type.getRank() == 0 || !type.isDynamicDim(0))
    return success();
  Dims sizes = *context.getShape(result);
  sizes[0] = context.getBatch() * Dim(getBatchMultiple(op));
  context.setShape(result, std::move(sizes));
  return success();
}

LogicalResult withDefault(Operation *op, ShapeContext &context) {
  if (auto shape = context.getShape(op->getOperand(0)))
    context.setShape(op->getResult(0), *shape);
  return success();
}

} // namespace distc::dfg::shapes
