//===- Elementwise.cpp - A thread 128 bits of the result -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/lower/gpu/Schedule.h"

using namespace mlir;

namespace distc::schedule {
namespace {

/// A thread makes `count` neighbours along the innermost loop.
class ElementwiseKernel {
public:
  ElementwiseKernel(KernelWriter &w, linalg::LinalgOp op, const IterationSpace &given) : w(w), op(op), space(given) {
    if (space.parallel.empty()) // one element
      space.parallel.push_back({1, {}, SmallVector<int64_t>(space.getNumOperands(), 0)});
    innermost = space.parallel.size() - 1;
    count = getVectorSize(op);
    // A line has an end that is cut off; rows must be a multiple.
    if (innermost > 0 || space.parallel[0].size < count)
      while (space.parallel[innermost].size % count != 0)
        count /= 2;
  }

  void write() {
    SmallVector<int64_t> sizes = llvm::map_to_vector(space.parallel, [](const Loop &loop) { return loop.size; });
    int64_t rest = sizes[innermost] % count, vectors = sizes[innermost] / count;
    sizes[innermost] = llvm::divideCeil(sizes[innermost], count);
    int64_t workers = computeProduct(sizes);
    // Small kernels reach more multiprocessors in small blocks.
    int64_t threads = workers <= 64 * 1024 ? 128 : 256;
    w.setLaunch(llvm::divideCeil(workers, threads), threads);
    Value worker = w.add(w.mul(w.getBlock(), threads), w.getThread());
    if (rest != 0)
      return writeLine(worker, vectors, rest);
    w.when(workers % threads ? w.less(worker, workers) : Value(), [&] {
      Point point{w.delinearize(worker, sizes), {}};
      point.parallel[innermost] = w.mul(point.parallel[innermost], count);
      writeVector(point);
    });
  }

private:
  /// One loop whose size is no multiple: whole vectors, then each of the rest by a thread.
  void writeLine(Value worker, int64_t vectors, int64_t rest) {
    w.when(w.less(worker, vectors), [&] { writeVector({{w.mul(worker, count)}, {}}); });
    w.when(w.less(worker, rest), [&] {
      int64_t whole = vectors * count;
      std::swap(count, one);
      writeVector({{w.add(worker, w.number(whole))}, {}});
      std::swap(count, one);
    });
  }

  void writeVector(const Point &point) {
    Lanes lanes{/*alongReduction=*/false, innermost, count};
    SmallVector<KernelWriter::Values> operands(count);
    for (unsigned operand = 0; operand < space.getNumOperands(); ++operand)
      for (auto [elements, element] : llvm::zip(operands, load(operand, point, lanes)))
        elements.push_back(element);
    SmallVector<KernelWriter::Values> results(op.getNumDpsInits());
    for (auto [lane, elements] : llvm::enumerate(operands)) {
      KernelWriter::Values made = w.writeBody(op, space, elements, w.getLane(point, lanes, lane));
      for (auto [result, value] : llvm::zip(results, made))
        result.push_back(value);
    }
    for (auto [result, elements] : llvm::enumerate(results))
      w.storeLanes(op, space, result, elements, point, lanes);
  }

  KernelWriter::Values load(unsigned operand, const Point &point, const Lanes &lanes) {
    // What a result holds before is seldom asked for.
    if (operand >= op.getNumDpsInputs()) {
      if (!op.payloadUsesValueFromOperand(&op->getOpOperand(operand)))
        return KernelWriter::Values(count, Value());
      if (Value fill = w.kernel.initial.lookup(op->getOperand(operand)))
        return KernelWriter::Values(count, w.lookup(fill));
    }
    return w.loadLanes(op, space, operand, point, lanes);
  }

  KernelWriter &w;
  linalg::LinalgOp op;
  IterationSpace space;
  unsigned innermost;
  int64_t count, one = 1;
};

bool matchesElementwise(Kernel &kernel) {
  const IterationSpace *space = kernel.getOnlySpace();
  return space && space->reduction.empty() && !readsByIndex(kernel.ops[0]);
}

void writeElementwise(Kernel &kernel, KernelWriter &writer) {
  ElementwiseKernel(writer, kernel.ops[0], *kernel.spaces[0]).write();
}

} // namespace

const Schedule kElementwise{"elementwise", matchesElementwise, writeElementwise};

} // namespace distc::schedule
