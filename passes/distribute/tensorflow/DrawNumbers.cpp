//===- DrawNumbers.cpp - Random numbers of several workers ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Numbers that belong to examples: every replica draws those of the whole batch,
// with the author's seeds, and takes its own rows. Generators of TensorFlow cannot
// begin in the middle of what one operation draws.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace distc {
namespace {

/// Whether it draws the same whenever the program begins.
bool isRepeatable(Operation *op) {
  if (isMemoryEffectFree(op)) // stateless: its seed is an operand
    return true;
  return llvm::any_of(ArrayRef<llvm::StringRef>{"seed", "seed2"}, [&](llvm::StringRef name) {
    auto seed = op->getAttrOfType<IntegerAttr>(name);
    return seed && seed.getInt() != 0;
  });
}

/// The rows of one replica of what `op` draws for all.
LogicalResult takeRows(WorkerGraph &worker, Operation *op) {
  StockNodes &nodes = worker.nodes;
  Value result = op->getResult(0), shape = op->getOperand(0);
  auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
  if (!type || type.getRank() == 0)
    return op->emitError() << "node '" << dfg::getNodeName(op)
                           << "' draws numbers for each example, in a tensor of unknown rank; give it a shape";
  std::string name = dfg::getNodeName(op).str();
  nodes.rename(op, name + "/all");
  auto perAxis = [&](llvm::StringRef of, int64_t first, int64_t others) {
    auto sizes = RankedTensorType::get({type.getRank()}, getElementTypeOrSelf(shape.getType()));
    SmallVector<APInt> values(type.getRank(), APInt(sizes.getElementTypeBitWidth(), others));
    values.front() = APInt(sizes.getElementTypeBitWidth(), first);
    return nodes.constant(of, DenseElementsAttr::get(sizes, values));
  };
  nodes.setPlace(op, name);
  op->setOperand(0, nodes.binary("Mul", "shape", shape, perAxis("replicas", worker.replicas, 1)));
  SmallVector<int64_t> all(type.getShape());
  if (!type.isDynamicDim(0))
    all.front() *= worker.replicas;
  result.setType(type.clone(all));
  nodes.getBuilder().setInsertionPointAfter(op);
  int64_t replica = worker.task.getFirstReplica() + WorkerGraph::getLocalReplica(name);
  Value begin = nodes.binary("Mul", "begin", shape, perAxis("replica", replica, 0));
  Operation *rows = nodes.make(
      "Slice", "", {result, begin, shape}, type,
      {nodes.attribute("T", type.getElementType()), nodes.attribute("Index", getElementTypeOrSelf(shape.getType()))});
  result.replaceAllUsesExcept(rows->getResult(0), rows);
  return success();
}

} // namespace

LogicalResult drawAlike(WorkerGraph &worker) {
  if (worker.replicas == 1)
    return success();
  Builder builder(worker.graph.getContext());
  for (Operation &op : llvm::make_early_inc_range(worker.block)) {
    if (!op.hasTrait<dfg::DrawsNumbers>())
      continue;
    if (op.hasAttr(dist::kSeedAttr)) {
      if (isRepeatable(&op) && failed(takeRows(worker, &op)))
        return failure();
    } else if (!isRepeatable(&op) && worker.workers.size() > 1) {
      // Any numbers would do, but all workers must draw the same.
      op.setAttr("seed", builder.getI64IntegerAttr(llvm::xxh3_64bits(dfg::getNodeName(&op)) & 0x7fffffff));
      op.setAttr("seed2", builder.getI64IntegerAttr(1));
    }
  }
  return success();
}

} // namespace distc
