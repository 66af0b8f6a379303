//===- GroupSums.cpp - drt-group-sums --------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/DeviceKernel.h"
#include "passes/lower/gpu/DeviceLaunches.h"
#include "passes/lower/kernels/FusionPlan.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_GROUPSUMS
#include "passes/lower/Passes.h.inc"

namespace groupedsums {
namespace {

/// Fewer are left alone. More are several launches: a kernel's arguments have 4 KiB.
constexpr size_t kFewest = 8, kMost = 400;
constexpr int64_t kLanes = 32;
/// Elements that a thread loads at once, how many such loads are under way together, and what a block adds up.
constexpr int64_t kVector = 4, kLoads = 4, kRounds = 4;
constexpr int64_t kBlockElements = kThreads * kVector * kLoads * kRounds;

/// The sum of a function of all elements of one tensor, and what is made of the sum alone.
struct Sum {
  linalg::GenericOp op, finish; // the second may be none

  linalg::GenericOp last() const { return finish ? finish : op; }
  Value input() const { return op->getOperand(0); }
};

/// Whether a kernel that is written elsewhere can have the body: it takes constants alone from outside.
bool hasConstantsOnly(linalg::GenericOp op) {
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(op.getRegion(), outside);
  bool isSimple = true;
  op.getRegion().walk([&](Operation *inner) {
    isSimple = isSimple && inner->getNumRegions() == 0 && !isa<linalg::IndexOp>(inner) && isMemoryEffectFree(inner);
  });
  return isSimple && llvm::all_of(outside, [](Value value) { return matchPattern(value, m_Constant()); });
}

/// `out + f(in)`: f(in).
Value getAddend(linalg::GenericOp op) {
  auto add = op.getBody()->getTerminator()->getOperand(0).getDefiningOp<arith::AddFOp>();
  const Value out = op.getBody()->getArgument(1);
  if (!add || !out.hasOneUse() || (add.getLhs() != out && add.getRhs() != out))
    return {};
  return add.getLhs() == out ? add.getRhs() : add.getLhs();
}

bool isFloat32(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getElementType().isF32() && type.getNumElements() > 0;
}

std::optional<Sum> matchSum(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1 || op.getNumLoops() == 0 ||
      op.getNumReductionLoops() != op.getNumLoops() || !isFloat32(op.getInputs()[0]) || !isFloat32(op.getResult(0)) ||
      cast<RankedTensorType>(op.getResult(0).getType()).getRank() != 0 ||
      !op.getMatchingIndexingMap(op.getDpsInputOperand(0)).isIdentity() || !getAddend(op) || !hasConstantsOnly(op))
    return std::nullopt;
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  // A variable may have been updated until all are summed.
  if (!fill || !matchPattern(fill.getInputs()[0], m_AnyZeroFloat()) ||
      isa_and_nonnull<drt::ReadOp>(getStorage(op.getInputs()[0]).getDefiningOp()))
    return std::nullopt;
  Sum sum{op, {}};
  if (op->hasOneUse())
    if (auto user = dyn_cast<linalg::GenericOp>(*op->user_begin());
        user && isElementwise(user) && user.getNumDpsInputs() == 1 && user->getNumResults() == 1 &&
        isFloat32(user.getResult(0)) && cast<RankedTensorType>(user.getResult(0).getType()).getRank() == 0 &&
        hasConstantsOnly(user))
      sum.finish = user;
  return sum;
}

bool isSame(linalg::GenericOp one, linalg::GenericOp other) {
  if (!one || !other)
    return !one && !other;
  // Loops and shapes may differ: bodies are what is compared, and constants that they take from outside.
  llvm::DenseMap<Value, Value> mapped;
  return OperationEquivalence::isRegionEquivalentTo(
      &one.getRegion(), &other.getRegion(),
      [&](Value a, Value b) {
        Attribute own, others;
        return success(mapped.contains(a) ? mapped[a] == b
                       : a == b           ? true
                                          : matchPattern(a, m_Constant(&own)) && matchPattern(b, m_Constant(&others)) &&
                                                own == others);
      },
      [&](Value a, Value b) { mapped[a] = b; }, OperationEquivalence::IgnoreLocations);
}

/// Writes what the body computes of `argument`: `result` of its values.
Value writeBody(ThreadWriter &w, linalg::GenericOp op, Value argument, Value result) {
  IRMapping mapping;
  mapping.map(op.getBody()->getArgument(0), argument);
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (llvm::is_contained(inner.getOperands(), op.getBody()->getArgument(1)))
      continue; // adds to the sum
    for (Value operand : inner.getOperands())
      if (!mapping.contains(operand))
        mapping.map(operand, w.b.clone(*operand.getDefiningOp())->getResult(0));
    w.b.clone(inner, mapping);
  }
  if (!mapping.contains(result))
    mapping.map(result, w.b.clone(*result.getDefiningOp())->getResult(0));
  return mapping.lookup(result);
}

class Group {
public:
  explicit Group(ArrayRef<Sum> sums) : sums(sums) {
    for (const Sum &sum : sums) {
      begins.push_back(blocks);
      blocks += llvm::divideCeil(countElements(sum.input()), kBlockElements);
    }
  }

  /// Launches behind `place`; what used the sums uses theirs.
  void write(DeviceLaunches &launches, Operation *place, int64_t number) {
    SmallVector<Location> locations;
    SmallVector<Value> inputs;
    for (const Sum &sum : sums) {
      locations.push_back(sum.op->getLoc());
      inputs.push_back(sum.input());
    }
    ImplicitLocOpBuilder b(FusedLoc::get(place->getContext(), locations), place->getContext());
    b.setInsertionPointAfter(place);
    const auto parts = RankedTensorType::get({blocks}, b.getF32Type()),
               whole = RankedTensorType::get({}, b.getF32Type());
    const Value ofBlocks = launches.launch(
        b, "parts", {number}, {parts}, inputs, blocks * kThreads, kThreads,
        [&](ThreadWriter &w, ValueRange operands, ValueRange results) { writeParts(w, operands, results[0]); })[0];
    const SmallVector<RankedTensorType> types(sums.size(), whole);
    SmallVector<Value> made = launches.launch(
        b, "whole", {number}, types, ofBlocks, static_cast<int64_t>(sums.size()) * kLanes, kThreads,
        [&](ThreadWriter &w, ValueRange operands, ValueRange results) { writeSums(w, operands[0], results); });
    for (auto [sum, value] : llvm::zip(sums, made)) {
      sum.last().getResult(0).replaceAllUsesWith(value);
      if (sum.finish)
        sum.finish->erase();
      linalg::GenericOp op = sum.op;
      op->erase();
    }
  }

private:
  /// A block's elements of one tensor.
  void writeParts(ThreadWriter &w, ValueRange inputs, Value parts) {
    const auto line = MemRefType::get({ShapedType::kDynamic}, w.b.getF32Type());
    const Type index = w.b.getIndexType();
    ThreadWriter::Values mine =
        w.findEntry(w.getBlock(), begins, {line, index, index}, [&](size_t i) -> ThreadWriter::Values {
          return {memref::CastOp::create(w.b, line, inputs[i]), w.number(begins[i]),
                  w.number(countElements(sums[i].input()))};
        });
    const Value buffer = mine[0], count = mine[2];
    const Value begin = w.mul(w.sub(w.getBlock(), mine[1]), kBlockElements), end = w.add(begin, kBlockElements);
    const Value own = w.add(begin, w.mul(w.getThread(), kVector));
    const Value zero = arith::ConstantOp::create(w.b, w.b.getF32FloatAttr(0));
    SmallVector<Value> start(kVector, zero);
    auto add = [&](SmallVector<Value> &to, ArrayRef<Value> loaded) {
      for (auto [sum, element] : llvm::zip(to, loaded))
        sum = arith::AddFOp::create(w.b, sum, writeBody(w, sums[0].op, element, getAddend(sums[0].op)));
    };
    auto load = [&](Value at) { return w.loadVector(buffer, at, kVector); };
    auto whole =
        scf::IfOp::create(w.b, TypeRange(ValueRange(start)), w.lessOrEqual(end, count), /*withElseRegion=*/true);
    {
      OpBuilder::InsertionGuard guard(w.b);
      // All loads of a round are under way before one is waited for.
      w.b.setInsertionPointToStart(whole.thenBlock());
      scf::YieldOp::create(w.b, w.loop(w.number(0), w.number(kRounds), start, [&](Value round, ValueRange carried) {
        const Value at = w.add(own, w.mul(round, kThreads * kVector * kLoads));
        SmallVector<SmallVector<Value>> loaded;
        for (int64_t i = 0; i < kLoads; ++i)
          loaded.push_back(load(w.add(at, i * kThreads * kVector)));
        SmallVector<Value> next(carried.begin(), carried.end());
        for (ArrayRef<Value> elements : loaded)
          add(next, elements);
        return next;
      }));
      w.b.setInsertionPointToStart(whole.elseBlock());
      SmallVector<Value> some =
          w.loop(w.number(0), w.number(kRounds * kLoads), start, [&](Value round, ValueRange carried) {
            const Value at = w.add(own, w.mul(round, kThreads * kVector));
            return w.when(w.lessOrEqual(w.add(at, kVector), count), carried, [&] {
              SmallVector<Value> next(carried.begin(), carried.end());
              add(next, load(at));
              return next;
            });
          });
      // Behind the last vector of the tensor.
      const Value rest = w.add(w.mul(w.div(count, kVector), kVector), w.getThread());
      some[0] = w.when(w.less(rest, count), some[0], [&]() -> ThreadWriter::Values {
        SmallVector<Value> next = {some[0]};
        add(next, {w.load(buffer, rest)});
        return next;
      })[0];
      scf::YieldOp::create(w.b, some);
    }
    Value sum = whole.getResult(0);
    for (Value other : whole.getResults().drop_front())
      sum = arith::AddFOp::create(w.b, sum, other);
    sum = w.sumOfWarp(sum);
    const Value ofWarps = w.addShared(kThreads / kLanes, w.b.getF32Type());
    const Value lane = w.rem(w.getThread(), kLanes);
    w.when(w.equal(lane, w.number(0)), [&] { w.store(sum, ofWarps, w.div(w.getThread(), kLanes)); });
    w.barrier();
    w.when(w.equal(w.getThread(), w.number(0)), [&] {
      Value all = w.load(ofWarps, w.number(0));
      for (int64_t i = 1; i < kThreads / kLanes; ++i)
        all = arith::AddFOp::create(w.b, all, w.load(ofWarps, w.number(i)));
      w.store(all, parts, w.getBlock());
    });
  }

  /// A warp adds up the parts of one tensor.
  void writeSums(ThreadWriter &w, Value parts, ValueRange results) {
    const SmallVector<int64_t> numbers = llvm::to_vector(llvm::seq<int64_t>(static_cast<int64_t>(sums.size())));
    const Value tensor = w.div(w.getNumber(), kLanes), lane = w.rem(w.getThread(), kLanes);
    const Type index = w.b.getIndexType(), one = results[0].getType();
    ThreadWriter::Values mine =
        w.findEntry(tensor, numbers, {one, index, index}, [&](size_t i) -> ThreadWriter::Values {
          const int64_t end = i + 1 < begins.size() ? begins[i + 1] : blocks;
          return {results[i], w.number(begins[i]), w.number(end)};
        });
    const Value zero = arith::ConstantOp::create(w.b, w.b.getF32FloatAttr(0));
    // Rounds for all lanes, which meet behind them.
    const Value rounds = w.div(w.add(w.sub(mine[2], mine[1]), kLanes - 1), kLanes);
    Value sum = w.loop(w.number(0), rounds, zero, [&](Value round, ValueRange carried) -> ThreadWriter::Values {
      const Value at = w.add(w.add(mine[1], w.mul(round, kLanes)), lane);
      return w.when(w.less(at, mine[2]), carried, [&]() -> ThreadWriter::Values {
        return {arith::AddFOp::create(w.b, carried[0], w.load(parts, at))};
      });
    })[0];
    sum = w.sumOfWarp(sum);
    w.when(w.both(w.equal(lane, w.number(0)), w.less(tensor, w.number(static_cast<int64_t>(sums.size())))), [&] {
      linalg::GenericOp finish = sums[0].finish;
      const Value made = finish ? writeBody(w, finish, sum, finish.getBody()->getTerminator()->getOperand(0)) : sum;
      w.store(made, mine[0], w.number(0));
    });
  }

  SmallVector<Sum> sums;
  SmallVector<int64_t> begins; // the first block of each
  int64_t blocks = 0;
};

} // namespace
} // namespace groupedsums

namespace {

struct GroupSums : impl::GroupSumsBase<GroupSums> {
  void runOnOperation() override {
    DeviceLaunches launches(getOperation(), "sums");
    int64_t number = 0;
    for (drt::EntryOp entry : getEntries(getOperation())) {
      SmallVector<SmallVector<groupedsums::Sum>> groups;
      for (auto op : entry.getBody().front().getOps<linalg::GenericOp>())
        if (std::optional<groupedsums::Sum> sum = groupedsums::matchSum(op))
          add(groups, *sum);
      for (ArrayRef<groupedsums::Sum> group : groups)
        for (; !group.empty(); group = group.drop_front(std::min(groupedsums::kMost, group.size())))
          write(launches, group.take_front(groupedsums::kMost), number);
    }
  }

  static void add(SmallVector<SmallVector<groupedsums::Sum>> &groups, const groupedsums::Sum &sum) {
    for (SmallVector<groupedsums::Sum> &group : groups)
      if (groupedsums::isSame(group[0].op, sum.op) && groupedsums::isSame(group[0].finish, sum.finish))
        return group.push_back(sum);
    groups.push_back({sum});
  }

  /// Behind the last of what is summed; a sum that is read before that stays as it is.
  static void write(DeviceLaunches &launches, ArrayRef<groupedsums::Sum> group, int64_t &number) {
    if (group.size() < groupedsums::kFewest)
      return;
    Operation *place = group[0].op;
    for (const groupedsums::Sum &sum : group)
      if (Operation *maker = sum.input().getDefiningOp(); place->isBeforeInBlock(maker))
        place = maker;
    Block &block = *place->getBlock();
    SmallVector<groupedsums::Sum> sums;
    for (const groupedsums::Sum &sum : group)
      if (llvm::all_of(sum.last()->getUsers(),
                       [&](Operation *user) { return place->isBeforeInBlock(block.findAncestorOpInBlock(*user)); }))
        sums.push_back(sum);
    if (sums.size() < groupedsums::kFewest)
      return;
    groupedsums::Group(sums).write(launches, place, number++);
  }
};

} // namespace
} // namespace distc
