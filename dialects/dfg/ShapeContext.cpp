//===- ShapeContext.cpp - What is known of shapes, the batch symbolic -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/ShapeContext.h"
#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc::dfg {

// What leaves 64 bits is not known: no size is so large, and where one must be known its node is refused.

/// Each part of x by itself, with y's; unknown where one leaves 64 bits.
static Dim combine(Dim x, Dim y, llvm::function_ref<bool(int64_t, int64_t, int64_t &)> overflows) {
  int64_t scale, whole, offset;
  if (!x.isKnown() || !y.isKnown() || overflows(x.getScale(), y.getScale(), scale) ||
      overflows(x.getWholeScale(), y.getWholeScale(), whole) || overflows(x.getOffset(), y.getOffset(), offset))
    return {};
  return Dim::make(scale, whole, offset).with(x).with(y);
}

Dim operator+(Dim x, Dim y) {
  return combine(x, y, [](int64_t a, int64_t b, int64_t &sum) { return llvm::AddOverflow(a, b, sum); });
}

Dim operator-(Dim x, Dim y) {
  return combine(x, y, [](int64_t a, int64_t b, int64_t &difference) { return llvm::SubOverflow(a, b, difference); });
}

Dim operator*(Dim x, Dim y) {
  // Zero times anything is zero, also where the other size is unknown.
  if ((x.isConstant() && x.offset == 0) || (y.isConstant() && y.offset == 0))
    return 0;
  if (!x.known || !y.known || (!x.isConstant() && !y.isConstant()))
    return {};
  if (!y.isConstant())
    std::swap(x, y);
  int64_t factor = y.offset, scale, whole, offset;
  if (llvm::MulOverflow(x.scale, factor, scale) || llvm::MulOverflow(x.whole, factor, whole) ||
      llvm::MulOverflow(x.offset, factor, offset))
    return {};
  return Dim::make(scale, whole, offset).with(x).with(y);
}

Dim floorDiv(Dim x, Dim y) {
  if (!x.known || !y.known)
    return {};
  // The lowest number has no negative.
  if (y.isConstant() && y.offset == -1)
    return Dim(0) - x;
  if (y.isConstant()) {
    if (y.offset == 0)
      return {};
    if (x.isConstant())
      return Dim(llvm::divideFloorSigned(x.offset, y.offset)).with(x).with(y);
    // A multiple of the divisor comes out whole: floor((q d b + o) / d) = q b + floor(o / d).
    if (x.scale % y.offset == 0 && x.whole % y.offset == 0)
      return Dim::make(x.scale / y.offset, x.whole / y.offset, llvm::divideFloorSigned(x.offset, y.offset))
          .with(x)
          .with(y);
    return {};
  }
  // Proportional sizes: (q s b + q o) / (s b + o) = q.
  if (y.scale == -1 || (y.scale == 0 && y.whole == -1))
    return floorDiv(Dim(0) - x, Dim(0) - y);
  int64_t quotient = y.scale ? x.scale / y.scale : x.whole / y.whole;
  if (Dim(quotient) * y == x)
    return Dim(quotient).with(x).with(y);
  return {};
}

Dim floorMod(Dim x, Dim y) {
  Dim quotient = floorDiv(x, y);
  return x - quotient * y;
}

/// The sign of x - y for every b >= 1, where it is the same for all: -1, 0 or 1.
static std::optional<int> compare(Dim x, Dim y) {
  Dim difference = x - y;
  if (!difference.isKnown())
    return std::nullopt;
  // Of b and B together nothing is said.
  if (difference.dependsOnBatch() && difference.dependsOnWholeBatch())
    return std::nullopt;
  int64_t atOne, slope = difference.dependsOnBatch() ? difference.getScale() : difference.getWholeScale();
  if (llvm::AddOverflow(slope, difference.getOffset(), atOne))
    return std::nullopt;
  if (slope == 0)
    return atOne > 0 ? 1 : atOne < 0 ? -1 : 0;
  if (slope > 0 && atOne >= 0)
    return 1;
  if (slope < 0 && atOne <= 0)
    return -1;
  return std::nullopt;
}

Dim max(Dim x, Dim y) {
  std::optional<int> order = compare(x, y);
  return !order ? Dim() : *order >= 0 ? x.with(y) : y.with(x);
}

Dim min(Dim x, Dim y) {
  std::optional<int> order = compare(x, y);
  return !order ? Dim() : *order <= 0 ? x.with(y) : y.with(x);
}

std::optional<Dims> ShapeContext::getShape(Value value) const {
  if (auto it = shapes.find(value); it != shapes.end())
    return it->second;
  // A handle's is its variable's.
  auto ref = llvm::dyn_cast<RefType>(value.getType());
  auto type = llvm::dyn_cast<RankedTensorType>(ref ? ref.getValueType() : value.getType());
  // A handle whose variable is not known, out of a loop, is no tensor of its variable's shape.
  if (!type || llvm::isa<ResourceType>(type.getElementType()))
    return std::nullopt;
  Dims sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(ShapedType::isDynamic(size) ? Dim() : Dim(size));
  return sizes;
}

std::optional<Dims> ShapeContext::getElements(Value value) const {
  if (auto it = elements.find(value); it != elements.end())
    return it->second;
  return std::nullopt;
}

std::optional<int64_t> ShapeContext::getConstant(Value value) const {
  std::optional<SmallVector<int64_t>> all = getConstants(value);
  if (!all || all->size() != 1)
    return std::nullopt;
  return all->front();
}

std::optional<SmallVector<int64_t>> ShapeContext::getConstants(Value value) const {
  std::optional<Dims> known = getElements(value);
  if (!known)
    return std::nullopt;
  SmallVector<int64_t> result;
  for (Dim element : *known) {
    if (!element.isConstant())
      return std::nullopt;
    result.push_back(element.getConstant());
  }
  return result;
}

std::optional<SmallVector<double>> ShapeContext::getReals(Value value) const {
  Operation *op = value.getDefiningOp();
  auto type = llvm::dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
  if (!op || !type)
    return std::nullopt;
  auto round = [&](double real) {
    APFloat rounded(real);
    bool isInexact = false;
    rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &isInexact);
    return rounded.convertToDouble();
  };
  if (auto constant = llvm::dyn_cast<ConstOp>(op)) {
    auto elements = llvm::dyn_cast<DenseFPElementsAttr>(constant.getValue());
    if (!elements || elements.getNumElements() > kMaxElements)
      return std::nullopt;
    return llvm::map_to_vector(elements, [](const APFloat &element) { return element.convertToDouble(); });
  }
  if (llvm::isa<CastOp>(op)) {
    if (std::optional<SmallVector<int64_t>> integers = getConstants(op->getOperand(0)))
      return llvm::map_to_vector(*integers, [&](int64_t integer) { return round(static_cast<double>(integer)); });
    return std::nullopt;
  }
  if (!llvm::isa<RealDivOp, DivOp>(op))
    return std::nullopt;
  std::optional<SmallVector<double>> x = getReals(op->getOperand(0)), y = getReals(op->getOperand(1));
  if (!x || !y || x->size() != y->size())
    return std::nullopt;
  return llvm::map_to_vector(llvm::zip(*x, *y),
                             [&](auto pair) { return round(std::get<0>(pair) / std::get<1>(pair)); });
}

/// Whether a tensor of elements of `type` has `element` as it is: integers do not wrap around, floats do not round.
/// What is not known has no other value; a multiple of the batch is below the limits of all but narrow types.
static bool holds(Type type, Dim element) {
  if (!element.isKnown() && !element.isBound())
    return true;
  int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  if (auto floating = llvm::dyn_cast<FloatType>(type)) {
    if (unsigned digits = floating.getFPMantissaWidth(); digits < 63) {
      most = int64_t(1) << digits;
      least = -most;
    }
  } else if (auto integer = llvm::dyn_cast<IntegerType>(type)) {
    const unsigned width = integer.getWidth();
    const bool isUnsigned = integer.isUnsigned() || width == 1;
    if (width < 64) {
      most = (int64_t(1) << (width - (isUnsigned ? 0 : 1))) - 1;
      least = isUnsigned ? 0 : -most - 1;
    } else if (isUnsigned) {
      least = 0;
    }
  }
  constexpr int64_t kMostRows = int64_t(1) << 24;
  return element.isConstant() ? element.getConstant() >= least && element.getConstant() <= most : most >= kMostRows;
}

void ShapeContext::setElements(Value value, Dims known) {
  Type type = getElementTypeOrSelf(value.getType());
  if (static_cast<int64_t>(known.size()) <= kMaxElements &&
      llvm::all_of(known, [&](Dim element) { return holds(type, element); }))
    elements[value] = std::move(known);
}

LogicalResult checkSizes(Operation *op, ArrayRef<Dim> sizes) {
  if (sizes.size() > kMaxRank)
    return op->emitOpError() << "makes a tensor of " << sizes.size() << " axes; there can be " << kMaxRank;
  int64_t elements = 1;
  for (Dim size : sizes) {
    if (!size.isConstant())
      continue;
    if (size.getConstant() < 0)
      return op->emitOpError() << "makes a tensor with an axis of size " << size.getConstant();
    if (elements <= kMaxTensorElements && llvm::MulOverflow(elements, size.getConstant(), elements))
      elements = std::numeric_limits<int64_t>::max();
  }
  bool isEmpty = llvm::any_of(sizes, [](Dim size) { return size.isConstant() && size.getConstant() == 0; });
  if (elements > kMaxTensorElements && !isEmpty)
    return op->emitOpError() << "makes a tensor of shape " << shapes::print(sizes) << ", larger than memory can hold";
  return success();
}

LogicalResult ShapeContext::run(Block &block) {
  for (Operation &op : block)
    if (failed(run(&op)))
      return failure();
  return success();
}

LogicalResult ShapeContext::run(Operation *op) {
  if (auto node = llvm::dyn_cast<ShapeInterface>(op)) {
    if (failed(node.inferShapes(*this)))
      return failure();
    for (Value result : op->getResults())
      if (auto sizes = getShape(result); sizes && failed(checkSizes(op, *sizes)))
        return failure();
  }
  return bounds ? checkBounds(op) : success();
}

TensorType getTensorType(ArrayRef<Dim> sizes, Type elementType) {
  SmallVector<int64_t> extents;
  for (Dim size : sizes)
    extents.push_back(size.isConstant() ? size.getConstant() : ShapedType::kDynamic);
  return RankedTensorType::get(extents, elementType);
}

TensorType refine(TensorType type, ArrayRef<Dim> sizes) {
  TensorType inferred = getTensorType(sizes, type.getElementType());
  if (!type.hasRank() || type.getRank() != inferred.getRank())
    return inferred;
  SmallVector<int64_t> merged(inferred.getShape());
  for (auto [size, declared] : llvm::zip(merged, type.getShape()))
    if (ShapedType::isDynamic(size))
      size = declared;
  return RankedTensorType::get(merged, type.getElementType());
}

} // namespace distc::dfg
