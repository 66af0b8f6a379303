//===- WorkEstimate.cpp - How much an operation of an entry computes and moves --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/plan/WorkEstimate.h"

#include "dialects/drt/Servers.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/lower/plan/Addresses.h"

using namespace mlir;

namespace distc {

/// An elementary function: a polynomial of about so many terms with the reduction of its argument.
static constexpr int64_t kFunctionCost = 24;

int64_t countInstructions(Region &region) {
  int64_t count = 0;
  region.walk([&](Operation *inner) {
    if (!inner->hasTrait<OpTrait::ConstantLike>() && !inner->hasTrait<OpTrait::IsTerminator>())
      count += isa_and_present<math::MathDialect>(inner->getDialect()) ? kFunctionCost : 1;
  });
  return count;
}

AssumedMachine getAssumedMachine(bool device) {
  // A core with 256-bit vectors at 3 GHz, half used, its part of the memory's bandwidth, and tasks that share memory or
  // a network of 40 Gbit/s. A device: one of 2022, in single precision.
  return device ? AssumedMachine{3e13, 2e12, 5e10, 4e-6} : AssumedMachine{5e10, 1e10, 5e9, 2e-7};
}

WorkEstimate::WorkEstimate(ModuleOp module)
    : symbols(module), machine(getAssumedMachine(module->hasAttr(drt::kVariableBytesAttr))) {}

WorkEstimate::Kernel WorkEstimate::getKernel(Operation *op) {
  auto name = op->getAttrOfType<FlatSymbolRefAttr>("kernel");
  auto kernel = name ? symbols.lookup<FunctionOpInterface>(name.getAttr()) : FunctionOpInterface();
  if (!kernel)
    return {};
  auto [found, isNew] = kernels.try_emplace(kernel);
  Kernel &counted = found->second;
  if (isNew)
    kernel->walk([&](Operation *inner) {
      // Those of kernels over tensors know how often they run; the loops of range kernels are told.
      if (auto structured = dyn_cast<linalg::LinalgOp>(inner)) {
        int64_t points = 1;
        for (int64_t extent : structured.getStaticLoopRanges())
          points *= std::max<int64_t>(extent, 1);
        counted.points += points;
        counted.whole += points * countInstructions(structured->getRegion(0));
      } else if (auto loop = dyn_cast<scf::ForOp>(inner); loop && !loop->getParentOfType<scf::ForOp>()) {
        counted.ofElement += countInstructions(loop.getRegion());
      }
    });
  return counted;
}

static int64_t countElements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

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
  if (isa<drt::AllReduceStartOp, drt::AllReduceWaitOp, drt::GatherStartOp, drt::BarrierOp, drt::TakeTokenOp>(op))
    return work;
  auto bytesOf = [](Value value) { return getTensorBytes(cast<RankedTensorType>(value.getType())); };
  const Kernel kernel = getKernel(op);
  // A kernel that takes some rows of a table does not read all of it.
  for (Value operand : op->getOperands())
    work.bytes +=
        isa<drt::LaunchOp>(op) && kernel.points
            ? std::min(bytesOf(operand),
                       kernel.points * getElementBytes(cast<RankedTensorType>(operand.getType()).getElementType()))
            : bytesOf(operand);
  for (Value result : op->getResults())
    work.bytes += bytesOf(result);

  int64_t written = 0; // elements of the first variable that is updated
  if (auto update = dyn_cast<drt::UpdateOp>(op))
    written = update.getShare().value_or(update.getCount());
  else if (auto sparse = dyn_cast<drt::SparseUpdateOp>(op))
    written = countElements(sparse.getValues());
  else if (auto group = dyn_cast<drt::UpdateGroupOp>(op))
    for (auto member : group.getVariables().getAsRange<ArrayAttr>())
      written += cast<RankedTensorType>(
                     symbols.lookup<drt::VariableOp>(cast<FlatSymbolRefAttr>(member[0]).getAttr()).getType())
                     .getNumElements();

  if (auto matmul = dyn_cast<drt::MatmulOp>(op))
    work.flops = countMatmul(matmul.getA(), getColumns(matmul.getB(), matmul.getTransposeB()));
  else if (auto update = dyn_cast<drt::MatmulUpdateOp>(op)) {
    work.flops = countMatmul(update.getA(), getColumns(update.getB(), update.getTransposeB()));
    auto variable = symbols.lookup<drt::VariableOp>(cast<FlatSymbolRefAttr>(update.getVariables()[0]).getAttr());
    written = cast<RankedTensorType>(variable.getType()).getNumElements();
  } else if (auto conv = op->getAttrOfType<DenseI64ArrayAttr>("descriptor"); conv && conv.size() == 18)
    work.flops = countConv(conv);
  else if (!op->hasAttr("kernel"))
    for (Value result : op->getResults())
      work.flops += countElements(result);
  if (written) {
    // Variable and slots are read and written, and the gradient is read from its bucket.
    auto variables = op->getAttrOfType<ArrayAttr>("variables");
    int64_t each = isa<drt::UpdateGroupOp>(op) ? cast<ArrayAttr>(variables[0]).size() : variables.size();
    work.bytes += written * 4 * (2 * each + (op->hasAttr("bucket") ? 1 : 0));
  }
  work.flops += kernel.whole + kernel.ofElement * written;
  return work;
}

double WorkEstimate::getSeconds(const Work &work) const {
  return machine.startSeconds + std::max(static_cast<double>(work.flops) / machine.flops,
                                         static_cast<double>(work.bytes) / machine.memoryBytes);
}

} // namespace distc
