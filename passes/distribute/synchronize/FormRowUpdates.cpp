//===- FormRowUpdates.cpp - Gradients of embeddings are rows again --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dfg/GraphBuilder.h"
#include "dialects/dfg/NodeEdges.h"
#include "dialects/dfg/NodeNames.h"
#include "dialects/dist/Dist.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "passes/distribute/NodeEdits.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/synchronize/RawGradients.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTFORMROWUPDATES
#include "passes/distribute/Passes.h.inc"

namespace {

/// What an update's rule computes where the gradient's element is zero.
class ZeroGradient {
public:
  explicit ZeroGradient(dist::UpdateOp update) : update(update), rule(update.getRule().front()) {
    facts[rule.getArgument(update.getGradientOperand())].isZero = true;
  }

  /// Which of the variable and its slots it leaves as they are. What is multiplied by zero counts as finite.
  SmallVector<bool> findUnchanged() {
    for (Operation &op : rule.without_terminator())
      if (op.getNumResults() == 1)
        facts[op.getResult(0)] = find(&op);
    SmallVector<bool> unchanged;
    for (auto [number, value] : llvm::enumerate(rule.getTerminator()->getOperands()))
      unchanged.push_back(getSource(value) == rule.getArgument(number));
    return unchanged;
  }

private:
  struct Fact {
    bool isZero = false;
    bool isPositive = false, isNegative = false; // and not zero
    bool isAtLeastZero = false;
    bool isOne = false;
    Value source; // the same element; null for itself
  };

  Value getSource(Value value) const {
    Value source = facts.lookup(value).source;
    return source ? source : value;
  }

  Fact getSame(Value value) const {
    Fact fact = facts.lookup(value);
    fact.source = getSource(value);
    return fact;
  }

  static Fact getConstant(const APFloat &value) {
    Fact fact;
    fact.isZero = value.isZero();
    fact.isAtLeastZero = !value.isNaN() && (fact.isZero || !value.isNegative());
    fact.isPositive = fact.isAtLeastZero && !fact.isZero;
    fact.isNegative = !value.isNaN() && !fact.isZero && value.isNegative();
    fact.isOne = value.isExactlyValue(1.0);
    return fact;
  }

  Fact find(Operation *op) const {
    FloatAttr constant;
    if (matchPattern(op, m_Constant(&constant)))
      return getConstant(constant.getValue());
    Fact fact;
    SmallVector<Fact> of = llvm::map_to_vector(op->getOperands(), [&](Value operand) { return facts.lookup(operand); });
    return llvm::TypeSwitch<Operation *, Fact>(op)
        .Case([&](arith::AddFOp add) {
          if (of[0].isZero || of[1].isZero)
            return getSame(of[0].isZero ? add.getRhs() : add.getLhs());
          fact.isAtLeastZero = of[0].isAtLeastZero && of[1].isAtLeastZero;
          fact.isPositive = fact.isAtLeastZero && (of[0].isPositive || of[1].isPositive);
          return fact;
        })
        .Case([&](arith::SubFOp sub) { return of[1].isZero ? getSame(sub.getLhs()) : fact; })
        .Case([&](arith::MulFOp mul) {
          fact.isZero = of[0].isZero || of[1].isZero;
          if (!fact.isZero && (of[0].isOne || of[1].isOne))
            return getSame(of[0].isOne ? mul.getRhs() : mul.getLhs());
          fact.isAtLeastZero =
              fact.isZero || mul.getLhs() == mul.getRhs() || (of[0].isAtLeastZero && of[1].isAtLeastZero);
          return fact;
        })
        .Case([&](arith::DivFOp div) {
          if (of[1].isOne)
            return getSame(div.getLhs());
          fact.isZero = of[0].isZero && (of[1].isPositive || of[1].isNegative);
          fact.isAtLeastZero = fact.isZero || (of[0].isAtLeastZero && of[1].isPositive);
          return fact;
        })
        .Case<arith::NegFOp, math::SqrtOp, math::AbsFOp, arith::ExtFOp, arith::TruncFOp>([&](Operation *each) {
          fact.isZero = of[0].isZero;
          fact.isAtLeastZero = fact.isZero || llvm::isa<math::SqrtOp, math::AbsFOp>(each) ||
                               (llvm::isa<arith::ExtFOp, arith::TruncFOp>(each) && of[0].isAtLeastZero);
          fact.isPositive = llvm::isa<math::SqrtOp, math::AbsFOp, arith::ExtFOp>(each) && of[0].isPositive;
          return fact;
        })
        .Case([&](arith::SelectOp select) {
          const Fact &x = of[1], &y = of[2];
          fact.isZero = x.isZero && y.isZero;
          fact.isPositive = x.isPositive && y.isPositive;
          fact.isNegative = x.isNegative && y.isNegative;
          fact.isAtLeastZero = x.isAtLeastZero && y.isAtLeastZero;
          if (getSource(select.getTrueValue()) == getSource(select.getFalseValue()))
            fact.source = getSource(select.getTrueValue());
          return fact;
        })
        .Default(fact);
  }

  dist::UpdateOp update;
  Block &rule;
  llvm::DenseMap<Value, Fact> facts;
};

/// Takes out of an update what its rule makes of the variable's new value and of no gradient: a moving average, which
/// changes in every row. It is updated behind the variable, of the value that this has then.
class AverageSplitter {
public:
  AverageSplitter(dist::UpdateOp update, ArrayRef<bool> stays)
      : update(update), rule(update.getRule().front()), stays(stays) {}

  /// The update of the others; null where the rule cannot be taken apart, or there is nothing to take out.
  dist::UpdateOp run() {
    if (!stays.front() || llvm::all_of(stays, [](bool each) { return each; }) || !canSplit())
      return {};
    OpBuilder builder(update);
    Block &block = *update->getBlock();
    std::string name = dfg::getNodeName(update).str();
    auto locate = [&](const std::string &own) { return NameLoc::get(builder.getStringAttr(getFreeName(block, own))); };
    Location ofRows = locate(name + "/rows");
    Value table = update->getOperand(0), gradient = update->getOperand(update.getGradientOperand());
    dist::UpdateOp first = make(builder, ofRows, gradient, /*ofStaying=*/true);
    if (Attribute control = update->getAttr(dfg::kControlAttr))
      first->setAttr(dfg::kControlAttr, control);
    auto read = dfg::ReadVariableOp::create(builder, locate(name + "/new"),
                                            llvm::cast<dfg::RefType>(table.getType()).getValueType(), table,
                                            /*implicit=*/false);
    Attribute before = dfg::getNodeNameAttr(first);
    read->setAttr(dfg::kControlAttr, builder.getArrayAttr(before));
    dist::UpdateOp second = make(builder, update.getLoc(), read.getResult(), /*ofStaying=*/false);
    second->setAttr(dfg::kControlAttr, builder.getArrayAttr(before));
    update.erase();
    return first;
  }

private:
  unsigned getGradient() { return update.getGradientOperand(); }

  bool canSplit() {
    auto newValue = rule.getTerminator()->getOperand(0);
    llvm::DenseSet<Value> seen;
    auto uses = [&](bool ofStaying, llvm::function_ref<bool(unsigned)> isAllowed) {
      SmallVector<Value> pending;
      seen.clear();
      for (auto [each, value] : llvm::zip(stays, rule.getTerminator()->getOperands()))
        if (each == ofStaying)
          pending.push_back(value);
      while (!pending.empty()) {
        Value value = pending.pop_back_val();
        if ((!ofStaying && value == newValue) || !seen.insert(value).second)
          continue;
        if (auto argument = llvm::dyn_cast<BlockArgument>(value)) {
          if (!isAllowed(argument.getArgNumber()))
            return false;
        } else if (value.getDefiningOp()->getNumRegions() == 0) {
          llvm::append_range(pending, value.getDefiningOp()->getOperands());
        } else {
          return false;
        }
      }
      return true;
    };
    return !llvm::isa<BlockArgument>(newValue) &&
           uses(true, [&](unsigned number) { return number >= stays.size() || stays[number]; }) &&
           uses(false,
                [&](unsigned number) { return number < stays.size() ? !stays[number] : number != getGradient(); });
  }

  /// The part of the rule for one of both groups. The second is given the variable's new value.
  dist::UpdateOp make(OpBuilder &builder, Location location, Value given, bool ofStaying) {
    SmallVector<Value> inputs;
    SmallVector<unsigned> numbers;
    for (auto [number, operand] : llvm::enumerate(update->getOperands())) {
      if (number < stays.size() && stays[number] != ofStaying)
        continue;
      inputs.push_back(number == getGradient() ? given : operand);
      numbers.push_back(number);
    }
    auto made = dist::UpdateOp::create(builder, location, inputs, /*has_gradient=*/true, /*has_indices=*/false);
    Block &block = made.getRule().emplaceBlock();
    IRMapping mapping;
    Value newValue = rule.getTerminator()->getOperand(0);
    for (unsigned number : numbers) {
      Value argument = rule.getArgument(number);
      const bool isNew = !ofStaying && number == getGradient();
      Value own = block.addArgument(isNew ? newValue.getType() : argument.getType(), builder.getUnknownLoc());
      mapping.map(isNew ? newValue : argument, own);
    }
    OpBuilder inside = OpBuilder::atBlockEnd(&block);
    llvm::SetVector<Operation *> needed;
    SmallVector<Value> results;
    for (auto [each, value] : llvm::zip(stays, rule.getTerminator()->getOperands()))
      if (each == ofStaying)
        results.push_back(value);
    SmallVector<Value> pending(results);
    while (!pending.empty()) {
      Value value = pending.pop_back_val();
      if (Operation *op = mapping.contains(value) ? nullptr : value.getDefiningOp(); op && needed.insert(op))
        llvm::append_range(pending, op->getOperands());
    }
    for (Operation &op : rule.without_terminator())
      if (needed.contains(&op))
        inside.clone(op, mapping);
    dist::YieldOp::create(inside, builder.getUnknownLoc(),
                          llvm::map_to_vector(results, [&](Value value) { return mapping.lookup(value); }));
    return made;
  }

  dist::UpdateOp update;
  Block &rule;
  SmallVector<bool> stays;
};

struct DistFormRowUpdates : public impl::DistFormRowUpdatesBase<DistFormRowUpdates> {
  using DistFormRowUpdatesBase::DistFormRowUpdatesBase;

  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>())
      if (failed(run(graph)))
        return signalPassFailure();
  }

private:
  /// Rows that are added up where their numbers say, and only that.
  dfg::UnsortedSegmentSumOp getSum(dist::UpdateOp update, const llvm::StringSet<> &named) {
    if (update.getGradientOperand() < 0 || update.getIndicesOperand() >= 0)
      return {};
    Value gradient = update->getOperand(update.getGradientOperand());
    auto sum = gradient.getDefiningOp<dfg::UnsortedSegmentSumOp>();
    return sum && gradient.hasOneUse() && !named.contains(dfg::getNodeName(sum)) ? sum : dfg::UnsortedSegmentSumOp();
  }

  LogicalResult run(dfg::GraphOp graph) {
    Block &block = graph.getBody().front();
    llvm::StringSet<> named = dfg::getEndpointNames(graph); // and what is waited for
    for (Operation &op : block)
      for (Attribute waited : dfg::getControl(&op))
        named.insert(llvm::cast<StringAttr>(waited).getValue());
    SmallVector<std::pair<dist::UpdateOp, dfg::UnsortedSegmentSumOp>> found;
    for (auto update : block.getOps<dist::UpdateOp>())
      if (auto sum = getSum(update, named))
        found.emplace_back(update, sum);
    if (found.empty())
      return success();
    dfg::ShapeContext shapes;
    if (failed(shapes.run(block)))
      return failure();
    for (auto [update, sum] : found) {
      if (!isFewRows(sum, shapes))
        continue;
      SmallVector<bool> unchanged = ZeroGradient(update).findUnchanged();
      dist::UpdateOp ofRows = update;
      if (llvm::is_contained(unchanged, false))
        ofRows = AverageSplitter(update, unchanged).run();
      if (ofRows)
        form(ofRows, sum, shapes);
    }
    return success();
  }

  /// Whether the batch names fewer rows than the table has: else the table is the smaller gradient.
  bool isFewRows(dfg::UnsortedSegmentSumOp sum, const dfg::ShapeContext &shapes) const {
    std::optional<dfg::Dims> sizes = shapes.getShape(sum.getSegmentIds());
    auto type = llvm::dyn_cast<RankedTensorType>(sum.getResult().getType());
    if (!sizes || sizes->empty() || !type || !type.hasStaticShape())
      return false;
    if (batch == 0)
      return true;
    const int64_t b = batch / dfg::getBatchMultiple(sum);
    int64_t count = 1;
    for (dfg::Dim size : *sizes) {
      if (!size.isKnown())
        return false;
      count *= (size.getScale() + size.getWholeScale()) * b + size.getOffset();
    }
    return count < type.getDimSize(0);
  }

  /// Rows of one index are added first, as the table's would be: an update sees each row once.
  static void form(dist::UpdateOp update, dfg::UnsortedSegmentSumOp sum, dfg::ShapeContext &shapes) {
    OpBuilder builder(update);
    dfg::GraphBuilder g(builder, shapes, update);
    auto type = llvm::cast<RankedTensorType>(sum.getResult().getType());
    FailureOr<dfg::Dims> sizes = g.getShape(sum.getSegmentIds());
    if (failed(sizes))
      return;
    dfg::Dim count(1);
    for (dfg::Dim size : *sizes)
      count = count * size;
    dfg::Dims rowSizes = {count}, columnSizes = {count};
    for (int64_t size : type.getShape().drop_front()) {
      rowSizes.push_back(size);
      columnSizes.push_back(1);
    }
    Value ids = sum.getSegmentIds(), rows = sum.getData();
    if (sizes->size() != 1) {
      ids = g.reshape(ids, count);
      rows = g.reshape(rows, rowSizes);
    }
    // A sum leaves out what has a negative number. An update has no such rows: zeros change nothing.
    Type element = dfg::GraphBuilder::elementOf(ids);
    Value zero = g.scalar(element, 0);
    Value isRow = g.lessEqual(zero, ids);
    if (type.getRank() > 1)
      isRow = g.reshape(isRow, columnSizes);
    rows = g.select(isRow, rows, g.scalar(type.getElementType(), 0));
    dfg::GraphBuilder::Values distinct =
        g.makeAll<dfg::UniqueOp>(g.maximum(ids, zero), {element, builder.getI32Type()});
    Value all = g.make<dfg::ShapeOp>(distinct[0], {}, builder.getI32Type());
    Value number = g.make<dfg::StridedSliceOp>({all, g.integers({0}), g.integers({1}), g.integers({1})},
                                               g.attribute("shrink_axis_mask", builder.getI64IntegerAttr(1)));
    rows = g.segmentSum(rows, distinct[1], number);
    if (g.failed()) {
      g.takeBack();
      return;
    }
    const int gradient = update.getGradientOperand();
    update->setOperand(gradient, rows);
    update->insertOperands(gradient + 1, distinct[0]);
    update.setHasIndices(true);
    sum.erase();
  }
};

} // namespace
} // namespace distc
