//===- GroupRoundings.cpp - drt-group-roundings ----------------------------------===//
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
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/DeviceKernel.h"
#include "passes/lower/gpu/DeviceLaunches.h"
#include "passes/lower/kernels/Casts.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_GROUPROUNDINGS
#include "passes/lower/Passes.h.inc"

namespace {

/// Fewer are left alone. More are several launches: a kernel's arguments have 4 KiB, two for each tensor.
constexpr size_t kFewestRoundings = 8, kMostRoundings = 250;
/// Elements that a thread rounds at once, and how often.
constexpr int64_t kRounded = 8, kRoundsOfBlock = 4, kRoundedByBlock = kThreads * kRounded * kRoundsOfBlock;

/// A variable of float32 that is rounded to bfloat16, and nothing else.
bool isRoundingOfVariable(linalg::GenericOp op) {
  const Value variable = getCast<arith::TruncFOp>(op);
  return variable && variable.getDefiningOp<drt::ReadOp>() && getElementTypeOrSelf(variable).isF32() &&
         getElementTypeOrSelf(op.getResult(0)).isBF16() && countElements(op.getResult(0)) > 0;
}

/// Launches in the place of the first.
class RoundingGroup {
public:
  explicit RoundingGroup(ArrayRef<linalg::GenericOp> ops) : ops(ops) {
    for (linalg::GenericOp op : ops) {
      begins.push_back(blocks);
      blocks += llvm::divideCeil(countElements(op.getResult(0)), kRoundedByBlock);
    }
  }

  void write(DeviceLaunches &launches, int64_t number) {
    SmallVector<Location> locations;
    for (linalg::GenericOp op : ops)
      locations.push_back(op.getLoc());
    ImplicitLocOpBuilder b(FusedLoc::get(ops[0].getContext(), locations), ops[0]);
    SmallVector<Value> variables;
    SmallVector<RankedTensorType> types;
    for (linalg::GenericOp op : ops) {
      variables.push_back(b.clone(*op.getInputs()[0].getDefiningOp())->getResult(0));
      types.push_back(cast<RankedTensorType>(op.getResult(0).getType()));
    }
    SmallVector<Value> made = launches.launch(
        b, "variables", {number}, types, variables, blocks * kThreads, kThreads,
        [&](ThreadWriter &w, ValueRange operands, ValueRange results) { writeKernel(w, operands, results); });
    for (auto [op, value] : llvm::zip(ops, made)) {
      op.getResult(0).replaceAllUsesWith(value);
      op.erase();
    }
  }

private:
  void writeKernel(ThreadWriter &w, ValueRange operands, ValueRange results) {
    const Type f32 = w.b.getF32Type(), bf16 = w.b.getBF16Type(), index = w.b.getIndexType();
    const auto from = MemRefType::get({ShapedType::kDynamic}, f32), to = MemRefType::get({ShapedType::kDynamic}, bf16);
    ThreadWriter::Values mine =
        w.findEntry(w.getBlock(), begins, {from, to, index, index}, [&](size_t i) -> ThreadWriter::Values {
          return {memref::CastOp::create(w.b, from, operands[i]), memref::CastOp::create(w.b, to, results[i]),
                  w.number(begins[i]), w.number(countElements(ops[i].getResult(0)))};
        });
    const Value first = w.add(w.mul(w.sub(w.getBlock(), mine[2]), kRoundedByBlock), w.mul(w.getThread(), kRounded));
    w.loop(w.number(0), w.number(kRoundsOfBlock), {}, [&](Value round, ValueRange) {
      const Value at = w.add(first, w.mul(round, kThreads * kRounded)), end = w.add(at, kRounded);
      w.when(w.lessOrEqual(end, mine[3]), [&] { roundVector(w, mine[0], mine[1], at); });
      // Behind the last whole vector of the tensor, and before its end.
      w.when(w.both(w.less(mine[3], end), w.less(at, mine[3])), [&] {
        w.loop(at, mine[3], {}, [&](Value element, ValueRange) {
          w.store(arith::TruncFOp::create(w.b, bf16, w.load(mine[0], element)), mine[1], element);
          return ThreadWriter::Values();
        });
      });
      return ThreadWriter::Values();
    });
  }

  /// As much as is stored at once, of which two loads have half each.
  static void roundVector(ThreadWriter &w, Value from, Value to, Value at) {
    SmallVector<Value> rounded;
    for (int64_t part : {0, 1})
      for (Value element : w.loadVector(from, w.add(at, part * kRounded / 2), kRounded / 2))
        rounded.push_back(arith::TruncFOp::create(w.b, w.b.getBF16Type(), element));
    Value whole = vector::FromElementsOp::create(w.b, VectorType::get({kRounded}, w.b.getBF16Type()), rounded);
    auto stored = vector::StoreOp::create(w.b, whole, to, ValueRange{at});
    stored.setAlignment(kVectorBytes);
  }

  SmallVector<linalg::GenericOp> ops;
  SmallVector<int64_t> begins; // the first block of each
  int64_t blocks = 0;
};

struct GroupRoundings : impl::GroupRoundingsBase<GroupRoundings> {
  void runOnOperation() override {
    DeviceLaunches launches(getOperation(), "round");
    int64_t number = 0;
    for (drt::EntryOp entry : getEntries(getOperation())) {
      SmallVector<SmallVector<linalg::GenericOp>> groups(1);
      llvm::DenseSet<Operation *> reads; // since something was written to memory
      for (Operation &op : entry.getBody().front()) {
        if (isa<drt::ReadOp>(op))
          reads.insert(&op);
        if (auto generic = dyn_cast<linalg::GenericOp>(op); generic && isRoundingOfVariable(generic)) {
          if (!reads.contains(generic.getInputs()[0].getDefiningOp()))
            continue; // an old value, which its memory does not hold any more
          if (groups.back().size() == kMostRoundings)
            groups.emplace_back();
          groups.back().push_back(generic);
        } else if (!isMemoryEffectFree(&op) && !hasSingleEffect<MemoryEffects::Read>(&op)) {
          // What a variable holds may be another value from here on.
          reads.clear();
          if (!groups.back().empty())
            groups.emplace_back();
        }
      }
      for (ArrayRef<linalg::GenericOp> group : groups)
        if (group.size() >= kFewestRoundings)
          RoundingGroup(group).write(launches, number++);
    }
  }
};

} // namespace
} // namespace distc
