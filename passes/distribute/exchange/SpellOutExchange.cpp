//===- SpellOutExchange.cpp - Compressors and aggregators on devices --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// As runtime/cpu/exchange.cpp does it, up to the order of a product's sums.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/VariableKinds.h"
#include "dialects/dfg/tensorflow/RaiseNodes.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/Passes.h"
#include "passes/distribute/exchange/Exchange.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_DISTSPELLOUTEXCHANGE
#include "passes/distribute/Passes.h.inc"

namespace {

/// The program that stands for all replicas, in the dialects' own operations.
class ReplicaExchange final : public Exchange {
public:
  ReplicaExchange(Block &block, int64_t replicas, SymbolTable &symbols) : Exchange(block, replicas), symbols(symbols) {}

  bool hasPeers() const override { return replicas > 1; }

  /// Whose gradients collectives are made for from here on.
  void setVariables(ArrayAttr names) { variables = llvm::join(names.getAsValueRange<StringAttr>(), ", "); }

  Value collective(llvm::StringRef kind, Value value, dist::Spec spec) override {
    OpBuilder &builder = nodes.getBuilder();
    Location loc = NameLoc::get(builder.getStringAttr(nodes.getUniqueName("collective")));
    // It is numbered when all collectives are there.
    if (kind == "Reduce")
      return dist::AllReduceOp::create(builder, loc, dist::Reduction::Sum, /*bucket=*/0, /*group=*/-1,
                                       ValueRange(value), builder.getStrArrayAttr(StringRef(variables)), spec,
                                       dist::CompressionAttr(), dist::AggregatorAttr())
          .getReduced()
          .front();
    auto type = llvm::cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[0] *= replicas;
    return dist::AllGatherOp::create(builder, loc, type.clone(shape), /*bucket=*/0, value,
                                     builder.getStringAttr(variables), spec);
  }

  Value addState(llvm::StringRef name, DenseElementsAttr initial) override {
    Value handle = addVariable(name, initial.getType());
    if (!initial.isSplat() || !isZero(initial))
      firstValues[handle] = initial;
    return handle;
  }

  /// Memory begins as zeros: another first value is that of the first step.
  Value readState(llvm::StringRef name, Value handle) override {
    Value value = readVariable(name, handle);
    DenseElementsAttr first = firstValues.lookup(handle);
    if (!first)
      return value;
    auto flag = RankedTensorType::get({}, nodes.getBuilder().getI32Type());
    if (!begun) {
      begun = addVariable("begun", flag);
      Value one = nodes.constant("begun/one", DenseElementsAttr::get(flag, int32_t(1)));
      Value zero = nodes.constant("begun/zero", DenseElementsAttr::get(flag, int32_t(0)));
      isFirst = nodes.get("Equal", "is_first", {readVariable("begun/Read", begun), zero},
                          flag.clone(nodes.getBuilder().getI1Type()), nodes.attribute("T", flag.getElementType()));
      nodes.assign("begun/Update", begun, one);
    }
    return nodes.get("SelectV2", (name + "/begun").str(), {isFirst, nodes.constant("first", first), value},
                     value.getType(), nodes.attribute("T", getElementTypeOrSelf(value.getType())));
  }

  void keepState(llvm::StringRef name, Value handle, Value value) override { nodes.assign(name, handle, value); }

private:
  static bool isZero(DenseElementsAttr splat) {
    if (llvm::isa<FloatType>(splat.getElementType()))
      return splat.getSplatValue<APFloat>().isZero();
    return splat.getSplatValue<APInt>().isZero();
  }

  Value addVariable(llvm::StringRef name, ShapedType type) {
    OpBuilder &builder = nodes.getBuilder();
    std::string handleName = nodes.getUniqueName(name);
    OpBuilder outside(builder.getContext());
    auto variable = dfg::VariableOp::create(outside, builder.getUnknownLoc(), handleName, llvm::cast<Type>(type),
                                            dfg::kLocalKind, /*trainable=*/false);
    symbols.insert(variable);
    auto reference = dfg::RefType::get(builder.getContext(), type);
    return nodes.handle(name, FlatSymbolRefAttr::get(variable.getSymNameAttr()), reference);
  }

  Value readVariable(llvm::StringRef name, Value handle) {
    auto type = llvm::cast<dfg::RefType>(handle.getType()).getValueType();
    return nodes.read(name, handle, llvm::cast<TensorType>(type));
  }

  SymbolTable &symbols;
  std::string variables;
  llvm::DenseMap<Value, DenseElementsAttr> firstValues;
  Value begun, isFirst;
};

/// One bucket of gradients that are compressed, or aggregated by a rule.
class Bucket {
public:
  Bucket(ReplicaExchange &exchange, dist::AllReduceOp reduce)
      : exchange(exchange), nodes(exchange.nodes), builder(nodes.getBuilder()), reduce(reduce), issue({reduce}),
        compression(reduce.getCompressionAttr()) {}

  FailureOr<SmallVector<Value>> run() {
    dist::Compressor kind = compression ? compression.getKind() : dist::Compressor::None;
    for (Value gradient : reduce.getGradients())
      if (!StockNodes::hasStaticShape(gradient))
        return reduce.emitOpError() << "compresses or aggregates a gradient of unknown shape; use none, mean or sum";
    switch (kind) {
    case dist::Compressor::PowerSGD:
      return reduceLowRank(exchange, issue, reduce.getReduction(), reduce.getSpec(), compression);
    case dist::Compressor::TopK:
      return mean(sumLargest(exchange, issue, reduce.getSpec(), compression));
    case dist::Compressor::FP16:
    case dist::Compressor::FP16EF:
      narrow = builder.getF16Type();
      break;
    case dist::Compressor::BF16:
    case dist::Compressor::BF16EF:
      narrow = builder.getBF16Type();
      break;
    case dist::Compressor::None:
      break;
    }
    Value flat = nodes.flatten(SmallVector<Value>(reduce.getGradients()));
    if (Type element = getElementTypeOrSelf(flat.getType()); element.isF16() || element.isBF16()) {
      // NCCL would round each sum of two.
      narrow = element;
      Value rounded = nodes.cast("rounded", sumHalves(flat), narrow);
      return nodes.unflatten(rounded, SmallVector<Value>(reduce.getGradients()));
    }
    if (narrow)
      flat = encode(flat, kind == dist::Compressor::FP16EF || kind == dist::Compressor::BF16EF);
    if (reduce.getAggregatorAttr())
      return aggregateBucket(exchange, reduce, narrow ? nodes.cast("decompressed", flat, wide()) : flat);
    Value rounded = nodes.cast("decompressed", toHalf("rounded", sumHalves(flat)), wide());
    return nodes.unflatten(rounded, SmallVector<Value>(reduce.getGradients()));
  }

private:
  Type wide() { return builder.getF32Type(); }
  NamedAttribute elements(Type type) { return nodes.attribute("T", type); }
  Value unary(llvm::StringRef op, llvm::StringRef name, Value x) {
    return nodes.get(op, name, x, x.getType(), elements(wide()));
  }
  Value select(llvm::StringRef name, Value condition, Value yes, Value no) {
    return nodes.get("SelectV2", name, {condition, yes, no}, yes.getType(), elements(wide()));
  }
  Value test(llvm::StringRef op, llvm::StringRef name, ValueRange operands) {
    auto type = llvm::cast<RankedTensorType>(operands.front().getType());
    return nodes.get(op, name, operands, type.clone(builder.getI1Type()), elements(wide()));
  }

  SmallVector<Value> mean(SmallVector<Value> sums) {
    if (reduce.getReduction() == dist::Reduction::Mean)
      for (Value &sum : sums)
        sum = nodes.multiply("mean", sum, 1.0 / static_cast<double>(exchange.replicas));
    return sums;
  }

  /// The largest finite number takes the place of larger ones: what it lost can be fed back. Not so bfloat16's
  /// infinity.
  Value toHalf(llvm::StringRef name, Value value) {
    const bool isF16 = narrow.isF16();
    const double largest = APFloat::getLargest(llvm::cast<FloatType>(narrow).getFloatSemantics()).convertToDouble();
    Value most = nodes.scalar("largest", largest, value), least = nodes.scalar("lowest", -largest, value);
    Value clamped = nodes.binary("Minimum", "at_most", nodes.binary("Maximum", "at_least", value, least), most);
    if (!isF16)
      clamped = select("clamped", test("IsInf", "is_infinite", value), value, clamped);
    return nodes.cast(name, clamped, narrow);
  }

  Value encode(Value flat, bool feedback) {
    Value error;
    if (feedback) {
      auto type = llvm::cast<RankedTensorType>(flat.getType());
      error = exchange.addState("error", DenseElementsAttr::get(type, builder.getF32FloatAttr(0)));
      flat = nodes.binary("AddV2", "corrected", flat, exchange.readState("error/Read", error));
    }
    Value sent = toHalf("compressed", flat);
    if (feedback) {
      Value left = nodes.binary("Sub", "left", flat, nodes.cast("restored", sent, wide()));
      // What was not finite is not kept.
      Value isKept =
          test("LessEqual", "is_kept", {unary("Abs", "left/size", left), unary("Abs", "corrected/size", flat)});
      exchange.keepState("error/Update", error, select("lost", isKept, left, nodes.scalar("nothing", 0, left)));
    }
    return sent;
  }

  /// The sum or mean in the order of replicas, in float32.
  Value sumHalves(Value half) {
    const int64_t count = StockNodes::count(half), replicas = exchange.replicas;
    Value sum;
    if (replicas > 1) {
      Value all = exchange.collective("Gather", nodes.reshape("row", half, {1, count}), reduce.getSpec());
      SmallVector<Type> rows(replicas, RankedTensorType::get({1, count}, narrow));
      Operation *split = nodes.make("Split", "rows", {nodes.constant("axis", 0), all}, rows,
                                    {nodes.attribute("num_split", replicas), nodes.attribute("T", narrow)});
      for (Value row : split->getResults()) {
        Value value = nodes.cast("received", row, wide());
        sum = sum ? nodes.binary("AddV2", "sum", sum, value) : value;
      }
      sum = nodes.reshape("sum/flat", sum, {count});
    } else {
      sum = nodes.cast("received", half, wide());
    }
    return mean({sum}).front();
  }

  ReplicaExchange &exchange;
  StockNodes &nodes;
  OpBuilder &builder;
  dist::AllReduceOp reduce;
  Issue issue;
  dist::CompressionAttr compression;
  Type narrow;
};

bool isNarrow(Value value) {
  Type element = getElementTypeOrSelf(value.getType());
  return element.isF16() || element.isBF16();
}

/// Shares of a sum of halves are taken from all of it: NCCL would round each sum of two.
void reduceWhole(dist::ReduceScatterOp scatter) {
  OpBuilder builder(scatter);
  auto reduce = dist::AllReduceOp::create(builder, scatter.getLoc(), scatter.getReduction(), scatter.getBucket(),
                                          scatter.getGroup(), scatter.getGradients(), scatter.getVariables(),
                                          scatter.getSpec(), dist::CompressionAttr(), dist::AggregatorAttr());
  for (auto [share, whole] : llvm::zip(scatter.getShares(), reduce.getReduced())) {
    Value taken = whole;
    if (!scatter.getOwners())
      taken = dist::TakeShareOp::create(builder, scatter.getLoc(), share.getType(), whole);
    share.replaceAllUsesWith(taken);
  }
  scatter.erase();
}

Operation *getFirstReader(Operation *op) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers())
    if (!first || user->isBeforeInBlock(first))
      first = user;
  return first;
}

/// What follows from what travels moves from between `before` and `end` to where it is read: what stands there computes
/// meanwhile.
void sinkReceivers(Block::iterator begin, Block::iterator end, Operation *reader) {
  llvm::DenseSet<Operation *> received;
  for (Operation &op : llvm::make_early_inc_range(llvm::make_range(begin, end))) {
    const bool receives =
        llvm::any_of(op.getOperands(), [&](Value operand) { return received.contains(operand.getDefiningOp()); });
    if (receives)
      op.moveBefore(reader);
    if (receives || dist::isCollective(&op))
      received.insert(&op);
  }
}

struct DistSpellOutExchange : impl::DistSpellOutExchangeBase<DistSpellOutExchange> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    const int64_t replicas = dist::getReplicas(module);
    SymbolTable symbols(module);
    for (auto function : module.getOps<dfg::FuncOp>()) {
      Block &block = function.getBody().front();
      for (auto scatter : llvm::make_early_inc_range(block.getOps<dist::ReduceScatterOp>()))
        if (isNarrow(scatter.getGradients().front()))
          reduceWhole(scatter);
      SmallVector<dist::AllReduceOp> found;
      for (auto reduce : block.getOps<dist::AllReduceOp>()) {
        // Other elements are not compressed.
        Type element = getElementTypeOrSelf(reduce.getGradients().front().getType());
        if (!element.isF32())
          reduce.removeCompressionAttr();
        if (reduce.getAggregatorAttr() || isNarrow(reduce.getGradients().front()) ||
            (reduce.getCompressionAttr() && reduce.getCompressionAttr().getKind() != dist::Compressor::None))
          found.push_back(reduce);
      }
      if (found.empty())
        continue;
      ReplicaExchange exchange(block, replicas, symbols);
      for (dist::AllReduceOp reduce : found)
        if (failed(spellOut(exchange, reduce)))
          return signalPassFailure();
      if (failed(tf::raiseNodes(block)))
        return signalPassFailure();
      int32_t buckets = 0;
      for (Operation &op : block)
        if (dist::isCollective(&op) && op.hasAttr("bucket"))
          op.setAttr("bucket", OpBuilder(&op).getI32IntegerAttr(buckets++));
    }
  }

private:
  LogicalResult spellOut(ReplicaExchange &exchange, dist::AllReduceOp reduce) {
    Block &block = *reduce->getBlock();
    Operation *before = reduce->getPrevNode(), *reader = getFirstReader(reduce);
    exchange.nodes.setPlace(reduce, dfg::getNodeName(reduce));
    exchange.setVariables(reduce.getVariables());
    FailureOr<SmallVector<Value>> results = Bucket(exchange, reduce).run();
    if (failed(results))
      return failure();
    if (reader)
      sinkReceivers(before ? std::next(before->getIterator()) : block.begin(), reduce->getIterator(), reader);
    reduce->replaceAllUsesWith(*results);
    reduce.erase();
    return success();
  }
};

} // namespace
} // namespace distc
