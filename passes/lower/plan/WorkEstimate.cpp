//===- WorkEstimate.cpp - How much an operation of an entry computes and moves --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/WorkEstimate.h"

#include "dialects/drt/Servers.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "passes/lower/gpu/Schedule.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace distc {

int64_t countInstructions(Region &region) {
  int64_t count = 0;
  region.walk([&](Operation *inner) {
    if (!inner->hasTrait<OpTrait::ConstantLike>() && !inner->hasTrait<OpTrait::IsTerminator>())
      count += isa_and_present<math::MathDialect>(inner->getDialect()) ? kFunctionInstructions : 1;
  });
  return count;
}

AssumedMachine getAssumedMachine(bool device) {
  // A core with 256-bit vectors at 3 GHz, half used, its part of the memory's bandwidth, and tasks that share memory or
  // a network of 40 Gbit/s. A device: one of 2022, in single precision.
  return device ? AssumedMachine{3e13, 2e12, 5e10, 4e-6} : AssumedMachine{5e10, 1e10, 5e9, 2e-7};
}

WorkEstimate::WorkEstimate(ModuleOp module)
    : symbols(module), onDevice(drt::findProgram(module).isForDevices()), machine(getAssumedMachine(onDevice)) {}

/// The argument of the kernel that a buffer is a view of; none of a buffer of the kernel's own.
static BlockArgument findArgument(Value buffer) {
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>())
    buffer = view.getViewSource();
  return dyn_cast<BlockArgument>(buffer);
}

WorkEstimate::Kernel WorkEstimate::getKernel(Operation *op) {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>("kernel");
  auto kernel = name ? symbols.lookup<FunctionOpInterface>(name.getAttr()) : FunctionOpInterface();
  // Groups of updates have been written for devices.
  if (auto code = symbols.lookup<gpu::GPUModuleOp>(drt::kKernelModule); name && !kernel && code)
    kernel = code.lookupSymbol<FunctionOpInterface>(name.getAttr());
  if (!kernel)
    return {};
  auto [found, isNew] = kernels.try_emplace(kernel);
  Kernel &counted = found->second;
  if (!isNew)
    return counted;
  counted.passes.resize(kernel.getNumArguments());
  counted.taken.resize(kernel.getNumArguments());
  auto function = dyn_cast<drt::KernelOp>(kernel.getOperation());
  FailureOr<schedule::Kernel> ofRows = failure();
  if (onDevice && function && !function.getRange())
    ofRows = schedule::Kernel::get(function);
  const bool readsOnce = succeeded(ofRows) && schedule::holdsRows(*ofRows);
  kernel->walk([&](Operation *inner) {
    // Those of kernels over tensors know how often they run; the loops of range kernels are told.
    if (auto structured = dyn_cast<linalg::LinalgOp>(inner)) {
      int64_t points = 1;
      for (int64_t extent : structured.getStaticLoopRanges())
        points *= std::max<int64_t>(extent, 1);
      counted.points += points;
      counted.whole += points * countInstructions(structured->getRegion(0));
      llvm::DenseSet<BlockArgument> taken; // by index: an element a point
      structured->walk([&](memref::LoadOp load) {
        BlockArgument argument = findArgument(load.getMemRef());
        if (argument && argument.getOwner()->getParentOp() == kernel && taken.insert(argument).second)
          counted.taken[argument.getArgNumber()] += points;
      });
      llvm::DenseSet<std::pair<Value, Attribute>> read; // one that is read twice alike is loaded once
      for (OpOperand &operand : structured->getOpOperands())
        if (BlockArgument argument = findArgument(operand.get());
            argument && argument.getOwner()->getParentOp() == kernel && !isa<linalg::FillOp>(inner) &&
            read.insert({operand.get(), AffineMapAttr::get(structured.getMatchingIndexingMap(&operand))}).second) {
          auto type = cast<ShapedType>(operand.get().getType());
          int64_t &bytes = counted.passes[argument.getArgNumber()];
          const int64_t pass = type.getNumElements() * getElementBytes(type.getElementType());
          bytes = readsOnce ? pass : bytes + pass;
        }
    } else if (auto loop = dyn_cast<scf::ForOp>(inner); loop && !loop->getParentOfType<scf::ForOp>()) {
      counted.ofElement += countInstructions(loop.getRegion());
    }
  });
  return counted;
}

static int64_t countBytes(Value value) { return getTensorBytes(cast<RankedTensorType>(value.getType())); }

void WorkEstimate::addMemory(Operation *op, const Kernel &kernel, Work &work) {
  if (isa<drt::TakeRowsOp>(op)) {
    work.bytes = work.least = 2 * countBytes(op->getResult(0));
    return;
  }
  llvm::SmallMapVector<Value, int64_t, 8> distinct; // what is read of each
  for (OpOperand &operand : op->getOpOperands()) {
    const Value tensor = operand.get();
    const unsigned number = operand.getOperandNumber();
    int64_t all = countBytes(tensor), passes = all;
    if (isa<drt::LaunchOp>(op) && kernel.points) {
      passes = number < kernel.passes.size() ? kernel.passes[number] : 0;
      // A kernel that takes some rows of a table does not read all of it.
      if (passes == 0) {
        const int64_t taken = number < kernel.taken.size() ? kernel.taken[number] : 0;
        passes = std::min(all, (taken ? taken : kernel.points) *
                                   getElementBytes(cast<RankedTensorType>(tensor.getType()).getElementType()));
      }
    }
    work.bytes += passes;
    int64_t &known = distinct[getStorage(tensor)];
    known = std::min(all, known + std::min(all, passes));
  }
  for (auto &[tensor, bytes] : distinct)
    work.least += bytes;
  for (OpResult result : op->getResults()) {
    const int64_t bytes = countBytes(result);
    const unsigned number = op->getNumOperands() + result.getResultNumber();
    // Written once, and read where a later pass needs it.
    work.bytes +=
        isa<drt::LaunchOp>(op) && number < kernel.passes.size() ? std::max(bytes, kernel.passes[number]) : bytes;
    work.least += bytes;
  }
}

/// Elements of the rows that a group's only member updates, which its first arguments are: rows by index. None where
/// whole variables are.
static std::optional<int64_t> countRowElements(drt::UpdateGroupOp group) {
  if (group.getVariables().size() != 1 || group.getArguments().size() < 2)
    return std::nullopt;
  auto indices = cast<RankedTensorType>(group.getArguments()[0].getType());
  auto rows = cast<RankedTensorType>(group.getArguments()[1].getType());
  if (!indices.getElementType().isInteger() || indices.getRank() != 1 || rows.getRank() == 0 ||
      rows.getDimSize(0) != indices.getDimSize(0))
    return std::nullopt;
  return rows.getNumElements();
}

int64_t WorkEstimate::addUpdated(Operation *op, Work &work) {
  int64_t written = 0;
  auto add = [&](ArrayAttr variables, std::optional<int64_t> share, bool hasGradient) {
    int64_t elements = 0;
    for (auto [i, name] : llvm::enumerate(variables.getAsRange<FlatSymbolRefAttr>())) {
      auto variable = symbols.lookup<drt::VariableOp>(name.getAttr());
      if (!variable)
        continue;
      auto type = cast<RankedTensorType>(variable.getType());
      if (i == 0)
        elements = std::min(share.value_or(type.getNumElements()), type.getNumElements());
      const int64_t bytes = elements * getElementBytes(type.getElementType());
      work.bytes += (2 + (hasGradient && i == 0)) * bytes;
      work.least += (2 + (hasGradient && i == 0)) * bytes;
    }
    written += elements;
  };
  if (auto update = dyn_cast<drt::UpdateOp>(op))
    add(update.getVariables(), update.getShare(), update.getBucket().has_value());
  else if (auto update = dyn_cast<drt::MatmulUpdateOp>(op))
    add(update.getVariables(), std::nullopt, false);
  else if (auto sparse = dyn_cast<drt::SparseUpdateOp>(op))
    add(sparse.getVariables(), countElements(sparse.getValues()), false);
  else if (auto group = dyn_cast<drt::UpdateGroupOp>(op))
    for (auto [member, variables] : llvm::enumerate(group.getVariables().getAsRange<ArrayAttr>()))
      add(variables, group.getShares() ? std::optional((*group.getShares())[member]) : countRowElements(group),
          group.getBucket().has_value());
  return written;
}

/// Of the product of a and b, op(b) with `columns` columns.
static int64_t countMatmul(Value a, int64_t columns) { return 2 * countElements(a) * columns; }

static int64_t getColumns(Value b, bool transposed) {
  auto type = cast<RankedTensorType>(b.getType());
  return type.getDimSize(type.getRank() - (transposed ? 2 : 1));
}

/// From the C descriptor: n h w c kh kw k oh ow … groups.
static int64_t countConv(ArrayRef<int64_t> d) { return 2 * d[0] * d[7] * d[8] * d[6] * d[4] * d[5] * d[3] / d.back(); }

Work WorkEstimate::operator()(Operation *op) {
  Work work;
  // Starts and waits compute nothing, and what they move others do.
  if (op->hasTrait<drt::Synchronizes>())
    return work;
  const Kernel kernel = getKernel(op);
  addMemory(op, kernel, work);
  const int64_t written = addUpdated(op, work);
  if (isPlaced(op) || isa<drt::UpdateGroupOp, drt::RandomAdvanceOp, drt::FetchOp>(op))
    work.launches = !isa<drt::EmptyOp>(op);
  if (auto matmul = dyn_cast<drt::MatmulOp>(op))
    work.matmuls = countMatmul(matmul.getA(), getColumns(matmul.getB(), matmul.getTransposeB()));
  else if (auto matmul = dyn_cast<drt::MatmulPackedOp>(op))
    work.matmuls = countMatmul(matmul.getA(), getColumns(matmul.getB(), matmul.getTransposeB()));
  else if (auto matmul = dyn_cast<drt::MatmulAddOp>(op))
    work.matmuls = countMatmul(matmul.getA(), getColumns(matmul.getB(), matmul.getTransposeB()));
  else if (auto matmul = dyn_cast<drt::MatmulBiasGradOp>(op))
    work.matmuls = countMatmul(matmul.getA(), getColumns(matmul.getB(), /*transposed=*/false));
  else if (auto matmul = dyn_cast<drt::MatmulStackedOp>(op))
    for (Value a : matmul.getA())
      work.matmuls += countMatmul(a, getColumns(matmul.getB(), matmul.getTransposeB()));
  else if (auto sum = dyn_cast<drt::MatmulSumOp>(op))
    for (auto [a, b] : llvm::zip(sum.getA(), sum.getB()))
      work.matmuls += countMatmul(a, getColumns(b, /*transposed=*/false));
  else if (llvm::isa<drt::AttentionOp, drt::AttentionGradientOp, drt::AttentionQueryGradientOp,
                     drt::AttentionKeyValueGradientOp>(op))
    work.matmuls =
        llvm::TypeSwitch<Operation *, int64_t>(op)
            .Case<drt::AttentionOp, drt::AttentionGradientOp, drt::AttentionQueryGradientOp,
                  drt::AttentionKeyValueGradientOp>([](auto attention) { return attention.getProductOperations(); });
  else if (auto update = dyn_cast<drt::MatmulUpdateOp>(op))
    work.matmuls = countMatmul(update.getA(), getColumns(update.getB(), update.getTransposeB()));
  else if (auto conv = op->getAttrOfType<DenseI64ArrayAttr>("descriptor"); conv && conv.size() == 18)
    work.matmuls = countConv(conv);
  else if (!op->hasAttr("kernel"))
    for (Value result : op->getResults())
      work.flops += countElements(result);
  work.flops += work.matmuls + kernel.whole + kernel.ofElement * written;
  return work;
}

double WorkEstimate::getSeconds(const Work &work) const {
  return machine.startSeconds + std::max(static_cast<double>(work.flops) / machine.flops,
                                         static_cast<double>(work.bytes) / machine.memoryBytes);
}

} // namespace distc
