//===- BatchAxis.cpp - Where the batch's axis goes in a node -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "passes/distribute/flow/BatchAxisRules.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc::batchaxis {

/// The only axis whose size is a multiple of the batch; none where there is no such axis, or another one whose size
/// depends on it.
std::optional<int64_t> findBatchSize(ArrayRef<Dim> sizes) {
  std::optional<int64_t> found;
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    if (!size.dependsOnBatch())
      continue;
    if (found || !size.isMultipleOfBatch() || size.getScale() <= 0)
      return std::nullopt;
    found = axis;
  }
  return found;
}

Axis Rules::merge(ArrayRef<BatchAxis> mapped) {
  Axis found;
  for (const BatchAxis &next : mapped) {
    if (!found) {
      found = next;
      continue;
    }
    if (found->axis != next.axis || sum(found->segments) != sum(next.segments))
      return std::nullopt;
    if (next.uniform)
      continue;
    if (!found->uniform && found->segments != next.segments)
      return std::nullopt;
    found = next;
  }
  return found;
}

bool Rules::isAlikeAt(unsigned operand, int64_t axis) const {
  auto sizes = sizesOf(operand);
  if (!sizes)
    return false;
  if (axis < 0 || (axis < static_cast<int64_t>(sizes->size()) && (*sizes)[axis] == Dim(1)))
    return true;
  // Where the graph has a number for the batch, what has as many rows may be alike in all of them.
  return fixed && fixed->isAlikeAlong(op->getOperand(operand), axis, shapes);
}

/// `operands` broadcast against each other, but for `axesBehind` axes at the back that are not sharded.
BatchPlacement Rules::broadcast(ArrayRef<unsigned> operands, int64_t axesBehind) {
  int64_t rank = 0;
  for (unsigned operand : operands) {
    auto own = rankOf(operand);
    if (!own)
      return unknown;
    rank = std::max(rank, *own);
  }
  SmallVector<BatchAxis> mapped;
  for (unsigned operand : operands)
    if (axes[operand]) {
      mapped.push_back(*axes[operand]);
      mapped.back().axis += rank - *rankOf(operand);
      if (axesBehind && axes[operand]->axis >= *rankOf(operand) - axesBehind)
        return unknown;
    }
  Axis found = merge(mapped);
  if (!found)
    return unknown;
  for (unsigned operand : operands)
    if (!axes[operand] && !isAlikeAt(operand, found->axis - (rank - *rankOf(operand))))
      return unknown;
  return along(*found);
}

BatchPlacement Rules::elementwise() { return broadcast(llvm::to_vector(llvm::seq<unsigned>(0, op->getNumOperands()))); }

/// Select, version 1: a condition of rank 1 chooses rows.
BatchPlacement Rules::select() {
  auto condition = rankOf(0), rank = rankOf(1);
  if (!condition || !rank)
    return unknown;
  if (*condition != 1 || *rank == 1)
    return elementwise();
  SmallVector<BatchAxis> mapped;
  for (const Axis &axis : axes)
    if (axis)
      mapped.push_back(*axis);
  Axis found = merge(mapped);
  if (!found)
    return unknown;
  for (unsigned operand = 0; operand < 3; ++operand)
    if (!axes[operand] && !(operand == 0 && found->axis > 0) && !isAlikeAt(operand, found->axis))
      return unknown;
  return along(*found);
}

BatchPlacement Rules::reduce(bool sums) {
  auto rank = rankOf(0);
  auto reduced = shapes.getConstants(op->getOperand(1));
  if (!rank || !reduced)
    return unknown;
  int64_t before = 0;
  llvm::SmallDenseSet<int64_t> seen;
  for (int64_t axis : *reduced) {
    auto at = normalize(axis, *rank);
    if (!at)
      return unknown;
    if (*at == axes[0]->axis)
      return sums ? summed : unknown;
    before += *at < axes[0]->axis && seen.insert(*at).second;
  }
  return moved(*axes[0], axes[0]->axis - (flag("keep_dims") ? 0 : before));
}

BatchPlacement Rules::argReduce() {
  auto rank = rankOf(0);
  auto axis = rank ? normalize(constantOf(1), *rank) : std::nullopt;
  if (!axis || *axis == axes[0]->axis)
    return unknown;
  return moved(*axes[0], axes[0]->axis - (*axis < axes[0]->axis));
}

/// `freeA`, `freeB`: the axis of each matrix, counted from the back, that is not contracted.
BatchPlacement Rules::matMul(int64_t freeA, int64_t freeB) {
  auto rankA = rankOf(0), rankB = rankOf(1);
  if (!rankA || !rankB || *rankA < 2 || *rankB < 2)
    return unknown;
  int64_t rank = std::max(*rankA, *rankB);
  int64_t a = axes[0] ? axes[0]->axis - *rankA : 0, b = axes[1] ? axes[1]->axis - *rankB : 0;
  // Axes before the matrices' broadcast.
  if (a < -2 || b < -2)
    return broadcast({0, 1}, 2);
  int64_t contractedA = -3 - freeA, contractedB = -3 - freeB;
  if (axes[0] && axes[1]) {
    BatchAxis x = *axes[0], y = *axes[1];
    x.axis = y.axis = 0;
    return a == contractedA && b == contractedB && merge({x, y}) ? summed : unknown;
  }
  if (a == freeA)
    return moved(*axes[0], rank - 2);
  if (b == freeB)
    return moved(*axes[1], rank - 1);
  bool isAlike = axes[0] ? isAlikeAt(1, *rankB + contractedB) : isAlikeAt(0, *rankA + contractedA);
  return fixed && isAlike ? summed : unknown;
}

/// The axis of the operand, or result, of `rank` that `text` of an equation names `label`: a letter, or an axis of
/// "..." counted from its back (negative). None where no axis or more than one is it.
static std::optional<int64_t> findLabel(StringRef text, int64_t rank, int label) {
  auto [front, back] = text.split("...");
  const int64_t named = front.size() + back.size();
  if (label < 0) {
    const int64_t axis = rank - static_cast<int64_t>(back.size()) + label;
    return axis >= static_cast<int64_t>(front.size()) ? std::optional<int64_t>(axis) : std::nullopt;
  }
  if (front.count(static_cast<char>(label)) + back.count(static_cast<char>(label)) != 1)
    return std::nullopt;
  const size_t at = front.find(static_cast<char>(label));
  return at != StringRef::npos ? at : rank - named + front.size() + back.find(static_cast<char>(label));
}

/// Of an export: where code is generated it is products and sums by now.
BatchPlacement Rules::einsum(StringRef equation) {
  std::string text = equation.str();
  llvm::erase(text, ' ');
  auto [left, right] = StringRef(text).split("->");
  SmallVector<StringRef> terms;
  left.split(terms, ',');
  auto sizes = shapes.getShape(op->getResult(0));
  if (!equation.contains("->") || terms.size() != op->getNumOperands() || !sizes)
    return unknown;
  std::optional<int> label;
  SmallVector<BatchAxis> mapped;
  for (auto [i, term] : llvm::enumerate(terms)) {
    auto rank = rankOf(i);
    auto [front, back] = term.split("...");
    const int64_t first = front.size(), last = back.size();
    if (!rank || (term.contains("...") ? *rank < first + last : *rank != first))
      return unknown;
    if (!axes[i])
      continue;
    const int64_t axis = axes[i]->axis;
    const int own = axis < first           ? front[axis]
                    : axis >= *rank - last ? back[axis - (*rank - last)]
                                           : static_cast<int>(axis - (*rank - last));
    // On a diagonal rows meet each other.
    if (label.value_or(own) != own || !findLabel(term, *rank, own))
      return unknown;
    label = own;
    mapped.push_back(*axes[i]);
    mapped.back().axis = 0;
  }
  Axis found = merge(mapped);
  if (!found)
    return unknown;
  for (auto [i, term] : llvm::enumerate(terms)) {
    auto at = findLabel(term, *rankOf(i), *label);
    if (!axes[i] && (at ? !isAlikeAt(i, *at) : *label >= 0 && term.contains(static_cast<char>(*label))))
      return unknown;
  }
  auto at = findLabel(right, sizes->size(), *label);
  if (at)
    return moved(*found, *at);
  return *label >= 0 && !right.contains(static_cast<char>(*label)) ? summed : unknown;
}

/// Examples along axis 0 of all `operands`, each treated by itself.
BatchPlacement Rules::firstAxisOf(ArrayRef<unsigned> operands) {
  SmallVector<BatchAxis> mapped;
  for (unsigned operand : operands) {
    if (!axes[operand] || axes[operand]->axis != 0)
      return unknown;
    mapped.push_back(*axes[operand]);
  }
  for (auto [i, axis] : llvm::enumerate(axes))
    if (axis && !llvm::is_contained(operands, i))
      return unknown;
  Axis found = merge(mapped);
  return found ? along(*found) : unknown;
}

BatchPlacement Rules::avgPoolGrad() {
  // A gradient of another shape than the pooling's result is read across the images.
  auto images = shapes.getShape(op->getResult(0)), gradient = shapes.getShape(op->getOperand(1));
  if (!images || images->size() != 4 || !gradient || gradient->size() != 4)
    return unknown;
  auto padding = op->getAttrOfType<StringAttr>("padding");
  for (int64_t axis = 1; axis < 4; ++axis) {
    Dim pooled = dfg::shapes::resolveWindow((*images)[axis], dfg::shapes::getArrayEntry(op, "ksize", axis, 1),
                                            dfg::shapes::getArrayEntry(op, "strides", axis, 1), 1, padding.getValue())
                     .size;
    if (!(pooled == (*gradient)[axis]))
      return unknown;
  }
  return firstAxisOf({1});
}

BatchPlacement Rules::biasAdd() {
  auto rank = rankOf(0);
  if (!rank || !onlySharded(0) || axes[0]->axis == getChannelAxis(*rank))
    return unknown;
  return along(*axes[0]);
}

BatchPlacement Rules::batchNorm() {
  auto rank = rankOf(0);
  // In training the statistics are the batch's.
  if (!rank || flag("is_training") || !op->hasAttr("is_training") || !onlySharded(0) ||
      axes[0]->axis == getChannelAxis(*rank))
    return unknown;
  return result == 0 ? along(*axes[0]) : without;
}

BatchPlacement Rules::batchNormGrad() {
  auto rank = rankOf(0);
  if (!rank || flag("is_training") || !op->hasAttr("is_training") || !axes[0] || !axes[1] || anySharded({2, 3, 4}))
    return unknown;
  Axis found = merge({*axes[0], *axes[1]});
  if (!found || found->axis == getChannelAxis(*rank))
    return unknown;
  return result == 0 ? along(*found) : result < 3 ? summed : without;
}

BatchPlacement Rules::crossEntropy() {
  bool sparse = llvm::isa<dfg::SparseSoftmaxCrossEntropyWithLogitsOp>(op);
  for (unsigned operand : {0u, 1u})
    if (axes[operand] ? axes[operand]->axis != 0 : sparse || !isAlikeAt(operand, 0))
      return unknown;
  SmallVector<BatchAxis> mapped;
  for (const Axis &axis : axes)
    if (axis)
      mapped.push_back(*axis);
  Axis found = merge(mapped);
  return found ? along(*found) : unknown;
}

/// What works along one axis, which must not be the batch's: the last one, or the constant that `operand` is.
BatchPlacement Rules::unlessAlong(int64_t operand, bool lastAxis) {
  auto rank = rankOf(0);
  if (!rank || !onlySharded(0))
    return unknown;
  if (lastAxis)
    return axes[0]->axis == *rank - 1 ? unknown : along(*axes[0]);
  auto listed = shapes.getConstants(op->getOperand(operand));
  if (!listed)
    return unknown;
  for (int64_t axis : *listed)
    if (auto at = normalize(axis, *rank); !at || *at == axes[0]->axis)
      return unknown;
  return along(*axes[0]);
}

/// Of matrices that are examples' own the batch's axis is in front of all operands and results.
BatchPlacement Rules::matrices() {
  auto rank = rankOf(0);
  auto sizes = shapes.getShape(op->getResult(result));
  if (!rank || !sizes)
    return unknown;
  SmallVector<BatchAxis> mapped;
  for (const Axis &axis : axes)
    if (axis) {
      if (axis->axis >= *rank - 2)
        return unknown;
      mapped.push_back(*axis);
    }
  Axis found = merge(mapped);
  if (!found)
    return unknown;
  for (unsigned operand = 0; operand < op->getNumOperands(); ++operand)
    if (!axes[operand] && rankOf(operand) != 0 && !isAlikeAt(operand, found->axis))
      return unknown;
  return *sizes == Dims{Dim(0)} ? without : along(*found);
}

BatchPlacement Rules::sharded() {
  if (llvm::isa<dfg::SelectOp>(op))
    return select();
  if (llvm::isa<dfg::ScalarInterface>(op))
    return elementwise();
  if (op->hasTrait<dfg::OfMatrices>())
    return matrices();
  return llvm::TypeSwitch<Operation *, BatchPlacement>(op)
      .Case<dfg::EnsureShapeOp, dfg::CheckNumericsOp, dfg::PlaceholderWithDefaultOp>(
          [&](auto) { return along(*axes[0]); })
      .Case<dfg::SumOp, dfg::MeanOp>([&](auto) { return reduce(true); })
      .Case<dfg::MaxOp, dfg::MinOp, dfg::ProdOp, dfg::AllOp, dfg::AnyOp, dfg::EuclideanNormOp>(
          [&](auto) { return reduce(false); })
      .Case<dfg::L2LossOp>([&](auto) { return summed; })
      .Case<dfg::ArgMaxOp, dfg::ArgMinOp>([&](auto) { return argReduce(); })
      .Case<dfg::MatMulOp>(
          [&](auto product) { return matMul(product.getTransposeA() ? -1 : -2, product.getTransposeB() ? -2 : -1); })
      .Case<dfg::BatchMatMulOp, dfg::BatchMatMulV2Op, dfg::BatchMatMulV3Op>(
          [&](auto) { return matMul(flag("adj_x") ? -1 : -2, flag("adj_y") ? -2 : -1); })
      .Case<dfg::EinsumOp>([&](auto product) { return einsum(product.getEquation()); })
      .Case<dfg::Conv2DOp, dfg::DepthwiseConv2dNativeOp, dfg::MaxPoolOp, dfg::AvgPoolOp>(
          [&](auto) { return firstAxisOf({0}); })
      .Case<dfg::Conv2DBackpropInputOp, dfg::DepthwiseConv2dNativeBackpropInputOp>(
          [&](auto) { return firstAxisOf({2}); })
      .Case<dfg::Conv2DBackpropFilterOp, dfg::DepthwiseConv2dNativeBackpropFilterOp>(
          [&](auto) { return firstAxisOf({0, 2}).kind == BatchPlacement::Along ? summed : unknown; })
      .Case<dfg::MaxPoolGradOp>([&](auto) { return firstAxisOf({0, 1, 2}); })
      .Case<dfg::AvgPoolGradOp>([&](auto) { return avgPoolGrad(); })
      .Case<dfg::BiasAddOp, dfg::BiasAddV1Op>([&](auto) { return biasAdd(); })
      .Case<dfg::BiasAddGradOp>([&](auto) {
        auto rank = rankOf(0);
        return !rank ? unknown : axes[0]->axis == getChannelAxis(*rank) ? moved(*axes[0], 0) : summed;
      })
      .Case<dfg::FusedBatchNormOp, dfg::FusedBatchNormV2Op, dfg::FusedBatchNormV3Op>([&](auto) { return batchNorm(); })
      .Case<dfg::FusedBatchNormGradOp, dfg::FusedBatchNormGradV2Op, dfg::FusedBatchNormGradV3Op>(
          [&](auto) { return batchNormGrad(); })
      .Case<dfg::SoftmaxOp, dfg::LogSoftmaxOp, dfg::TopKOp, dfg::TopKV2Op, dfg::IsotonicRegressionOp>(
          [&](auto) { return unlessAlong(-1, true); })
      // What is drawn is drawn alike by all replicas; true classes are only looked up.
      .Case<dfg::LogUniformCandidateSamplerOp, dfg::UniformCandidateSamplerOp, dfg::FixedUnigramCandidateSamplerOp>(
          [&](auto) { return result != 1          ? without
                             : axes[0]->axis == 0 ? along(*axes[0])
                                                  : unknown; })
      .Case<dfg::CtcLossRowsOp>([&](auto) { return firstAxisOf({0, 1, 2}); })
      // How many labels there are of all examples is no row's.
      .Case<dfg::CTCGreedyDecoderOp>([&](auto) {
        if (result != 3 || !axes[0] || axes[0]->axis != 1 || !axes[1] || axes[1]->axis != 0)
          return unknown;
        BatchAxis examples = *axes[0];
        examples.axis = 0;
        Axis found = merge({examples, *axes[1]});
        return found ? along(*found) : unknown;
      })
      .Case<dfg::CombinedNonMaxSuppressionOp>([&](auto) { return firstAxisOf({0, 1}); })
      .Case<dfg::FractionalMaxOp, dfg::FractionalAvgOp, dfg::FractionalAvgGradOp>(
          [&](auto) { return firstAxisOf({0}); })
      // Of an exported graph each replica has the node: with a seed all draw the same windows, once.
      .Case<dfg::FractionalMaxPoolOp, dfg::FractionalAvgPoolOp>([&](auto pool) {
        if (!pool.getDeterministic() || (pool.getSeed() == 0 && pool.getSeed2() == 0))
          return unknown;
        return result == 0 ? firstAxisOf({0}) : without;
      })
      .Case<dfg::FractionalMaxPoolGradOp>([&](auto) { return firstAxisOf({0, 1, 2}); })
      .Case<dfg::SoftmaxCrossEntropyWithLogitsOp, dfg::SparseSoftmaxCrossEntropyWithLogitsOp>(
          [&](auto) { return crossEntropy(); })
      .Case<dfg::ReverseV2Op, dfg::CumsumOp, dfg::CumprodOp, dfg::CumulativeLogsumexpOp>(
          [&](auto) { return unlessAlong(1, false); })
      .Case<dfg::ReshapeOp>([&](auto) { return reshape(); })
      .Case<dfg::TransposeOp>([&](auto) { return transpose(); })
      .Case<dfg::ExpandDimsOp>([&](auto) {
        auto rank = rankOf(0);
        auto at = rank ? normalize(constantOf(1), *rank + 1) : std::nullopt;
        return at ? moved(*axes[0], axes[0]->axis + (*at <= axes[0]->axis)) : unknown;
      })
      .Case<dfg::SqueezeOp>([&](auto) { return squeeze(); })
      .Case<dfg::TileOp>([&](auto) { return tile(); })
      .Case<dfg::BroadcastToOp>([&](auto) {
        auto rank = rankOf(0);
        auto to = shapes.getShape(op->getResult(0));
        return rank && to && onlySharded(0) ? moved(*axes[0], axes[0]->axis + static_cast<int64_t>(to->size()) - *rank)
                                            : unknown;
      })
      .Case<dfg::ConcatV2Op, dfg::ConcatOp>([&](auto) { return concat(); })
      .Case<dfg::SplitOp>([&](auto) { return split(); })
      .Case<dfg::SplitVOp>([&](auto) { return splitV(); })
      .Case<dfg::PackOp>([&](auto) { return pack(); })
      .Case<dfg::UnpackOp>([&](auto unpack) {
        auto rank = rankOf(0);
        auto at = rank ? normalize(unpack.getAxisAttr().getInt(), *rank) : std::nullopt;
        return at && *at != axes[0]->axis ? moved(*axes[0], axes[0]->axis - (*at < axes[0]->axis)) : unknown;
      })
      .Case<dfg::SliceOp>([&](auto) { return slice(); })
      .Case<dfg::StridedSliceOp>([&](auto) { return stridedSlice(); })
      .Case<dfg::StridedSliceGradOp>([&](auto) { return stridedSliceGrad(); })
      .Case<dfg::PadOp, dfg::PadV2Op>([&](auto) { return pad(); })
      .Case<dfg::OneHotOp>([&](auto oneHot) {
        auto rank = rankOf(0);
        auto at = rank ? normalize(oneHot.getAxisAttr().getInt(), *rank + 1) : std::nullopt;
        return at && onlySharded(0) && constantOf(1) ? moved(*axes[0], axes[0]->axis + (*at <= axes[0]->axis))
                                                     : unknown;
      })
      .Case<dfg::GatherOp, dfg::GatherV2Op, dfg::ResourceGatherOp>([&](auto) { return gather(); })
      .Case<dfg::GatherNdOp, dfg::ResourceGatherNdOp>([&](auto) { return gatherNd(); })
      .Case<dfg::UnsortedSegmentSumOp>([&](auto) { return segments(true); })
      .Case<dfg::UnsortedSegmentProdOp, dfg::UnsortedSegmentMaxOp, dfg::UnsortedSegmentMinOp>(
          [&](auto) { return segments(false); })
      .Case<dfg::ScatterNdOp>([&](auto) { return scatterNd(); })
      .Case<dfg::TensorScatterAddOp, dfg::TensorScatterSubOp, dfg::ScatterNdNonAliasingAddOp>(
          [&](auto) { return tensorScatter(true); })
      .Case<dfg::TensorScatterUpdateOp, dfg::TensorScatterMaxOp, dfg::TensorScatterMinOp>(
          [&](auto) { return tensorScatter(false); })
      .Default([](Operation *) { return unknown; });
}

BatchPlacement Rules::unsharded() {
  auto sizes = shapes.getShape(op->getResult(result));
  if (!sizes || llvm::none_of(*sizes, [](Dim size) { return size.dependsOnBatch(); }))
    return without;
  auto at = findBatchSize(*sizes);
  if (!at)
    return unknown;
  BatchAxis found{*at, {(*sizes)[*at].getScale()}, true};
  if (llvm::isa<dfg::FillOp>(op))
    return along(found);
  // Replicas draw their parts of one row-major tensor.
  if (drawsRows(op)) {
    found.uniform = false;
    return *at == 0 ? along(found) : unknown;
  }
  if (!llvm::isa<dfg::TileOp, dfg::BroadcastToOp>(op))
    return unknown;
  auto from = sizesOf(0);
  if (!from)
    return unknown;
  int64_t axis = *at - (static_cast<int64_t>(sizes->size()) - static_cast<int64_t>(from->size()));
  // A tile of more rows repeats itself, and each replica's share of it is the same.
  found.uniform = axis < 0 || (*from)[axis] == Dim(1);
  return found.uniform || llvm::isa<dfg::TileOp>(op) ? along(found) : unknown;
}

} // namespace distc::batchaxis

namespace distc {

bool drawsRows(Operation *op) { return op->hasTrait<dfg::DrawsNumbers>() && !llvm::isa<dfg::RandomPermutationOp>(op); }

bool isParameterOperand(Operation *op, unsigned operand) {
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  return node && node.isParameter(operand, op->getNumOperands() - 1);
}

bool showsParametersInSizes(Operation *op) { return op->hasTrait<dfg::SizedByParameter>(); }

BatchPlacement findBatchPlacement(Operation *op, unsigned result, ArrayRef<batchaxis::Axis> axes,
                                  const dfg::ShapeContext &shapes, const FixedBatch *fixed) {
  batchaxis::Rules rules(op, result, axes, shapes, fixed);
  bool any = llvm::any_of(axes, [](const batchaxis::Axis &axis) { return axis.has_value(); });
  BatchPlacement found = any ? rules.sharded() : rules.unsharded();
  if (found.kind == BatchPlacement::Unknown)
    return found;
  // What the shapes say must agree: a size, or its number where the graph fixes the batch.
  auto sizes = shapes.getShape(op->getResult(result));
  for (size_t axis = 0; sizes && axis < sizes->size(); ++axis) {
    bool isBatch = found.kind == BatchPlacement::Along && static_cast<int64_t>(axis) == found.axis.axis;
    dfg::Dim size = (*sizes)[axis];
    int64_t scale = isBatch ? batchaxis::sum(found.axis.segments) : 0;
    bool isRows = !size.isKnown() || size == dfg::Dim::batch(scale) || (fixed && size == dfg::Dim(scale * fixed->size));
    if (isBatch ? !isRows : size.dependsOnBatch())
      return batchaxis::unknown;
  }
  return found;
}

} // namespace distc
