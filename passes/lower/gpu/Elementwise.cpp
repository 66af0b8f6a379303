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

constexpr int64_t kMaxVector = 8;

/// As many elements as 128 bits hold of the widest operand.
int64_t getWidestVector(linalg::LinalgOp op) {
  unsigned widest = 8;
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<MemRefType>(operand.getType()))
      widest = std::max(widest, type.getElementTypeBitWidth());
  return std::min<int64_t>(kMaxVector, std::max<int64_t>(1, 128 / widest));
}

/// A thread makes `count` neighbours along the innermost loop.
class ElementwiseKernel {
public:
  ElementwiseKernel(KernelWriter &w, linalg::LinalgOp op, const IterationSpace &given) : w(w), op(op), space(given) {
    if (space.parallel.empty()) // one element
      space.parallel.push_back({1, {}, SmallVector<int64_t>(space.getNumOperands(), 0)});
    innermost = space.parallel.size() - 1;
    count = getWidestVector(op);
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
    SmallVector<KernelWriter::Values> lanes(count);
    for (unsigned operand = 0; operand < space.getNumOperands(); ++operand) {
      KernelWriter::Values elements = load(operand, point);
      for (auto [lane, element] : llvm::zip(lanes, elements))
        lane.push_back(element);
    }
    SmallVector<KernelWriter::Values> results(op.getNumDpsInits());
    for (auto [lane, elements] : llvm::enumerate(lanes)) {
      KernelWriter::Values made = w.writeBody(op, space, elements, getLane(point, lane));
      for (auto [result, value] : llvm::zip(results, made))
        result.push_back(value);
    }
    for (auto [result, elements] : llvm::enumerate(results))
      store(result, elements, point);
  }

  Point getLane(Point point, int64_t lane) {
    if (lane != 0)
      point.parallel[innermost] = w.add(point.parallel[innermost], w.number(lane));
    return point;
  }

  /// Whether vectors of the operand are contiguous and begin at multiples of their size.
  bool isContiguous(unsigned operand) {
    for (unsigned i = 0; i < innermost; ++i)
      if (space.parallel[i].strides[operand] % count != 0)
        return false;
    return space.parallel[innermost].strides[operand] == 1 && space.offsets[operand] % count == 0;
  }

  KernelWriter::Values load(unsigned operand, const Point &point) {
    unsigned inputs = op.getNumDpsInputs();
    Value address = w.address(space, operand, point);
    if (operand >= inputs) {
      // What a result holds before is seldom asked for.
      if (!op.payloadUsesValueFromOperand(&op->getOpOperand(operand)))
        return KernelWriter::Values(count, Value());
      if (w.kernel.initial.contains(op->getOperand(operand)))
        return KernelWriter::Values(count, w.loadInitial(op, operand - inputs, address));
    }
    if (space.parallel[innermost].strides[operand] == 0)
      return KernelWriter::Values(count, w.load(op, operand, address));
    if (isContiguous(operand))
      return w.loadVector(op, operand, address, count);
    return llvm::map_to_vector(llvm::seq<int64_t>(0, count), [&](int64_t lane) {
      return w.load(op, operand, w.address(space, operand, getLane(point, lane)));
    });
  }

  void store(unsigned result, ValueRange elements, const Point &point) {
    unsigned operand = op.getNumDpsInputs() + result;
    if (isContiguous(operand))
      return w.storeVector(op, result, elements, w.address(space, operand, point));
    for (auto [lane, element] : llvm::enumerate(elements))
      w.store(op, result, element, w.address(space, operand, getLane(point, lane)));
  }

  KernelWriter &w;
  linalg::LinalgOp op;
  IterationSpace space;
  unsigned innermost;
  int64_t count, one = 1;
};

bool matches(Kernel &kernel) {
  const IterationSpace *space = kernel.getOnlySpace();
  return space && space->reduction.empty() && !readsByIndex(kernel.ops[0]);
}

void write(Kernel &kernel, KernelWriter &writer) {
  ElementwiseKernel(writer, kernel.ops[0], *kernel.spaces[0]).write();
}

} // namespace

const Schedule kElementwise{"elementwise", matches, write};

} // namespace distc::schedule
