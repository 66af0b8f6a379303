//===- FoldDistinct.cpp - Rows of distinct values, by the place of each value, are the values' rows ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeEdges.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"
#include "passes/rewrite/Passes.h"

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_FOLDDISTINCT
#include "passes/rewrite/Passes.h.inc"

namespace {

/// Distinct values of a vector, and where each of its elements is among them: `y, idx = tf.unique(x)`.
struct Distinct {
  Operation *op;
  Value getValues() const { return op->getOperand(0); }
  Value getDistinct() const { return op->getResult(0); }
  Value getPlaces() const { return op->getResult(1); }
};

int64_t getRank(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : -1;
}

/// Through what gives the same elements in the same order.
Value strip(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!op->hasTrait<dfg::Forwards>() && !llvm::isa<dfg::ReshapeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// The unique operation of a vector whose result `number` has the elements of `value`.
std::optional<Distinct> getDistinct(Value value, unsigned number) {
  auto result = llvm::dyn_cast<OpResult>(strip(value));
  if (!result || !result.getOwner()->hasTrait<dfg::FindsDistinct>() || result.getResultNumber() != number ||
      getRank(result.getOwner()->getOperand(0)) != 1)
    return std::nullopt;
  return Distinct{result.getOwner()};
}

bool isFirstAxis(Value value) {
  DenseIntElementsAttr constant;
  return matchPattern(value, m_Constant(&constant)) && constant.getNumElements() == 1 &&
         (*constant.value_begin<APInt>()).isZero();
}

/// Rows of what, where `op` takes rows along the first axis.
bool takesRows(Operation *op) {
  if (auto gather = llvm::dyn_cast_or_null<dfg::GatherV2Op>(op))
    return gather.getBatchDims() == 0 && isFirstAxis(gather->getOperand(2));
  if (auto gather = llvm::dyn_cast_or_null<dfg::ResourceGatherOp>(op))
    return gather.getBatchDims() == 0;
  return llvm::isa_and_nonnull<dfg::GatherOp>(op);
}

/// The sum of rows `rows` at the places of `values` among the distinct ones, a row for each of those.
struct SummedRows {
  Distinct distinct;
  Value rows;
};

std::optional<SummedRows> getSummedRows(Value value) {
  auto sum = strip(value).getDefiningOp<dfg::UnsortedSegmentSumOp>();
  if (!sum || getRank(sum->getOperand(1)) != 1 || getRank(sum->getOperand(0)) != getRank(value))
    return std::nullopt;
  std::optional<Distinct> distinct = getDistinct(sum->getOperand(1), 1);
  return distinct ? std::optional(SummedRows{*distinct, sum->getOperand(0)}) : std::nullopt;
}

/// Whether rows are taken by `places`: an optimizer's distinct indices are for sums alone.
bool areLookedUp(Value places) {
  return llvm::any_of(places.getUsers(), [&](Operation *user) {
    if (takesRows(user))
      return user->getOperand(1) == places;
    return (user->hasTrait<dfg::Forwards>() || llvm::isa<dfg::ReshapeOp>(user)) && user->getOperand(0) == places &&
           areLookedUp(user->getResult(0));
  });
}

struct FoldDistinct : impl::FoldDistinctBase<FoldDistinct> {
  void runOnOperation() override {
    for (auto graph : getOperation().getOps<dfg::GraphOp>()) {
      Block &block = graph.getBody().front();
      if (llvm::none_of(block, [](Operation &op) { return op.hasTrait<dfg::FindsDistinct>(); }))
        continue;
      for (Operation &op : llvm::make_early_inc_range(block)) {
        if (takesRows(&op))
          takeRowsOfValues(&op);
        else if (op.hasTrait<dfg::FindsDistinct>())
          sumOnce(Distinct{&op});
        else if (llvm::isa<dfg::ScatterAddOp, dfg::ScatterSubOp>(op))
          scatterEach(&op);
        else if (llvm::isa<dfg::SizeOp, dfg::StridedSliceOp>(op))
          countPlaces(&op);
      }
    }
  }

  /// gather(gather(table, y), idx) is gather(table, x). The node stays, without uses: control edges may name it.
  static void takeRowsOfValues(Operation *op) {
    Value params = op->getOperand(0);
    while (params.getDefiningOp() && params.getDefiningOp()->hasTrait<dfg::Forwards>())
      params = params.getDefiningOp()->getOperand(0);
    Operation *rows = params.getDefiningOp();
    std::optional<Distinct> distinct = getDistinct(op->getOperand(1), 1);
    if (!distinct || !takesRows(rows) || getRank(rows->getOperand(1)) != 1 ||
        strip(rows->getOperand(1)) != distinct->getDistinct())
      return;
    // The table is read later then.
    for (Operation *between = rows; between != op; between = between->getNextNode())
      if (llvm::isa<dfg::UpdateInterface>(between))
        return;
    // Of a graph that is exported, in the order of edges: what waits for the rows that are read now waits for these.
    Value result = op->getResult(0);
    llvm::DenseSet<Operation *> behindRows =
        dfg::findBehind(*op->getBlock(), [&](Operation *node) { return node == rows; });
    llvm::DenseSet<Operation *> behindUsers =
        dfg::findBehind(*op->getBlock(), [&](Operation *node) { return llvm::is_contained(result.getUsers(), node); });
    if (llvm::any_of(behindRows, [&](Operation *node) {
          return llvm::isa<dfg::UpdateInterface>(node) && !behindUsers.contains(node);
        }))
      return;
    OpBuilder builder(op);
    auto locate = [&](StringRef what) {
      return NameLoc::get(builder.getStringAttr(dfg::getNodeName(op) + "/" + what));
    };
    // In the shape of the places.
    SmallVector<dfg::ReshapeOp> reshapes;
    for (Value at = op->getOperand(1); at != distinct->getPlaces(); at = at.getDefiningOp()->getOperand(0))
      if (auto reshape = at.getDefiningOp<dfg::ReshapeOp>())
        reshapes.push_back(reshape);
    Value values = distinct->getValues();
    for (dfg::ReshapeOp reshape : llvm::reverse(reshapes)) {
      auto type = llvm::cast<TensorType>(reshape->getResult(0).getType())
                      .clone(llvm::cast<TensorType>(values.getType()).getElementType());
      OperationState state(locate("values" + (values == distinct->getValues() ? "" : std::to_string(getRank(values)))),
                           dfg::ReshapeOp::getOperationName(), {values, reshape->getOperand(1)}, type);
      values = builder.create(state)->getResult(0);
    }
    Operation *all = builder.clone(*rows);
    all->setLoc(locate("rows"));
    dfg::setSourceAttributes(all, {}); // shapes of the one it was
    all->setOperand(1, values);
    all->getResult(0).setType(op->getResult(0).getType());
    op->getResult(0).replaceAllUsesWith(all->getResult(0));
  }

  /// How many distinct values there are, as a number: one more than the largest place, or none.
  static void countPlaces(Operation *op) {
    Value of = op->getOperand(0);
    if (llvm::isa<dfg::StridedSliceOp>(op)) {
      Operation *shape = of.getDefiningOp();
      if (!llvm::isa_and_nonnull<dfg::ShapeOp>(shape) || getRank(op->getResult(0)) != 0)
        return;
      of = shape->getOperand(0);
    }
    while (of.getDefiningOp() && of.getDefiningOp()->hasTrait<dfg::Forwards>())
      of = of.getDefiningOp()->getOperand(0);
    std::optional<Distinct> distinct = getDistinct(of, 0);
    if (!distinct || distinct->getDistinct() != of)
      return;
    // A size of a tensor may go on as one, for which its bound is enough.
    SmallVector<OpOperand *> numbers;
    for (OpOperand &use : op->getResult(0).getUses()) {
      Operation *user = use.getOwner();
      const bool isFloat = llvm::isa<dfg::CastOp>(user) &&
                           llvm::isa<FloatType>(llvm::cast<TensorType>(user->getResult(0).getType()).getElementType());
      if (isFloat || llvm::isa<dfg::AssignOp, dfg::AssignAddOp, dfg::AssignSubOp>(user))
        numbers.push_back(&use);
    }
    if (numbers.empty())
      return;
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value places = distinct->getPlaces();
    auto locate = [&](StringRef what) {
      return NameLoc::get(builder.getStringAttr(dfg::getNodeName(op) + "/" + what));
    };
    auto scalar = RankedTensorType::get({}, llvm::cast<TensorType>(places.getType()).getElementType());
    auto number = [&](StringRef name, RankedTensorType type, int64_t value) {
      return dfg::ConstOp::create(builder, locate(name), type,
                                  DenseElementsAttr::get(type, builder.getIntegerAttr(type.getElementType(), value)))
          .getResult();
    };
    auto make = [&](StringRef name, StringRef kind, ValueRange operands, Type type) {
      OperationState state(locate(name), kind, operands, type);
      return builder.create(state)->getResult(0);
    };
    Value axes = number("axes", RankedTensorType::get({1}, builder.getI32Type()), 0);
    Value last = make("last", dfg::MaxOp::getOperationName(), {places, axes}, scalar);
    Value known = make("known", dfg::MaximumOp::getOperationName(), {last, number("none", scalar, -1)}, scalar);
    Value count = make("count", dfg::AddV2Op::getOperationName(), {known, number("one", scalar, 1)}, scalar);
    if (count.getType() != op->getResult(0).getType())
      count = make("cast", dfg::CastOp::getOperationName(), count, op->getResult(0).getType());
    for (OpOperand *use : numbers)
      use->set(count);
  }

  /// What has been added up at its places among distinct values is added up at their places among themselves: once is
  /// enough, as an optimizer does for indices that occur twice.
  static void sumOnce(Distinct again) {
    std::optional<Distinct> first = getDistinct(again.getValues(), 0);
    if (!first || first->op == again.op || again.op->getNumResults() > 2 || getRank(again.getValues()) != 1)
      return;
    SmallVector<std::pair<Operation *, Value>> sums;
    for (Operation *user : again.getPlaces().getUsers()) {
      auto sum = llvm::dyn_cast<dfg::UnsortedSegmentSumOp>(user);
      std::optional<SummedRows> rows = sum ? getSummedRows(sum->getOperand(0)) : std::nullopt;
      if (!rows || rows->distinct.op != first->op || sum->getOperand(1) != again.getPlaces())
        return;
      sums.emplace_back(sum, rows->rows);
    }
    for (auto [sum, rows] : sums)
      sum->setOperand(0, rows);
    again.op->setOperand(0, first->getValues());
  }

  /// What is added at distinct places, with what was summed for each of them, is added row by row.
  static void scatterEach(Operation *op) {
    std::optional<Distinct> distinct = getDistinct(op->getOperand(1), 0);
    if (!distinct || getRank(op->getOperand(1)) != 1 || !areLookedUp(distinct->getPlaces()))
      return;
    // Products with numbers, from the last.
    SmallVector<Operation *> products;
    Value value = op->getOperand(2);
    std::optional<SummedRows> rows;
    while (!(rows = getSummedRows(value))) {
      Operation *product = value.getDefiningOp();
      const bool isProduct = llvm::isa_and_nonnull<dfg::MulOp, dfg::RealDivOp>(product) &&
                             product->getNumOperands() == 2 && getRank(product->getOperand(1)) == 0;
      if (!isProduct && !llvm::isa_and_nonnull<dfg::NegOp, dfg::IdentityOp>(product))
        return;
      products.push_back(product);
      value = product->getOperand(0);
    }
    if (rows->distinct.op != distinct->op)
      return;
    OpBuilder builder(op);
    Value each = rows->rows;
    for (Operation *product : llvm::reverse(products)) {
      Operation *copy = builder.clone(*product);
      copy->setLoc(NameLoc::get(builder.getStringAttr(dfg::getNodeName(product) + "/each")));
      dfg::setSourceAttributes(copy, {});
      copy->setOperand(0, each);
      copy->getResult(0).setType(each.getType());
      each = copy->getResult(0);
    }
    op->setOperand(1, distinct->getValues());
    op->setOperand(2, each);
  }
};

} // namespace
} // namespace distc::rewrite
