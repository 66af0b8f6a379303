//===- RowsToOwners.cpp - Rows of gradients that owners alone need -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A task whose rows of others have the index -1 computes of its own rows what it would among all of them, where every
// node between is one that makes a row of the rows of one index; only places may change, behind a deduplication.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/synchronize/RowsToOwners.h"
#include "dialects/dfg/Gathers.h"
#include "dialects/dfg/NodeEdges.h"
#include "mlir/IR/Builders.h"
#include "passes/distribute/servers/Roles.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace distc {
namespace {

/// Follows one gradient's rows.
class RowFollower {
public:
  RowFollower(dist::AllGatherSlicesOp slices, const llvm::StringSet<> &endpoints)
      : slices(slices), endpoints(endpoints) {}

  /// The shards, in the order of their rows; null where something else needs the rows.
  DenseI64ArrayAttr findShards() {
    values[slices.getAllIndices()] = {Indices, slices, {}};
    values[slices.getAllValues()] = {Rows, slices, {}};
    for (Operation *op = slices->getNextNode(); op; op = op->getNextNode())
      if (llvm::any_of(op->getOperands(), [&](Value operand) { return values.contains(operand); }) &&
          (!visit(op) || endpoints.contains(dfg::getNodeName(op))))
        return {};
    // Each row has one owner.
    llvm::sort(shards);
    SmallVector<int64_t> numbers;
    int64_t next = 0;
    for (const Shard &shard : shards) {
      if (shard.begin != next)
        return {};
      next = shard.begin + shard.count;
      numbers.append({shard.begin, shard.count, shard.owner});
    }
    return numbers.empty() ? DenseI64ArrayAttr() : DenseI64ArrayAttr::get(slices.getContext(), numbers);
  }

private:
  enum Kind {
    Indices,
    Rows,      // a function of the rows of one index, and of that index
    Positions, // of each row's index among the distinct ones
    Count,     // how many rows have a place, which no choice changes
  };
  struct Range {
    int64_t begin = 0, count = -1; // of all rows
  };
  struct Followed {
    Kind kind;
    Operation *places; // what decides where a row is: rows of other places do not belong together
    Range range;
  };
  struct Shard {
    int64_t begin, count, owner;
    auto operator<=>(const Shard &) const = default;
  };

  const Followed *find(Value value) const {
    auto known = values.find(value);
    return known == values.end() ? nullptr : &known->second;
  }

  bool set(Operation *op, Followed followed) {
    for (Value result : op->getResults())
      values[result] = followed;
    return true;
  }

  bool visit(Operation *op) {
    SmallVector<const Followed *> of =
        llvm::map_to_vector(op->getOperands(), [&](Value operand) { return find(operand); });
    if (auto update = llvm::dyn_cast<dfg::UpdateInterface>(op))
      return reach(update, of);
    if (op->hasTrait<dfg::FindsDistinct>())
      return findDistinct(op, of);
    if (auto sums = llvm::dyn_cast<dfg::UnsortedSegmentSumOp>(op))
      return of[0] && of[1] && of[0]->kind == Rows && of[1]->kind == Positions && of[0]->places == of[1]->places &&
             (!of[2] || of[2]->kind == Count) && set(op, {Rows, distinct.lookup(op->getOperand(1)), {}});
    if (auto own = llvm::dyn_cast<dist::OwnRowsOp>(op)) {
      if (!of[0] || !of[1] || of[0]->kind != Indices || of[1]->kind != Rows || of[0]->places != of[1]->places ||
          of[0]->range.count >= 0)
        return false;
      const Range range = {static_cast<int64_t>(own.getBegin()), static_cast<int64_t>(own.getCount())};
      values[own.getOwnIndices()] = {Indices, op, range};
      values[own.getOwnValues()] = {Rows, op, range};
      return true;
    }
    if (llvm::isa<dfg::ShapeOp, dfg::SizeOp>(op))
      return set(op, {Count, nullptr, {}});
    if (llvm::all_of(of, [](const Followed *each) { return !each || each->kind == Count; }))
      return llvm::isa<dfg::StridedSliceOp, dfg::CastOp, dfg::IdentityOp>(op) && set(op, {Count, nullptr, {}});
    if (llvm::isa<dfg::GatherOp, dfg::GatherV2Op, dfg::ResourceGatherOp, dist::PullRowsOp>(op))
      return readRows(op, of);
    return llvm::isa<dfg::ScalarInterface, dfg::IdentityOp>(op) && isPure(op) && computeRows(op, of);
  }

  bool findDistinct(Operation *op, ArrayRef<const Followed *> of) {
    if (!of[0] || of[0]->kind != Indices || of[0]->range.count >= 0 || op->getNumResults() < 2)
      return false;
    Operation *places = of[0]->places;
    set(op, {Rows, op, {}}); // how often each is there
    values[op->getResult(0)] = {Indices, op, {}};
    values[op->getResult(1)] = {Positions, places, {}};
    distinct[op->getResult(1)] = op;
    return true;
  }

  /// Rows of something else, of each index.
  bool readRows(Operation *op, ArrayRef<const Followed *> of) {
    if (of[0] || !of[1] || of[1]->kind != Indices)
      return false;
    return (llvm::isa<dist::PullRowsOp>(op) || dfg::takesRows(op)) && set(op, {Rows, of[1]->places, of[1]->range});
  }

  /// Element by element, of rows in the same places and of what is the same for all rows.
  bool computeRows(Operation *op, ArrayRef<const Followed *> of) {
    auto result = llvm::dyn_cast<RankedTensorType>(op->getResult(0).getType());
    const Followed *first = nullptr;
    bool isIndices = llvm::isa<dfg::CastOp, dfg::IdentityOp>(op);
    for (auto [operand, each] : llvm::zip(op->getOperands(), of)) {
      auto type = llvm::dyn_cast<RankedTensorType>(operand.getType());
      if (!result || !type)
        return false;
      if (!each || each->kind == Count) {
        if (type.getRank() != 0 && type.getRank() >= result.getRank())
          return false;
        continue;
      }
      if (each->kind == Positions || type.getRank() != result.getRank() ||
          (first && (each->places != first->places || each->range.begin != first->range.begin ||
                     each->range.count != first->range.count)))
        return false;
      first = each;
      isIndices &= each->kind == Indices;
    }
    if (isIndices && !llvm::isa<IntegerType>(result.getElementType()))
      isIndices = false;
    return first && set(op, {isIndices ? Indices : Rows, first->places, first->range});
  }

  bool reach(dfg::UpdateInterface update, ArrayRef<const Followed *> of) {
    auto place = update->getAttrOfType<dist::PlaceAttr>(dist::kPlaceAttr);
    const int indices = update.getIndicesOperand(), rows = update.getGradientOperand();
    if (!place || isServer(place) || indices < 0 || rows < 0 || update.hasIndexVectors() || !of[indices] ||
        of[indices]->kind != Indices ||
        llvm::any_of(update->getResults(), [](Value result) { return !result.use_empty(); }))
      return false;
    for (auto [number, each] : llvm::enumerate(of)) {
      if (!each || each->kind == Count || static_cast<int>(number) == indices)
        continue;
      if (static_cast<int>(number) != rows || each->kind != Rows || each->places != of[indices]->places)
        return false;
    }
    auto type = llvm::dyn_cast<dfg::RefType>(update->getOperand(update.getWrittenOperands().front()).getType());
    auto table = type ? llvm::dyn_cast<RankedTensorType>(type.getValueType()) : RankedTensorType();
    if (!table || table.getRank() == 0 || table.isDynamicDim(0))
      return false;
    const Range range = of[indices]->range;
    if (range.count >= 0 && range.count != table.getDimSize(0))
      return false;
    const Shard shard = {range.begin, table.getDimSize(0), static_cast<int64_t>(place.getIndex())};
    if (!llvm::is_contained(shards, shard))
      shards.push_back(shard);
    return true;
  }

  dist::AllGatherSlicesOp slices;
  const llvm::StringSet<> &endpoints;
  llvm::DenseMap<Value, Followed> values;
  llvm::DenseMap<Value, Operation *> distinct; // of positions, what found them
  SmallVector<Shard> shards;
};

} // namespace

void sendRowsToOwners(dfg::GraphOp graph) {
  const llvm::StringSet<> endpoints = dfg::getEndpointNames(graph);
  for (auto slices : graph.getBody().front().getOps<dist::AllGatherSlicesOp>())
    if (DenseI64ArrayAttr shards = RowFollower(slices, endpoints).findShards())
      slices.setShardsAttr(shards);
}

} // namespace distc
