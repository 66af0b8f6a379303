//===- LegalizeAccumulation.cpp - Gradient accumulation, for TensorFlow -------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A variable adds up, and a Switch lets the sum pass at every k-th batch only. What
// needs it, by data or by control edges, is dead in between: TensorFlow does not run
// it. The batches are counted by each worker, all of which run the same ones.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"

using namespace mlir;

namespace distc {
namespace {

/// `value` at the last batch, dead at others.
Value pass(WorkerGraph &worker, llvm::StringRef name, Value value, Value isLast) {
  StockNodes &nodes = worker.nodes;
  Operation *choice =
      nodes.make("Switch", (name + "/switch").str(), {value, isLast}, {value.getType(), value.getType()},
                 nodes.attribute("T", getElementTypeOrSelf(value.getType())));
  worker.gates.insert(choice);
  return nodes.identity(name, choice->getResult(1));
}

class Accumulation {
public:
  Accumulation(WorkerGraph &worker, dist::AccumulateOp op)
      : worker(worker), nodes(worker.nodes), builder(nodes.getBuilder()), op(op) {}

  LogicalResult run() {
    for (auto [gradient, result] : llvm::zip(op.getGradients(), op.getAccumulated())) {
      FailureOr<Value> sum = op.getSlices() ? join(gradient) : add(gradient);
      if (failed(sum))
        return failure();
      if (op.getReduction() == dist::Reduction::Mean)
        sum = nodes.multiply("mean", *sum, 1.0 / op.getSteps());
      result.replaceAllUsesWith(*sum);
    }
    return success();
  }

private:
  Value passLast(Value value) { return pass(worker, "passed", value, countBatches(worker, op.getSteps()).isLast); }

  FailureOr<Value> add(Value gradient) {
    auto type = llvm::dyn_cast<RankedTensorType>(gradient.getType());
    if (!type || !type.hasStaticShape())
      return op->emitOpError() << "adds up a gradient of unknown shape";
    DenseElementsAttr zeros = DenseElementsAttr::get(type, builder.getZeroAttr(type.getElementType()));
    NamedAttribute dtype = nodes.attribute("dtype", type.getElementType());
    Value handle = worker.addVariable("sum", zeros);
    Operation *added = nodes.make("AssignAddVariableOp", "add", {handle, gradient}, {}, dtype);
    Value value = worker.read("added", handle);
    StockNodes::addControl(value.getDefiningOp(), added);
    Value passed = passLast(value);
    reset(handle, zeros, passed);
    return passed;
  }

  /// Rows of a sparse gradient, one batch's behind another's.
  FailureOr<Value> join(Value rows) {
    auto type = llvm::dyn_cast<RankedTensorType>(rows.getType());
    if (!type || type.getRank() == 0)
      return op->emitOpError() << "joins rows of unknown shape";
    SmallVector<int64_t> sizes(type.getShape());
    sizes[0] = 0;
    auto none = RankedTensorType::get(sizes, type.getElementType());
    if (!none.hasStaticShape())
      return op->emitOpError() << "joins rows of unknown shape";
    DenseElementsAttr nothing = DenseElementsAttr::get(none, ArrayRef<Attribute>());
    Value handle = worker.addVariable("rows", nothing, /*growing=*/true);
    Value joined = nodes.concat("joined", {worker.read("before", handle), rows});
    Operation *kept = worker.assign("keep", handle, joined);
    Value passed = passLast(joined);
    StockNodes::addControl(passed.getDefiningOp(), kept);
    reset(handle, nothing, passed);
    return passed;
  }

  /// Begins again behind the last batch.
  void reset(Value handle, DenseElementsAttr first, Value passed) {
    Operation *begin = worker.assign("reset", handle, nodes.constant("reset/value", first));
    StockNodes::addControl(begin, passed.getDefiningOp());
    worker.stepNodes.push_back(begin);
  }

  WorkerGraph &worker;
  StockNodes &nodes;
  OpBuilder &builder;
  dist::AccumulateOp op;
};

} // namespace

const WorkerGraph::Batches &countBatches(WorkerGraph &worker, int64_t number) {
  WorkerGraph::Batches &batches = worker.batches[number];
  if (batches.guard)
    return batches;
  StockNodes &nodes = worker.nodes;
  OpBuilder &builder = nodes.getBuilder();
  // Before whatever needs it.
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&worker.block);
  std::string scope = nodes.setScope("accumulate");
  auto type = RankedTensorType::get({}, builder.getI64Type());
  NamedAttribute dtype = nodes.attribute("dtype", builder.getI64Type());
  auto constant = [&](llvm::StringRef name, int64_t value) {
    return nodes.constant(name, DenseElementsAttr::get(type, value));
  };
  Value counter = worker.addVariable("batches", DenseElementsAttr::get(type, int64_t(0)));
  Operation *count = nodes.make("AssignAddVariableOp", "count", {counter, constant("one", 1)}, {}, dtype);
  // Sessions agree on the number of a step where they first run a collective: every step must have one.
  if (worker.workers.size() > 1 && !worker.hasPlaces()) {
    auto single = RankedTensorType::get({1}, builder.getF32Type());
    Value nothing = nodes.constant("nothing", DenseElementsAttr::get(single, 0.0f));
    StockNodes::addControl(count, worker.collective("Reduce", nothing, dist::Spec::Auto).getDefiningOp());
  }
  Value counted = worker.read("counted", counter);
  StockNodes::addControl(counted.getDefiningOp(), count);
  Value rest = nodes.binary("FloorMod", "rest", counted, constant("steps", number));
  batches.isLast =
      nodes.get("Equal", "is_last", {rest, constant("zero", 0)}, RankedTensorType::get({}, builder.getI1Type()),
                nodes.attribute("T", builder.getI64Type()));
  batches.guard = pass(worker, "last", batches.isLast, batches.isLast).getDefiningOp();
  nodes.setScope(scope);
  return batches;
}

LogicalResult legalizeAccumulate(WorkerGraph &worker, const Issue &issue) {
  for (Operation *op : issue) {
    llvm::StringRef name = dfg::getNodeName(op);
    worker.nodes.setPlace(op, name.empty() ? "accumulate" : name);
    if (failed(Accumulation(worker, llvm::cast<dist::AccumulateOp>(op)).run()))
      return failure();
  }
  return success();
}

} // namespace distc
