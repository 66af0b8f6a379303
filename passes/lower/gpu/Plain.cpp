//===- Plain.cpp - A thread an element of the result ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/lower/gpu/Plain.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/lower/gpu/Schedule.h"

using namespace mlir;

namespace distc::schedule {
namespace {

class PlainOperation {
public:
  PlainOperation(KernelWriter &w, linalg::LinalgOp op) : w(w), op(op), positions(op.getNumLoops()) {
    SmallVector<int64_t> sizes = op.getStaticLoopRanges();
    for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray())) {
      bool isParallel = iterator == utils::IteratorType::parallel;
      (isParallel ? parallel : reduction).push_back(dim);
      (isParallel ? parallelSizes : reductionSizes).push_back(sizes[dim]);
    }
    for (OpOperand &result : op.getDpsInitsMutable())
      carried.push_back(!reduction.empty() && isReduced(op, result));
  }

  void write(Value iteration) {
    setPositions(parallel, w.delinearize(iteration, parallelSizes));
    reduction.empty() ? store(step({}), /*ofCarried=*/false) : reduce();
  }

private:
  void setPositions(ArrayRef<unsigned> dims, ValueRange at) {
    for (auto [dim, position] : llvm::zip(dims, at))
      positions[dim] = position;
  }

  /// The results that are reduced are carried from iteration to iteration. The others have an element for each
  /// iteration, and are read and written there.
  void reduce() {
    KernelWriter::Values initial;
    for (unsigned result = 0; result < carried.size(); ++result)
      if (carried[result])
        initial.push_back(loadInitial(result));
    int64_t size = computeProduct(reductionSizes);
    KernelWriter::Values reduced = w.loop(w.number(0), w.number(size), 1, initial, [&](Value at, ValueRange soFar) {
      setPositions(reduction, w.delinearize(at, reductionSizes));
      KernelWriter::Values results = step(soFar);
      store(results, /*ofCarried=*/false);
      return select(results);
    });
    setPositions(reduction, KernelWriter::Values(reduction.size()));
    KernelWriter::Values results(carried.size());
    for (unsigned result = 0, next = 0; result < carried.size(); ++result)
      if (carried[result])
        results[result] = reduced[next++];
    store(results, /*ofCarried=*/true);
  }

  KernelWriter::Values select(ValueRange results) {
    KernelWriter::Values selected;
    for (auto [result, value] : llvm::enumerate(results))
      if (carried[result])
        selected.push_back(value);
    return selected;
  }

  /// The body's results, from those that are carried.
  KernelWriter::Values step(ValueRange soFar) {
    KernelWriter::Values elements;
    for (OpOperand *input : op.getDpsInputOperands())
      elements.push_back(load(input));
    for (unsigned result = 0; result < carried.size(); ++result)
      if (carried[result]) {
        elements.push_back(soFar.front());
        soFar = soFar.drop_front();
      } else {
        elements.push_back(loadInitial(result));
      }
    return w.writeBody(op, elements, [&](unsigned dim) { return positions[dim]; });
  }

  void store(ValueRange results, bool ofCarried) {
    for (auto [result, value] : llvm::enumerate(results))
      if (carried[result] == ofCarried) {
        OpOperand *init = op.getDpsInitOperand(result);
        memref::StoreOp::create(w.b, value, w.lookup(init->get()), getIndices(init));
      }
  }

  Value load(OpOperand *operand) {
    if (!isa<MemRefType>(operand->get().getType()))
      return w.lookup(operand->get());
    return memref::LoadOp::create(w.b, w.lookup(operand->get()), getIndices(operand));
  }

  /// What a result starts from, at this iteration; nothing is read where the body does not ask for it.
  Value loadInitial(unsigned result) {
    OpOperand *init = op.getDpsInitOperand(result);
    if (Value fill = w.kernel.initial.lookup(init->get()))
      return w.lookup(fill);
    return op.payloadUsesValueFromOperand(init) || carried[result] ? load(init) : Value();
  }

  KernelWriter::Values getIndices(OpOperand *operand) {
    // A reduction's loops are not in a reduced result's map.
    KernelWriter::Values loops =
        llvm::map_to_vector(positions, [&](Value position) { return position ? position : w.number(0); });
    return w.getIndices(op, *operand, loops);
  }

  KernelWriter &w;
  linalg::LinalgOp op;
  SmallVector<unsigned> parallel, reduction;
  SmallVector<int64_t> parallelSizes, reductionSizes;
  SmallVector<bool> carried;      // by result
  KernelWriter::Values positions; // by loop
};

bool matchesPlain(Kernel &kernel) { return kernel.ops.size() == 1; }

void writePlain(Kernel &kernel, KernelWriter &w) {
  constexpr int64_t threads = 256;
  const int64_t size = getParallelSize(kernel.ops[0]);
  w.setLaunch(llvm::divideCeil(size, threads), threads);
  Value element = w.add(w.mul(w.getBlock(), threads), w.getThread());
  w.when(size % threads ? w.less(element, size) : Value(), [&] { writeIteration(w, kernel.ops[0], element); });
}

} // namespace

int64_t getParallelSize(linalg::LinalgOp op) {
  int64_t size = 1;
  for (auto [iterations, iterator] : llvm::zip(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
    size *= iterator == utils::IteratorType::parallel ? iterations : 1;
  return size;
}

void writeIteration(KernelWriter &w, linalg::LinalgOp op, Value iteration) { PlainOperation(w, op).write(iteration); }

const Schedule kPlain{"plain", matchesPlain, writePlain};

} // namespace distc::schedule
