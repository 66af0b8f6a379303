//===- LowerContractions.cpp - Nodes that become library calls -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "dialects/drt/Drt.h"
#include "passes/lower/entries/EntryLowering.h"
#include "runtime/include/drt/drt.h"

using namespace mlir;

namespace distc::lower {
namespace {

using dfg::ScalarBuilder;
using dfg::shapes::getArrayEntry;

/// The type of a library call's result: libraries compute in float32 what the graph keeps in something narrower. Fails
/// with a diagnostic where there is none for such elements.
FailureOr<RankedTensorType> getLibraryType(Operation *op, ArrayRef<unsigned> integerWidths = {}) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  Type element = type->getElementType();
  if (isNarrowFloat(element))
    return type->clone(Float32Type::get(op->getContext()));
  if (element.isF32() || element.isF64() ||
      llvm::is_contained(integerWidths, element.isInteger() ? element.getIntOrFloatBitWidth() : 0))
    return *type;
  op->emitError() << "node '" << dfg::getNodeName(op) << "' (" << op->getName().stripDialect()
                  << ") has no code for elements of type " << element << "; cast its operands to float32";
  return failure();
}

/// An operand of a library call.
Value getOperand(EntryLowering &lowering, Operation *op, unsigned number, RankedTensorType libraryType) {
  return lowering.cast(op->getLoc(), lowering.get(op->getOperand(number)), libraryType.getElementType());
}

/// A library call's result becomes the node's.
void setResult(EntryLowering &lowering, Operation *op, Value value) {
  lowering.set(op->getResult(0), lowering.cast(op->getLoc(), value, typeOf(op->getResult(0)).getElementType()));
}

/// Without anything that is multiplied or added the result is zero.
bool setZero(EntryLowering &lowering, Operation *op, ValueRange factors) {
  if (llvm::none_of(factors, [](Value factor) { return isEmpty(typeOf(factor)); }))
    return false;
  lowering.set(op->getResult(0), lowering.constant(op->getLoc(), typeOf(op->getResult(0)), 0.0));
  return true;
}

/// A factor whose matrices serve one of the result's each, or all of them: the library has no strides for what
/// broadcasts along some axes only.
Value broadcastBatch(EntryLowering &lowering, Location loc, Value factor, RankedTensorType result) {
  RankedTensorType type = typeOf(factor);
  ArrayRef<int64_t> batch = result.getShape().drop_back(2), own = type.getShape().drop_back(2);
  int64_t matrices = llvm::product_of(own);
  if (matrices == 1 || matrices == llvm::product_of(batch))
    return factor;
  SmallVector<int64_t> shape(batch);
  llvm::append_range(shape, type.getShape().take_back(2));
  return lowering.elementwise(loc, type.clone(shape), factor, [](ScalarBuilder &, ValueRange x) { return x[0]; });
}

LogicalResult lowerMatMul(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getLibraryType(op, {32, 64});
  if (failed(type))
    return failure();
  auto flag = [&](StringRef name) {
    auto attr = op->getAttrOfType<BoolAttr>(name);
    return attr && attr.getValue();
  };
  bool transposeA = flag("transpose_a") || flag("adj_x"), transposeB = flag("transpose_b") || flag("adj_y");
  Value a = getOperand(lowering, op, 0, *type), b = getOperand(lowering, op, 1, *type);
  if (setZero(lowering, op, {a, b}))
    return success();
  a = broadcastBatch(lowering, op->getLoc(), a, *type);
  b = broadcastBatch(lowering, op->getLoc(), b, *type);
  OpBuilder &builder = lowering.builder;
  UnitAttr unit = builder.getUnitAttr();
  setResult(lowering, op,
            drt::MatmulOp::create(builder, op->getLoc(), *type, a, b, Value(), transposeA ? unit : UnitAttr(),
                                  transposeB ? unit : UnitAttr(), builder.getI32IntegerAttr(0), /*joined=*/UnitAttr(),
                                  DenseI64ArrayAttr(), /*precision=*/StringAttr()));
  return success();
}

// ---- Windows: convolutions and pooling --------------------------------------------------------

/// Nodes with images in NCHW are for GPUs; TensorFlow's CPU kernels refuse them too.
LogicalResult checkFormat(Operation *op) {
  auto format = op->getAttrOfType<StringAttr>("data_format");
  if (format && format.getValue() != "NHWC") {
    op->emitError() << "node '" << dfg::getNodeName(op) << "': data_format " << format
                    << " has no code for CPUs; export the graph with NHWC";
    return failure();
  }
  return success();
}

/// Padding before and after along axis 1 or 2 of an image.
std::pair<int64_t, int64_t> getPadding(Operation *op, int64_t axis, int64_t size, int64_t windowSize) {
  StringRef padding = op->getAttrOfType<StringAttr>("padding").getValue();
  if (padding == "EXPLICIT")
    return {getArrayEntry(op, "explicit_paddings", 2 * axis, 0),
            getArrayEntry(op, "explicit_paddings", 2 * axis + 1, 0)};
  auto window = dfg::shapes::resolveWindow(size, windowSize, getArrayEntry(op, "strides", axis, 1),
                                           getArrayEntry(op, "dilations", axis, 1), padding);
  return {window.before, window.after};
}

/// drt_conv2d_desc's numbers (see drt.conv2d).
SmallVector<int64_t> describeConvolution(Operation *op, RankedTensorType input, RankedTensorType filter,
                                         RankedTensorType output, bool depthwise) {
  auto in = input.getShape(), window = filter.getShape(), out = output.getShape();
  auto [top, bottom] = getPadding(op, 1, in[1], window[0]);
  auto [left, right] = getPadding(op, 2, in[2], window[1]);
  int64_t channels = depthwise ? window[2] * window[3] : window[3];
  int64_t groups = depthwise ? in[3] : in[3] / window[2];
  return {in[0],
          in[1],
          in[2],
          in[3],
          window[0],
          window[1],
          channels,
          out[1],
          out[2],
          getArrayEntry(op, "strides", 1, 1),
          getArrayEntry(op, "strides", 2, 1),
          getArrayEntry(op, "dilations", 1, 1),
          getArrayEntry(op, "dilations", 2, 1),
          top,
          left,
          bottom,
          right,
          groups};
}

template <bool depthwise> LogicalResult lowerConv(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getLibraryType(op);
  if (failed(type) || failed(checkFormat(op)))
    return failure();
  Value input = getOperand(lowering, op, 0, *type), filter = getOperand(lowering, op, 1, *type);
  if (setZero(lowering, op, {input, filter}))
    return success();
  SmallVector<int64_t> descriptor = describeConvolution(op, typeOf(input), typeOf(filter), *type, depthwise);
  setResult(lowering, op,
            drt::Conv2DOp::create(lowering.builder, op->getLoc(), *type, input, filter, Value(), descriptor, 0,
                                  DenseI64ArrayAttr(), StringAttr(),
                                  /*precision=*/StringAttr()));
  return success();
}

template <bool depthwise> LogicalResult lowerConvGradInput(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getLibraryType(op);
  if (failed(type) || failed(checkFormat(op)))
    return failure();
  Value filter = getOperand(lowering, op, 1, *type), gradient = getOperand(lowering, op, 2, *type);
  if (setZero(lowering, op, {filter, gradient}))
    return success();
  SmallVector<int64_t> descriptor = describeConvolution(op, *type, typeOf(filter), typeOf(gradient), depthwise);
  setResult(lowering, op,
            drt::Conv2DGradInputOp::create(lowering.builder, op->getLoc(), *type, filter, gradient, descriptor, 0,
                                           DenseI64ArrayAttr(), StringAttr(),
                                           /*precision=*/StringAttr()));
  return success();
}

template <bool depthwise> LogicalResult lowerConvGradFilter(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getLibraryType(op);
  if (failed(type) || failed(checkFormat(op)))
    return failure();
  Value input = getOperand(lowering, op, 0, *type), gradient = getOperand(lowering, op, 2, *type);
  if (setZero(lowering, op, {input, gradient}))
    return success();
  SmallVector<int64_t> descriptor = describeConvolution(op, typeOf(input), *type, typeOf(gradient), depthwise);
  setResult(lowering, op,
            drt::Conv2DGradFilterOp::create(lowering.builder, op->getLoc(), *type, input, gradient, descriptor, 0,
                                            DenseI64ArrayAttr(), StringAttr(),
                                            /*precision=*/StringAttr()));
  return success();
}

SmallVector<int64_t> describePool(Operation *op, RankedTensorType input, RankedTensorType output) {
  auto in = input.getShape(), out = output.getShape();
  int64_t h = getArrayEntry(op, "ksize", 1, 1), w = getArrayEntry(op, "ksize", 2, 1);
  auto [top, bottom] = getPadding(op, 1, in[1], h);
  auto [left, right] = getPadding(op, 2, in[2], w);
  return {in[0],
          in[1],
          in[2],
          in[3],
          out[1],
          out[2],
          h,
          w,
          getArrayEntry(op, "strides", 1, 1),
          getArrayEntry(op, "strides", 2, 1),
          top,
          left,
          bottom,
          right};
}

template <int32_t kind> LogicalResult lowerPool(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getLibraryType(op);
  if (failed(type) || failed(checkFormat(op)))
    return failure();
  Value input = getOperand(lowering, op, 0, *type);
  setResult(lowering, op,
            drt::PoolOp::create(lowering.builder, op->getLoc(), *type, input, kind,
                                describePool(op, typeOf(input), *type), DenseI64ArrayAttr()));
  return success();
}

/// A gradient of another shape than the pooling's result is the beginning of its memory, read as if it had that shape:
/// so oneDNN's kernels, TensorFlow's by default, take it.
Value readAsPooled(EntryLowering &lowering, Operation *op, RankedTensorType images, Value gradient) {
  SmallVector<int64_t> pooled(typeOf(gradient).getShape());
  for (int64_t axis : {1, 2})
    pooled[axis] = dfg::shapes::resolveWindow(images.getDimSize(axis), getArrayEntry(op, "ksize", axis, 1),
                                              getArrayEntry(op, "strides", axis, 1), 1,
                                              op->getAttrOfType<StringAttr>("padding").getValue())
                       .size.getConstant();
  if (ArrayRef(pooled) == typeOf(gradient).getShape())
    return gradient;
  Value memory = lowering.reshape(op->getLoc(), gradient, typeOf(gradient).getNumElements());
  Value read = lowering.gather(op->getLoc(), typeOf(memory).clone(llvm::product_of(pooled)),
                               [&](ScalarBuilder &s, ValueRange at) { return EntryLowering::load(s, memory, at); });
  return lowering.reshape(op->getLoc(), read, pooled);
}

template <int32_t kind> LogicalResult lowerPoolGrad(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getLibraryType(op);
  if (failed(type) || failed(checkFormat(op)))
    return failure();
  SmallVector<Value> inputAndOutput;
  if (kind == DRT_POOL_MAX)
    inputAndOutput = {getOperand(lowering, op, 0, *type), getOperand(lowering, op, 1, *type)};
  Value gradient = getOperand(lowering, op, op->getNumOperands() - 1, *type);
  if (setZero(lowering, op, gradient))
    return success();
  if (kind == DRT_POOL_AVG)
    gradient = readAsPooled(lowering, op, *type, gradient);
  setResult(lowering, op,
            drt::PoolGradOp::create(lowering.builder, op->getLoc(), *type, inputAndOutput, gradient, kind,
                                    describePool(op, *type, typeOf(gradient)), DenseI64ArrayAttr()));
  return success();
}

// ---- Biases ------------------------------------------------------------------------------------------

LogicalResult lowerBiasAdd(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type) || failed(checkFormat(op)))
    return failure();
  lowering.set(
      op->getResult(0),
      lowering.elementwise(op->getLoc(), *type, {lowering.get(op->getOperand(0)), lowering.get(op->getOperand(1))},
                           [](ScalarBuilder &s, ValueRange elements) { return s.add(elements[0], elements[1]); }));
  return success();
}

LogicalResult lowerBiasAddGrad(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type) || failed(checkFormat(op)))
    return failure();
  Value input = lowering.get(op->getOperand(0));
  SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, typeOf(input).getRank() - 1));
  lowering.set(op->getResult(0),
               lowering.reduce(
                   op->getLoc(), input, axes, type->getElementType(),
                   [&](ScalarBuilder &s) { return s.constant(type->getElementType(), 0.0); },
                   [](ScalarBuilder &s, Value accumulator, Value element) { return s.add(accumulator, element); }));
  return success();
}

} // namespace

void addProductLowerings(LoweringTable &table, MLIRContext *context) {
  addLowering<dfg::MatMulOp>(table, context, lowerMatMul);
  addLowering<dfg::BatchMatMulOp>(table, context, lowerMatMul);
  addLowering<dfg::BatchMatMulV2Op>(table, context, lowerMatMul);
  addLowering<dfg::BatchMatMulV3Op>(table, context, lowerMatMul);
  addLowering<dfg::Conv2DOp>(table, context, lowerConv<false>);
  addLowering<dfg::Conv2DBackpropInputOp>(table, context, lowerConvGradInput<false>);
  addLowering<dfg::Conv2DBackpropFilterOp>(table, context, lowerConvGradFilter<false>);
  addLowering<dfg::DepthwiseConv2dNativeOp>(table, context, lowerConv<true>);
  addLowering<dfg::DepthwiseConv2dNativeBackpropInputOp>(table, context, lowerConvGradInput<true>);
  addLowering<dfg::DepthwiseConv2dNativeBackpropFilterOp>(table, context, lowerConvGradFilter<true>);
  addLowering<dfg::MaxPoolOp>(table, context, lowerPool<DRT_POOL_MAX>);
  addLowering<dfg::AvgPoolOp>(table, context, lowerPool<DRT_POOL_AVG>);
  addLowering<dfg::MaxPoolGradOp>(table, context, lowerPoolGrad<DRT_POOL_MAX>);
  addLowering<dfg::AvgPoolGradOp>(table, context, lowerPoolGrad<DRT_POOL_AVG>);
  addLowering<dfg::BiasAddOp>(table, context, lowerBiasAdd);
  addLowering<dfg::BiasAddV1Op>(table, context, lowerBiasAdd);
  addLowering<dfg::BiasAddGradOp>(table, context, lowerBiasAddGrad);
}

} // namespace distc::lower
