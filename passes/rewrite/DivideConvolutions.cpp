//===- DivideConvolutions.cpp - Convolutions in groups that XLA was to compile ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/GraphBuilder.h"
#include "passes/rewrite/Passes.h"

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_DIVIDECONVOLUTIONS
#include "passes/rewrite/Passes.h.inc"

namespace {

using dfg::Dim;

/// A convolution, or a gradient of one, of images whose channels are their last axis.
class Grouped {
public:
  explicit Grouped(Operation *op)
      : op(op), ofInput(llvm::isa<dfg::Conv2DBackpropInputOp>(op)),
        ofFilter(llvm::isa<dfg::Conv2DBackpropFilterOp>(op)) {
    auto image = llvm::dyn_cast<RankedTensorType>((ofInput ? op->getResult(0) : op->getOperand(0)).getType());
    auto filter = llvm::dyn_cast<RankedTensorType>((ofFilter ? op->getResult(0) : op->getOperand(1)).getType());
    if (!image || !filter || image.getRank() != 4 || filter.getRank() != 4 || image.isDynamicDim(3) ||
        !filter.hasStaticShape() || op->getAttrOfType<StringAttr>("data_format").getValue() != "NHWC")
      return;
    height = filter.getDimSize(0);
    width = filter.getDimSize(1);
    inputs = filter.getDimSize(2);
    outputs = filter.getDimSize(3);
    groups = inputs > 0 && image.getDimSize(3) % inputs == 0 ? image.getDimSize(3) / inputs : 1;
    if (groups > 0 && outputs % groups != 0)
      groups = 1;
  }

  bool isDivided() const { return groups > 1; }

  Value divide(dfg::GraphBuilder &g) {
    for (StringRef name : {"strides", "padding", "explicit_paddings", "data_format", "dilations"})
      if (Attribute attribute = op->getAttr(name))
        attributes.push_back(g.attribute(name, attribute));
    if (inputs == 1 && hasDepthwise())
      return asDepthwise(g);
    SmallVector<Value> parts;
    for (int64_t group = 0; group < groups; ++group)
      parts.push_back(makePart(g, group));
    return g.concat(parts, 3);
  }

private:
  /// TensorFlow's depthwise convolutions go down and to the right by the same steps, and are not dilated.
  bool hasDepthwise() const {
    auto getEntry = [&](StringRef name, unsigned axis) {
      auto list = op->getAttrOfType<ArrayAttr>(name);
      return list && list.size() == 4 ? llvm::cast<IntegerAttr>(list[axis]).getInt() : 1;
    };
    return getEntry("strides", 1) == getEntry("strides", 2) && getEntry("dilations", 1) == 1 &&
           getEntry("dilations", 2) == 1;
  }

  Value asDepthwise(dfg::GraphBuilder &g) {
    const int64_t each = outputs / groups;
    const SmallVector<Dim> sizes = {Dim(height), Dim(width), Dim(groups), Dim(each)};
    if (ofFilter) {
      Value gradient = g.make<dfg::DepthwiseConv2dNativeBackpropFilterOp>(
          {op->getOperand(0), g.integers({height, width, groups, each}), op->getOperand(2)}, attributes);
      return g.reshape(gradient, {Dim(height), Dim(width), Dim(1), Dim(outputs)});
    }
    Value filter = g.reshape(op->getOperand(1), sizes);
    if (ofInput)
      return g.make<dfg::DepthwiseConv2dNativeBackpropInputOp>({op->getOperand(0), filter, op->getOperand(2)},
                                                               attributes, elementOf(filter));
    return g.make<dfg::DepthwiseConv2dNativeOp>({op->getOperand(0), filter}, attributes);
  }

  Value makePart(dfg::GraphBuilder &g, int64_t group) {
    const int64_t each = outputs / groups;
    auto sliceInputs = [&](Value images) { return g.slice(images, 3, group * inputs, inputs); };
    auto sliceOutputs = [&](Value value) { return g.slice(value, 3, group * each, each); };
    if (ofFilter)
      return g.make<dfg::Conv2DBackpropFilterOp>(
          {sliceInputs(op->getOperand(0)), g.integers({height, width, inputs, each}), sliceOutputs(op->getOperand(2))},
          attributes);
    Value filter = sliceOutputs(op->getOperand(1));
    if (!ofInput)
      return g.make<dfg::Conv2DOp>({sliceInputs(op->getOperand(0)), filter}, attributes);
    Value sizes = g.make<dfg::FloorDivOp>({op->getOperand(0), g.integers({1, 1, 1, groups})});
    return g.make<dfg::Conv2DBackpropInputOp>({sizes, filter, sliceOutputs(op->getOperand(2))}, attributes,
                                              elementOf(filter));
  }

  static Type elementOf(Value value) { return dfg::GraphBuilder::elementOf(value); }

  Operation *op;
  bool ofInput, ofFilter;
  int64_t height = 0, width = 0, inputs = 0, outputs = 0, groups = 1;
  SmallVector<NamedAttribute> attributes;
};

struct DivideConvolutions : impl::DivideConvolutionsBase<DivideConvolutions> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(divide(graph.getBody().front())))
        return signalPassFailure();
  }

  LogicalResult divide(Block &block) {
    dfg::ShapeContext shapes;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (takeNote(&op)) {
        OpBuilder builder(&op);
        dfg::GraphBuilder g(builder, shapes, &op);
        Grouped grouped(&op);
        Value divided = grouped.isDivided() ? grouped.divide(g) : Value();
        if (divided && !g.failed()) {
          op.getResult(0).replaceAllUsesWith(g.takeName(divided));
          op.erase();
          continue;
        }
        g.takeBack();
      }
      if (auto node = llvm::dyn_cast<dfg::ShapeInterface>(op); node && failed(node.inferShapes(shapes)))
        return failure();
    }
    return success();
  }

  /// Whether it stood in a function that XLA compiles; it does not say so any longer.
  static bool takeNote(Operation *op) {
    if (!dfg::getSourceAttribute(op, dfg::kCompiledByXla) ||
        !llvm::isa<dfg::Conv2DOp, dfg::Conv2DBackpropInputOp, dfg::Conv2DBackpropFilterOp>(op))
      return false;
    dfg::removeSourceAttribute(op, dfg::kCompiledByXla);
    return true;
  }
};

} // namespace
} // namespace distc::rewrite
