//===- FixedBatchFlow.cpp - The flow of graphs that fix their batch ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/flow/BatchFlow.h"
#include "passes/distribute/flow/OperandRoles.h"
#include <cmath>

using namespace mlir;

namespace distc {

/// Gives the placeholders the batch where the graph fixes it.
void BatchFlow::setFixedBatch(dfg::GraphOp graph) {
  fixed.size = dfg::findFixedBatch(graph);
  if (!fixed)
    return;
  for (auto feed : graph.getOps<dfg::PlaceholderOp>())
    if (dfg::Dims sizes = *shapes.getShape(feed.getResult()); !sizes.empty()) {
      sizes[0] = dfg::Dim::batch();
      shapes.setShape(feed.getResult(), std::move(sizes));
    }
}

/// The shape that a reshape to [32, -1], or [1, 32, 10], gives rows of a batch that the graph fixes to 32: as many as
/// there were. By itself -1 would be a multiple of b.
std::optional<dfg::Dims> BatchFlow::findReshapedRows(Operation *op) const {
  if (!llvm::isa<dfg::ReshapeOp>(op))
    return std::nullopt;
  auto sizes = shapes.getShape(op->getOperand(0));
  auto target = shapes.getConstants(op->getOperand(1));
  if (!sizes || sizes->empty() || !sizes->front().isMultipleOfBatch() || !target)
    return std::nullopt;
  const auto *rows = llvm::find_if(*target, [](int64_t size) { return size != 1; });
  if (rows == target->end() || *rows <= 0 || *rows % fixed.size)
    return std::nullopt;
  int64_t count = sizes->front().getScale(), rest = *rows / fixed.size;
  for (dfg::Dim size : ArrayRef(*sizes).drop_front()) {
    if (!size.isConstant())
      return std::nullopt;
    count *= size.getConstant();
  }
  dfg::Dims given(target->begin(), target->end());
  given[rows - target->begin()] = dfg::Dim::batch(rest);
  dfg::Dim *open = nullptr;
  for (auto [axis, size] : llvm::enumerate(*target)) {
    if (size == -1)
      open = &given[axis];
    else if (target->begin() + axis != rows)
      rest *= size;
  }
  if (rest <= 0 || count % rest || (!open && count != rest))
    return std::nullopt;
  if (open)
    *open = dfg::Dim(count / rest);
  return given;
}

/// A graph that fixes its batch has it as a number in shapes too ([32, -1]), which meets b and makes sizes unknown or
/// fixed: takes a first size that is a multiple of the batch as one of b, where a sharded operand says that it may be,
/// or what it was found to be combined with. Returns what the sizes were.
SmallVector<dfg::Dims> BatchFlow::restoreBatchAxis(Operation *op) {
  SmallVector<dfg::Dims> old;
  for (Value result : op->getResults())
    old.push_back(shapes.getShape(result).value_or(dfg::Dims()));
  bool isSharded = llvm::any_of(op->getOperands(), [&](Value operand) { return get(operand).kind == Flow::Sharded; });
  if (!isSharded && !fixed.makesRows(op))
    return old;
  for (Value result : op->getResults()) {
    std::optional<dfg::Dims> sizes = shapes.getShape(result);
    auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
    if (auto rows = isSharded ? findReshapedRows(op) : std::nullopt) {
      shapes.setShape(result, std::move(*rows));
      continue;
    }
    if (!sizes || sizes->empty())
      continue;
    dfg::Dim &first = sizes->front();
    // What a slice leaves of 2b rows, or a padding adds to them: 2b - 32.
    if (first.isKnown() && first.dependsOnBatch() && !first.isMultipleOfBatch() && isSharded &&
        llvm::none_of(ArrayRef(*sizes).drop_front(), [](dfg::Dim size) { return size.dependsOnBatch(); }))
      if (dfg::Dim rows = fixed.asRows(first); rows.isKnown() && rows.getScale() > 0) {
        first = rows;
        shapes.setShape(result, std::move(*sizes));
        continue;
      }
    if (llvm::any_of(*sizes, [](dfg::Dim size) { return size.dependsOnBatch(); }))
      continue;
    bool lost = !first.isKnown();
    int64_t size = first.isConstant() ? first.getConstant() : type && !type.isDynamicDim(0) ? type.getDimSize(0) : -1;
    if (size <= 0 || size % fixed.size || (!lost && isSharded && sumsOverBatch(op)))
      continue;
    first = dfg::Dim::batch(size / fixed.size);
    shapes.setShape(result, std::move(*sizes));
  }
  return old;
}

/// Visits a node of a graph that fixes its batch.
void BatchFlow::visitFixed(Operation *op, bool learns) {
  SmallVector<dfg::Dims> old = restoreBatchAxis(op);
  fixed.noteComputed(op, shapes);
  visit(op);
  if (llvm::isa<dfg::ConstOp>(op) && fixed.makesRows(op)) {
    Flow flow;
    flow.kind = Flow::Sharded;
    flow.batch = {0, {(*shapes.getShape(op->getResult(0)))[0].getScale()}, true};
    if (ArrayRef<int64_t> segments = fixed.getSegments(op); !segments.empty())
      flow.batch = {0, {segments.begin(), segments.end()}, false};
    flow.zero = isZeroConstant(op);
    flows[op->getResult(0)] = std::move(flow);
  }
  // A size was no row's after all. What is made for the rows has them also where nothing is known of it yet.
  for (auto [result, sizes] : llvm::zip(op->getResults(), old))
    if (const Flow &at = get(result); at.kind != Flow::Sharded && !fixed.makesRows(op) && !sizes.empty())
      shapes.setShape(result, std::move(sizes));
  for (OpResult result : op->getResults())
    if (std::optional<int> growth = findGrowth(op, result.getResultNumber()); growth != 0)
      growths[result] = growth;
  if (learns && (!estimates || ofOneReplica))
    learn(op);
}

/// What `op` says of the numbers that it combines with the batch's rows and sums.
void BatchFlow::learn(Operation *op) {
  if ((llvm::isa<dfg::ScalarInterface, dfg::SoftmaxCrossEntropyWithLogitsOp>(op) || op->hasTrait<dfg::Joins>()) &&
      op->getNumResults() > 0) {
    auto rankOf = [&](Value value) {
      auto sizes = shapes.getShape(value);
      return sizes ? static_cast<int64_t>(sizes->size()) : -1;
    };
    const int64_t rank = rankOf(llvm::isa<dfg::PackOp>(op) ? op->getOperand(0) : op->getResult(0));
    // Also where they are no proven ones yet, but will be once replicas are coupled.
    auto hasRows = [&](Value value) {
      auto sizes = shapes.getShape(value);
      return rankOf(value) == rank &&
             (get(value).isSharded(0) || (get(value).kind == Flow::Local && sizes->front().isMultipleOfBatch()));
    };
    if (rank > 0 && llvm::any_of(op->getOperands(), hasRows)) {
      SmallVector<int64_t> segments;
      for (Value operand : op->getOperands())
        if (const Flow &at = get(operand); rankOf(operand) == rank && at.isSharded(0) && !at.batch.uniform)
          segments.assign(at.batch.segments.begin(), at.batch.segments.end());
      // What is joined along the batch's axis lies behind the batch's rows, not beside them.
      if (llvm::isa<dfg::ConcatV2Op>(op))
        segments.clear();
      for (Value operand : op->getOperands())
        if (rankOf(operand) == rank && get(operand).kind != Flow::Sharded)
          fixed.noteRows(operand, shapes, segments);
    }
  }
  // Of each row of logits the class, or classes, of one example.
  if (llvm::isa<dfg::SparseSoftmaxCrossEntropyWithLogitsOp, dfg::SoftmaxCrossEntropyWithLogitsOp>(op))
    for (unsigned operand : {0u, 1u})
      if (const Flow &rows = get(op->getOperand(operand));
          rows.isSharded(0) && get(op->getOperand(1 - operand)).kind != Flow::Sharded)
        fixed.noteRows(op->getOperand(1 - operand), shapes,
                       rows.batch.uniform ? ArrayRef<int64_t>() : ArrayRef<int64_t>(rows.batch.segments));
  auto isSum = [&](Value value) {
    const Flow &at = get(value);
    return !at.zero && at.scale && *at.scale >= 1 && (at.kind != Flow::Sharded || at.batch.uniform);
  };
  auto axisOf = [&](Value value) {
    const Flow &at = get(value);
    return at.kind == Flow::Sharded ? std::optional<int64_t>(at.batch.axis) : std::nullopt;
  };
  const bool divides = op->hasTrait<dfg::Divides>() && op->getNumOperands() == 2;
  if (divides && fixed.question == FixedBatch::Rows) {
    fixed.noteCopies(op->getOperand(0), op->getOperand(1), shapes);
    // `sum(loss * weight) / sum(ones)`, as tf.losses have it: the ones are rows of the batch that the graph has as
    // numbers.
    if (isSum(op->getOperand(0)))
      fixed.noteSummedRows(op->getOperand(1), shapes);
  }
  if (divides && get(op->getOperand(0)).kind == Flow::Sharded && !get(op->getOperand(0)).batch.uniform &&
      fixed.countsCopies(op->getOperand(1)))
    fixed.noteOtherTerms(op->getOperand(0), op->getOperand(1), axisOf);
  if (fixed.learned)
    return;
  if (divides && fixed.question == FixedBatch::Counts && isSum(op->getOperand(0)) && get(op->getOperand(1)).scale == 0)
    fixed.noteCount(op->getOperand(0), op->getOperand(1), axisOf);
  if (llvm::isa<dfg::MulOp>(op) && fixed.question == FixedBatch::Shares)
    for (unsigned operand : {0u, 1u})
      if (isSum(op->getOperand(operand)) && get(op->getOperand(1 - operand)).scale == 0)
        fixed.noteShare(op->getOperand(operand), op->getOperand(1 - operand), axisOf);
}

/// Whether the constant that `factor` is scales rows of the examples elsewhere, which nothing made larger than a
/// replica's: there it is a number of its own, whatever the batch is (`x + 0.1 * f(x)`), and being one node it is the
/// same number beside the gradients of these rows.
bool BatchFlow::isNumberOfRows(Operation *op, Value factor) const {
  auto areRows = [&](Value value) {
    const Flow &at = get(value);
    return at.kind == Flow::Sharded && !at.batch.uniform && !at.zero;
  };
  if (op->getNumOperands() != 2 || fixed.isOfBatch(factor) ||
      !areRows(op->getOperand(op->getOperand(0) == factor ? 1 : 0)))
    return false;
  return llvm::any_of(factor.getUsers(), [&](Operation *user) {
    if (user == op || user->getNumOperands() != 2 || user->getNumResults() != 1 ||
        (!llvm::isa<dfg::MulOp>(user) && !(user->hasTrait<dfg::Divides>() && user->getOperand(1) == factor)))
      return false;
    Value rows = user->getOperand(user->getOperand(0) == factor ? 1 : 0);
    return areRows(rows) && areRows(user->getResult(0)) && get(rows).scale == 0 && getGrowth(rows) == 0;
  });
}

std::optional<int> BatchFlow::findGrowth(Operation *op, unsigned result) const {
  if (llvm::isa<dfg::UpdateInterface>(op))
    return 0;
  if (auto rescale = llvm::dyn_cast<dist::RescaleOp>(op)) {
    std::optional<int> growth = getGrowth(rescale.getShare());
    return growth ? std::optional(*growth + static_cast<int>(rescale.getPowerAttr().getInt())) : growth;
  }
  if (auto size = llvm::dyn_cast<dist::WholeSizeOp>(op))
    return llvm::any_of(size.getFactors(), [](int64_t factor) { return factor != 1; }) ? 1 : 0;
  auto isConstant = [&](Value value) { return fixed.getConstant(value) != nullptr; };
  if (auto reduce = llvm::dyn_cast<dist::AllReduceOp>(op); reduce && reduce.getCoupling()) {
    std::optional<int> growth = getGrowth(reduce.getGradients()[result]);
    return growth && reduce.getReduction() == dist::Reduction::Sum ? std::optional(*growth + 1) : growth;
  }
  // Numbers beside what grows: also of what no collective has changed yet.
  auto grows = [&](Value value) {
    const Flow &at = get(value);
    return getGrowth(value) != 0 || (at.kind == Flow::Partial && !at.zero && at.scale != 0);
  };
  if ((llvm::isa<dfg::MulOp>(op) || op->hasTrait<dfg::Divides>()) && llvm::any_of(op->getOperands(), grows))
    for (Value operand : op->getOperands())
      if (fixed.mayCount(op, operand) && !isNumberOfRows(op, operand))
        return std::nullopt;
  if (llvm::all_of(op->getOperands(), [&](Value operand) { return getGrowth(operand) == 0; }))
    return 0;
  SmallVector<Value> linear, others;
  sortOperands(op, linear, others);
  auto add = [&](ArrayRef<Value> values, int sign, std::optional<int> sum) {
    for (Value value : values) {
      std::optional<int> growth = getGrowth(value);
      sum = sum && growth ? std::optional(*sum + sign * *growth) : std::nullopt;
    }
    return sum;
  };
  auto common = [&](ArrayRef<Value> values) {
    std::optional<int> growth = 0;
    bool first = true;
    for (Value value : values) {
      if (get(value).zero || isConstant(value))
        continue;
      growth = first || growth == getGrowth(value) ? getGrowth(value) : std::nullopt;
      first = false;
    }
    return growth;
  };
  const dfg::Linearity linearity = getLinearity(op);
  if (op->hasTrait<dfg::Divides>() && linear.size() == 1)
    return add(others, -1, add(linear, 1, 0));
  if (linearity == dfg::Linearity::None) {
    std::optional<double> degree = getDegree(op);
    std::optional<int> growth = common(others);
    if (!degree || !growth)
      return std::nullopt;
    const double power = *degree * *growth;
    return power == std::floor(power) ? std::optional(static_cast<int>(power)) : std::nullopt;
  }
  if (llvm::any_of(others, [&](Value value) { return getGrowth(value) != 0; }))
    return std::nullopt;
  return linearity == dfg::Linearity::Joint ? common(linear) : add(linear, 1, 0);
}

Operation *BatchFlow::findSampleSize(Operation *op) const {
  if (!llvm::isa<dfg::MulOp>(op) && !op->hasTrait<dfg::Divides>())
    return nullptr;
  Operation *number = nullptr;
  for (Value operand : op->getOperands())
    if (Operation *found = fixed.findSampleSize(operand))
      number = found;
  if (!number)
    return nullptr;
  SmallVector<Value> worklist(op->getOperands());
  llvm::DenseSet<Operation *> seen;
  while (!worklist.empty()) {
    Operation *made = worklist.pop_back_val().getDefiningOp();
    if (!made || !seen.insert(made).second)
      continue;
    auto reduce = llvm::dyn_cast<dist::AllReduceOp>(made);
    if (reduce && reduce.getCoupling())
      return number;
    if (llvm::isa<dfg::ScalarInterface, dfg::CastOp>(made) || made->hasTrait<dfg::Forwards>() ||
        made->hasTrait<dfg::Reshapes>())
      llvm::append_range(worklist, made->getOperands());
  }
  return nullptr;
}

bool BatchFlow::mayCountRows(Operation *op) const {
  if (op->getNumResults() != 1 || get(op->getResult(0)).zero)
    return false;
  auto isOne = [&](Value value) { return !get(value).zero && get(value).kind != Flow::Sharded; };
  if (llvm::isa<dfg::SumOp>(op))
    return isOne(op->getOperand(0)) && fixed.addsCopies(op, shapes);
  auto isMean = [&](Value value) { return isOne(value) && get(value).kind == Flow::Partial && get(value).scale == 0; };
  if (op->getNumOperands() != 2)
    return false;
  Value x = op->getOperand(0), y = op->getOperand(1);
  if (op->hasTrait<dfg::Divides>())
    return isMean(x) && fixed.findRows(op, y);
  return llvm::isa<dfg::MulOp>(op) && ((isMean(x) && fixed.findRows(op, y)) || (isMean(y) && fixed.findRows(op, x)));
}

Operation *BatchFlow::findDecision(Operation *op) const {
  // What is computed of predicates alone is one, or a number that one makes.
  if (fixed.isComputed(op) && !llvm::isa<dfg::SelectOp, dfg::SelectV2Op, dfg::CastOp>(op))
    return nullptr;
  for (Value operand : op->getOperands())
    if (getElementTypeOrSelf(operand.getType()).isInteger(1))
      if (Operation *number = fixed.findDecision(operand))
        return number;
  return nullptr;
}

Operation *BatchFlow::findFixedSize(Operation *op) const {
  // A choice by a number, too.
  if (!llvm::isa<dfg::ScalarInterface, dfg::AssignAddOp, dfg::AssignSubOp>(op) && op->getNumRegions() == 0)
    return nullptr;
  // What is computed of sizes follows from them; what of constants is a number of another one.
  if (fixed.isComputed(op) ||
      llvm::any_of(op->getResults(), [&](Value result) { return shapes.getElements(result).has_value(); }))
    return nullptr;
  for (Value operand : op->getOperands()) {
    if (Operation *number = fixed.findSize(operand))
      return number;
    if (Operation *number = fixed.findTaken(operand))
      return number;
    // What adds up examples adds those of a share.
    if (Operation *number = llvm::isa<dfg::AssignAddOp, dfg::AssignSubOp>(op) ? fixed.findCount(operand) : nullptr)
      return number;
  }
  return nullptr;
}

} // namespace distc
