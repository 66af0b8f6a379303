//===- Plain.cpp - A thread an element of the result ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/lower/gpu/Schedule.h"

using namespace mlir;

namespace distc::schedule {
namespace {

/// One operation, a thread an iteration of its parallel loops. Addresses may be any affine function of the loops.
class PlainKernel {
public:
  PlainKernel(KernelWriter &w, linalg::LinalgOp op) : w(w), op(op), positions(op.getNumLoops()) {
    SmallVector<int64_t> sizes = op.getStaticLoopRanges();
    for (auto [dim, iterator] : llvm::enumerate(op.getIteratorTypesArray())) {
      bool isParallel = iterator == utils::IteratorType::parallel;
      (isParallel ? parallel : reduction).push_back(dim);
      (isParallel ? parallelSizes : reductionSizes).push_back(sizes[dim]);
    }
  }

  void write() {
    constexpr int64_t threads = 256;
    int64_t size = computeProduct(parallelSizes);
    w.setLaunch(llvm::divideCeil(size, threads), threads);
    Value element = w.add(w.mul(w.getBlock(), threads), w.getThread());
    w.when(size % threads ? w.less(element, size) : Value(), [&] {
      setPositions(parallel, w.delinearize(element, parallelSizes));
      KernelWriter::Values results = llvm::map_to_vector(llvm::seq<unsigned>(0, op.getNumDpsInits()), loadInitial());
      results = reduction.empty() ? step(results) : reduce(results);
      for (auto [result, value] : llvm::enumerate(results)) {
        OpOperand *init = op.getDpsInitOperand(result);
        memref::StoreOp::create(w.b, value, w.lookup(init->get()), getIndices(init));
      }
    });
  }

private:
  void setPositions(ArrayRef<unsigned> dims, ValueRange at) {
    for (auto [dim, position] : llvm::zip(dims, at))
      positions[dim] = position;
  }

  KernelWriter::Values reduce(ValueRange initial) {
    int64_t size = computeProduct(reductionSizes);
    KernelWriter::Values results = w.loop(w.number(0), w.number(size), 1, initial, [&](Value at, ValueRange carried) {
      setPositions(reduction, w.delinearize(at, reductionSizes));
      return step(carried);
    });
    setPositions(reduction, KernelWriter::Values(reduction.size()));
    return results;
  }

  KernelWriter::Values step(ValueRange accumulators) {
    KernelWriter::Values elements;
    for (OpOperand *input : op.getDpsInputOperands())
      elements.push_back(load(input));
    llvm::append_range(elements, accumulators);
    return w.writeBody(op, elements, [&](unsigned dim) { return positions[dim]; });
  }

  Value load(OpOperand *operand) {
    if (!isa<MemRefType>(operand->get().getType()))
      return w.lookup(operand->get());
    return memref::LoadOp::create(w.b, w.lookup(operand->get()), getIndices(operand));
  }

  /// What results start from; nothing is read where the body does not ask for it.
  std::function<Value(unsigned)> loadInitial() {
    return [this](unsigned result) -> Value {
      OpOperand *init = op.getDpsInitOperand(result);
      if (Value fill = w.kernel.initial.lookup(init->get()))
        return w.lookup(fill);
      return load(init);
    };
  }

  KernelWriter::Values getIndices(OpOperand *operand) {
    // A reduction's loops are not in a result's map.
    KernelWriter::Values loops =
        llvm::map_to_vector(positions, [&](Value position) { return position ? position : w.number(0); });
    return w.getIndices(op, *operand, loops);
  }

  KernelWriter &w;
  linalg::LinalgOp op;
  SmallVector<unsigned> parallel, reduction;
  SmallVector<int64_t> parallelSizes, reductionSizes;
  KernelWriter::Values positions; // by loop
};

bool matches(Kernel &kernel) { return kernel.ops.size() == 1; }

void write(Kernel &kernel, KernelWriter &writer) { PlainKernel(writer, kernel.ops[0]).write(); }

} // namespace

const Schedule kPlain{"plain", matches, write};

} // namespace distc::schedule
