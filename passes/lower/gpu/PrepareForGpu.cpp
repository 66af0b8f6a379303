//===- PrepareForGpu.cpp - The layouts that a GPU's libraries want -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "passes/lower/Passes.h"
#include "passes/lower/TensorType.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_PREPAREFORGPU
#include "passes/lower/Passes.h.inc"

namespace {

/// What cuDNN has: images and filters with their channels innermost, but of float64 with them outermost (the runtime
/// makes images so).
struct DeviceLayout {
  StringLiteral name;
  SmallVector<int64_t, 4> fromHwio, toHwio; // axis i is the other's axis order[i]

  static DeviceLayout of(Type element) {
    if (element.isF64())
      return {"OIHW", {3, 2, 0, 1}, {2, 3, 1, 0}};
    return {"OHWI", {3, 0, 1, 2}, {1, 2, 3, 0}};
  }
};

SmallVector<int64_t> permuted(ArrayRef<int64_t> extents, ArrayRef<int64_t> order) {
  return llvm::map_to_vector(order, [&](int64_t axis) { return extents[axis]; });
}

/// The same elements in another shape of the same size.
Value reshape(ImplicitLocOpBuilder &b, Value tensor, ArrayRef<int64_t> shape) {
  RankedTensorType from = typeOf(tensor), to = from.clone(shape);
  if (from == to)
    return tensor;
  RankedTensorType flat = from.clone(ArrayRef<int64_t>{from.getNumElements()});
  SmallVector<ReassociationIndices> whole(1);
  llvm::append_range(whole[0], llvm::seq<int64_t>(0, from.getRank()));
  Value line = tensor::CollapseShapeOp::create(b, flat, tensor, whole);
  whole[0] = llvm::to_vector<2>(llvm::seq<int64_t>(0, to.getRank()));
  return tensor::ExpandShapeOp::create(b, to, line, whole);
}

/// Axis i of the result is axis order[i] of `tensor`.
Value transpose(ImplicitLocOpBuilder &b, Value tensor, ArrayRef<int64_t> order) {
  RankedTensorType from = typeOf(tensor);
  SmallVector<int64_t> shape = permuted(from.getShape(), order);
  Value empty = tensor::EmptyOp::create(b, shape, from.getElementType());
  SmallVector<AffineExpr> read(order.size());
  for (auto [i, axis] : llvm::enumerate(order))
    read[axis] = b.getAffineDimExpr(i);
  SmallVector<AffineMap> maps = {AffineMap::get(order.size(), 0, read, b.getContext()),
                                 b.getMultiDimIdentityMap(order.size())};
  SmallVector<utils::IteratorType> loops(order.size(), utils::IteratorType::parallel);
  auto copy = linalg::GenericOp::create(
      b, TypeRange{empty.getType()}, ValueRange{tensor}, ValueRange{empty}, maps, loops,
      [](OpBuilder &body, Location loc, ValueRange elements) { linalg::YieldOp::create(body, loc, elements[0]); });
  return copy.getResult(0);
}

/// A filter's extents, in the order HWIO, from a convolution's numbers (see drt.conv2d). The elements of a depthwise
/// filter, (h, w, c, multiplier), lie as those of (h, w, 1, c * multiplier).
SmallVector<int64_t> getFilterShape(ArrayRef<int64_t> descriptor) {
  enum { Channels = 3, Height = 4, Width = 5, Outputs = 6, Groups = 17 };
  return {descriptor[Height], descriptor[Width], descriptor[Channels] / descriptor[Groups], descriptor[Outputs]};
}

/// The convolutions of one entry.
class Filters {
public:
  explicit Filters(drt::EntryOp entry) : body(entry.getBody().front()) {}

  LogicalResult convert() {
    for (Operation &op : llvm::make_early_inc_range(body)) {
      forgetUpdated(&op);
      LogicalResult converted =
          llvm::TypeSwitch<Operation *, LogicalResult>(&op)
              .Case<drt::Conv2DOp, drt::Conv2DGradInputOp>([&](auto conv) { return convertOperand(conv); })
              .Case([&](drt::Conv2DGradFilterOp conv) { return convertGradient(conv); })
              .Default(success());
      if (failed(converted))
        return failure();
    }
    return success();
  }

private:
  template <typename Conv> LogicalResult convertOperand(Conv conv) {
    if (conv.getFilterLayout())
      return success();
    const auto layout = DeviceLayout::of(typeOf(conv.getFilter()).getElementType());
    conv.getFilterMutable().assign(getTransposed(conv, conv.getFilter(), getFilterShape(conv.getDescriptor()), layout));
    conv.setFilterLayout(layout.name);
    return success();
  }

  LogicalResult convertGradient(drt::Conv2DGradFilterOp conv) {
    if (conv.getFilterLayout())
      return success();
    SmallVector<int64_t> shape = getFilterShape(conv.getDescriptor());
    RankedTensorType type = typeOf(conv.getResult());
    ImplicitLocOpBuilder b(conv.getLoc(), conv.getContext());
    b.setInsertionPointAfter(conv);
    const auto layout = DeviceLayout::of(type.getElementType());
    conv.getResult().setType(type.clone(permuted(shape, layout.fromHwio)));
    conv.setFilterLayout(layout.name);
    Value back = transpose(b, conv.getResult(), layout.toHwio);
    Operation *transposition = back.getDefiningOp();
    conv.getResult().replaceAllUsesExcept(reshape(b, back, type.getShape()), transposition);
    return success();
  }

  /// One transpose serves all convolutions with a filter: those of a variable's value until it is updated, though each
  /// reads it for itself.
  Value getTransposed(Operation *conv, Value filter, ArrayRef<int64_t> shape, const DeviceLayout &layout) {
    auto read = filter.getDefiningOp<drt::ReadOp>();
    Value &known = read ? ofVariables[read.getVariable()] : ofValues[filter];
    if (!known || typeOf(known).getShape() != ArrayRef(permuted(shape, layout.fromHwio))) {
      ImplicitLocOpBuilder b(conv->getLoc(), conv);
      known = transpose(b, reshape(b, filter, shape), layout.fromHwio);
    }
    return known;
  }

  void forgetUpdated(Operation *op) {
    if (auto accesses = llvm::dyn_cast<drt::AccessInterface>(op))
      for (const drt::Access &access : accesses.getAccesses())
        if (access.writes && access.variable)
          ofVariables.erase(access.variable.getValue());
  }

  Block &body;
  llvm::StringMap<Value> ofVariables;
  llvm::DenseMap<Value, Value> ofValues;
};

struct PrepareForGpu : impl::PrepareForGpuBase<PrepareForGpu> {
  void runOnOperation() override {
    if (failed(Filters(getOperation()).convert()))
      signalPassFailure();
  }
};

} // namespace
} // namespace distc
