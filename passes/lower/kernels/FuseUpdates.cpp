//===- FuseUpdates.cpp - Updates compute what only they read -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lower/Passes.h"
#include "passes/lower/SymbolNames.h"
#include "passes/lower/kernels/FusionPlan.h"
#include "passes/lower/kernels/MemoryWrites.h"
#include "passes/lower/kernels/RangeKernel.h"
#include "passes/lower/plan/Addresses.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_FUSEUPDATES
#include "passes/lower/Passes.h.inc"

namespace {

/// Buffers of a range kernel at most: vector code checks each against those that are written.
constexpr size_t kMaxBuffers = 10;

/// An update, one of its arguments, and the operation that computes it for nobody else.
class Fusion {
public:
  Fusion(drt::UpdateOp update, drt::KernelOp kernel, unsigned argument, const MemoryWrites &writes)
      : update(update), kernel(kernel), argument(argument), writes(writes) {}

  /// Whether the kernel can compute the argument's element from elements at the same place.
  bool find() {
    const Value tensor = update.getArguments()[argument];
    if (countElements(tensor) != static_cast<int64_t>(update.getCount()) || countElements(tensor) == 1)
      return false;
    Value made = tensor;
    while (made.hasOneUse() && made != getStorage(made))
      made = made.getDefiningOp()->getOperand(0);
    producer = made.getDefiningOp<linalg::GenericOp>();
    if (!producer || !made.hasOneUse() || producer->getNumResults() != 1 || !isElementwise(producer))
      return false;
    AffineMap map = producer.getIndexingMapMatchingResult(llvm::cast<OpResult>(made));
    if (!map.isIdentity() || !canMoveBody())
      return false;
    for (OpOperand *input : producer.getDpsInputOperands())
      if (!addInput(*input, map))
        return false;
    return update.getVariables().size() + update.getArguments().size() + added.size() <= kMaxBuffers && findLoads();
  }

  /// Returns the kernel that computes it, which only this update names.
  drt::KernelOp apply(StringRef name) {
    drt::KernelOp fused = clone(name);
    const Value tensor = update.getArguments()[argument];
    SmallVector<Value> arguments(update.getArguments());
    arguments.erase(arguments.begin() + argument);
    llvm::append_range(arguments, added);
    update.getArgumentsMutable().assign(arguments);
    update.setKernelAttr(FlatSymbolRefAttr::get(fused.getSymNameAttr()));
    update->setLoc(FusedLoc::get(update.getContext(), {producer.getLoc(), update.getLoc()}));
    // What computes it has one reader less, and may have one alone.
    for (Operation *op = tensor.getDefiningOp(); op;) {
      Operation *before = op == producer ? nullptr : op->getOperand(0).getDefiningOp();
      op->erase();
      op = before;
    }
    return fused;
  }

private:
  static bool isFloat(Type type) { return type.isF32() || type.isF64(); }

  bool canMoveBody() {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(producer.getRegion(), captured);
    return isFloat(getElementTypeOrSelf(producer->getResult(0))) &&
           llvm::all_of(captured, [](Value value) { return matchPattern(value, m_Constant()); }) &&
           llvm::all_of(producer.getRegion().front().without_terminator(), [](Operation &op) {
             return llvm::isa<arith::ArithDialect, math::MathDialect>(op.getDialect()) && op.getNumRegions() == 0;
           });
  }

  /// An element at the same place, or the only one.
  bool addInput(OpOperand &input, AffineMap made) {
    const Value value = input.get();
    if (!isFloat(getElementTypeOrSelf(value.getType())) || matchPattern(value, m_Constant()))
      return false;
    const bool isScalar = countElements(value) == 1;
    if (!isScalar && (producer.getMatchingIndexingMap(&input) != made ||
                      countElements(value) != countElements(update.getArguments()[argument])))
      return false;
    if (std::optional<unsigned> variable = findVariable(value)) {
      // The kernel has the old element before it writes. A scalar that it writes is read once, before its loop.
      inputs.push_back({Input::Variable, *variable});
      return !isScalar && writes.isUnchanged(value, getStorage(value).getDefiningOp(), update);
    }
    inputs.push_back({isScalar ? Input::Scalar : Input::Buffer, static_cast<unsigned>(added.size())});
    added.push_back(value);
    return writes.isUnchanged(value, producer, update);
  }

  /// Which of the variables that the update writes a value is.
  std::optional<unsigned> findVariable(Value value) {
    auto read = getStorage(value).getDefiningOp<drt::ReadOp>();
    for (auto [index, variable] : llvm::enumerate(update.getVariables().getAsRange<FlatSymbolRefAttr>()))
      if (read && variable == read.getVariableAttr())
        return index;
    return std::nullopt;
  }

  unsigned getFirstVariable() { return update.getBucket() ? 3 : 2; }
  unsigned getFirstArgument() { return getFirstVariable() + update.getVariables().size(); }

  /// The kernel reads the argument at the place of its loop alone, before it writes anything.
  bool findLoads() {
    FailureOr<SmallVector<memref::LoadOp>> loads = lower::getElementLoads(kernel, getFirstArgument() + argument);
    if (failed(loads))
      return false;
    for (memref::LoadOp load : *loads)
      for (Operation *before = load->getPrevNode(); before; before = before->getPrevNode())
        if (llvm::isa<memref::StoreOp>(before))
          return false;
    return true;
  }

  drt::KernelOp clone(StringRef name) {
    auto fused = llvm::cast<drt::KernelOp>(kernel->clone());
    fused.setName(name);
    OpBuilder(kernel).insert(fused);
    Block &body = fused.getBody().front();
    const unsigned replaced = getFirstArgument() + argument;
    const int64_t elements = llvm::cast<MemRefType>(body.getArgument(replaced).getType()).getDimSize(0);
    for (Value value : added) {
      const int64_t extent = countElements(value) == 1 ? 1 : elements;
      body.addArgument(MemRefType::get({extent}, getElementTypeOrSelf(value.getType())), fused.getLoc());
    }
    const unsigned firstAdded = body.getNumArguments() - added.size();
    for (Operation *user : llvm::make_early_inc_range(body.getArgument(replaced).getUsers())) {
      auto load = llvm::cast<memref::LoadOp>(user);
      load.replaceAllUsesWith(computeElement(load, body, firstAdded));
      load.erase();
    }
    body.eraseArgument(replaced);
    fused.setFunctionType(FunctionType::get(fused.getContext(), body.getArgumentTypes(), {}));
    return fused;
  }

  Value computeElement(memref::LoadOp load, Block &body, unsigned firstAdded) {
    ImplicitLocOpBuilder element(load.getLoc(), load), before(load.getLoc(), load->getParentOp());
    IRMapping mapping;
    for (auto [number, input] : llvm::enumerate(inputs)) {
      const bool isVariable = input.kind == Input::Variable;
      Value buffer = body.getArgument(input.index + (isVariable ? getFirstVariable() : firstAdded));
      Value value = input.kind == Input::Scalar
                        ? memref::LoadOp::create(before, buffer, arith::ConstantIndexOp::create(before, 0).getResult())
                        : memref::LoadOp::create(element, buffer, load.getIndices());
      mapping.map(producer.getRegion().front().getArgument(number), value);
    }
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(producer.getRegion(), captured);
    for (Value constant : captured)
      mapping.map(constant, before.clone(*constant.getDefiningOp())->getResult(0));
    for (Operation &op : producer.getRegion().front().without_terminator())
      element.clone(op, mapping);
    return mapping.lookup(producer.getRegion().front().getTerminator()->getOperand(0));
  }

  /// What the producer reads: of `added`, or of the update's variables.
  struct Input {
    enum Kind { Buffer, Scalar, Variable } kind;
    unsigned index;
  };

  drt::UpdateOp update;
  drt::KernelOp kernel;
  unsigned argument;
  const MemoryWrites &writes;
  linalg::GenericOp producer;
  SmallVector<Input> inputs;
  SmallVector<Value> added;
};

struct FuseUpdates : impl::FuseUpdatesBase<FuseUpdates> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    lower::SymbolNames names(module);
    for (auto entry : module.getOps<drt::EntryOp>()) {
      Block &body = entry.getBody().front();
      const MemoryWrites writes(body);
      for (auto update : body.getOps<drt::UpdateOp>())
        for (unsigned argument = 0; argument < update.getArguments().size();)
          argument = fuse(update, argument, symbols, names, writes) ? 0 : argument + 1;
    }
    lower::eraseUnusedRangeKernels(module);
  }

private:
  bool fuse(drt::UpdateOp update, unsigned argument, SymbolTable &symbols, lower::SymbolNames &names,
            const MemoryWrites &writes) {
    auto kernel = symbols.lookup<drt::KernelOp>(update.getKernel());
    Fusion fusion(update, kernel, argument, writes);
    if (!kernel || !fusion.find())
      return false;
    symbols.insert(fusion.apply(names.make("update_fused_", fused)));
    return true;
  }

  unsigned fused = 0;
};

} // namespace
} // namespace distc
