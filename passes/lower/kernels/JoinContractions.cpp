//===- JoinContractions.cpp - Products over the joined batch of a task ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/Passes.h"
#include "passes/lower/kernels/RangeKernel.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/Support/DebugLog.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_JOINCONTRACTIONS
#include "passes/lower/Passes.h.inc"

namespace {

/// Whether a tensor is a variable's memory, the same for all replicas.
bool isVariable(Value tensor) { return getStorage(tensor).getDefiningOp<drt::ReadOp>() != nullptr; }

/// The product that a gradient is, by itself or with its axes together: a filter's.
drt::MatmulOp getProduct(Value gradient) {
  while (Operation *op = gradient.getDefiningOp()) {
    if (!op->hasOneUse() || !llvm::isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      return llvm::dyn_cast<drt::MatmulOp>(op);
    gradient = op->getOperand(0);
  }
  return {};
}

/// Own tiles, which replicas share, are of float32; others are the library's.
bool isOfFloat32(drt::MatmulOp product) {
  return llvm::cast<RankedTensorType>(product.getA().getType()).getElementType().isF32();
}

/// With what only reads it: the reshapes of a gradient that has been taken out.
void eraseWithUsers(Operation *op) {
  for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
    eraseWithUsers(user);
  op->erase();
}

/// Whether a product's operand lies at one place in every replica: in the arena, or fed. (Not a variable.)
bool isPerReplica(Value tensor) {
  Operation *op = getStorage(tensor).getDefiningOp();
  return op && !llvm::isa<drt::ReadOp, drt::AllReduceResultOp>(op) && !op->hasTrait<OpTrait::ConstantLike>();
}

struct JoinContractions : impl::JoinContractionsBase<JoinContractions> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto entry : module.getOps<drt::EntryOp>())
      if (failed(join(entry, symbols)))
        return signalPassFailure();
    lower::eraseUnusedRangeKernels(module);
  }

  LogicalResult join(drt::EntryOp entry, SymbolTable &symbols) {
    taskReplicas = replicas;
    std::optional<int64_t> cores = 1;
    if (taskReplicas == 0) {
      FailureOr<drt::ProgramOp> program = drt::getProgram(entry);
      if (failed(program))
        return failure();
      if (program->sharesMemory()) {
        taskReplicas = program->getNumReplicas();
        cores = program->getCores();
      }
    }
    Block &body = entry.getBody().front();
    if (taskReplicas > 1)
      joinUpdates(body);
    // Where nothing is said of cores, the library's matmuls use all there are.
    if (taskReplicas == 1 && cores)
      for (auto update : llvm::make_early_inc_range(body.getOps<drt::UpdateOp>()))
        joinOwn(update, symbols);
    if (taskReplicas * cores.value_or(1) > 1)
      for (auto product : body.getOps<drt::MatmulOp>())
        if (isSharedWork(product))
          product.setJoined(true);
    return success();
  }

  void joinUpdates(Block &body) {
    // For each bucket its start, and the updates of its members.
    llvm::DenseMap<int32_t, llvm::DenseMap<int64_t, drt::UpdateOp>> updates;
    llvm::DenseSet<int32_t> gathered;
    for (Operation &op : body) {
      if (auto update = llvm::dyn_cast<drt::UpdateOp>(op); update && update.getBucket())
        updates[*update.getBucket()][*update.getMember()] = update;
      if (auto result = llvm::dyn_cast<drt::AllReduceResultOp>(op))
        gathered.insert(result.getBucket());
    }
    for (auto start : llvm::make_early_inc_range(body.getOps<drt::AllReduceStartOp>()))
      // What is compressed, or chosen from, must be each replica's own.
      if (!gathered.contains(start.getBucket()) && !start.getCompression() && !start.getAggregator() &&
          !start.getScatter())
        join(start, updates[start.getBucket()]);
  }

  /// A product of each replica's few rows with a large variable: what the library does to the variable (reading it from
  /// memory, packing it) is then done once for all replicas instead of once in each.
  bool isSharedWork(drt::MatmulOp product) {
    auto type = llvm::cast<RankedTensorType>(product.getResult().getType());
    auto shared = llvm::cast<RankedTensorType>(product.getB().getType());
    return type.getRank() == 2 && isOfFloat32(product) && !product.getTransposeA() && isVariable(product.getB()) &&
           isPerReplica(product.getA()) && shared.getNumElements() >= minShared && type.getDimSize(0) <= maxRows;
  }

  void join(drt::AllReduceStartOp start, llvm::DenseMap<int64_t, drt::UpdateOp> &updates) {
    SmallVector<Value> kept;
    SmallVector<Attribute> keptNames;
    SmallVector<drt::MatmulOp> joined;
    for (auto [member, gradient] : llvm::enumerate(start.getGradients())) {
      drt::UpdateOp update = updates.lookup(member);
      drt::MatmulOp product = getProduct(gradient);
      if (!update || !isJoinable(product) || (product.getResult() != gradient && isLong(product))) {
        if (update)
          update.setMember(kept.size());
        kept.push_back(gradient);
        keptNames.push_back(start.getNames()[member]);
        continue;
      }
      LDBG("drt-join-contractions") << "once for all replicas: " << product;
      create(update, product, update.getKernel(), start.getMean() ? 1.0 / taskReplicas : 1.0, update.getArguments());
      update.erase();
      joined.push_back(product);
    }
    if (joined.empty())
      return;
    // An empty bucket stays: starting it and waiting for it are what joins the replicas.
    OpBuilder builder(start);
    drt::AllReduceStartOp::create(builder, start.getLoc(), start.getBucket(), start.getMean(),
                                  builder.getArrayAttr(keptNames), kept);
    start.erase();
    for (drt::MatmulOp product : joined)
      eraseWithUsers(product);
  }

  /// The update of a task's only replica reads its gradient itself.
  void joinOwn(drt::UpdateOp update, SymbolTable &symbols) {
    if (update.getBucket() || update.getShare())
      return;
    for (auto [number, gradient] : llvm::enumerate(update.getArguments())) {
      drt::MatmulOp product = getProduct(gradient);
      if (!gradient.hasOneUse() || !isJoinable(product))
        continue;
      auto kernel = symbols.lookup<drt::KernelOp>(update.getKernel());
      const unsigned argument = 2 + update.getVariables().size() + number;
      drt::KernelOp taking =
          kernel ? lower::takeGradient(kernel, argument, (kernel.getName() + "_of_matmul").str()) : drt::KernelOp();
      if (!taking)
        continue;
      symbols.insert(taking);
      LDBG("drt-join-contractions") << "with its update: " << product;
      SmallVector<Value> arguments(update.getArguments());
      arguments.erase(arguments.begin() + number);
      create(update, product, taking.getName(), 1.0, arguments);
      update.erase();
      eraseWithUsers(product);
      return;
    }
  }

  static void create(drt::UpdateOp update, drt::MatmulOp product, StringRef kernel, double scale,
                     ValueRange arguments) {
    OpBuilder builder(update);
    drt::MatmulUpdateOp::create(builder, FusedLoc::get(builder.getContext(), {product.getLoc(), update.getLoc()}),
                                kernel, update.getVariables(), product.getA(), product.getB(), product.getTransposeA(),
                                product.getTransposeB(), APFloat(scale), arguments);
  }

  /// Whether what each replica would read of the others' operands is more than the gradient that it would not write:
  /// that of a filter which goes over large images. (Batches of a dense layer are short beside its weights.)
  static bool isLong(drt::MatmulOp product) {
    auto a = llvm::cast<RankedTensorType>(product.getA().getType());
    const int64_t contracted = a.getDimSize(product.getTransposeA() ? 0 : 1);
    return contracted > llvm::cast<RankedTensorType>(product.getResult().getType()).getDimSize(0);
  }

  /// Worth it where the product is large: it is then cut into blocks that stay in cache.
  bool isJoinable(drt::MatmulOp product) {
    if (!product || !product.getResult().hasOneUse() || product.getBias() || product.getEpilogue())
      return false;
    auto type = llvm::cast<RankedTensorType>(product.getResult().getType());
    return type.getRank() == 2 && isOfFloat32(product) && type.getNumElements() >= minElements &&
           isPerReplica(product.getA()) && isPerReplica(product.getB());
  }

  int64_t taskReplicas = 0;
};

} // namespace
} // namespace distc
