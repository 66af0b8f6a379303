//===- RowUpdate.cpp - An update of some rows as one kernel --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/RowUpdate.h"

#include "passes/lower/gpu/DeviceKernel.h"
#include "passes/lower/gpu/SortedRows.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {
namespace {

/// Arguments of the kernel.
enum { ArenaBase, VariablesBase, Indices, FirstValues, FirstOther };

bool isVariable(const UpdateOperand &operand) { return operand.kind == UpdateOperand::Variables; }

MemRefType lineOf(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  return MemRefType::get({type.getNumElements()}, type.getElementType());
}

class RowUpdateWriter {
public:
  RowUpdateWriter(const RowUpdate &update, ModuleOp module, StringRef name, MemorySizes sizes)
      : update(update), op(update.op), count(op.getNumRows()), b(update.op->getLoc(), module.getContext()),
        kernel(createKernel(b, module, name, arguments(sizes),
                            std::max<int64_t>(llvm::divideCeil(count * update.row, kThreads), 1), kThreads)),
        w(b, kernel, kThreads) {}

  void write() {
    Value at = w.getNumber();
    w.when(w.isInside(at, count * update.row), [&] {
      Value place = w.div(at, update.row);
      Value column = w.rem(at, update.row);
      Value indices = kernel.getArgument(Indices);
      if (op.getSorted()) {
        Value row = w.load(indices, place);
        w.when(w.both(isFirst(indices, place, row), isRow(row)), [&] { updateRow(w.toIndex(row), place, column); });
      } else {
        Value row = RowSorter::writeRow(w, indices, place, update.sizes, b.getIndexType());
        w.when(isRow(row), [&] { updateRow(row, place, column); });
      }
    });
  }

private:
  SmallVector<Type> arguments(MemorySizes sizes) {
    SmallVector<Type> types = {MemRefType::get({sizes.arena}, b.getI8Type()),
                               MemRefType::get({sizes.variables}, b.getI8Type())};
    for (Value tensor : update.getArguments())
      types.push_back(lineOf(tensor));
    return types;
  }

  /// The row before is another one.
  Value isFirst(Value indices, Value place, Value row) {
    Value isStart = w.equal(place, w.number(0));
    Value before = w.load(indices, w.select(isStart, place, w.sub(place, w.number(1))));
    return w.either(isStart, w.less(before, row));
  }
  Value isRow(Value row) { return w.isInside(row, llvm::product_of(update.sizes)); }

  void updateRow(Value row, Value place, Value column) {
    Value element = w.add(w.mul(row, update.row), column);
    bind(element);
    ThreadWriter::Values written(elements.begin(), elements.begin() + op.getVariables().size());
    if (op.getSorted()) {
      ThreadWriter::Values carried = {place};
      llvm::append_range(carried, written);
      carried = w.loopWhile(
          carried,
          [&](ValueRange now) {
            Value isThere = w.isInside(now[0], count);
            Value other = w.load(kernel.getArgument(Indices), w.min(now[0], w.number(count - 1)));
            return w.both(isThere, w.equal(w.toIndex(other), row));
          },
          [&](ValueRange now) {
            Value position = w.toIndex(w.load(kernel.getArgument(Indices), w.add(now[0], count)));
            ThreadWriter::Values next = {w.add(now[0], 1)};
            llvm::append_range(next, apply(position, column, now.drop_front()));
            return next;
          });
      written.assign(carried.begin() + 1, carried.end());
    } else {
      written = apply(place, column, written);
    }
    for (auto [value, buffer] : llvm::zip(written, buffers))
      w.store(value, buffer, element);
  }

  /// The new elements of the variables, from the gradient's at a position.
  ThreadWriter::Values apply(Value position, Value column, ValueRange variables) {
    ThreadWriter::Values operands = {
        w.load(kernel.getArgument(FirstValues), w.add(w.mul(position, update.row), column))};
    llvm::append_range(operands, variables);
    operands.append(elements.begin() + variables.size(), elements.end());
    return update.rule.write(b, operands);
  }

  /// The element of each operand behind the gradient.
  void bind(Value element) {
    unsigned argument = FirstOther;
    for (auto [operand, type] : llvm::zip(update.operands, update.rule.getTypes().drop_front())) {
      if (isVariable(operand)) {
        Value base = kernel.getArgument(VariablesBase);
        auto whole = MemRefType::get({llvm::product_of(update.sizes) * update.row}, type);
        buffers.push_back(memref::ViewOp::create(b, whole, base, w.number(operand.offset), ValueRange()));
        elements.push_back(w.load(buffers.back(), element));
      } else {
        const bool isScalar = operand.kind == UpdateOperand::Scalar;
        elements.push_back(w.load(kernel.getArgument(argument++), isScalar ? w.number(0) : element));
      }
    }
  }

  const RowUpdate &update;
  drt::SparseUpdateOp op;
  const int64_t count;
  ImplicitLocOpBuilder b;
  gpu::GPUFuncOp kernel;
  ThreadWriter w;
  SmallVector<Value> buffers;  // of variables, those that are updated first
  SmallVector<Value> elements; // of the operands behind the gradient
};

} // namespace

FailureOr<RowUpdate> RowUpdate::get(drt::SparseUpdateOp op, const SymbolTable &symbols) {
  if (!op.getSorted() && !op.getDistinct())
    return op.emitOpError("has rows in no order that threads know; run drt-row-kernels");
  auto kernel = symbols.lookup<drt::KernelOp>(op.getKernel());
  if (!kernel)
    return op.emitOpError("has no range kernel ") << op.getKernelAttr();
  FailureOr<UpdateRule> rule = UpdateRule::get(kernel, /*hasGradient=*/true, op.getVariables().size());
  if (failed(rule))
    return failure();
  RowUpdate update{op, std::move(*rule), {}, 0, {}};
  auto add = [&](StringRef name, Value tensor) -> LogicalResult {
    auto variable = symbols.lookup<drt::VariableOp>(name);
    if (!variable || !variable.getAt())
      return op.emitOpError("uses variable '")
             << name << "', which has no place in the block of variables; run drt-plan-memory{device}";
    if (update.operands.empty()) {
      ArrayRef<int64_t> shape = cast<RankedTensorType>(variable.getType()).getShape();
      update.sizes = llvm::to_vector(shape.take_front(op.getDepth()));
      update.row = llvm::product_of(shape.drop_front(op.getDepth()));
    }
    UpdateOperand operand{UpdateOperand::Variables, static_cast<int64_t>(*variable.getAt())};
    operand.tensor = tensor;
    update.operands.push_back(operand);
    return success();
  };
  for (auto variable : op.getVariables().getAsRange<FlatSymbolRefAttr>())
    if (failed(add(variable.getValue(), {})))
      return failure();
  for (Value argument : op.getArguments()) {
    const bool isScalar = cast<RankedTensorType>(argument.getType()).getNumElements() == 1;
    auto read = getStorage(argument).getDefiningOp<drt::ReadOp>();
    if (!read || isScalar)
      update.operands.push_back({isScalar ? UpdateOperand::Scalar : UpdateOperand::Pointer, 0, argument});
    else if (failed(add(read.getVariable(), argument)))
      return failure();
  }
  return update;
}

SmallVector<Value> RowUpdate::getArguments() const {
  drt::SparseUpdateOp sparse = op;
  SmallVector<Value> tensors = {sparse.getIndices(), sparse.getValues()};
  for (const UpdateOperand &operand : operands)
    if (!isVariable(operand))
      tensors.push_back(operand.tensor);
  return tensors;
}

SmallVector<Value> RowUpdate::getReads() const {
  SmallVector<Value> tensors;
  for (const UpdateOperand &operand : operands)
    if (isVariable(operand) && operand.tensor)
      tensors.push_back(operand.tensor);
  return tensors;
}

void writeRowUpdateKernel(const RowUpdate &update, ModuleOp module, StringRef name, MemorySizes sizes) {
  RowUpdateWriter(update, module, name, sizes).write();
}

} // namespace distc
