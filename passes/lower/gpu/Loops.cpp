//===- Loops.cpp - Loops that data end: one block runs all of their operations ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Whether there is another iteration is known on the device alone, where all
// blocks of a grid cannot wait for each other. So one block runs the loop: its
// threads share each operation's elements, and meet behind it. What such loops
// compute is small in general (Newton's method, a line search, rejection sampling);
// one over large tensors uses one multiprocessor.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/lower/gpu/Plain.h"
#include "passes/lower/gpu/Reduction.h"
#include "passes/lower/gpu/Schedule.h"

using namespace mlir;

namespace distc::schedule {
namespace {

/// Reductions of fewer elements are a thread's.
constexpr int64_t kShortReduction = kWarp;

class LoopKernel {
public:
  LoopKernel(KernelWriter &w) : w(w) {
    int64_t most = kWarp;
    for (linalg::LinalgOp op : w.kernel.ops)
      most = std::max(most, computeProduct(op.getStaticLoopRanges()));
    threads = std::min<int64_t>(1024, llvm::PowerOf2Ceil(most));
  }

  void write() {
    w.setLaunch(1, threads);
    write(w.kernel.function.getBody().front());
  }

private:
  /// All threads take the same way through the loops: what decides it is in memory behind a barrier.
  void write(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (auto loop = dyn_cast<scf::WhileOp>(op)) {
        write(loop);
      } else if (auto fill = dyn_cast<linalg::FillOp>(op); fill && isStart(fill)) {
        w.kernel.initial[fill.getOutputs()[0]] = fill.getInputs()[0];
      } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
        write(linalgOp);
        w.barrier();
      } else if (isa<memref::StoreOp>(op)) {
        w.when(w.equal(w.getThread(), 0), [&] { w.b.clone(op, w.values); });
        w.barrier();
      } else if (llvm::none_of(op.getResults(), [&](Value result) { return w.values.contains(result); })) {
        w.b.clone(op, w.values); // a scalar or a place, which each thread has for itself
      }
    }
  }

  void write(scf::WhileOp loop) {
    auto copy = scf::WhileOp::create(w.b, TypeRange(), ValueRange());
    OpBuilder::InsertionGuard guard(w.b);
    w.b.createBlock(&copy.getBefore());
    write(loop.getBefore().front());
    scf::ConditionOp::create(w.b, w.lookup(loop.getConditionOp().getCondition()), ValueRange());
    w.b.createBlock(&copy.getAfter());
    // The condition may be another's memory from here on: all threads must have read it.
    w.barrier();
    write(loop.getAfter().front());
    scf::YieldOp::create(w.b);
  }

  /// Whether the next operation takes the fill for what it starts from, and need not read it.
  static bool isStart(linalg::FillOp fill) {
    Operation *next = fill->getNextNode();
    while (next && (isa<linalg::FillOp>(next) || next->hasTrait<OpTrait::ConstantLike>()))
      next = next->getNextNode();
    auto op = dyn_cast_or_null<linalg::GenericOp>(next);
    return op && llvm::is_contained(op.getDpsInits(), fill.getOutputs()[0]);
  }

  void write(linalg::LinalgOp op) {
    const int64_t rows = getParallelSize(op),
                  columns = computeProduct(op.getStaticLoopRanges()) / std::max<int64_t>(rows, 1);
    std::optional<Reduction> reduction;
    FailureOr<IterationSpace> space = failure();
    if (op.getNumReductionLoops() > 0 && rows < threads && columns >= kShortReduction)
      if (reduction = Reduction::match(op); reduction)
        space = IterationSpace::get(op);
    if (succeeded(space))
      writeRows(op, *space, *reduction, rows, columns);
    else if (rows > 0)
      w.loop(w.getThread(), w.number(rows), threads, {}, [&](Value iteration, ValueRange) {
        writeIteration(w, op, iteration);
        return KernelWriter::Values();
      });
  }

  /// A warp a row where there are rows for several; else all threads, row by row.
  void writeRows(linalg::LinalgOp op, const IterationSpace &space, const Reduction &reduction, int64_t rows,
                 int64_t columns) {
    const bool byWarp = rows * kWarp >= threads || columns < threads || threads == kWarp;
    const int64_t group = byWarp ? kWarp : threads;
    Value lane = byWarp ? w.rem(w.getThread(), kWarp) : w.getThread();
    Value first = byWarp ? w.div(w.getThread(), kWarp) : w.number(0);
    w.loop(first, w.number(rows), threads / group, {}, [&](Value row, ValueRange) {
      Point point{w.delinearize(row, space.parallel), {}};
      KernelWriter::Values partial =
          w.loop(lane, w.number(columns), group, reduction.getIdentities(w), [&](Value at, ValueRange soFar) {
            const Lanes one{/*alongReduction=*/true, /*loop=*/0, /*count=*/1};
            return accumulate(w, op, space, {point.parallel, w.delinearize(at, space.reduction)}, one, soFar);
          });
      partial = byWarp ? reduction.joinLanes(w, partial, kWarp) : reduction.joinBlock(w, partial, threads);
      w.when(w.equal(lane, 0), [&] { storeReduced(w, reduction, op, space, point, partial); });
      if (!byWarp)
        w.barrier(); // the next row's exchange uses the same memory
      return KernelWriter::Values();
    });
  }

  KernelWriter &w;
  int64_t threads;
};

bool matchesLoops(Kernel &kernel) { return kernel.hasLoops; }

void writeLoops(Kernel &, KernelWriter &writer) { LoopKernel(writer).write(); }

} // namespace

const Schedule kLoops{"loops", matchesLoops, writeLoops};

} // namespace distc::schedule
