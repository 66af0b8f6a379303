//===- ShapeContext.h - What is known of shapes, the batch symbolic -*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Shapes are inferred once, with the batch as a symbol b: a size is
// `scale * b + offset`, or unknown. Of several replicas b is one's share; what they
// have gathered has sizes with the whole batch's, B, of which b is one of N parts. Small integer tensors (shapes, axes,
// sizes) are followed by their elements in the same form, so that a graph's shape arithmetic is evaluated on the way.
// Two users: `dfg-infer-shapes` (with b bound to a number, everything becomes static) and the analysis of the batch's
// flow.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_SHAPECONTEXT_H
#define DISTC_DIALECTS_DFG_SHAPECONTEXT_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace distc::dfg {

/// scale * b + whole * B + offset, or unknown. b and B are at least 1; nothing else is known of how they compare. Of a
/// batch that is a multiple of k (BatchMultiple.h) they are one k-th.
class Dim {
public:
  Dim() = default;
  Dim(int64_t value) : offset(value), known(true) {}
  static Dim batch(int64_t scale = 1, int64_t offset = 0) {
    Dim dim(offset);
    dim.scale = scale;
    return dim;
  }
  /// A multiple of the whole batch.
  static Dim wholeBatch(int64_t scale = 1) { return make(0, scale, 0); }
  static Dim make(int64_t scale, int64_t whole, int64_t offset) {
    Dim dim = batch(scale, offset);
    dim.whole = whole;
    return dim;
  }

  bool isKnown() const { return known; }
  bool isConstant() const { return known && scale == 0 && whole == 0; }
  /// On the replica's share of it.
  bool dependsOnBatch() const { return known && scale != 0; }
  bool dependsOnWholeBatch() const { return known && whole != 0; }
  /// scale * b, and nothing else.
  bool isMultipleOfBatch() const { return known && scale != 0 && whole == 0 && offset == 0; }
  bool isMultipleOfWholeBatch() const { return known && whole != 0 && scale == 0 && offset == 0; }
  /// Whether this is the most that a size which depends on data can be, and not that size.
  bool isBound() const { return bound; }
  Dim asBound() const {
    Dim dim = *this;
    dim.bound = known;
    return dim;
  }
  /// The same size; a bound if `this` or `other` is.
  Dim with(Dim other) const { return other.bound ? asBound() : *this; }
  int64_t getConstant() const { return offset; }
  int64_t getScale() const { return scale; }
  int64_t getWholeScale() const { return whole; }
  int64_t getOffset() const { return offset; }
  /// For a batch of one example.
  int64_t getSmallest() const { return scale + whole + offset; }
  /// Whether it is the smaller, or the larger, the smaller the batch is.
  bool growsWithBatch() const { return known && scale >= 0 && whole >= 0; }
  bool shrinksWithBatch() const { return known && scale <= 0 && whole <= 0; }

  friend Dim operator+(Dim x, Dim y);
  friend Dim operator-(Dim x, Dim y);
  friend Dim operator*(Dim x, Dim y);
  /// Exact quotients only, else unknown; constants round down.
  friend Dim floorDiv(Dim x, Dim y);
  friend Dim floorMod(Dim x, Dim y);
  friend Dim max(Dim x, Dim y);
  friend Dim min(Dim x, Dim y);
  /// Equal for every b; two unknown sizes are not.
  bool operator==(const Dim &other) const {
    return known && other.known && scale == other.scale && whole == other.whole && offset == other.offset;
  }

private:
  int64_t scale = 0, whole = 0, offset = 0;
  bool known = false, bound = false;
};

Dim floorDiv(Dim x, Dim y);
Dim floorMod(Dim x, Dim y);
Dim max(Dim x, Dim y);
Dim min(Dim x, Dim y);

using Dims = llvm::SmallVector<Dim, 4>;

class ShapeContext {
public:
  /// A placeholder's first size, where it is unknown, is b (k b: BatchMultiple.h); `batch` binds b.
  explicit ShapeContext(std::optional<int64_t> batch = std::nullopt) : batch(batch) {}

  /// Infers the shapes of all nodes of `block`, in order. Nodes that say nothing of their
  /// shapes keep their types'. Fails with a diagnostic at the node where operands do not fit.
  llvm::LogicalResult run(mlir::Block &block);
  /// The same of one node, behind those that make its operands.
  llvm::LogicalResult run(mlir::Operation *op);

  /// Sizes of `value`: what was set, else what its type says. None: unknown rank.
  std::optional<Dims> getShape(mlir::Value value) const;
  /// Elements of a small integer tensor, row-major, where they are known (single ones may be unknown).
  std::optional<Dims> getElements(mlir::Value value) const;
  /// The only element of a constant scalar (or of one element), e.g. an axis.
  std::optional<int64_t> getConstant(mlir::Value value) const;
  /// All elements, where all are constants.
  std::optional<llvm::SmallVector<int64_t>> getConstants(mlir::Value value) const;
  /// The same of floats: constants, integers that are cast, and quotients of such, each as its type rounds it. Bounds
  /// of ranges and scales of images are written so.
  std::optional<llvm::SmallVector<double>> getReals(mlir::Value value) const;

  void setShape(mlir::Value value, Dims sizes) { shapes[value] = std::move(sizes); }
  void setElements(mlir::Value value, Dims elements);
  /// Of a value that will be no more, or of a node whose operands are others now.
  void forget(mlir::Value value) {
    shapes.erase(value);
    elements.erase(value);
  }

  /// From here on sizes that depend on data are their bounds: code will be generated.
  void useBounds() { bounds = true; }
  /// A size that depends on data and is at most `most`.
  Dim getBoundedSize(Dim most) const { return bounds ? most.asBound() : Dim(); }
  /// Over how many replicas the block runs.
  void setReplicas(int64_t count) { replicas = count; }
  int64_t getReplicas() const { return replicas; }
  /// The size of an axis along which all replicas' parts are joined, and of one replica's part of such an axis.
  Dim joinReplicas(Dim size) const {
    return size.isMultipleOfBatch() ? Dim::wholeBatch(size.getScale())
           : size.isConstant()      ? size * Dim(replicas)
                                    : Dim();
  }
  Dim shareOf(Dim size) const {
    return size.isMultipleOfWholeBatch() ? Dim::batch(size.getWholeScale())
           : size.isConstant()           ? floorDiv(size, Dim(replicas))
                                         : Dim();
  }

  /// b, fixed or as a symbol.
  Dim getBatch() const { return batch ? Dim(*batch) : Dim::batch(); }
  /// The shape that the user fixes for a placeholder (`--feed NAME=SHAPE`).
  void setFeedShape(llvm::StringRef name, llvm::ArrayRef<int64_t> sizes) { feeds[name] = {sizes.begin(), sizes.end()}; }
  const llvm::SmallVector<int64_t> *getFeedShape(llvm::StringRef name) const {
    auto it = feeds.find(name);
    return it == feeds.end() ? nullptr : &it->second;
  }

  /// Integer tensors with more elements than this are not followed.
  static constexpr int64_t kMaxElements = 1024;

private:
  /// Fails with a diagnostic where `op` would take padding for data (BoundedSizes.cpp).
  llvm::LogicalResult checkBounds(mlir::Operation *op);

  std::optional<int64_t> batch;
  bool bounds = false;
  int64_t replicas = 1;
  llvm::DenseMap<mlir::Value, Dims> shapes;
  llvm::DenseMap<mlir::Value, Dims> elements;
  llvm::StringMap<llvm::SmallVector<int64_t>> feeds;
};

/// The tensor type with `sizes`, where b is unknown: '?'.
mlir::TensorType getTensorType(llvm::ArrayRef<Dim> sizes, mlir::Type elementType);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_SHAPECONTEXT_H
