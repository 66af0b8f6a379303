//===- LegalizeServers.cpp - Parameter servers for TensorFlow ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The scheme of TensorFlow's SyncReplicasOptimizer (Chen et al., Revisiting
// Distributed Synchronous SGD, 2016): replicas push gradients to accumulators on
// the servers, with the step that their values are of; the chief takes what is
// reduced, runs the updates on the servers, and puts a token a worker into a queue
// with the number of the next step; a worker ends its step with a token. Gradients
// of steps that are over are dropped by the accumulators.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"

using namespace mlir;

namespace distc {
namespace {

constexpr int32_t kQueueCapacity = -1; // none

class Servers {
public:
  explicit Servers(WorkerGraph &worker) : worker(worker), nodes(worker.nodes), builder(nodes.getBuilder()) {}

  Type handleType(Type elementType) { return RankedTensorType::get({}, elementType); }

  /// An operation with a handle, beside it.
  Operation *onServer(dist::PlaceAttr place, Operation *op) {
    worker.place(op, place);
    return op;
  }

  Value getAccumulator(llvm::StringRef name, dist::PlaceAttr place, dist::Reduction reduction, Type gradient,
                       dfg::TensorShapeAttr sparseShape) {
    Value &handle = worker.servers.accumulators[name];
    if (handle)
      return handle;
    dfg::TensorShapeAttr shape = sparseShape;
    if (!shape) {
      auto type = llvm::dyn_cast<RankedTensorType>(gradient);
      bool known = type && type.hasStaticShape();
      shape = dfg::TensorShapeAttr::get(builder.getContext(), !known, known ? type.getShape() : ArrayRef<int64_t>());
    }
    // A sparse accumulator's mean would count, for each row, the gradients that have it.
    bool mean = reduction == dist::Reduction::Mean && !sparseShape;
    Operation *op =
        nodes.make(sparseShape ? "SparseConditionalAccumulator" : "ConditionalAccumulator", "accumulator", {},
                   handleType(dfg::StringType::get(builder.getContext())),
                   {nodes.attribute("dtype", getElementTypeOrSelf(gradient)), nodes.attribute("shape", shape),
                    nodes.attribute("shared_name", name), nodes.attribute("reduction_type", mean ? "MEAN" : "SUM")});
    return handle = onServer(place, op)->getResult(0);
  }

  Value getQueue(llvm::StringRef name, llvm::StringRef sharedName, dist::PlaceAttr place, ArrayRef<Type> components) {
    Value &handle = worker.servers.accumulators[sharedName];
    if (handle)
      return handle;
    SmallVector<Type> elementTypes;
    SmallVector<Attribute> shapes;
    for (Type type : components)
      elementTypes.push_back(getElementTypeOrSelf(type));
    // Elements of a queue without shapes are of any, each of its own.
    auto isStatic = [](Type type) {
      auto ranked = llvm::dyn_cast<RankedTensorType>(type);
      return ranked && ranked.hasStaticShape();
    };
    if (llvm::all_of(components, isStatic))
      for (Type type : components)
        shapes.push_back(
            dfg::TensorShapeAttr::get(builder.getContext(), false, llvm::cast<RankedTensorType>(type).getShape()));
    Operation *op = nodes.make("FIFOQueueV2", name, {}, handleType(dfg::ResourceType::get(builder.getContext())),
                               {nodes.types("component_types", elementTypes),
                                nodes.attribute("shapes", builder.getArrayAttr(shapes)),
                                nodes.attribute("capacity", static_cast<int64_t>(kQueueCapacity)),
                                nodes.attribute("shared_name", sharedName)});
    return handle = onServer(place, op)->getResult(0);
  }

  /// The step that this worker's values are of, as it is allowed to be late.
  Value getLocalStep(int64_t staleness) {
    auto number = RankedTensorType::get({}, builder.getI64Type());
    Value step = worker.read("local_step", getStep());
    if (staleness == 0)
      return step;
    Value late = nodes.constant("staleness", DenseElementsAttr::get(number, staleness));
    return nodes.binary("AddV2", "allowed_step", step, late);
  }

  /// Each worker's own.
  Value getStep() {
    if (!worker.servers.step) {
      std::string scope = nodes.setScope("synchronization");
      worker.servers.step = worker.addVariable(
          "step", DenseElementsAttr::get(RankedTensorType::get({}, builder.getI64Type()), int64_t(0)));
      nodes.setScope(scope);
    }
    return worker.servers.step;
  }

  /// A replica's rows, of any number: its own queue has them.
  Value getRowsQueue(llvm::StringRef accumulator, int64_t replica, dist::PlaceAttr place, Type elementType) {
    return getQueue("rows", (accumulator + "/rows_" + llvm::Twine(replica)).str(), place,
                    {UnrankedTensorType::get(builder.getI64Type()), UnrankedTensorType::get(elementType)});
  }

  /// `replica`: of all tasks'.
  FailureOr<Operation *> push(dist::PushOp op, int64_t replica) {
    llvm::StringRef name = op.getAccumulator();
    Value gradient = op.getGradient().back();
    Type elementType = getElementTypeOrSelf(gradient.getType());
    if (worker.servers.aggregated.contains(name)) {
      auto type = llvm::dyn_cast<RankedTensorType>(gradient.getType());
      if (op.getGradient().size() == 2 || !type || !type.hasStaticShape())
        return op.emitOpError()
               << "is of a sparse gradient or of unknown shape, which aggregators have no rule for; use "
                  "mean or sum for variable '"
               << op.getVariable() << "'";
      Value queue = getQueue("gradients", name, op.getPlace(), gradient.getType());
      return onServer(op.getPlace(), nodes.make("QueueEnqueueV2", "apply", {queue, gradient}, {},
                                                nodes.types("Tcomponents", elementType)));
    }
    if (op.getApart()) {
      Value queue = getRowsQueue(name, replica, op.getPlace(), elementType);
      Value indices = toInt64("indices", op.getGradient().front());
      return onServer(op.getPlace(), nodes.make("QueueEnqueueV2", "apply", {queue, indices, gradient}, {},
                                                nodes.types("Tcomponents", {builder.getI64Type(), elementType})));
    }
    if (isAddedAsDouble(op.getReduction(), op.getGradient())) {
      gradient = nodes.cast("number", gradient, builder.getF64Type());
      elementType = builder.getF64Type();
    }
    if (!elementType.isF16() && !elementType.isF32() && !elementType.isF64())
      return op.emitOpError() << "is of " << elementType << ", which TensorFlow's accumulators do not have; use a "
                              << "strategy that all-reduces variable '" << op.getVariable() << "'";
    Value step = getLocalStep(op.getStaleness());
    if (op.getGradient().size() == 1) {
      Value handle = getAccumulator(name, op.getPlace(), op.getReduction(), gradient.getType(), {});
      return onServer(op.getPlace(), nodes.make("AccumulatorApplyGradient", "apply", {handle, step, gradient}, {},
                                                nodes.attribute("dtype", elementType)));
    }
    dfg::TensorShapeAttr shape = getRowsShape(gradient);
    Value handle = getAccumulator(name, op.getPlace(), op.getReduction(), gradient.getType(), shape);
    Value indices = toInt64("indices", op.getGradient().front());
    Value whole = nodes.constant(
        "shape", DenseElementsAttr::get(RankedTensorType::get({0}, builder.getI64Type()), ArrayRef<int64_t>()));
    return onServer(op.getPlace(),
                    nodes.make("SparseAccumulatorApplyGradient", "apply", {handle, step, indices, gradient, whole}, {},
                               {nodes.attribute("dtype", elementType),
                                nodes.attribute("has_known_shape", builder.getBoolAttr(false))}));
  }

  /// Accumulators have no integers. Doubles hold sums of small ones (how many rows there are, say) as they are.
  static bool isAddedAsDouble(dist::Reduction reduction, ValueRange gradient) {
    auto type = llvm::dyn_cast<IntegerType>(getElementTypeOrSelf(gradient.back().getType()));
    return type && type.getWidth() > 1 && type.getWidth() <= 32 && gradient.size() == 1 &&
           reduction == dist::Reduction::Sum;
  }

  LogicalResult take(dist::TakeOp op) {
    llvm::StringRef name = op.getAccumulator();
    auto required = static_cast<int32_t>(op.getRequired());
    SmallVector<Value> results(op.getGradient());
    Type elementType = getElementTypeOrSelf(results.back().getType());
    if (dist::AggregatorAttr rule = op.getAggregatorAttr())
      return takeAggregated(op, rule, required);
    Value count = nodes.constant("required", required);
    if (results.size() == 1) {
      auto type = llvm::cast<TensorType>(results.back().getType());
      const bool asDouble = isAddedAsDouble(op.getReduction(), op.getGradient());
      if (asDouble)
        type = type.clone(builder.getF64Type());
      Value handle = getAccumulator(name, op.getPlace(), op.getReduction(), type, {});
      Operation *taken = onServer(op.getPlace(), nodes.make("AccumulatorTakeGradient", "gradient", {handle, count},
                                                            type, nodes.attribute("dtype", type.getElementType())));
      noteTake(op, taken);
      Value sum = taken->getResult(0);
      if (asDouble)
        sum = onServer(op.getPlace(), nodes.cast("number", sum, elementType).getDefiningOp())->getResult(0);
      results.back().replaceAllUsesWith(sum);
      return success();
    }
    auto number = RankedTensorType::get({ShapedType::kDynamic}, builder.getI64Type());
    Value indices, values;
    if (op.getApart()) {
      std::tie(indices, values) = takeApart(op, number);
    } else {
      dfg::TensorShapeAttr shape = getRowsShape(results.back());
      Value handle = getAccumulator(name, op.getPlace(), op.getReduction(), results.back().getType(), shape);
      Operation *taken = onServer(op.getPlace(), nodes.make("SparseAccumulatorTakeGradient", "gradient",
                                                            {handle, count}, {number, results.back().getType(), number},
                                                            nodes.attribute("dtype", elementType)));
      noteTake(op, taken);
      indices = taken->getResult(0);
      values = taken->getResult(1);
    }
    if (Type wanted = getElementTypeOrSelf(results.front().getType()); !wanted.isInteger(64))
      indices = onServer(op.getPlace(), nodes.cast("indices", indices, wanted).getDefiningOp())->getResult(0);
    if (op.getReduction() == dist::Reduction::Mean)
      values = onServer(op.getPlace(), nodes.multiply("mean", values, 1.0 / required).getDefiningOp())->getResult(0);
    results.front().replaceAllUsesWith(indices);
    results.back().replaceAllUsesWith(values);
    return success();
  }

  /// The rows of all replicas in their order.
  std::pair<Value, Value> takeApart(dist::TakeOp op, Type number) {
    Type rows = op.getGradient().back().getType();
    Type elementType = getElementTypeOrSelf(rows);
    SmallVector<Value> indices, values;
    for (int64_t replica = 0; replica < worker.replicas; ++replica) {
      Value queue = getRowsQueue(op.getAccumulator(), replica, op.getPlace(), elementType);
      Operation *taken =
          onServer(op.getPlace(), nodes.make("QueueDequeueV2", "rows/dequeue", queue, {number, rows},
                                             nodes.types("component_types", {builder.getI64Type(), elementType})));
      noteTake(op, taken);
      indices.push_back(taken->getResult(0));
      values.push_back(taken->getResult(1));
    }
    auto join = [&](llvm::StringRef name, ArrayRef<Value> parts) {
      return onServer(op.getPlace(), nodes.concat(name, parts).getDefiningOp())->getResult(0);
    };
    return {join("rows/indices", indices), join("rows/values", values)};
  }

  LogicalResult takeAggregated(dist::TakeOp op, dist::AggregatorAttr rule, int32_t required) {
    Value result = op.getGradient().back();
    auto type = llvm::cast<RankedTensorType>(result.getType());
    Value queue = getQueue("gradients", op.getAccumulator(), op.getPlace(), type);
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin(), required);
    Operation *taken = onServer(op.getPlace(), nodes.make("QueueDequeueManyV2", "stacked",
                                                          {queue, nodes.constant("required", required)},
                                                          RankedTensorType::get(shape, type.getElementType()),
                                                          nodes.types("component_types", type.getElementType())));
    noteTake(op, taken);
    FailureOr<Value> value = aggregate(worker, op, rule, taken->getResult(0), required, type);
    if (failed(value))
      return failure();
    if (op.getReduction() == dist::Reduction::Sum)
      value = nodes.multiply("sum", *value, required);
    result.replaceAllUsesWith(*value);
    return success();
  }

  /// The end of a step: what waits for the token.
  Operation *tokens(dist::TokensOp op) {
    Type number = RankedTensorType::get({}, builder.getI64Type());
    auto tasks = static_cast<int64_t>(worker.workers.size());
    // Without servers the chief has the variables, and the queue.
    dist::PlaceAttr place = op.getPlace();
    if (!worker.hasTask(place))
      place = dist::PlaceAttr::get(builder.getContext(), worker.workers.front().getJob(),
                                   worker.workers.front().getIndex());
    Value queue = getQueue("queue", dfg::getNodeName(op), place, number);
    NamedAttribute components = nodes.types("component_types", builder.getI64Type());
    NamedAttribute sent = nodes.types("Tcomponents", builder.getI64Type());
    auto before = op->getAttrOfType<ArrayAttr>(dfg::kControlAttr);
    Operation *ready = nodes.group("ready", {});
    if (before)
      ready->setAttr(dfg::kControlAttr, before);
    if (worker.servers.guard)
      StockNodes::addControl(ready, worker.servers.guard);
    if (worker.servers.waitsForReads && !worker.servers.isLoose)
      StockNodes::addControl(ready, signalReads(place, tasks));
    Operation *enqueued = nullptr;
    if (worker.isChief()) {
      StockNodes::addControl(ready, worker.servers.updates);
      Value counter =
          worker.addVariable("updates", DenseElementsAttr::get(llvm::cast<RankedTensorType>(number), int64_t(0)));
      Value one = nodes.constant("one", DenseElementsAttr::get(llvm::cast<RankedTensorType>(number), int64_t(1)));
      Operation *count = nodes.make("AssignAddVariableOp", "updates/count", {counter, one}, {},
                                    nodes.attribute("dtype", builder.getI64Type()));
      StockNodes::addControl(count, ready);
      Value next = worker.read("updates/next", counter);
      StockNodes::addControl(next.getDefiningOp(), count);
      enqueued = onServer(
          op.getPlace(), nodes.make("QueueEnqueueManyV2", "enqueue", {queue, repeat("tokens", next, tasks)}, {}, sent));
      if (op.getStaleness() > 0) {
        Value zero = nodes.constant("zero", DenseElementsAttr::get(llvm::cast<RankedTensorType>(number), int64_t(0)));
        Value first = repeat("first_tokens", zero, tasks * op.getStaleness());
        worker.initNodes.push_back(
            onServer(place, nodes.make("QueueEnqueueManyV2", "enqueue_first", {queue, first}, {}, sent)));
      }
    }
    Operation *token = onServer(place, nodes.make("QueueDequeueV2", "dequeue", queue, number, components));
    StockNodes::addControl(token, enqueued ? enqueued : ready);
    return worker.assign("step/next", getStep(), token->getResult(0));
  }

private:
  void noteTake(dist::TakeOp op, Operation *taken) {
    worker.servers.takes.push_back(taken);
    if (worker.servers.lateTakes.contains(dfg::getNodeName(op)))
      worker.servers.late.insert(taken);
  }

  void waitForReads(Operation *waits, ArrayRef<std::string> names) {
    for (llvm::StringRef name : names) {
      if (auto alias = worker.aliases.find(name); alias != worker.aliases.end())
        StockNodes::addControl(waits, alias->second);
      else if (Operation *read = nodes.find(name))
        StockNodes::addControl(waits, read);
    }
  }

  /// A node that runs once what it waits for has run or is dead. What its Switch chooses by nothing may fold: of a
  /// constant TensorFlow would make an Identity of the Merge.
  Operation *meetDead(llvm::StringRef name) {
    auto flag = RankedTensorType::get({}, builder.getI1Type());
    Value step = worker.read((name + "/step").str(), getStep());
    Value zero = nodes.constant((name + "/zero").str(),
                                DenseElementsAttr::get(llvm::cast<RankedTensorType>(step.getType()), int64_t(0)));
    NamedAttribute type = nodes.attribute("T", builder.getI1Type());
    Value begins =
        nodes.get("Equal", (name + "/begins").str(), {step, zero}, flag, nodes.attribute("T", builder.getI64Type()));
    Operation *choice = nodes.make("Switch", (name + "/switch").str(), {begins, begins}, {flag, flag}, type);
    return nodes.make("Merge", (name + "/merge").str(), choice->getResults(),
                      {flag, RankedTensorType::get({}, builder.getI32Type())},
                      {type, nodes.attribute("N", int64_t(2))});
  }

  /// An element in a queue says that this worker has read; the chief takes one of each before it updates. (A worker
  /// comes to its next step by a token, which follows from the updates: no element is of another step.)
  Operation *signalReads(dist::PlaceAttr place, int64_t tasks) {
    auto flag = RankedTensorType::get({}, builder.getI1Type());
    Value queue = getQueue("reads", "synchronization/reads", place, flag);
    NamedAttribute sent = nodes.types("Tcomponents", builder.getI1Type());
    Value yes = nodes.constant("read", DenseElementsAttr::get(flag, true));
    Operation *merge = nullptr;
    if (!worker.servers.readsThatMayBeDead.empty()) {
      merge = meetDead("reads/done");
      waitForReads(merge, worker.servers.readsThatMayBeDead);
    }
    Operation *signal = onServer(place, nodes.make("QueueEnqueueV2", "reads/enqueue", {queue, yes}, {}, sent));
    waitForReads(signal, worker.servers.reads);
    if (merge)
      StockNodes::addControl(signal, merge);
    if (worker.servers.guard)
      StockNodes::addControl(signal, worker.servers.guard);
    if (worker.isChief())
      worker.servers.takes.push_back(
          onServer(place, nodes.make("QueueDequeueManyV2", "reads/dequeue",
                                     {queue, nodes.constant("reads/count", static_cast<int32_t>(tasks))},
                                     RankedTensorType::get({tasks}, builder.getI1Type()),
                                     nodes.types("component_types", builder.getI1Type()))));
    return signal;
  }

  Value repeat(llvm::StringRef name, Value scalar, int64_t count) {
    Value shape = nodes.constant((name + "/count").str(), ArrayRef<int32_t>{static_cast<int32_t>(count)});
    return nodes.get("Fill", name, {shape, scalar}, RankedTensorType::get({count}, builder.getI64Type()),
                     {nodes.attribute("T", builder.getI64Type()), nodes.attribute("index_type", builder.getI32Type())});
  }

  Value toInt64(llvm::StringRef name, Value value) {
    return getElementTypeOrSelf(value.getType()).isInteger(64) ? value : nodes.cast(name, value, builder.getI64Type());
  }

  /// Rows of any number: a shard may be given those of all, and take its own.
  dfg::TensorShapeAttr getRowsShape(Value values) {
    auto type = llvm::dyn_cast<RankedTensorType>(values.getType());
    SmallVector<int64_t> sizes;
    if (type)
      for (int64_t size : type.getShape())
        sizes.push_back(ShapedType::isDynamic(size) || sizes.empty() ? -1 : size);
    return dfg::TensorShapeAttr::get(builder.getContext(), !type, sizes);
  }

  WorkerGraph &worker;
  StockNodes &nodes;
  OpBuilder &builder;
};

/// What the task's replicas push where nothing waits: the mean (or sum) of theirs is an update of its own. What is the
/// same in all is sent once.
SmallVector<Value> joinLocal(WorkerGraph &worker, const Issue &issue) {
  StockNodes &nodes = worker.nodes;
  auto first = llvm::cast<dist::PushOp>(issue.front());
  SmallVector<Value> joined;
  bool sparse = first.getGradient().size() == 2;
  for (unsigned index = 0; index < first.getNumOperands(); ++index) {
    SmallVector<Value> values;
    for (Operation *op : issue)
      values.push_back(op->getOperand(index));
    joined.push_back(sparse ? nodes.concat("rows", values) : nodes.addN("sum", values));
  }
  if (first.getReduction() == dist::Reduction::Mean)
    joined.back() = nodes.multiply("mean", joined.back(), 1.0 / issue.size());
  return joined;
}

} // namespace

LogicalResult legalizePush(WorkerGraph &worker, const Issue &issue) {
  auto first = llvm::cast<dist::PushOp>(issue.front());
  // The chief runs what servers run: what it alone sends is there, and so is what nothing waits for.
  if (first->hasAttr(dist::kPlaceAttr) || first.getAsync()) {
    bool joins = first.getAsync() && llvm::any_of(issue, [&](Operation *op) {
                   return !llvm::equal(op->getOperands(), first->getOperands());
                 });
    worker.servers.sent[first.getAccumulator()] =
        joins ? joinLocal(worker, issue) : SmallVector<Value>(first.getGradient());
    return success();
  }
  worker.servers.isLoose |= static_cast<int64_t>(first.getRequired()) % worker.replicas != 0;
  for (auto [local, op] : llvm::enumerate(issue)) {
    FailureOr<Operation *> applied =
        Servers(worker).push(llvm::cast<dist::PushOp>(op), worker.task.getFirstReplica() + local);
    if (failed(applied))
      return failure();
    worker.aliases[dfg::getNodeName(op)].push_back(*applied);
  }
  return success();
}

LogicalResult legalizeTake(WorkerGraph &worker, const Issue &issue) {
  auto take = llvm::cast<dist::TakeOp>(issue.front());
  auto sent = worker.servers.sent.find(take.getAccumulator());
  if (sent == worker.servers.sent.end())
    return Servers(worker).take(take);
  for (auto [result, value] : llvm::zip(take.getGradient(), sent->second))
    result.replaceAllUsesWith(value);
  return success();
}

LogicalResult legalizeTokens(WorkerGraph &worker, const Issue &issue) {
  auto tokens = llvm::cast<dist::TokensOp>(issue.front());
  worker.servers.isLoose |= tokens.getStaleness() > 0;
  worker.servers.end = Servers(worker).tokens(tokens);
  worker.aliases[dfg::getNodeName(tokens)].push_back(worker.servers.end);
  return success();
}

} // namespace distc
