//===- CancelTransposes.cpp - Layouts in which transpositions are not needed -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Tensors that element-wise operations, reductions, paddings, slices and
// concatenations tie together form a class: all of them may have their axes in another
// order, the same for all. What it costs are the transpositions where tensors enter and leave the
// class, in bytes. Each class takes the order that costs least.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/GraphBuilder.h"
#include "dialects/dist/Dist.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "passes/graph/Passes.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_CANCELTRANSPOSES
#include "passes/graph/Passes.h.inc"

namespace {

/// Axis i of what is transposed is axis order[i] of what it is made of.
using Order = SmallVector<int64_t>;

Order compose(ArrayRef<int64_t> first, ArrayRef<int64_t> then) {
  return llvm::map_to_vector(then, [&](int64_t axis) { return first[axis]; });
}

bool isIdentity(ArrayRef<int64_t> order) { return llvm::is_sorted(order); }

RankedTensorType getStaticType(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getElementType().isIntOrFloat() ? type : RankedTensorType();
}

int64_t getRank(Value value) { return llvm::cast<RankedTensorType>(value.getType()).getRank(); }

/// Whether the elements lie as before where the axes of `shape` have another order: those of one element may stand
/// anywhere.
bool movesNothing(ArrayRef<int64_t> shape, ArrayRef<int64_t> order) {
  int64_t last = -1;
  for (int64_t axis : order) {
    if (shape[axis] == 1)
      continue;
    if (axis < last)
      return false;
    last = axis;
  }
  return true;
}

/// What has an order of axes only by name: a vector, along any of its axes.
bool isVector(RankedTensorType type) {
  return llvm::count_if(type.getShape(), [](int64_t size) { return size != 1; }) <= 1;
}

/// Bytes that a transposition reads.
int64_t getCost(RankedTensorType type, ArrayRef<int64_t> order) {
  return movesNothing(type.getShape(), order) ? 0 : type.getNumElements() * ((type.getElementTypeBitWidth() + 7) / 8);
}

class Layouts {
public:
  Layouts(Block &block, dfg::ShapeContext &shapes) : block(block), shapes(shapes), builder(block.getParentOp()) {}

  LogicalResult run() {
    // What leaves one class may enter another one.
    for (int round = 0; round < kRounds; ++round) {
      joinTranspositions();
      FailureOr<bool> changed = chooseOrders();
      if (failed(changed))
        return failure();
      if (!*changed)
        break;
    }
    joinTranspositions();
    return success();
  }

private:
  static constexpr int kRounds = 4;

  // ---- Transpositions of transpositions -------------------------------------------------------------

  std::optional<Order> getOrder(Operation *op) const {
    auto transpose = llvm::dyn_cast_or_null<dfg::TransposeOp>(op);
    if (!transpose || !getStaticType(transpose.getInput()) || !getStaticType(transpose.getResult()))
      return std::nullopt;
    std::optional<SmallVector<int64_t>> order = shapes.getConstants(transpose.getPermutation());
    if (!order)
      return std::nullopt;
    for (int64_t &axis : *order)
      axis += axis < 0 ? getRank(transpose.getInput()) : 0;
    return Order(*order);
  }

  void joinTranspositions() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      std::optional<Order> order = getOrder(&op);
      if (!order)
        continue;
      Value input = op.getOperand(0);
      if (std::optional<Order> before = getOrder(input.getDefiningOp())) {
        input = input.getDefiningOp()->getOperand(0);
        order = compose(*before, *order);
      } else if (!isIdentity(*order)) {
        continue;
      }
      builder.setInsertionPoint(&op);
      dfg::GraphBuilder g(builder, shapes, &op);
      if (Value joined = g.transpose(input, *order); joined && joined.getType() == op.getResult(0).getType())
        op.getResult(0).replaceAllUsesWith(joined);
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (llvm::isa<dfg::TransposeOp, dfg::ConstOp>(op) && op.use_empty())
        erase(&op);
  }

  void erase(Operation *op) {
    for (Value result : op->getResults())
      shapes.forget(result);
    op->erase();
  }

  // ---- Classes ------------------------------------------------------------------------------------------

  /// A tensor that is broadcast to `rank` axes, or has an order of its own.
  static bool isFree(Value value, int64_t rank) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    auto constant = value.getDefiningOp<dfg::ConstOp>();
    return type.getRank() < rank || isVector(type) ||
           (constant && llvm::isa<DenseElementsAttr>(constant.getValue()) &&
            llvm::cast<DenseElementsAttr>(constant.getValue()).isSplat());
  }

  static bool isElementwise(Operation *op) {
    if (!llvm::isa<dfg::ScalarInterface>(op) || !isMemoryEffectFree(op) || op->getNumResults() != 1)
      return false;
    RankedTensorType result = getStaticType(op->getResult(0));
    if (!result)
      return false;
    for (Value operand : op->getOperands()) {
      RankedTensorType type = getStaticType(operand);
      if (!type || type.getRank() > result.getRank())
        return false;
      // Select's condition of rank 1 is one of rows; all else is broadcast from the last axis on.
      if (llvm::isa<dfg::SelectOp>(op) && type.getRank() != 0 && type.getRank() != result.getRank())
        return false;
      for (auto [size, whole] : llvm::zip(llvm::reverse(type.getShape()), llvm::reverse(result.getShape())))
        if (size != 1 && size != whole)
          return false;
    }
    return true;
  }

  bool isReduction(Operation *op) const {
    if (!op->hasTrait<dfg::Reduces>())
      return false;
    return getStaticType(op->getOperand(0)) && getStaticType(op->getResult(0)) &&
           shapes.getConstants(op->getOperand(1));
  }

  bool isPadding(Operation *op) const {
    return llvm::isa<dfg::PadOp, dfg::PadV2Op>(op) && getStaticType(op->getOperand(0)) &&
           getStaticType(op->getResult(0)) && shapes.getConstants(op->getOperand(1));
  }

  bool isConcatenation(Operation *op) const {
    return llvm::isa<dfg::ConcatV2Op>(op) && llvm::all_of(op->getOperands().drop_back(), getStaticType) &&
           getStaticType(op->getResult(0)) && shapes.getConstant(op->getOperands().back());
  }

  /// A slice whose begin, end and stride are numbers of each axis.
  bool isSlice(Operation *op) const {
    auto slice = llvm::dyn_cast<dfg::StridedSliceOp>(op);
    if (!slice || slice.getEllipsisMask() || slice.getNewAxisMask() || slice.getShrinkAxisMask() ||
        !getStaticType(slice.getInput()) || !getStaticType(slice.getResult()))
      return false;
    return llvm::all_of(op->getOperands().drop_front(), [&](Value numbers) {
      std::optional<SmallVector<int64_t>> known = shapes.getConstants(numbers);
      return known && static_cast<int64_t>(known->size()) == getRank(slice.getInput());
    });
  }

  /// The tensors of `op` that have their axes in the same order; none where it is not of a kind that has other orders.
  SmallVector<Value> getTied(Operation *op) const {
    SmallVector<Value> tied;
    if (isReduction(op)) {
      tied = {op->getOperand(0)};
    } else if (isPadding(op) || isSlice(op)) {
      tied = {op->getOperand(0), op->getResult(0)};
    } else if (isConcatenation(op)) {
      tied.assign(op->operand_begin(), std::prev(op->operand_end()));
      tied.push_back(op->getResult(0));
    } else if (isElementwise(op)) {
      int64_t rank = getRank(op->getResult(0));
      for (Value operand : op->getOperands())
        if (!isFree(operand, rank))
          tied.push_back(operand);
      tied.push_back(op->getResult(0));
    }
    // Matrices' transpositions are part of products.
    if (tied.empty() || getRank(tied.front()) < 3 || isVector(llvm::cast<RankedTensorType>(tied.back().getType())))
      return {};
    return tied;
  }

  struct Class {
    llvm::SetVector<Value> tensors;
    SmallVector<Operation *> operations;
  };

  SmallVector<Class> findClasses() {
    llvm::EquivalenceClasses<Value> ties;
    llvm::MapVector<Operation *, Value> members;
    ofOperation.clear();
    for (Operation &op : block) {
      SmallVector<Value> tied = getTied(&op);
      if (tied.empty())
        continue;
      members[&op] = tied.front();
      for (Value value : tied)
        ties.unionSets(tied.front(), value);
    }
    SmallVector<Class> classes;
    llvm::DenseMap<Value, size_t> numbers;
    for (auto &[op, value] : members) {
      auto [at, isNew] = numbers.try_emplace(ties.getLeaderValue(value), classes.size());
      if (isNew)
        classes.emplace_back();
      classes[at->second].operations.push_back(op);
      ofOperation[op] = at->second;
      for (Value tensor : getTied(op))
        classes[at->second].tensors.insert(tensor);
    }
    return classes;
  }

  // ---- Costs ----------------------------------------------------------------------------------------------

  /// Whether `op` is of the class, and `value` one of its tensors there, not an operand beside them.
  bool isWithin(Operation *op, Value value, size_t number) const {
    auto at = ofOperation.find(op);
    return at != ofOperation.end() && at->second == number && llvm::is_contained(getTied(op), value);
  }

  int64_t getCost(const Class &all, size_t number, const Order &order) const {
    int64_t cost = 0;
    for (Value value : all.tensors) {
      auto type = llvm::cast<RankedTensorType>(value.getType());
      Operation *from = value.getDefiningOp();
      const bool isMade = from && isWithin(from, value, number);
      llvm::SmallSetVector<Attribute, 4> ways;
      for (Operation *user : value.getUsers()) {
        if (isWithin(user, value, number))
          continue;
        std::optional<Order> to = isMade ? getOrder(user) : std::nullopt;
        ways.insert(DenseI64ArrayAttr::get(user->getContext(), to ? ArrayRef<int64_t>(*to) : ArrayRef<int64_t>()));
      }
      if (isMade) {
        // Users that are transpositions themselves start from the new order.
        for (Attribute way : ways) {
          ArrayRef<int64_t> to = llvm::cast<DenseI64ArrayAttr>(way).asArrayRef();
          Order rest = to.empty() ? invertPermutationVector(order) : compose(invertPermutationVector(order), to);
          cost += distc::getCost(permute(type, order), rest);
        }
      } else {
        std::optional<Order> before = getOrder(from);
        cost += distc::getCost(before ? getStaticType(from->getOperand(0)) : type,
                               before ? compose(*before, order) : order);
        // What others use stays.
        if (before && !ways.empty() && !isIdentity(order))
          cost += distc::getCost(getStaticType(from->getOperand(0)), *before);
      }
    }
    for (Operation *op : all.operations)
      if (isReduction(op))
        cost += distc::getCost(llvm::cast<RankedTensorType>(op->getResult(0).getType()), getReducedOrder(op, order));
    return cost;
  }

  static RankedTensorType permute(RankedTensorType type, ArrayRef<int64_t> order) {
    return type.clone(compose(type.getShape(), order));
  }

  /// Axes of a reduction's result in the new order, by those in the old one.
  Order getReducedOrder(Operation *op, ArrayRef<int64_t> order) const {
    int64_t rank = order.size();
    if (getRank(op->getResult(0)) == rank)
      return Order(order);
    llvm::SmallDenseSet<int64_t> reduced = getReduced(op);
    SmallVector<int64_t> numbers(rank, -1);
    int64_t count = 0;
    for (int64_t axis = 0; axis < rank; ++axis)
      if (!reduced.contains(axis))
        numbers[axis] = count++;
    Order result;
    for (int64_t axis : order)
      if (numbers[axis] >= 0)
        result.push_back(numbers[axis]);
    return result;
  }

  llvm::SmallDenseSet<int64_t> getReduced(Operation *op) const {
    llvm::SmallDenseSet<int64_t> reduced;
    int64_t rank = getRank(op->getOperand(0));
    const SmallVector<int64_t> axes = *shapes.getConstants(op->getOperand(1));
    for (int64_t axis : axes)
      reduced.insert(axis < 0 ? axis + rank : axis);
    return reduced;
  }

  /// Whether there is a better order, which the class has then.
  FailureOr<bool> chooseOrders() {
    SmallVector<Class> classes = findClasses();
    SmallVector<Order> chosen;
    for (auto [number, all] : llvm::enumerate(classes)) {
      Order none = llvm::to_vector(llvm::seq<int64_t>(0, getRank(all.tensors.front())));
      llvm::SmallSetVector<Attribute, 4> candidates;
      for (Value value : all.tensors) {
        MLIRContext *context = value.getContext();
        if (std::optional<Order> before = getOrder(value.getDefiningOp()))
          candidates.insert(DenseI64ArrayAttr::get(context, invertPermutationVector(*before)));
        for (Operation *user : value.getUsers())
          if (std::optional<Order> to = getOrder(user))
            candidates.insert(DenseI64ArrayAttr::get(context, *to));
      }
      Order best = none;
      int64_t least = candidates.empty() ? 0 : getCost(all, number, none);
      for (Attribute candidate : candidates) {
        Order order(llvm::cast<DenseI64ArrayAttr>(candidate).asArrayRef());
        if (int64_t cost = getCost(all, number, order); cost < least) {
          least = cost;
          best = order;
        }
      }
      chosen.push_back(best);
    }
    bool changed = false;
    for (auto [number, order] : llvm::enumerate(chosen))
      if (!isIdentity(order)) {
        if (failed(rewrite(classes[number], number, order)))
          return failure();
        changed = true;
      }
    return changed;
  }

  // ---- Rewriting --------------------------------------------------------------------------------------------

  /// `value` with its axes in `order`.
  static Value permute(dfg::GraphBuilder &g, Value value, ArrayRef<int64_t> order) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    if (isIdentity(order))
      return value;
    if (!movesNothing(type.getShape(), order))
      return g.transpose(value, order);
    return g.reshape(value, toDims(compose(type.getShape(), order)));
  }

  static dfg::Dims toDims(ArrayRef<int64_t> sizes) {
    return dfg::Dims(llvm::map_range(sizes, [](int64_t size) { return dfg::Dim(size); }));
  }

  /// An operand of `op` for results in `order`: with as many axes, where it is broadcast along axes that it has not.
  static Value permuteOperand(dfg::GraphBuilder &g, Value value, ArrayRef<int64_t> order) {
    auto type = llvm::cast<RankedTensorType>(value.getType());
    if (type.getRank() == 0)
      return value;
    SmallVector<int64_t> sizes(order.size() - type.getRank(), 1);
    llvm::append_range(sizes, type.getShape());
    if (movesNothing(sizes, order))
      return g.reshape(value, toDims(compose(sizes, order)));
    return permute(g, g.reshape(value, toDims(sizes)), order);
  }

  LogicalResult rewrite(const Class &all, size_t number, const Order &order) {
    llvm::DenseMap<Value, Value> permuted;
    const Order places = invertPermutationVector(order);
    for (Operation *op : all.operations) {
      builder.setInsertionPoint(op);
      dfg::GraphBuilder g(builder, shapes, op);
      SmallVector<Value> tied = getTied(op), operands(op->getOperands());
      for (Value &operand : operands) {
        if (llvm::is_contained(tied, operand)) {
          Value &known = permuted[operand];
          if (!known)
            known = permute(g, operand, order);
          operand = known;
        } else if (isElementwise(op)) {
          operand = permuteOperand(g, operand, order);
        }
      }
      if (isReduction(op)) {
        operands[1] = g.integers(
            llvm::to_vector(llvm::map_range(sorted(getReduced(op)), [&](int64_t axis) { return places[axis]; })));
      } else if (isPadding(op)) {
        // Before and behind, an axis a row.
        const SmallVector<int64_t> pads = *shapes.getConstants(op->getOperand(1));
        Order rows;
        for (int64_t axis : order)
          llvm::append_values(rows, pads[2 * axis], pads[2 * axis + 1]);
        operands[1] = g.reshape(g.integers(rows), toDims({static_cast<int64_t>(order.size()), 2}));
      } else if (isSlice(op)) {
        for (Value &numbers : llvm::MutableArrayRef(operands).drop_front())
          numbers = g.integers(compose(*shapes.getConstants(numbers), order));
      } else if (isConcatenation(op)) {
        int64_t axis = *shapes.getConstant(op->getOperands().back());
        operands.back() = g.integer(places[axis < 0 ? axis + order.size() : axis]);
      }
      if (g.failed() || llvm::is_contained(operands, Value()))
        return op->emitOpError("cannot be computed in another order of axes: ") << g.getReason();
      Operation *made = builder.clone(*op);
      made->setOperands(operands);
      if (auto slice = llvm::dyn_cast<dfg::StridedSliceOp>(made)) {
        slice.setBeginMask(permuteBits(slice.getBeginMask(), order));
        slice.setEndMask(permuteBits(slice.getEndMask(), order));
      }
      auto type = llvm::cast<RankedTensorType>(op->getResult(0).getType());
      Value result = made->getResult(0);
      Order back = isReduction(op) ? getReducedOrder(op, order) : order;
      result.setType(permute(type, back));
      shapes.setShape(result, toDims(compose(type.getShape(), back)));
      if (isReduction(op))
        op->getResult(0).replaceAllUsesWith(permute(g, result, invertPermutationVector(back)));
      else
        permuted[op->getResult(0)] = result;
    }
    for (Operation *op : llvm::reverse(all.operations)) {
      Value old = op->getResult(0);
      if (llvm::any_of(old.getUsers(), [&](Operation *user) { return !isWithin(user, old, number); })) {
        Value result = permuted.lookup(old);
        builder.setInsertionPointAfter(result.getDefiningOp());
        dfg::GraphBuilder g(builder, shapes, op);
        old.replaceAllUsesWith(permute(g, result, places));
      }
    }
    for (Operation *op : llvm::reverse(all.operations)) {
      ofOperation.erase(op);
      erase(op);
    }
    return success();
  }

  static int64_t permuteBits(int64_t mask, ArrayRef<int64_t> order) {
    int64_t permuted = 0;
    for (auto [to, from] : llvm::enumerate(order))
      permuted |= (mask >> from & 1) << to;
    return permuted;
  }

  static SmallVector<int64_t> sorted(const llvm::SmallDenseSet<int64_t> &set) {
    SmallVector<int64_t> list(set.begin(), set.end());
    llvm::sort(list);
    return list;
  }

  Block &block;
  dfg::ShapeContext &shapes;
  OpBuilder builder;
  llvm::DenseMap<Operation *, size_t> ofOperation;
};

struct CancelTransposes : impl::CancelTransposesBase<CancelTransposes> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<dfg::FuncOp>()) {
      Block &block = function.getBody().front();
      if (block.getOps<dfg::TransposeOp>().empty())
        continue;
      dfg::ShapeContext shapes;
      if (function->hasAttr(dfg::kEntryAttr))
        shapes.useBounds();
      shapes.setReplicas(dist::getReplicas(getOperation()));
      if (failed(shapes.run(block)) || failed(Layouts(block, shapes).run()))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace distc
