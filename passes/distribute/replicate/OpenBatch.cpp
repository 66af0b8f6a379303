//===- OpenBatch.cpp - A graph's number for the batch is the whole batch's ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The graph computes what it computes of all rows, with the numbers that it has for them. So all rows of a feed are
// where they were, as a reshape of what a replica is given to the graph's own shape, which is no share's: where nothing
// better is found, it is gathered. From there on each node is tried with the replica's rows in the place of all rows,
// and takes them where the batch's flow proves what it gives then; all rows of that are a reshape behind it.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Numbers.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/flow/BatchConversions.h"
#include "passes/distribute/strategy/SyncPolicy.h"
#include "passes/distribute/synchronize/RawGradients.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTOPENBATCH
#include "passes/distribute/Passes.h.inc"

namespace {

class Opener {
public:
  Opener(dfg::GraphOp graph, int64_t rows)
      : rows(rows), block(graph.getBody().front()), builder(graph.getContext()), scope(getFreeName(block, "batch")) {}

  /// What is fed has rows of a share, and all rows behind it. False where a shape is not known that far.
  bool openFeeds() {
    SmallVector<dfg::PlaceholderOp> feeds;
    for (auto feed : block.getOps<dfg::PlaceholderOp>())
      if (auto type = llvm::cast<RankedTensorType>(feed.getResult().getType()); type.getRank() > 0) {
        if (!type.hasStaticShape())
          return false;
        feeds.push_back(feed);
      }
    for (dfg::PlaceholderOp feed : feeds) {
      auto type = llvm::cast<RankedTensorType>(feed.getResult().getType());
      SmallVector<int64_t> sizes(type.getShape());
      sizes[0] = ShapedType::kDynamic;
      feed.getResult().setType(RankedTensorType::get(sizes, type.getElementType()));
      if (feed.getShapeAttr()) {
        sizes[0] = -1;
        feed.setShapeAttr(dfg::TensorShapeAttr::get(builder.getContext(), /*unknownRank=*/false, sizes));
      }
      builder.setInsertionPointAfter(feed);
      Operation *all = makeAll(feed.getResult(), type);
      feed.getResult().replaceUsesWithIf(all->getResult(0), [&](OpOperand &use) { return use.getOwner() != all; });
    }
    if (!feeds.empty())
      first = feeds.front();
    return !feeds.empty();
  }

  /// Nodes take the replica's rows where that is proven.
  LogicalResult sink(dfg::GraphOp graph, int64_t replicas) {
    FailureOr<BatchFlow> computed = BatchFlow::compute(graph);
    if (failed(computed))
      return failure();
    flow = &*computed;
    BatchConversions converted(graph, *flow, replicas);
    conversions = &converted;
    SmallVector<Operation *> nodes;
    for (Operation &op : block)
      nodes.push_back(&op);
    for (Operation *op : nodes)
      if (canChange(op) && llvm::any_of(op->getOperands(), [&](Value operand) { return own.contains(operand); }))
        sink(op);
    conversions->eraseUnused();
    for (Operation *op : llvm::reverse(made))
      if (op->use_empty())
        op->erase();
    return success();
  }

private:
  static bool canChange(Operation *op) {
    auto isHandle = [](Type type) { return dfg::isHandle(type); };
    return op->getNumResults() > 0 && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
           !op->hasTrait<dfg::DrawsNumbers>() && !llvm::isa<dfg::OpaqueOp>(op) &&
           llvm::none_of(op->getOperandTypes(), isHandle) && llvm::none_of(op->getResultTypes(), isHandle) &&
           llvm::all_of(op->getResultTypes(), [](Type type) {
             auto ranked = llvm::dyn_cast<RankedTensorType>(type);
             return ranked && ranked.hasStaticShape();
           });
  }

  Location locate(StringRef what) {
    return NameLoc::get(builder.getStringAttr(scope + "/" + what + "_" + std::to_string(count++)));
  }
  /// A node of this pass's own; nothing else asks for its effects.
  template <typename Op, typename... Args> Value create(StringRef what, Args &&...args) {
    auto op = Op::create(builder, locate(what), std::forward<Args>(args)...);
    made.push_back(op);
    if (flow && failed(conversions->revisit(op)))
      return {};
    return op->getResult(0);
  }
  Value constant(ArrayRef<int32_t> values, bool scalar = false) {
    SmallVector<int64_t> shape;
    if (!scalar)
      shape.push_back(static_cast<int64_t>(values.size()));
    auto type = RankedTensorType::get(shape, builder.getI32Type());
    DenseElementsAttr elements = DenseElementsAttr::get(type, values);
    return create<dfg::ConstOp>("sizes", type, elements);
  }
  /// All rows of the replica's own, as the graph has them.
  Operation *makeAll(Value rowsOfShare, RankedTensorType type) {
    Value sizes =
        constant(llvm::map_to_vector(type.getShape(), [](int64_t size) { return static_cast<int32_t>(size); }));
    Value all = create<dfg::ReshapeOp>("rows", TypeRange(type), ValueRange{rowsOfShare, sizes});
    own[all] = rowsOfShare;
    return all.getDefiningOp();
  }

  /// How many rows a replica has, or all of them have, and the same in a vector of other sizes.
  Value getCount(bool whole) {
    if (!shareCount) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointAfter(first);
      Type i32 = builder.getI32Type();
      auto rank = llvm::cast<RankedTensorType>(first.getResult().getType()).getRank();
      Value shape = create<dfg::ShapeOp>("shape", RankedTensorType::get({rank}, i32), first.getResult());
      Value zero = constant({0}, /*scalar=*/true);
      shareCount =
          create<dfg::GatherV2Op>("count", TypeRange(RankedTensorType::get({}, i32)), ValueRange{shape, zero, zero});
      wholeCount = conversions->makeWhole(shareCount);
    }
    return whole ? wholeCount : shareCount;
  }
  Value makeSizes(ArrayRef<int64_t> sizes, unsigned axis, bool whole, Type element) {
    Type i32 = builder.getI32Type();
    auto scalar = RankedTensorType::get({}, i32);
    SmallVector<Value> parts;
    for (auto [index, size] : llvm::enumerate(sizes)) {
      if (index != axis) {
        parts.push_back(constant({static_cast<int32_t>(size)}, /*scalar=*/true));
        continue;
      }
      Value rowsThere = getCount(whole);
      if (size != rows)
        rowsThere = create<dfg::MulOp>("count", scalar, rowsThere, constant({static_cast<int32_t>(size / rows)}, true));
      parts.push_back(rowsThere);
    }
    auto type = RankedTensorType::get({static_cast<int64_t>(sizes.size())}, i32);
    Value made = create<dfg::PackOp>("sizes", Type(type), ValueRange(parts), 0);
    return made && element != i32 ? create<dfg::CastOp>("sizes", type.clone(element), made) : made;
  }

  /// The replica's rows along an axis of a value that all replicas have; null where it has none of that size.
  Value takeRows(Value value, unsigned axis) {
    auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
    if (!type || !type.hasStaticShape() || axis >= type.getRank() || type.getDimSize(axis) != rows ||
        !flow->isWhole(value))
      return {};
    Value &known = taken[{value, axis}];
    if (known)
      return known;
    Value sizes = makeSizes(type.getShape(), axis, /*whole=*/true, builder.getI32Type());
    SmallVector<int64_t> open(type.getShape());
    open[axis] = ShapedType::kDynamic;
    Value whole =
        sizes ? create<dfg::ReshapeOp>("all", TypeRange(type.clone(open)), ValueRange{value, sizes}) : Value();
    return known = whole ? conversions->takeRows(whole, axis) : Value();
  }

  /// Sizes that a node is given as a constant, with a share's rows in the place of all; null where it has none.
  Value shareSizes(Value sizes, unsigned which) {
    std::optional<SmallVector<int64_t>> known = flow->getShapes().getConstants(sizes);
    auto type = llvm::dyn_cast<RankedTensorType>(sizes.getType());
    if (!known || !type || type.getRank() != 1 || !type.getElementType().isInteger())
      return {};
    for (auto [axis, size] : llvm::enumerate(*known))
      if (size > 0 && size % rows == 0 && which-- == 0)
        return makeSizes(*known, axis, /*whole=*/false, type.getElementType());
    return {};
  }

  /// Tries `op` of the replica's rows: of other operands as they are, with sizes of a share, with rows of what all
  /// replicas have, and with what is a part of a sum as a whole.
  void sink(Operation *op) {
    builder.setInsertionPoint(op);
    if (foldSizes(op))
      return;
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(own.contains(operand) ? own.lookup(operand) : operand);
    SmallVector<SmallVector<Value>> forms = {operands};
    bool hasSizes = false;
    for (unsigned which = 0; which < 2; ++which) {
      SmallVector<Value> sized(operands);
      bool any = false;
      for (OpOperand &operand : op->getOpOperands())
        if (isParameterOperand(op, operand.getOperandNumber()))
          if (Value sizes = shareSizes(operand.get(), which)) {
            sized[operand.getOperandNumber()] = sizes;
            any = true;
          }
      if (any)
        forms.insert(hasSizes ? forms.end() : forms.begin(), sized);
      hasSizes |= any;
    }
    constexpr unsigned kMostAxes = 4;
    for (unsigned axis = 0; axis < kMostAxes; ++axis) {
      SmallVector<Value> some(operands);
      bool any = false;
      for (OpOperand &operand : op->getOpOperands()) {
        if (own.contains(operand.get()) || isParameterOperand(op, operand.getOperandNumber()))
          continue;
        if (Value part = takeRows(operand.get(), axis)) {
          some[operand.getOperandNumber()] = part;
          any = true;
        }
      }
      if (any)
        forms.push_back(some);
    }
    for (ArrayRef<Value> form : forms)
      if (tryForm(op, form))
        return;
    // What is a part of a sum, made whole where it meets rows.
    for (ArrayRef<Value> form : forms) {
      SmallVector<Value> whole(form);
      bool any = false;
      for (OpOperand &operand : op->getOpOperands()) {
        Value &value = whole[operand.getOperandNumber()];
        if (flow->get(value).kind != Flow::Partial || isParameterOperand(op, operand.getOperandNumber()))
          continue;
        value = conversions->makeWhole(value);
        any = true;
      }
      if (any && !llvm::is_contained(whole, Value()) && tryForm(op, whole))
        return;
    }
  }

  /// Sizes of all rows are known: who asks for them needs no rows.
  bool foldSizes(Operation *op) {
    SmallVector<DenseElementsAttr> values;
    for (Value result : op->getResults()) {
      std::optional<SmallVector<int64_t>> known = flow->getShapes().getConstants(result);
      auto type = llvm::cast<RankedTensorType>(result.getType());
      if (!known || !type.getElementType().isSignlessInteger() || type.getElementTypeBitWidth() < 32)
        return false;
      values.push_back(DenseElementsAttr::get(type, llvm::map_to_vector(*known, [&](int64_t element) -> Attribute {
                                                return builder.getIntegerAttr(type.getElementType(), element);
                                              })));
    }
    Location loc = op->getLoc();
    for (auto [result, value] : llvm::zip(op->getResults(), values)) {
      auto constant = dfg::ConstOp::create(builder, loc, result.getType(), value);
      if (failed(conversions->revisit(constant))) {
        constant.erase();
        return false;
      }
      // The node's name is the first one's, with what it waits for.
      if (auto control = op->getAttrOfType<ArrayAttr>(dfg::kControlAttr); control && result == op->getResult(0))
        constant->setAttr(dfg::kControlAttr, control);
      op->setLoc(builder.getUnknownLoc());
      loc = locate("sizes");
      result.replaceAllUsesWith(constant.getResult());
    }
    op->erase();
    return true;
  }

  bool tryForm(Operation *op, ArrayRef<Value> operands) {
    Operation *last = op->getPrevNode();
    for (Value operand : operands)
      if (Operation *def = operand.getDefiningOp(); def && last && last->isBeforeInBlock(def))
        last = def;
    builder.setInsertionPoint(op);
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    for (Value result : copy->getResults()) {
      auto type = llvm::cast<RankedTensorType>(result.getType());
      result.setType(
          RankedTensorType::get(SmallVector<int64_t>(type.getRank(), ShapedType::kDynamic), type.getElementType()));
    }
    if (failed(conversions->revisit(copy)) || !isTaken(op, copy)) {
      copy->erase();
      return false;
    }
    // Its name, and what is left of its node, go over.
    op->setLoc(builder.getUnknownLoc());
    op->removeAttr(dfg::kControlAttr);
    builder.setInsertionPointAfter(copy);
    for (auto [old, result] : llvm::zip(op->getResults(), copy->getResults())) {
      result.setType(dfg::getTensorType(*flow->getShapes().getShape(result), getElementTypeOrSelf(result.getType())));
      Value all = result.getType() == old.getType()
                      ? result
                      : makeAll(result, llvm::cast<RankedTensorType>(old.getType()))->getResult(0);
      old.replaceAllUsesWith(all);
    }
    op->erase();
    return true;
  }

  /// Whether the flow knows what each result is, and all replicas' together are what the graph has.
  bool isTaken(Operation *op, Operation *copy) {
    return llvm::all_of(llvm::zip(op->getResults(), copy->getResults()), [&](auto pair) {
      auto [old, result] = pair;
      const Flow &at = flow->get(result);
      auto sizes = flow->getShapes().getShape(result);
      ArrayRef<int64_t> wanted = llvm::cast<RankedTensorType>(old.getType()).getShape();
      if (at.kind == Flow::Local || !sizes || sizes->size() != wanted.size())
        return false;
      for (auto [axis, size] : llvm::enumerate(*sizes)) {
        const bool isBatch = at.kind == Flow::Sharded && static_cast<int64_t>(axis) == at.batch.axis;
        if (isBatch ? !size.isMultipleOfBatch() || size.getScale() * rows != wanted[axis]
                    : !size.isConstant() || size.getConstant() != wanted[axis])
          return false;
      }
      // As the graph has it of all rows: no number of a share's.
      return at.zero || at.scale == 0 || (at.kind == Flow::Partial && at.scale == 1);
    });
  }

  const int64_t rows;
  Block &block;
  OpBuilder builder;
  const std::string scope;
  dfg::PlaceholderOp first;
  BatchFlow *flow = nullptr;
  BatchConversions *conversions = nullptr;
  /// Of what has all rows, the replica's own.
  llvm::DenseMap<Value, Value> own;
  llvm::DenseMap<std::pair<Value, unsigned>, Value> taken;
  Value shareCount, wholeCount;
  SmallVector<Operation *> made;
  unsigned count = 0;
};

struct DistOpenBatch : public impl::DistOpenBatchBase<DistOpenBatch> {
  using DistOpenBatchBase::DistOpenBatchBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<SyncPolicies> policies = SyncPolicies::read(module);
    if (failed(policies))
      return signalPassFailure();
    const int64_t replicas = policies->replicas;
    // Replicas of their own have no rows but theirs.
    const bool isWhole = !module->hasAttr(dist::kCouplingAttr) && !policies->hasAsync && policies->staleness == 0 &&
                         policies->required == replicas;
    for (auto graph : module.getOps<dfg::GraphOp>()) {
      if (replicas == 1 || batch == 0 || !isWhole || batch % replicas != 0 || dfg::findFixedBatch(graph) != batch)
        continue;
      Opener opener(graph, batch);
      if (opener.openFeeds() && failed(opener.sink(graph, replicas)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace distc
