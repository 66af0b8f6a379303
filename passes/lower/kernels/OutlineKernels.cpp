//===- OutlineKernels.cpp - Every linalg operation becomes a kernel, equal ones once -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lower/Passes.h"
#include "passes/lower/SymbolNames.h"
#include "passes/lower/kernels/Equivalence.h"
#include "passes/lower/kernels/KernelBuffers.h"
#include "passes/lower/kernels/RowForm.h"
#include "llvm/ADT/StringMap.h"
#include <unordered_map>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_OUTLINEKERNELS
#include "passes/lower/Passes.h.inc"

namespace {

/// Kernels by what they do: their functions without names and places.
class KernelTable {
public:
  explicit KernelTable(ModuleOp module) : names(module) {}

  /// `kernel` or an equal one that was there before; then `kernel` is erased.
  drt::KernelOp unique(drt::KernelOp kernel) {
    const auto hash = static_cast<size_t>(hashRegion(kernel.getBody()));
    for (drt::KernelOp other : kernels[hash])
      if (other.getFunctionType() == kernel.getFunctionType() &&
          OperationEquivalence::isRegionEquivalentTo(&other.getBody(), &kernel.getBody(),
                                                     OperationEquivalence::IgnoreLocations)) {
        kernel.erase();
        return other;
      }
    kernels[hash].push_back(kernel);
    return kernel;
  }

  std::string nextName() { return names.make("kernel_", count); }
  std::string nextConstantName() { return names.make("constant_", constants); }

private:
  lower::SymbolNames names;
  std::unordered_map<size_t, SmallVector<drt::KernelOp, 1>> kernels;
  unsigned count = 0, constants = 0;
};

/// Small constants that a kernel reads are part of it; so are the scalars that fill its result.
bool belongsInside(Operation *op) { return op && op->hasTrait<OpTrait::ConstantLike>(); }

/// Moves linalg operations into a function on buffers, which is called in the place of the first.
class Outliner {
public:
  using Group = ArrayRef<linalg::GenericOp>;

  Outliner(KernelTable &table, ModuleOp module) : table(table), module(module) {}

  void outline(Group group) {
    SmallVector<Value> operands, inside, results;
    for (Value value : getCaptured(group))
      (belongsInside(value.getDefiningOp()) ? inside : operands).push_back(value);
    for (linalg::GenericOp generic : group)
      for (Value result : generic.getResults())
        if (group.size() == 1 || isUsedOutside(result, group))
          results.push_back(result);

    OpBuilder builder(group.front());
    IRMapping mapping;
    drt::KernelOp kernel = makeKernel(builder, group, operands, results, mapping);
    for (Value value : inside) {
      Operation *constant = builder.clone(*value.getDefiningOp());
      Value copy = constant->getResult(0);
      if (llvm::isa<TensorType>(copy.getType()))
        copy = toGlobal(builder, llvm::cast<arith::ConstantOp>(constant));
      mapping.map(value, copy);
    }
    for (linalg::GenericOp generic : group)
      writeOnBuffers(builder, generic, mapping);
    drt::ReturnOp::create(builder, kernel.getLoc());
    kernel = table.unique(kernel);

    builder.setInsertionPoint(group.front());
    auto launch = drt::LaunchOp::create(builder, kernel.getLoc(), ValueRange(results).getTypes(), kernel.getSymName(),
                                        operands, DenseI64ArrayAttr());
    for (auto [result, made] : llvm::zip(results, launch.getResults()))
      result.replaceAllUsesWith(made);
    erase(group);
  }

private:
  static bool makes(Group group, Value value) {
    auto generic = schedule::getReshaped(value).getDefiningOp<linalg::GenericOp>();
    return generic && llvm::is_contained(group, generic);
  }

  /// What the operations take from outside: their inputs, and what their bodies read.
  static SetVector<Value> getCaptured(Group group) {
    SetVector<Value> captured, outside;
    for (linalg::GenericOp generic : group) {
      captured.insert(generic.getInputs().begin(), generic.getInputs().end());
      getUsedValuesDefinedAbove(generic.getRegion(), captured);
    }
    // What is read in two shapes is given once, and reshaped inside.
    llvm::DenseMap<Value, llvm::SmallDenseSet<Value, 2>> shapes;
    for (Value value : captured)
      shapes[schedule::getReshaped(value)].insert(value);
    for (Value value : captured)
      if (!makes(group, value)) {
        Value source = schedule::getReshaped(value);
        outside.insert(shapes[source].size() > 1 ? source : value);
      }
    return outside;
  }

  static bool isUsedOutside(Value value, Group group) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      if (llvm::isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(user))
        return isUsedOutside(user->getResult(0), group);
      auto generic = llvm::dyn_cast<linalg::GenericOp>(user);
      if (!generic)
        generic = user->getParentOfType<linalg::GenericOp>();
      return !generic || !llvm::is_contained(group, generic);
    });
  }

  /// An empty function; results that only the group uses are memory of its own.
  drt::KernelOp makeKernel(OpBuilder &builder, Group group, ValueRange operands, ValueRange results,
                           IRMapping &mapping) {
    SmallVector<Location> locations;
    SmallVector<Type> types;
    for (linalg::GenericOp generic : group)
      locations.push_back(generic.getLoc());
    for (ValueRange values : {operands, results})
      for (Value value : values)
        types.push_back(getBufferType(value.getType()));
    builder.setInsertionPointToEnd(module.getBody());
    Location loc = group.size() == 1 ? locations.front() : builder.getFusedLoc(locations);
    auto kernel = drt::KernelOp::create(builder, loc, table.nextName(), builder.getFunctionType(types, {}));
    Block *body = kernel.addEntryBlock();
    builder.setInsertionPointToStart(body);
    mapping.map(operands, body->getArguments().take_front(operands.size()));
    mapping.map(results, body->getArguments().take_back(results.size()));
    for (linalg::GenericOp generic : group)
      for (Value result : generic.getResults())
        if (!mapping.contains(result))
          mapping.map(result, memref::AllocOp::create(builder, loc, getBufferType(result.getType())));
    return kernel;
  }

  /// With the fills and the reshapes that only they used.
  static void erase(Group group) {
    SetVector<Operation *> unused;
    for (linalg::GenericOp generic : llvm::reverse(group)) {
      // Outputs may share one.
      for (Value init : generic.getOutputs())
        if (auto fill = init.getDefiningOp<linalg::FillOp>())
          unused.insert(fill);
      for (Operation *user : llvm::to_vector(generic->getUsers()))
        eraseReshapes(user);
      generic.erase();
    }
    for (Operation *fill : unused)
      if (fill->use_empty())
        fill->erase();
  }

  static void eraseReshapes(Operation *reshape) {
    for (Operation *user : llvm::to_vector(reshape->getUsers()))
      eraseReshapes(user);
    reshape->erase();
  }

  /// A constant tensor's elements, in the executable's read-only data.
  Value toGlobal(OpBuilder &builder, arith::ConstantOp constant) {
    MemRefType type = getBufferType(constant.getType());
    auto [it, inserted] = globals.try_emplace(constant.getValue(), "");
    if (inserted) {
      it->second = table.nextConstantName();
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(module.getBody());
      memref::GlobalOp::create(builder, constant.getLoc(), it->second, builder.getStringAttr("private"), type,
                               constant.getValue(),
                               /*constant=*/true, IntegerAttr());
    }
    Value global = memref::GetGlobalOp::create(builder, constant.getLoc(), type, it->second);
    constant.erase();
    return global;
  }

  KernelTable &table;
  ModuleOp module;
  llvm::DenseMap<Attribute, std::string> globals;
};

/// The operations of a block by kernel: one each, or those of the same rows (`drt-fuse-rows`).
SmallVector<SmallVector<linalg::GenericOp>> getGroups(Block &block) {
  SmallVector<SmallVector<linalg::GenericOp>> groups;
  llvm::DenseMap<Attribute, size_t> ofRows;
  for (auto generic : block.getOps<linalg::GenericOp>()) {
    size_t group = groups.size();
    if (Attribute rows = generic->getAttr(drt::kRowsAttr))
      group = ofRows.try_emplace(rows, group).first->second;
    if (group == groups.size())
      groups.emplace_back();
    groups[group].push_back(generic);
  }
  return groups;
}

struct OutlineKernels : impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    KernelTable table(module);
    Outliner outliner(table, module);
    auto entries = llvm::to_vector(module.getOps<drt::EntryOp>());
    for (drt::EntryOp entry : entries) {
      materializeConstants(entry);
      if (failed(checkStarts(entry)))
        return signalPassFailure();
      for (ArrayRef<linalg::GenericOp> group : getGroups(entry.getBody().front()))
        outliner.outline(group);
    }
    uniqueRangeKernels(module, table, entries);
    // What only fed linalg operations.
    for (drt::EntryOp entry : entries)
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry.getBody().front())))
        if (isOpTriviallyDead(&op))
          op.erase();
  }

  /// The memory of a kernel's result is nobody's before: a kernel begins with a fill, or reads nothing of it.
  LogicalResult checkStarts(drt::EntryOp entry) {
    for (auto generic : entry.getBody().front().getOps<linalg::GenericOp>())
      for (OpOperand &init : generic.getDpsInitsMutable())
        if (generic.payloadUsesValueFromOperand(&init) && !init.get().getDefiningOp<linalg::FillOp>())
          return generic.emitError("internal error: result ")
                 << init.getOperandNumber() - generic.getNumDpsInputs()
                 << " starts from what is no fill, which a kernel would not be given";
    return success();
  }

  /// A constant that a library call takes is written by a kernel.
  void materializeConstants(drt::EntryOp entry) {
    for (auto constant : llvm::make_early_inc_range(entry.getBody().front().getOps<arith::ConstantOp>())) {
      auto type = llvm::dyn_cast<RankedTensorType>(constant.getType());
      if (!type || llvm::all_of(constant->getUsers(), [](Operation *user) {
            return llvm::isa<linalg::LinalgOp>(user) || user->getParentOfType<linalg::GenericOp>();
          }))
        continue;
      OpBuilder builder(constant->getContext());
      builder.setInsertionPointAfter(constant);
      Value empty = tensor::EmptyOp::create(builder, constant.getLoc(), type.getShape(), type.getElementType());
      SmallVector<utils::IteratorType> iterators(type.getRank(), utils::IteratorType::parallel);
      AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
      auto splat = llvm::dyn_cast<SplatElementsAttr>(constant.getValue());
      SmallVector<Value> inputs;
      SmallVector<AffineMap> maps = {identity};
      if (!splat) {
        inputs.push_back(constant);
        maps.push_back(identity);
      }
      auto generic = linalg::GenericOp::create(
          builder, constant.getLoc(), type, inputs, empty, maps, iterators,
          [&](OpBuilder &body, Location loc, ValueRange arguments) {
            Value value = splat ? arith::ConstantOp::create(body, loc, splat.getSplatValue<TypedAttr>()).getResult()
                                : arguments[0];
            linalg::YieldOp::create(body, loc, value);
          });
      constant->replaceUsesWithIf(generic->getResults(), [&](OpOperand &use) {
        Operation *user = use.getOwner();
        return user != generic && !llvm::isa<linalg::LinalgOp>(user) && !user->getParentOfType<linalg::GenericOp>();
      });
    }
  }

  void uniqueRangeKernels(ModuleOp module, KernelTable &table, ArrayRef<drt::EntryOp> entries) {
    llvm::StringMap<std::string> names;
    for (auto function : llvm::make_early_inc_range(module.getOps<drt::KernelOp>()))
      if (function.getRange()) {
        std::string before = function.getSymName().str();
        names[before] = table.unique(function).getSymName().str();
      }
    for (drt::EntryOp entry : entries)
      for (Operation &op : entry.getBody().front()) {
        if (auto update = llvm::dyn_cast<drt::UpdateOp>(op))
          update.setKernel(names[update.getKernel()]);
        else if (auto update = llvm::dyn_cast<drt::SparseUpdateOp>(op))
          update.setKernel(names[update.getKernel()]);
        else if (auto update = llvm::dyn_cast<drt::MatmulUpdateOp>(op))
          update.setKernel(names[update.getKernel()]);
      }
  }
};

} // namespace
} // namespace distc
