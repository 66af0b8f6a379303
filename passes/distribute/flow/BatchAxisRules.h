//===- BatchAxisRules.h - What operations do to the batch's axis ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_DISTRIBUTE_FLOW_BATCHAXISRULES_H
#define DISTC_PASSES_DISTRIBUTE_FLOW_BATCHAXISRULES_H

#include "passes/distribute/flow/BatchAxis.h"

namespace distc::batchaxis {

using dfg::Dim;
using dfg::Dims;
using Axis = std::optional<BatchAxis>;
using Segments = llvm::SmallVector<int64_t, 1>;

inline const BatchPlacement unknown;
inline const BatchPlacement without{BatchPlacement::Without, {}};
inline const BatchPlacement summed{BatchPlacement::Summed, {}};

inline BatchPlacement along(BatchAxis axis) { return {BatchPlacement::Along, std::move(axis)}; }

inline BatchPlacement moved(BatchAxis axis, int64_t to) {
  axis.axis = to;
  return along(std::move(axis));
}

inline int64_t sum(llvm::ArrayRef<int64_t> segments) {
  int64_t total = 0;
  for (int64_t size : segments)
    total += size;
  return total;
}

/// The only axis whose size is a multiple of the batch; none where there is no such axis, or another one whose size
/// depends on it.
std::optional<int64_t> findBatchSize(llvm::ArrayRef<Dim> sizes);

/// The rules, for one result of one node some operands of which are sharded.
class Rules {
public:
  Rules(mlir::Operation *op, unsigned result, llvm::ArrayRef<Axis> axes, const dfg::ShapeContext &shapes,
        const FixedBatch *fixed)
      : op(op), result(result), axes(axes), shapes(shapes), fixed(fixed) {}

  BatchPlacement sharded();
  /// The same where no operand is: an axis of the batch's size may be made here.
  BatchPlacement unsharded();

private:
  std::optional<Dims> sizesOf(unsigned operand) const { return shapes.getShape(op->getOperand(operand)); }
  std::optional<int64_t> rankOf(unsigned operand) const {
    auto sizes = sizesOf(operand);
    return sizes ? std::optional<int64_t>(sizes->size()) : std::nullopt;
  }
  /// A place in the batch's axis in terms of the batch, where the graph has it as a number: that of rows which follow
  /// each other in segments of as many. Segments are cut where they begin and end, so that a number that is no
  /// multiple of the batch's size, or another one, is none of these.
  Dim asRows(Dim at) const { return fixed ? fixed->asRows(at) : at; }
  std::optional<Dims> elementsOf(unsigned operand) const { return shapes.getElements(op->getOperand(operand)); }
  std::optional<int64_t> constantOf(unsigned operand) const { return shapes.getConstant(op->getOperand(operand)); }
  bool anySharded(llvm::ArrayRef<unsigned> operands) const {
    return llvm::any_of(operands, [&](unsigned operand) { return axes[operand].has_value(); });
  }
  bool onlySharded(unsigned operand) const {
    for (auto [i, axis] : llvm::enumerate(axes))
      if (axis && i != operand)
        return false;
    return axes[operand].has_value();
  }
  bool flag(llvm::StringRef name) const {
    auto attribute = op->getAttrOfType<mlir::BoolAttr>(name);
    return attribute && attribute.getValue();
  }
  /// An axis that may be counted from the back; none where it is no axis.
  static std::optional<int64_t> normalize(std::optional<int64_t> axis, int64_t rank) {
    if (!axis || *axis < -rank || *axis >= rank)
      return std::nullopt;
    return *axis < 0 ? *axis + rank : *axis;
  }
  int64_t getChannelAxis(int64_t rank) const {
    auto format = op->getAttrOfType<mlir::StringAttr>("data_format");
    return format && format.getValue() == "NCHW" ? 1 : rank - 1;
  }

  /// The axis that all of `mapped` are, each of one operand; none where they differ.
  static Axis merge(llvm::ArrayRef<BatchAxis> mapped);
  /// Whether an operand that is not sharded has the same for every row at `axis` of its own (negative: it has no such
  /// axis).
  bool isAlikeAt(unsigned operand, int64_t axis) const;

  BatchPlacement broadcast(llvm::ArrayRef<unsigned> operands, int64_t axesBehind = 0);
  BatchPlacement elementwise();
  BatchPlacement select();
  BatchPlacement reduce(bool sums);
  BatchPlacement argReduce();
  BatchPlacement matMul(int64_t freeA, int64_t freeB);
  BatchPlacement einsum(llvm::StringRef equation);
  BatchPlacement firstAxisOf(llvm::ArrayRef<unsigned> operands);
  BatchPlacement avgPoolGrad();
  BatchPlacement biasAdd();
  BatchPlacement batchNorm();
  BatchPlacement batchNormGrad();
  BatchPlacement crossEntropy();
  BatchPlacement reshape();
  BatchPlacement transpose();
  BatchPlacement squeeze();
  BatchPlacement tile();
  BatchPlacement concat();
  BatchPlacement split();
  BatchPlacement splitV();
  BatchPlacement pack();
  BatchPlacement slice();
  BatchPlacement stridedSlice();
  BatchPlacement stridedSliceGrad();
  struct SliceOfRows {
    int64_t resultAxis; // of the batch's axis
    Dim begin, size;
    bool isWhole; // all rows are taken
  };
  std::optional<SliceOfRows> resolveRows(const Dims &sizes, int64_t axis) const;
  BatchPlacement pad();
  BatchPlacement amongZeros(const BatchAxis &rows, int64_t axis, Dim begin, Dim size) const;
  BatchPlacement gather();
  BatchPlacement gatherNd();
  BatchPlacement segments(bool sums);
  BatchPlacement scatterNd();
  BatchPlacement tensorScatter(bool sums);
  BatchPlacement unlessAlong(int64_t operand, bool lastAxis);
  BatchPlacement matrices();

  mlir::Operation *op;
  unsigned result;
  llvm::ArrayRef<Axis> axes;
  const dfg::ShapeContext &shapes;
  const FixedBatch *fixed; // null where the batch is open
};

} // namespace distc::batchaxis

#endif // DISTC_PASSES_DISTRIBUTE_FLOW_BATCHAXISRULES_H
