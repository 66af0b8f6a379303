//===- FuseElementwise.cpp - Chains of element-wise work become one kernel ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/FusionPlan.h"
#include "passes/lower/kernels/Reshapes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "passes/lower/Passes.h.inc"

namespace {

/// Builds the one operation that computes a cluster. Each body is copied once, whatever the cluster's size: fusing pair
/// by pair copies the first of n bodies n times.
class ClusterBuilder {
public:
  explicit ClusterBuilder(const FusionCluster &cluster) : members(cluster.members) {
    for (auto [number, member] : llvm::enumerate(members))
      numbers[member] = number;
  }

  linalg::GenericOp build() {
    auto root = llvm::cast<linalg::GenericOp>(members[0].first);
    SmallVector<size_t> order = getOrder();
    SmallVector<Value> values;
    SmallVector<AffineMap> maps;
    for (auto [value, map] : inputs.getArrayRef()) {
      values.push_back(value);
      maps.push_back(map);
    }
    for (OpOperand &init : root.getDpsInitsMutable())
      maps.push_back(root.getMatchingIndexingMap(&init));
    OpBuilder builder(root);
    return linalg::GenericOp::create(builder, root.getLoc(), root->getResultTypes(), values, root.getOutputs(), maps,
                                     root.getIteratorTypesArray(),
                                     [&](OpBuilder &body, Location loc, ValueRange arguments) {
                                       results.resize(members.size());
                                       for (size_t number : order)
                                         copyBody(body, number, arguments);
                                       linalg::YieldOp::create(body, loc, results[0]);
                                     });
  }

private:
  /// The member that computes what is read, if one does.
  std::optional<size_t> findMember(const FusedValue &read) const {
    std::optional<FusedOp> producer = getProducer(read);
    auto found = producer ? numbers.find(*producer) : numbers.end();
    return found == numbers.end() ? std::nullopt : std::optional(found->second);
  }

  /// Members behind those that they use. Notes the inputs from outside, in the order of the operands that lead to them.
  SmallVector<size_t> getOrder() {
    SmallVector<size_t> order;
    SmallVector<bool> seen(members.size());
    SmallVector<std::pair<size_t, unsigned>> path = {{0, 0}};
    while (!path.empty()) {
      auto &[number, next] = path.back();
      auto op = llvm::cast<linalg::GenericOp>(members[number].first);
      if (next == op.getNumDpsInputs()) {
        order.push_back(number);
        path.pop_back();
        continue;
      }
      FusedValue read = getRead(members[number], op->getOpOperand(next++));
      std::optional<size_t> producer = findMember(read);
      if (!producer)
        inputs.insert(read);
      else if (!std::exchange(seen[*producer], true))
        path.push_back({*producer, 0});
    }
    return order;
  }

  void copyBody(OpBuilder &builder, size_t number, ValueRange arguments) {
    const auto &[operation, fromRoot] = members[number];
    auto op = llvm::cast<linalg::GenericOp>(operation);
    Block &body = op.getRegion().front();
    IRMapping mapping;
    for (OpOperand *input : op.getDpsInputOperands()) {
      FusedValue read = getRead(members[number], *input);
      std::optional<size_t> producer = findMember(read);
      mapping.map(op.getMatchingBlockArgument(input),
                  producer ? results[*producer][llvm::cast<OpResult>(read.first).getResultNumber()]
                           : arguments[std::distance(inputs.begin(), llvm::find(inputs, read))]);
    }
    if (number == 0)
      mapping.map(body.getArguments().take_back(op.getNumDpsInits()), arguments.take_back(op.getNumDpsInits()));
    for (Operation &inner : body.without_terminator()) {
      if (auto index = llvm::dyn_cast<linalg::IndexOp>(inner)) {
        mapping.map(index.getResult(), getLoop(builder, index.getLoc(), fromRoot, index.getDim()));
        continue;
      }
      builder.clone(inner, mapping)->walk([&](linalg::IndexOp index) {
        OpBuilder inside(index);
        index.getResult().replaceAllUsesWith(getLoop(inside, index.getLoc(), fromRoot, index.getDim()));
        index.erase();
      });
    }
    for (Value value : body.getTerminator()->getOperands())
      results[number].push_back(mapping.lookupOrDefault(value));
  }

  /// Where a member's loop is, from where those of the root are.
  static Value getLoop(OpBuilder &builder, Location loc, AffineMap fromRoot, unsigned dim) {
    AffineExpr loop = fromRoot.getResult(dim);
    if (auto same = llvm::dyn_cast<AffineDimExpr>(loop))
      return linalg::IndexOp::create(builder, loc, same.getPosition());
    if (auto constant = llvm::dyn_cast<AffineConstantExpr>(loop))
      return arith::ConstantIndexOp::create(builder, loc, constant.getValue());
    SmallVector<Value> loops;
    for (unsigned i = 0; i < fromRoot.getNumDims(); ++i)
      loops.push_back(linalg::IndexOp::create(builder, loc, i));
    return affine::AffineApplyOp::create(builder, loc, fromRoot.getSubMap(dim), loops);
  }

  ArrayRef<FusedOp> members;
  llvm::DenseMap<FusedOp, size_t> numbers;
  llvm::SetVector<FusedValue> inputs;
  std::vector<SmallVector<Value, 1>> results;
};

/// The constant that all elements are, whatever shape they are read in.
Attribute getUniform(Value value) {
  while (isReshape(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  auto made = value.getDefiningOp<linalg::GenericOp>();
  Attribute constant;
  if (made && made->getNumResults() == 1 && isElementwise(made))
    matchPattern(made.getBody()->getTerminator()->getOperand(0), m_Constant(&constant));
  return constant;
}

/// What reads elements that are all one constant has it for itself: they need not be there before its kernel.
struct ReadConstant : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    bool isChanged = false;
    for (OpOperand *input : op.getDpsInputOperands()) {
      auto constant = dyn_cast_if_present<TypedAttr>(getUniform(input->get()));
      const Value element = op.getMatchingBlockArgument(input);
      if (!constant || element.use_empty())
        continue;
      rewriter.setInsertionPoint(op);
      rewriter.replaceAllUsesWith(element, arith::ConstantOp::create(rewriter, op.getLoc(), constant));
      isChanged = true;
    }
    return success(isChanged);
  }
};

struct FuseElementwise : impl::FuseElementwiseBase<FuseElementwise> {
  using FuseElementwiseBase::FuseElementwiseBase;

  void runOnOperation() override {
    // Constants become scalars of what reads them, equal operands one, and those that nothing reads are left out: what
    // is cheap, and what has one user, shows only then. The bodies of a cluster give such operands again.
    if (failed(cleanUp()))
      return signalPassFailure();
    Block &block = getOperation().getBody().front();
    FusionPlan plan(block, maxRepeated);
    // All are built from the operations as they were planned, then take their places.
    SmallVector<std::pair<Operation *, Operation *>> fused;
    for (const FusionCluster *cluster : plan.getClusters())
      fused.push_back({cluster->getRoot(), ClusterBuilder(*cluster).build()});
    for (auto [root, operation] : fused)
      root->replaceAllUsesWith(operation);
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (llvm::isa<linalg::GenericOp>(op) && op.use_empty())
        op.erase();
    if (failed(cleanUp()))
      signalPassFailure();
  }

  LogicalResult cleanUp() {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, [](OpOperand *) { return false; });
    patterns.add<ReadConstant>(&getContext());
    GreedyRewriteConfig config;
    config.setUseTopDownTraversal();
    // What became a constant shows to its readers in the next round: as many as a chain of them is long, an unrolled
    // loop say.
    config.setMaxIterations(GreedyRewriteConfig::kNoLimit);
    return applyPatternsGreedily(getOperation(), std::move(patterns), config);
  }
};

} // namespace
} // namespace distc
