//===- LegalizeCollectives.cpp - Reductions and gathers for TensorFlow ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Local replicas' values are joined in the graph, then tasks' by one collective. A
// bucket travels as one flat tensor where all its shapes are known.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/flow/BatchConversions.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"

using namespace mlir;

namespace distc {
namespace {

/// The collectives of TensorFlow have kernels for these elements; others travel as one that holds them.
Type getTravellingType(Type element, OpBuilder &builder) {
  if (element.isF16() || element.isF32() || element.isF64() || element.isInteger(32) || element.isInteger(64))
    return element;
  return llvm::isa<FloatType>(element) ? Type(builder.getF32Type()) : Type(builder.getI32Type());
}

/// Sums over all tasks of values that are sums over the task's replicas.
class Reducer {
public:
  Reducer(WorkerGraph &worker, Operation *op, dist::Spec spec, dist::CompressionAttr compression)
      : worker(worker), nodes(worker.nodes), op(op), spec(spec), compression(compression) {}

  FailureOr<SmallVector<Value>> run(ArrayRef<Value> sums) {
    if (!llvm::all_of(sums, StockNodes::hasStaticShape)) {
      SmallVector<Value> reduced;
      for (Value sum : sums) {
        FailureOr<Value> result = exchange(sum);
        if (failed(result))
          return failure();
        reduced.push_back(*result);
      }
      return reduced;
    }
    FailureOr<Value> flat = exchange(nodes.flatten(sums));
    if (failed(flat))
      return failure();
    return nodes.unflatten(*flat, sums);
  }

private:
  FailureOr<Value> exchange(Value value) {
    if (!compression || compression.getKind() == dist::Compressor::None) {
      Type element = getElementTypeOrSelf(value.getType()), sent = getTravellingType(element, nodes.getBuilder());
      // Integers wrap around alike in a wider type.
      if (!element.isInteger() || sent == element)
        return worker.collective("Reduce", value, spec);
      return nodes.cast("received", worker.collective("Reduce", nodes.cast("sent", value, sent), spec), element);
    }
    OpBuilder &builder = nodes.getBuilder();
    switch (compression.getKind()) {
    case dist::Compressor::FP16:
    case dist::Compressor::FP16EF:
      return exchangeCast(value, builder.getF16Type(), compression.getKind() == dist::Compressor::FP16EF);
    case dist::Compressor::BF16:
    case dist::Compressor::BF16EF:
      return exchangeCast(value, builder.getBF16Type(), compression.getKind() == dist::Compressor::BF16EF);
    default:
      llvm_unreachable("of each replica by itself");
    }
  }

  /// What the cast loses is added to the next step's value where there is `feedback`.
  FailureOr<Value> exchangeCast(Value value, Type narrow, bool feedback) {
    Type wide = getElementTypeOrSelf(value.getType());
    Value error;
    if (feedback) {
      auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
      if (!type || !type.hasStaticShape())
        return op->emitOpError()
               << "compresses a gradient of unknown shape with error feedback; use a compressor without";
      error = worker.addVariable("error", DenseElementsAttr::get(type, nodes.getBuilder().getZeroAttr(wide)));
      value = nodes.binary("AddV2", "corrected", value, worker.read("error/Read", error));
    }
    Value sent = nodes.cast("compressed", value, narrow);
    if (feedback) {
      Value lost = nodes.binary("Sub", "lost", value, nodes.cast("restored", sent, wide));
      worker.stepNodes.push_back(worker.assign("error/Update", error, lost));
    }
    return nodes.cast("decompressed", worker.collective("Reduce", sent, spec), wide);
  }

  WorkerGraph &worker;
  StockNodes &nodes;
  Operation *op;
  dist::Spec spec;
  dist::CompressionAttr compression;
};

/// The local replicas' values of member `index`.
SmallVector<Value> getMember(const Issue &issue, unsigned index) {
  SmallVector<Value> values;
  for (Operation *op : issue)
    values.push_back(op->getOperand(index));
  return values;
}

/// By the aggregator's rule.
LogicalResult aggregateReduction(WorkerGraph &worker, const Issue &issue, dist::AllReduceOp reduce) {
  StockNodes &nodes = worker.nodes;
  SmallVector<Value> rows;
  for (Operation *op : issue) {
    SmallVector<Value> values(op->getOperands());
    if (!llvm::all_of(values, StockNodes::hasStaticShape))
      return op->emitOpError() << "has an aggregator for a gradient of unknown shape; use mean or sum";
    rows.push_back(nodes.flatten(values));
  }
  FailureOr<SmallVector<Value>> values = aggregateBucket(worker, reduce, rows);
  if (failed(values))
    return failure();
  reduce->replaceAllUsesWith(*values);
  return success();
}

/// Whether each replica's own gradients are compressed, not the task's sum.
bool compressesReplicas(Operation *op, dist::CompressionAttr compression) {
  if (!compression || !getElementTypeOrSelf(op->getOperand(0).getType()).isF32())
    return false;
  return compression.getKind() == dist::Compressor::PowerSGD || compression.getKind() == dist::Compressor::TopK;
}

SmallVector<Value> divide(StockNodes &nodes, ArrayRef<Value> values, int64_t divisor) {
  return llvm::map_to_vector(
      values, [&](Value value) { return nodes.multiply("mean", value, 1.0 / static_cast<double>(divisor)); });
}

} // namespace

FailureOr<SmallVector<Value>> reduceBucket(WorkerGraph &worker, const Issue &issue, dist::Reduction reduction,
                                           dist::Spec spec, dist::CompressionAttr compression) {
  StockNodes &nodes = worker.nodes;
  Operation *op = issue.front();
  bool mean = reduction == dist::Reduction::Mean;
  if (mean && !llvm::isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType())))
    return op->emitOpError() << "cannot take the mean of integers";
  SmallVector<Value> values;
  if (compressesReplicas(op, compression)) {
    if (!llvm::all_of(op->getOperands(), StockNodes::hasStaticShape))
      return op->emitOpError() << "compresses a gradient of unknown shape by "
                               << dist::stringifyCompressor(compression.getKind()) << "; use none, fp16 or bf16";
    if (compression.getKind() == dist::Compressor::PowerSGD)
      return reduceLowRank(worker, issue, reduction, spec, compression);
    values = sumLargest(worker, issue, spec, compression);
    return mean ? divide(nodes, values, worker.replicas) : values;
  }
  for (unsigned index = 0; index < op->getNumOperands(); ++index)
    values.push_back(issue.size() > 1 ? nodes.addN("sum", getMember(issue, index)) : op->getOperand(index));
  if (worker.workers.size() > 1) {
    FailureOr<SmallVector<Value>> reduced = Reducer(worker, op, spec, compression).run(values);
    if (failed(reduced))
      return failure();
    values = std::move(*reduced);
  }
  return mean ? divide(nodes, values, worker.replicas) : values;
}

LogicalResult legalizeReduction(WorkerGraph &worker, const Issue &issue) {
  auto reduce = llvm::cast<dist::AllReduceOp>(issue.front());
  if (reduce.getAggregatorAttr())
    return aggregateReduction(worker, issue, reduce);
  FailureOr<SmallVector<Value>> values =
      reduceBucket(worker, issue, reduce.getReduction(), reduce.getSpec(), reduce.getCompressionAttr());
  if (failed(values))
    return failure();
  reduce->replaceAllUsesWith(*values);
  return success();
}

/// The values of all workers, of which each has as many rows.
static Value gatherOverWorkers(WorkerGraph &worker, Value rows, dist::Spec spec) {
  StockNodes &nodes = worker.nodes;
  Type element = getElementTypeOrSelf(rows.getType()), sent = getTravellingType(element, nodes.getBuilder());
  if (sent != element)
    rows = nodes.cast("sent", rows, sent);
  rows = worker.collective("Gather", rows, spec);
  return sent != element ? nodes.cast("received", rows, element) : rows;
}

LogicalResult legalizeGather(WorkerGraph &worker, const Issue &issue) {
  StockNodes &nodes = worker.nodes;
  auto gather = llvm::cast<dist::AllGatherSlicesOp>(issue.front());
  Value indices = nodes.concat("indices", getMember(issue, 0)), values = nodes.concat("values", getMember(issue, 1));
  if (worker.workers.size() > 1) {
    // Every task has as many rows: the replicas' shares of the batch are equal.
    indices = gatherOverWorkers(worker, indices, gather.getSpec());
    values = gatherOverWorkers(worker, values, gather.getSpec());
  }
  if (gather.getReduction() == dist::Reduction::Mean)
    values = nodes.multiply("mean", values, 1.0 / worker.replicas);
  gather.getAllIndices().replaceAllUsesWith(indices);
  gather.getAllValues().replaceAllUsesWith(values);
  return success();
}

LogicalResult legalizeGatherRows(WorkerGraph &worker, const Issue &issue) {
  StockNodes &nodes = worker.nodes;
  auto gather = llvm::cast<dist::AllGatherOp>(issue.front());
  SmallVector<Value> members = getMember(issue, 0);
  Value rows = members.size() > 1 ? nodes.concat("rows", members) : members.front();
  // Every task has as many rows: the replicas' shares of the batch are equal.
  if (worker.workers.size() > 1)
    rows = gatherOverWorkers(worker, rows, gather.getSpec());
  gather.getAllRows().replaceAllUsesWith(rows);
  return success();
}

LogicalResult legalizeTakeRows(WorkerGraph &worker, const Issue &issue) {
  StockNodes &nodes = worker.nodes;
  for (Operation *op : issue) {
    auto take = llvm::cast<dist::TakeRowsOp>(op);
    int64_t replica = worker.task.getFirstReplica();
    if (issue.size() > 1)
      replica += WorkerGraph::getLocalReplica(dfg::getNodeName(op));
    nodes.setPlace(op, dfg::getNodeName(op));
    SmallVector<Type> types(worker.replicas, take.getRows().getType());
    Operation *split = nodes.make(
        "Split", "split", {nodes.constant("axis", 0), take.getAllRows()}, types,
        {nodes.attribute("num_split", worker.replicas), nodes.attribute("T", getElementTypeOrSelf(types.front()))});
    take.getRows().replaceAllUsesWith(split->getResult(replica));
  }
  return success();
}

LogicalResult legalizeWholeSize(WorkerGraph &worker, const Issue &issue) {
  StockNodes &nodes = worker.nodes;
  for (Operation *op : issue) {
    nodes.setPlace(op, dfg::getNodeName(op));
    Value factors = nodes.constant("replicas", getWholeFactors(op, worker.replicas));
    op->getResult(0).replaceAllUsesWith(nodes.binary("Mul", "whole", op->getOperand(0), factors));
  }
  return success();
}

} // namespace distc
