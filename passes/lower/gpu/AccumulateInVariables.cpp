//===- AccumulateInVariables.cpp - Gradients of several batches on devices ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/lower/Passes.h"
#include "passes/lower/SymbolNames.h"
#include "passes/lower/TensorType.h"
#include "passes/lower/plan/Addresses.h"

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_ACCUMULATEINVARIABLES
#include "passes/lower/Passes.h.inc"

namespace {

/// Makes a new element from the sum's and a gradient's.
using ElementFn = llvm::function_ref<Value(ImplicitLocOpBuilder &, Value sum, Value gradient)>;

Value add(ImplicitLocOpBuilder &b, Value x, Value y) {
  return isa<FloatType>(x.getType()) ? arith::AddFOp::create(b, x, y).getResult() : arith::AddIOp::create(b, x, y);
}

struct AccumulateInVariables : impl::AccumulateInVariablesBase<AccumulateInVariables> {
  void runOnOperation() override {
    SymbolTable table(getOperation());
    symbols = &table;
    names.emplace(getOperation());
    sums.clear();
    for (drt::EntryOp entry : getEntries(getOperation()))
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
        if (auto keep = dyn_cast<drt::AccumulateOp>(op))
          keep.getSlices() ? convertSlices(keep) : convert(keep);
        else if (auto take = dyn_cast<drt::AccumulatedOp>(op))
          take.getSlices() ? convertSlices(take) : convert(take);
      }
  }

private:
  /// sum += gradient. The operation stays, for the number of batches that it says.
  void convert(drt::AccumulateOp op) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    for (auto [i, gradient] : llvm::enumerate(op.getGradients()))
      update(b, op.getFirst() + i, typeOf(gradient), gradient,
             [](ImplicitLocOpBuilder &b, Value sum, Value x) { return add(b, sum, x); });
    op.getGradientsMutable().clear();
  }

  /// (sum + gradient) * scale; at the entry's end, when nothing reads it any more, the sum is zero again.
  void convert(drt::AccumulatedOp op) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    ImplicitLocOpBuilder end = ImplicitLocOpBuilder::atBlockEnd(op.getLoc(), op->getBlock());
    for (auto [i, gradient, result] : llvm::enumerate(op.getGradients(), op.getAccumulated())) {
      RankedTensorType type = typeOf(gradient);
      Value sum = drt::ReadOp::create(b, type, getSum(op.getFirst() + i, type).getSymName());
      result.replaceAllUsesWith(addScaled(b, sum, gradient, op.getScale().convertToDouble()));
      update(end, op.getFirst() + i, type, Value(), [](ImplicitLocOpBuilder &b, Value sum, Value) -> Value {
        return arith::ConstantOp::create(b, b.getZeroAttr(sum.getType()));
      });
    }
    drt::AccumulateOp::create(b, op.getFirstAttr(), op.getStepsAttr(), UnitAttr(), ValueRange());
    op.erase();
  }

  /// The variable has the rows of all batches of an update but the last, which move up by those of a batch.
  void convertSlices(drt::AccumulateOp op) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    for (auto [i, gradient] : llvm::enumerate(op.getGradients())) {
      const int64_t number = op.getFirst() + i, rows = typeOf(gradient).getNumElements();
      if (rows == 0)
        continue;
      RankedTensorType type = getKeptType(gradient, op.getSteps());
      Value kept = drt::ReadOp::create(b, type, getSum(number, type).getSymName());
      Value moved = join(b, kept, rows, type.getNumElements() - rows, gradient, 1);
      update(b, number, type, moved, [](ImplicitLocOpBuilder &, Value, Value x) { return x; });
    }
    op.getGradientsMutable().clear();
    op.setSlices(false);
  }

  /// The rows of all batches, in their order.
  void convertSlices(drt::AccumulatedOp op) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    for (auto [i, gradient, result] : llvm::enumerate(op.getGradients(), op.getAccumulated())) {
      RankedTensorType type = getKeptType(gradient, op.getSteps());
      Value all;
      if (type.getNumElements() == 0) {
        all = drt::EmptyOp::create(b, result.getType(), DenseI64ArrayAttr());
      } else {
        Value kept = drt::ReadOp::create(b, type, getSum(op.getFirst() + i, type).getSymName());
        all = join(b, kept, 0, type.getNumElements(), gradient, op.getScale().convertToDouble());
        if (auto shape = getReassociationIndicesForReshape(typeOf(all), typeOf(result)); typeOf(result).getRank() > 1)
          all = tensor::ExpandShapeOp::create(b, typeOf(result), all, *shape);
      }
      result.replaceAllUsesWith(all);
    }
    drt::AccumulateOp::create(b, op.getFirstAttr(), op.getStepsAttr(), UnitAttr(), ValueRange());
    op.erase();
  }

  static RankedTensorType getKeptType(Value gradient, int64_t steps) {
    return RankedTensorType::get({(steps - 1) * typeOf(gradient).getNumElements()}, typeOf(gradient).getElementType());
  }

  /// `count` elements of `kept` from `first` on, and the gradient's, times scale.
  static Value join(ImplicitLocOpBuilder &b, Value kept, int64_t first, int64_t count, Value gradient, double scale) {
    RankedTensorType type = typeOf(gradient);
    if (type.getRank() > 1)
      gradient = tensor::CollapseShapeOp::create(
          b, gradient, ReassociationIndices(llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()))));
    Type element = type.getElementType();
    Value empty = tensor::EmptyOp::create(b, ArrayRef<int64_t>{count + type.getNumElements()}, element);
    auto body = [&](OpBuilder &inner, Location loc, ValueRange) {
      ImplicitLocOpBuilder s(loc, inner);
      Value at = linalg::IndexOp::create(s, 0);
      auto number = [&](int64_t value) { return arith::ConstantIndexOp::create(s, value).getResult(); };
      auto load = [&](OpBuilder &branch, Value tensor, Value place) {
        scf::YieldOp::create(branch, loc,
                             tensor::ExtractOp::create(branch, loc, tensor, ValueRange{place}).getResult());
      };
      Value isKept = arith::CmpIOp::create(s, arith::CmpIPredicate::ult, at, number(count));
      Value before = arith::AddIOp::create(s, at, number(first)), behind = arith::SubIOp::create(s, at, number(count));
      Value value = scf::IfOp::create(
                        s, isKept, [&](OpBuilder &branch, Location) { load(branch, kept, before); },
                        [&](OpBuilder &branch, Location) { load(branch, gradient, behind); })
                        .getResult(0);
      if (scale != 1)
        value = arith::MulFOp::create(s, value, arith::ConstantOp::create(s, s.getFloatAttr(element, scale)));
      linalg::YieldOp::create(s, value);
    };
    return linalg::GenericOp::create(b, TypeRange{empty.getType()}, ValueRange(), ValueRange{empty},
                                     {b.getMultiDimIdentityMap(1)}, {utils::IteratorType::parallel}, body)
        .getResult(0);
  }

  Value addScaled(ImplicitLocOpBuilder &b, Value sum, Value gradient, double scale) {
    RankedTensorType type = typeOf(sum);
    Value empty = tensor::EmptyOp::create(b, type.getShape(), type.getElementType());
    SmallVector<AffineMap> maps(3, b.getMultiDimIdentityMap(type.getRank()));
    SmallVector<utils::IteratorType> loops(type.getRank(), utils::IteratorType::parallel);
    auto body = [&](OpBuilder &inner, Location loc, ValueRange elements) {
      ImplicitLocOpBuilder s(loc, inner);
      Value total = add(s, elements[0], elements[1]);
      if (scale != 1)
        total = arith::MulFOp::create(s, total, arith::ConstantOp::create(s, s.getFloatAttr(total.getType(), scale)));
      linalg::YieldOp::create(s, total);
    };
    return linalg::GenericOp::create(b, TypeRange{type}, ValueRange{sum, gradient}, ValueRange{empty}, maps, loops,
                                     body)
        .getResult(0);
  }

  drt::VariableOp getSum(int64_t number, RankedTensorType type) {
    if (drt::VariableOp known = sums.lookup(number))
      return known;
    // A variable of the graph may be called like this, and is another one.
    unsigned free = static_cast<unsigned>(number);
    const std::string name = names->make("accumulator_", free);
    OpBuilder b(&getContext());
    b.setInsertionPointToStart(getOperation().getBody());
    // The program's table has them last.
    for (auto variable : getOperation().getOps<drt::VariableOp>())
      b.setInsertionPointAfter(variable);
    auto variable =
        drt::VariableOp::create(b, b.getUnknownLoc(), name, type, /*trainable=*/false, /*saved=*/false, StringAttr(),
                                DenseI64ArrayAttr(), DenseI64ArrayAttr(), IntegerAttr(), IntegerAttr(), IntegerAttr());
    symbols->insert(variable);
    sums[number] = variable;
    return variable;
  }

  /// An update of a sum, with its range kernel.
  void update(ImplicitLocOpBuilder &b, int64_t number, RankedTensorType type, Value gradient, ElementFn fn) {
    auto buffer = MemRefType::get({type.getNumElements()}, type.getElementType());
    SmallVector<Type> types = {b.getI64Type(), b.getI64Type(), buffer};
    if (gradient)
      types.push_back(buffer);
    ImplicitLocOpBuilder k(b.getLoc(), OpBuilder::atBlockEnd(getOperation().getBody()));
    const std::string name = names->make(gradient ? "accumulate_" : "forget_", kernels);
    auto kernel = drt::KernelOp::create(k, name, k.getFunctionType(types, {}));
    kernel.setRange(true);
    Block *body = kernel.addEntryBlock();
    k.setInsertionPointToStart(body);
    auto index = [&](Value value) { return arith::IndexCastOp::create(k, k.getIndexType(), value).getResult(); };
    auto loop = scf::ForOp::create(k, index(body->getArgument(0)), index(body->getArgument(1)),
                                   arith::ConstantIndexOp::create(k, 1));
    drt::ReturnOp::create(k);
    k.setInsertionPointToStart(loop.getBody());
    Value at = loop.getInductionVar();
    Value sum = memref::LoadOp::create(k, body->getArgument(2), ValueRange{at});
    Value element = gradient ? memref::LoadOp::create(k, body->getArgument(3), ValueRange{at}).getResult() : Value();
    memref::StoreOp::create(k, fn(k, sum, element), body->getArgument(2), ValueRange{at});

    auto variable = FlatSymbolRefAttr::get(getSum(number, type).getSymNameAttr());
    drt::UpdateOp::create(b, name, b.getArrayAttr(variable), IntegerAttr(), IntegerAttr(), type.getNumElements(),
                          gradient ? ValueRange(gradient) : ValueRange(), IntegerAttr(), IntegerAttr());
  }

  SymbolTable *symbols = nullptr;
  std::optional<lower::SymbolNames> names;
  llvm::DenseMap<int64_t, drt::VariableOp> sums;
  unsigned kernels = 0;
};

} // namespace
} // namespace distc
