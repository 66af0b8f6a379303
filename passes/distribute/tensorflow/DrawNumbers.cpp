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
// Conditions and loops that stay are computed by every worker on all rows of the
// batch: all must draw the same there, too. So nodes in their functions have seeds,
// and iterations that draw run one after the other: side by side (parallel_iterations)
// they take from a node's generator in any order.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/tensorflow/WorkerGraph.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace distc {

using dfg::getKind;

namespace {

constexpr llvm::StringLiteral kSeeds[] = {"seed", "seed2"};

/// Attributes of `op` in TensorFlow.
DictionaryAttr getAttributes(Operation *op) {
  return llvm::isa<dfg::OpaqueOp>(op) ? dfg::getSourceAttributes(op) : op->getAttrDictionary();
}

void setNumber(Operation *op, llvm::StringRef name, int64_t value) {
  Attribute number = Builder(op->getContext()).getI64IntegerAttr(value);
  if (!llvm::isa<dfg::OpaqueOp>(op))
    return op->setAttr(name, number);
  dfg::setSourceAttribute(op, name, number);
}

/// Whether it takes numbers from a generator of its own.
bool hasGenerator(Operation *op) {
  if (isMemoryEffectFree(op)) // stateless: its seed is an operand
    return false;
  return op->hasTrait<dfg::DrawsNumbers>() || llvm::all_of(kSeeds, [&](llvm::StringRef name) {
           return getAttributes(op).getAs<IntegerAttr>(name) != nullptr;
         });
}

/// Whether it draws the same whenever the program begins.
bool isRepeatable(Operation *op) {
  return !hasGenerator(op) || llvm::any_of(kSeeds, [&](llvm::StringRef name) {
    auto seed = getAttributes(op).getAs<IntegerAttr>(name);
    return seed && seed.getInt() != 0;
  });
}

void setSeed(Operation *op, llvm::StringRef name) {
  setNumber(op, kSeeds[0], llvm::xxh3_64bits(name) & 0x7fffffff);
  setNumber(op, kSeeds[1], 1);
}

/// Conditions and loops of a worker's graph.
class Structures {
public:
  explicit Structures(WorkerGraph &worker) : block(worker.block), symbols(worker.graph->getParentOp()) {}

  void drawAlike() {
    for (Operation &op : block) {
      if (getKind(&op) == "Enter")
        frames[getAttributes(&op).getAs<StringAttr>("frame_name")].push_back(&op);
      for (StringRef control : dfg::getControlInputs(&op))
        waiting[control].push_back(&op);
      drawsIn(&op);
    }
    for (auto &[name, enters] : frames)
      if (drawsIn(enters))
        llvm::for_each(enters, inTurn);
  }

private:
  static void inTurn(Operation *op) { setNumber(op, "parallel_iterations", 1); }

  static bool isStructure(Operation *op) {
    llvm::StringRef kind = getKind(op);
    kind.consume_front("Stateless");
    return llvm::isa<dfg::CallOp>(op) || kind == "While" || kind == "If" || kind == "Case";
  }

  /// Whether a function that `op` runs draws.
  bool drawsIn(Operation *op) {
    if (!isStructure(op))
      return false;
    if (auto call = llvm::dyn_cast<dfg::CallOp>(op))
      return drawsIn(call.getCalleeAttr());
    bool draws = false;
    getAttributes(op).walk([&](dfg::FuncAttr function) { draws |= drawsIn(function.getFunction()); });
    if (draws && getKind(op).ends_with("While"))
      inTurn(op);
    return draws;
  }

  bool drawsIn(FlatSymbolRefAttr name) {
    auto [entry, isNew] = known.try_emplace(name, false);
    if (!isNew)
      return entry->second; // a function that runs itself included
    auto function = symbols.lookup<dfg::FuncOp>(name.getValue());
    if (!function || function.isExternal())
      return false;
    bool draws = false;
    for (Operation &op : function.getBody().getOps()) {
      draws |= hasGenerator(&op) || drawsIn(&op);
      if (!isRepeatable(&op))
        setSeed(&op, (name.getValue() + "/" + dfg::getNodeName(&op)).str());
    }
    return known[name] = draws;
  }

  /// Whether a node of the frame that `enters` open draws, or one of a frame in it.
  bool drawsIn(ArrayRef<Operation *> enters) {
    llvm::SetVector<std::pair<Operation *, unsigned>> nodes; // with the number of frames that have been opened
    for (Operation *enter : enters)
      nodes.insert({enter, 1});
    for (size_t i = 0; i < nodes.size(); ++i) {
      auto [op, depth] = nodes[i];
      if (hasGenerator(op) || drawsIn(op))
        return true;
      if (getKind(op).ends_with("Exit") && --depth == 0)
        continue;
      auto add = [&, depth = depth](Operation *user) {
        nodes.insert({user, depth + getKind(user).ends_with("Enter")});
      };
      llvm::for_each(op->getUsers(), add);
      if (auto users = waiting.find(dfg::getNodeName(op)); users != waiting.end())
        llvm::for_each(users->second, add);
    }
    return false;
  }

  Block &block;
  SymbolTable symbols;
  llvm::MapVector<StringAttr, SmallVector<Operation *>> frames;
  llvm::StringMap<SmallVector<Operation *>> waiting;
  llvm::DenseMap<Attribute, bool> known;
};

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
  for (Operation &op : llvm::make_early_inc_range(worker.block)) {
    if (!op.hasTrait<dfg::DrawsNumbers>())
      continue;
    if (op.hasAttr(dist::kSeedAttr)) {
      if (isRepeatable(&op) && failed(takeRows(worker, &op)))
        return failure();
    } else if (!isRepeatable(&op) && worker.workers.size() > 1) {
      // Any numbers would do, but all workers must draw the same.
      setSeed(&op, dfg::getNodeName(&op));
    }
  }
  Structures(worker).drawAlike();
  return success();
}

} // namespace distc
