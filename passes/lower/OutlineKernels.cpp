//===- OutlineKernels.cpp - Every linalg operation becomes a kernel, equal ones once -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lower/Passes.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_OUTLINEKERNELS
#include "passes/lower/Passes.h.inc"

namespace {

/// Kernels by what they do: the text of the function without its name and its places.
class KernelTable {
public:
  explicit KernelTable(ModuleOp module) : module(module) {}

  /// `kernel` or an equal one that was there before; then `kernel` is erased.
  func::FuncOp unique(func::FuncOp kernel) {
    std::string text;
    llvm::raw_string_ostream os(text);
    kernel.getFunctionType().print(os);
    OpPrintingFlags flags;
    flags.useLocalScope();
    for (Operation &op : kernel.getBody().front())
      op.print(os, flags);
    auto [it, inserted] = kernels.try_emplace(text, kernel);
    if (!inserted)
      kernel.erase();
    return it->second;
  }

  std::string nextName() { return ("kernel_" + Twine(count++)).str(); }

private:
  ModuleOp module;
  llvm::StringMap<func::FuncOp> kernels;
  unsigned count = 0;
};

MemRefType bufferType(Type tensor) {
  auto type = llvm::cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

/// Small constants that a kernel reads are part of it; so are the scalars that fill its result.
bool belongsInside(Operation *op) { return op && op->hasTrait<OpTrait::ConstantLike>(); }

/// Moves one linalg operation into a function on buffers and calls it.
struct Outliner {
  KernelTable &table;
  ModuleOp module;

  void outline(linalg::GenericOp generic) {
    OpBuilder builder(generic);
    // What the result starts from: a fill stands before a reduction.
    SmallVector<linalg::FillOp> fills;
    for (Value init : generic.getOutputs())
      fills.push_back(init.getDefiningOp<linalg::FillOp>());

    SetVector<Value> captured(generic.getInputs().begin(), generic.getInputs().end());
    getUsedValuesDefinedAbove(generic.getRegion(), captured);
    SmallVector<Value> operands, inside;
    for (Value value : captured)
      (belongsInside(value.getDefiningOp()) ? inside : operands).push_back(value);

    SmallVector<Type> types;
    for (Value operand : operands)
      types.push_back(bufferType(operand.getType()));
    for (Value result : generic.getResults())
      types.push_back(bufferType(result.getType()));

    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(module.getBody());
    auto kernel = func::FuncOp::create(builder, generic.getLoc(), table.nextName(), builder.getFunctionType(types, {}));
    kernel.setPrivate();
    kernel->setAttr(drt::kKernelAttr, builder.getUnitAttr());
    Block *body = kernel.addEntryBlock();
    builder.setInsertionPointToStart(body);

    IRMapping mapping;
    for (auto [operand, argument] : llvm::zip(operands, body->getArguments()))
      mapping.map(operand, argument);
    for (Value value : inside) {
      Operation *constant = builder.clone(*value.getDefiningOp());
      Value copy = constant->getResult(0);
      if (llvm::isa<TensorType>(copy.getType()))
        copy = toGlobal(builder, llvm::cast<arith::ConstantOp>(constant));
      mapping.map(value, copy);
    }
    ValueRange outputs = body->getArguments().take_back(generic.getNumResults());
    for (auto [fill, output] : llvm::zip(fills, outputs))
      if (fill) {
        Operation *value = builder.clone(*fill.getInputs()[0].getDefiningOp());
        linalg::FillOp::create(builder, fill.getLoc(), value->getResults(), ValueRange{output});
      }
    SmallVector<Value> inputs = llvm::map_to_vector(generic.getInputs(), [&](Value input) { return mapping.lookup(input); });
    auto moved = linalg::GenericOp::create(builder, generic.getLoc(), TypeRange(), inputs, outputs, generic.getIndexingMapsArray(),
                                           generic.getIteratorTypesArray());
    IRRewriter rewriter(builder);
    generic.getRegion().cloneInto(&moved.getRegion(), mapping);
    // Elements of tensors are elements of buffers.
    moved.getRegion().walk([&](tensor::ExtractOp extract) {
      rewriter.setInsertionPoint(extract);
      rewriter.replaceOpWithNewOp<memref::LoadOp>(extract, extract.getTensor(), extract.getIndices());
    });
    builder.setInsertionPointToEnd(body);
    func::ReturnOp::create(builder, generic.getLoc());
    kernel = table.unique(kernel);

    builder.setInsertionPoint(generic);
    auto launch = drt::LaunchOp::create(builder, generic.getLoc(), generic.getResultTypes(), kernel.getSymName(), operands, DenseI64ArrayAttr());
    generic->replaceAllUsesWith(launch);
    generic.erase();
    // Outputs may share one.
    for (Operation *fill : llvm::SmallPtrSet<Operation *, 4>(fills.begin(), fills.end()))
      if (fill && fill->use_empty())
        fill->erase();
  }

  /// A constant tensor's elements, in the executable's read-only data.
  Value toGlobal(OpBuilder &builder, arith::ConstantOp constant) {
    MemRefType type = bufferType(constant.getType());
    std::string key;
    llvm::raw_string_ostream(key) << constant.getValue();
    auto [it, inserted] = globals.try_emplace(key, "");
    if (inserted) {
      it->second = ("constant_" + Twine(globals.size() - 1)).str();
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(module.getBody());
      memref::GlobalOp::create(builder, constant.getLoc(), it->second, builder.getStringAttr("private"), type, constant.getValue(),
                               /*constant=*/true, IntegerAttr());
    }
    Value global = memref::GetGlobalOp::create(builder, constant.getLoc(), type, it->second);
    constant.erase();
    return global;
  }

  llvm::StringMap<std::string> globals;
};

struct OutlineKernels : impl::OutlineKernelsBase<OutlineKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    KernelTable table(module);
    Outliner outliner{table, module, {}};
    SmallVector<func::FuncOp> entries;
    llvm::StringMap<func::FuncOp> rangeKernels;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (function->hasAttr(drt::kEntryAttr))
        entries.push_back(function);
    }
    for (func::FuncOp entry : entries) {
      materializeConstants(entry);
      for (auto generic : llvm::make_early_inc_range(entry.getBody().front().getOps<linalg::GenericOp>()))
        outliner.outline(generic);
    }
    uniqueRangeKernels(module, table, entries);
    // What only fed linalg operations.
    for (func::FuncOp entry : entries)
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(entry.getBody().front())))
        if (isOpTriviallyDead(&op))
          op.erase();
  }

  /// A constant that a library call takes is written by a kernel.
  void materializeConstants(func::FuncOp entry) {
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
      auto generic = linalg::GenericOp::create(builder, constant.getLoc(), type, inputs, empty, maps, iterators,
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

  void uniqueRangeKernels(ModuleOp module, KernelTable &table, ArrayRef<func::FuncOp> entries) {
    llvm::StringMap<std::string> names;
    for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
      if (function->hasAttr(drt::kRangeKernelAttr)) {
        std::string before = function.getSymName().str();
        names[before] = table.unique(function).getSymName().str();
      }
    for (func::FuncOp entry : entries)
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
