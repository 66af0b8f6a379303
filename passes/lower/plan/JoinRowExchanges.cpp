//===- JoinRowExchanges.cpp - Rows of several tables in one exchange ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {
#define GEN_PASS_DEF_JOINROWEXCHANGES
#include "passes/lower/Passes.h.inc"

namespace {

/// Operations that move, one by one, in their order.
using Moved = std::optional<SmallVector<Operation *>>;

Type getIndexType(drt::PullRowsOp pull) { return getElementTypeOrSelf(pull.getIndices().front()); }
Type getIndexType(drt::PushRowsOp push) { return getElementTypeOrSelf(push.getIndices().front()); }

/// Where operations of a block stand. What has moved to another has its place, and keeps its order among what has.
class Places {
public:
  explicit Places(Block &block) : block(block) {
    for (auto [i, op] : llvm::enumerate(block)) {
      places[&op] = {i, i};
      note(&op);
    }
  }

  /// The operation of the block that `op` is, or is in.
  Operation *findHere(Operation *op) const { return block.findAncestorOpInBlock(*op); }
  size_t operator[](Operation *op) const { return places.lookup(op).first; }
  bool isBehind(Operation *op, Operation *other) const { return (*this)[op] > (*this)[other]; }

  /// Whether something between both may change the variable: it names it, and not to take rows of it.
  bool mayChange(FlatSymbolRefAttr variable, Operation *first, Operation *last) const {
    auto found = naming.find(variable);
    return found != naming.end() && llvm::any_of(found->second, [&](Operation *op) {
             return (*this)[op] > (*this)[first] && (*this)[op] < (*this)[last];
           });
  }

  /// Nothing where one of them has to stay, or is where the way ends.
  Moved inOrder(ArrayRef<Operation *> operations, Operation *end) const {
    if (!llvm::all_of(operations, [&](Operation *op) { return op != end && isMemoryEffectFree(op); }))
      return std::nullopt;
    SmallVector<Operation *> moved(operations);
    llvm::sort(moved, [&](Operation *a, Operation *b) { return places.lookup(a) < places.lookup(b); });
    return moved;
  }

  void moveTo(Operation *there, ArrayRef<Operation *> moved) {
    for (Operation *op : moved)
      places[op].first = (*this)[there];
  }

private:
  void note(Operation *op) {
    if (isa<drt::PullRowsOp>(op))
      return;
    op->walk([&](Operation *inner) {
      inner->getAttrDictionary().walk([&](FlatSymbolRefAttr symbol) { naming[symbol].insert(op); });
    });
  }

  Block &block;
  llvm::DenseMap<Operation *, std::pair<size_t, size_t>> places; // now, and at the beginning
  llvm::DenseMap<Attribute, SetVector<Operation *>> naming;
};

/// What has to move in front of `first` for the pull to be there.
Moved findWayTo(const Places &places, drt::PullRowsOp first, drt::PullRowsOp pull) {
  if (places.mayChange(cast<FlatSymbolRefAttr>(pull.getVariables()[0]), first, pull))
    return std::nullopt;
  SetVector<Operation *> slice;
  BackwardSliceOptions options;
  options.omitBlockArguments = true;
  options.omitUsesFromAbove = false;
  options.filter = [&](Operation *op) {
    return op->getBlock() == first->getBlock() && (op == first || places.isBehind(op, first));
  };
  if (failed(getBackwardSlice(pull.getOperation(), &slice, options)))
    return std::nullopt;
  return places.inOrder(slice.getArrayRef(), first);
}

/// What has to move behind `last` for the push to be there.
Moved findWayTo(const Places &places, drt::PushRowsOp last, drt::PushRowsOp push) {
  SetVector<Operation *> slice, here;
  ForwardSliceOptions options;
  options.filter = [&](Operation *op) {
    Operation *ancestor = places.findHere(op);
    return ancestor == last || places.isBehind(last, ancestor);
  };
  getForwardSlice(push.getOperation(), &slice, options);
  // What is inside an operation moves with it.
  for (Operation *op : slice)
    here.insert(places.findHere(op));
  return places.inOrder(here.getArrayRef(), last);
}

void join(ArrayRef<drt::PullRowsOp> group) {
  drt::PullRowsOp first = group.front();
  SmallVector<Attribute> variables;
  SmallVector<Value> indices, results;
  SmallVector<int64_t> owners;
  for (drt::PullRowsOp pull : group) {
    llvm::append_range(variables, pull.getVariables());
    llvm::append_range(indices, pull.getIndices());
    llvm::append_range(owners, pull.getOwners());
    llvm::append_range(results, pull.getRows());
  }
  OpBuilder builder(first);
  auto joined =
      drt::PullRowsOp::create(builder, first.getLoc(), TypeRange(ValueRange(results)), builder.getArrayAttr(variables),
                              indices, builder.getDenseI64ArrayAttr(owners), first.getBucket(), DenseI64ArrayAttr());
  for (auto [result, rows] : llvm::zip(results, joined.getRows()))
    result.replaceAllUsesWith(rows);
}

void join(ArrayRef<drt::PushRowsOp> group) {
  drt::PushRowsOp last = group.front();
  SmallVector<Attribute> names, shards;
  SmallVector<Value> indices, values, allIndices, allValues;
  // In the order in which they were.
  for (drt::PushRowsOp push : llvm::reverse(group)) {
    llvm::append_range(names, push.getNames());
    llvm::append_range(shards, push.getShards());
    llvm::append_range(indices, push.getIndices());
    llvm::append_range(values, push.getValues());
    llvm::append_range(allIndices, push.getAllIndices());
    llvm::append_range(allValues, push.getAllValues());
  }
  OpBuilder builder(last);
  auto joined = drt::PushRowsOp::create(builder, last.getLoc(), TypeRange(ValueRange(allIndices)),
                                        TypeRange(ValueRange(allValues)), indices, values, builder.getArrayAttr(names),
                                        builder.getArrayAttr(shards), last.getBucket(), DenseI64ArrayAttr());
  for (auto [result, rows] : llvm::zip(allIndices, joined.getAllIndices()))
    result.replaceAllUsesWith(rows);
  for (auto [result, rows] : llvm::zip(allValues, joined.getAllValues()))
    result.replaceAllUsesWith(rows);
}

/// Joins each exchange to the first one that it can be joined to; `move` brings operations there. Returns whether
/// anything was joined.
template <class Exchange>
bool joinAll(Block &block, ArrayRef<Exchange> exchanges,
             llvm::function_ref<void(ArrayRef<Operation *>, Operation *)> move) {
  if (exchanges.size() < 2)
    return false;
  Places places(block);
  SmallVector<SmallVector<Exchange>> groups;
  for (Exchange exchange : exchanges) {
    auto joinTo = [&](SmallVector<Exchange> &group) {
      if (getIndexType(group.front()) != getIndexType(exchange))
        return false;
      Moved moved = findWayTo(places, group.front(), exchange);
      if (!moved)
        return false;
      move(*moved, group.front());
      places.moveTo(group.front(), *moved);
      group.push_back(exchange);
      return true;
    };
    if (llvm::none_of(groups, joinTo))
      groups.push_back({exchange});
  }
  bool changed = false;
  for (ArrayRef<Exchange> group : groups) {
    if (group.size() == 1)
      continue;
    join(group);
    for (Exchange exchange : group)
      exchange.erase();
    changed = true;
  }
  return changed;
}

/// Numbers buckets in the order in which they start.
void renumber(Block &block) {
  constexpr StringLiteral name = "bucket";
  llvm::DenseMap<int64_t, int64_t> numbers;
  block.walk([&](Operation *op) {
    auto bucket = op->getAttrOfType<IntegerAttr>(name);
    if (!bucket)
      return;
    const int64_t number = numbers.try_emplace(bucket.getInt(), numbers.size()).first->second;
    op->setAttr(name, IntegerAttr::get(bucket.getType(), number));
  });
}

struct JoinRowExchanges : impl::JoinRowExchangesBase<JoinRowExchanges> {
  void runOnOperation() override {
    Block &block = getOperation().getBody().front();
    auto pulls = llvm::to_vector(block.getOps<drt::PullRowsOp>());
    bool changed = joinAll<drt::PullRowsOp>(block, pulls, [](ArrayRef<Operation *> moved, Operation *first) {
      for (Operation *op : moved)
        op->moveBefore(first);
    });
    // Rows that are pushed are there as early as gradients are: the last one's place is that of all.
    auto pushes = llvm::to_vector(block.getOps<drt::PushRowsOp>());
    std::reverse(pushes.begin(), pushes.end());
    changed |= joinAll<drt::PushRowsOp>(block, pushes, [](ArrayRef<Operation *> moved, Operation *last) {
      for (Operation *op : llvm::reverse(moved))
        op->moveAfter(last);
    });
    if (!changed)
      return markAllAnalysesPreserved();
    renumber(block);
  }
};

} // namespace
} // namespace distc
