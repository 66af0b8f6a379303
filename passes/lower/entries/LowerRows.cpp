//===- LowerRows.cpp - Rows by index ---------------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/drt/Drt.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/lower/entries/EntryLowering.h"
#include "runtime/include/drt/drt.h"

using namespace mlir;

namespace distc::lower {
namespace {

using dfg::ScalarBuilder;

enum Kind {
  Update = DRT_SCATTER_UPDATE,
  Add = DRT_SCATTER_ADD,
  Sub = DRT_SCATTER_SUB,
  Mul = DRT_SCATTER_MUL,
  Min = DRT_SCATTER_MIN,
  Max = DRT_SCATTER_MAX
};

/// The element at `from` where `inside` holds. An index outside of the table reads no foreign memory: like TensorFlow
/// on GPUs it gives 0.
Value loadInside(ScalarBuilder &s, Value inside, Value tensor, ValueRange from) {
  auto branch = scf::IfOp::create(
      s.builder, s.loc, inside,
      [&](OpBuilder &builder, Location loc) {
        ScalarBuilder inner(builder, loc);
        scf::YieldOp::create(builder, loc, EntryLowering::load(inner, tensor, from));
      },
      [&](OpBuilder &builder, Location loc) {
        ScalarBuilder inner(builder, loc);
        scf::YieldOp::create(builder, loc, inner.constant(typeOf(tensor).getElementType(), 0.0));
      });
  return branch.getResult(0);
}

/// No index names a row where there are none.
LogicalResult refuseEmpty(Operation *op, int64_t axis, RankedTensorType table) {
  op->emitError() << "node '" << dfg::getNodeName(op) << "' takes rows along axis " << axis << " of " << table
                  << ", which has none";
  return failure();
}

/// Integers of these types are indices of any table.
bool isWide(Type element) { return element.isInteger(32) || element.isInteger(64); }

/// Whether its elements are 0, 1, 2, ...: what is taken of them are the indices.
bool isCount(EntryLowering &lowering, Value numbers) {
  auto getElements = [&](Value value) {
    auto constant = lowering.get(value).getDefiningOp<arith::ConstantOp>();
    return constant ? llvm::dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
  };
  if (DenseIntElementsAttr elements = getElements(numbers))
    return llvm::all_of(llvm::enumerate(elements.getValues<APInt>()),
                        [](auto each) { return each.value().getSExtValue() == static_cast<int64_t>(each.index()); });
  Operation *made = numbers.getDefiningOp();
  while (llvm::isa_and_nonnull<dfg::CastOp>(made) && isWide(getElementTypeOrSelf(made->getOperand(0))))
    made = made->getOperand(0).getDefiningOp();
  auto range = llvm::dyn_cast_or_null<dfg::RangeOp>(made);
  if (!range)
    return false;
  auto is = [&](unsigned operand, int64_t number) {
    DenseIntElementsAttr elements = getElements(range->getOperand(operand));
    return elements && elements.isSplat() && elements.getSplatValue<APInt>().getSExtValue() == number;
  };
  return is(0, 0) && is(2, 1);
}

LogicalResult lowerGather(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  int64_t axis = 0, batchDims = 0;
  Value params = lowering.get(op->getOperand(0)), indices = lowering.get(op->getOperand(1));
  int64_t paramsRank = llvm::cast<RankedTensorType>(params.getType()).getRank();
  auto indicesType = llvm::cast<RankedTensorType>(indices.getType());
  if (auto version2 = llvm::dyn_cast<dfg::GatherV2Op>(op)) {
    FailureOr<SmallVector<int64_t>> given = lowering.getConstants(op, 2);
    if (failed(given))
      return failure();
    axis = given->front() < 0 ? given->front() + paramsRank : given->front();
    batchDims = version2.getBatchDimsAttr().getInt();
    batchDims = batchDims < 0 ? batchDims + indicesType.getRank() : batchDims;
  }
  int64_t extent = llvm::cast<RankedTensorType>(params.getType()).getDimSize(axis);
  if (extent == 0 && !isEmpty(*type))
    return refuseEmpty(op, axis, typeOf(params));
  if (failed(lowering.checkIndices(op, 1, extent)))
    return failure();
  const bool givesIndices = paramsRank == 1 && isWide(type->getElementType()) && isCount(lowering, op->getOperand(0));
  lowering.set(op->getResult(0), lowering.gather(op->getLoc(), *type, [&](ScalarBuilder &s, ValueRange at) -> Value {
    // Result axes: params' before `axis`, the indices' (behind the shared ones), params' behind `axis`.
    int64_t taken = indicesType.getRank() - batchDims;
    SmallVector<Value> where(at.begin(), at.begin() + batchDims);
    where.append(at.begin() + axis, at.begin() + axis + taken);
    Value row = toIndex(s, EntryLowering::load(s, indices, where));
    Value inside = arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ult, row, index(s, extent));
    SmallVector<Value> from(at.begin(), at.begin() + axis);
    from.push_back(row);
    from.append(at.begin() + axis + taken, at.end());
    if (givesIndices) {
      Value number = arith::IndexCastOp::create(s.builder, s.loc, type->getElementType(), row);
      return arith::SelectOp::create(s.builder, s.loc, inside, number, s.constant(type->getElementType(), 0.0));
    }
    return loadInside(s, inside, params, from);
  }));
  return success();
}

LogicalResult lowerGatherNd(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  Value params = lowering.get(op->getOperand(0)), indices = lowering.get(op->getOperand(1));
  int64_t depth = typeOf(indices).getShape().back(), outer = typeOf(indices).getRank() - 1;
  for (int64_t axis = 0; axis < depth; ++axis)
    if (typeOf(params).getDimSize(axis) == 0 && !isEmpty(*type))
      return refuseEmpty(op, axis, typeOf(params));
  if (failed(lowering.checkIndices(op, 1, typeOf(params).getShape().take_front(depth))))
    return failure();
  lowering.set(op->getResult(0), lowering.gather(op->getLoc(), *type, [&](ScalarBuilder &s, ValueRange at) -> Value {
    SmallVector<Value> where(at.take_front(outer)), from;
    Value inside = arith::ConstantOp::create(s.builder, s.loc, s.builder.getBoolAttr(true));
    for (int64_t axis = 0; axis < depth; ++axis) {
      where.push_back(index(s, axis));
      Value row = toIndex(s, EntryLowering::load(s, indices, where));
      where.pop_back();
      inside = s.bitAnd(inside, arith::CmpIOp::create(s.builder, s.loc, arith::CmpIPredicate::ult, row,
                                                      index(s, typeOf(params).getDimSize(axis))));
      from.push_back(row);
    }
    llvm::append_range(from, at.drop_front(outer));
    return loadInside(s, inside, params, from);
  }));
  return success();
}

LogicalResult lowerUnique(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> y = getStaticType(op, 0), idx = getStaticType(op, 1);
  if (failed(y) || failed(idx))
    return failure();
  if (y->getRank() != 1 || !y->getElementType().isInteger()) {
    op->emitError() << "node '" << dfg::getNodeName(op) << "': distinct values of " << *y
                    << " have no code; they are found in vectors of integers";
    return failure();
  }
  auto unique = drt::UniqueOp::create(lowering.builder, op->getLoc(), TypeRange{*y, *idx, *idx},
                                      lowering.get(op->getOperand(0)), DenseI64ArrayAttr());
  for (auto [result, value] : llvm::zip(op->getResults(), unique->getResults()))
    lowering.set(result, value);
  return success();
}

/// The runtime scatters floats of 32 bits and more.
void scatter(EntryLowering &lowering, Operation *op, Kind kind, int64_t depth, Value indices, Value updates,
             Value initial) {
  Location loc = op->getLoc();
  RankedTensorType type = typeOf(op->getResult(0));
  Type element = type.getElementType(), wide = isNarrowFloat(element) ? lowering.builder.getF32Type() : element;
  if (initial)
    initial = lowering.cast(loc, initial, wide);
  else if (wide != element &&
           (kind == Min || kind == Max)) // what is in no segment is the narrow type's extreme, not float32's
    initial = lowering.constant(
        loc, type.clone(wide),
        APFloat::getLargest(llvm::cast<FloatType>(element).getFloatSemantics(), kind == Max).convertToDouble());
  Value result = drt::ScatterOp::create(lowering.builder, loc, type.clone(wide), kind, depth, indices,
                                        lowering.cast(loc, updates, wide), initial, DenseI64ArrayAttr());
  lowering.set(op->getResult(0), lowering.cast(loc, result, element));
}

/// Operands: data, segments, their number.
template <Kind kind> LogicalResult lowerSegment(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  scatter(lowering, op, kind, /*depth=*/1, lowering.get(op->getOperand(1)), lowering.get(op->getOperand(0)), Value());
  return success();
}

/// Operands: the tensor that is changed (not for ScatterNd), indices, updates.
template <Kind kind> LogicalResult lowerScatter(EntryLowering &lowering, Operation *op) {
  FailureOr<RankedTensorType> type = getStaticType(op);
  if (failed(type))
    return failure();
  bool fromZero = llvm::isa<dfg::ScatterNdOp>(op);
  Value initial = fromZero ? Value() : lowering.get(op->getOperand(0));
  Value indices = lowering.get(op->getOperand(fromZero ? 0 : 1)),
        updates = lowering.get(op->getOperand(fromZero ? 1 : 2));
  int64_t depth = typeOf(indices).getShape().back();
  if (depth == 0) {
    op->emitError() << "node '" << dfg::getNodeName(op) << "' has indices of no numbers (" << typeOf(indices)
                    << "), each of which names the whole tensor; there is no code for them";
    return failure();
  }
  if (failed(lowering.checkIndices(op, fromZero ? 0 : 1, type->getShape().take_front(depth))))
    return failure();
  scatter(lowering, op, kind, depth, indices, updates, initial);
  return success();
}

LogicalResult lowerCheckNumerics(EntryLowering &lowering, Operation *op) {
  Value input = lowering.get(op->getOperand(0));
  std::string message = (llvm::cast<dfg::CheckNumericsOp>(op).getMessage() + " : Tensor had NaN or Inf values").str();
  lowering.set(op->getResult(0), input);
  if (isEmpty(typeOf(input)))
    return success();
  if (!lowering.isForDevices) {
    drt::CheckNumericsOp::create(lowering.builder, op->getLoc(), message, input);
    return success();
  }
  // The host is told of a truth value, not of all elements.
  Type flag = lowering.builder.getI1Type();
  RankedTensorType type = typeOf(input);
  Value finite = lowering.elementwise(op->getLoc(), type.clone(flag), input,
                                      [](dfg::ScalarBuilder &s, ValueRange x) { return s.isFinite(x[0]); });
  Value all = lowering.reduce(
      op->getLoc(), finite, llvm::to_vector(llvm::seq<int64_t>(0, type.getRank())), flag,
      [&](dfg::ScalarBuilder &s) { return s.constant(flag, 1.0); },
      [](dfg::ScalarBuilder &s, Value accumulator, Value element) { return s.bitAnd(accumulator, element); });
  drt::AssertOp::create(lowering.builder, op->getLoc(), message, /*summarize=*/0, /*prints=*/false, all, ValueRange());
  return success();
}

} // namespace

void addRowLowerings(LoweringTable &table, MLIRContext *context) {
  addLowering<dfg::GatherOp>(table, context, lowerGather);
  addLowering<dfg::GatherV2Op>(table, context, lowerGather);
  addLowering<dfg::GatherNdOp>(table, context, lowerGatherNd);
  addLowering<dfg::UniqueOp>(table, context, lowerUnique);
  addLowering<dfg::UniqueWithCountsOp>(table, context, lowerUnique);
  addLowering<dfg::UniqueV2Op>(table, context, lowerUnique);
  addLowering<dfg::UniqueWithCountsV2Op>(table, context, lowerUnique);
  addLowering<dfg::UnsortedSegmentSumOp>(table, context, lowerSegment<Add>);
  addLowering<dfg::UnsortedSegmentProdOp>(table, context, lowerSegment<Mul>);
  addLowering<dfg::UnsortedSegmentMaxOp>(table, context, lowerSegment<Max>);
  addLowering<dfg::UnsortedSegmentMinOp>(table, context, lowerSegment<Min>);
  addLowering<dfg::ScatterNdOp>(table, context, lowerScatter<Add>);
  addLowering<dfg::TensorScatterUpdateOp>(table, context, lowerScatter<Update>);
  addLowering<dfg::TensorScatterAddOp>(table, context, lowerScatter<Add>);
  addLowering<dfg::ScatterNdNonAliasingAddOp>(table, context, lowerScatter<Add>);
  addLowering<dfg::TensorScatterSubOp>(table, context, lowerScatter<Sub>);
  addLowering<dfg::TensorScatterMaxOp>(table, context, lowerScatter<Max>);
  addLowering<dfg::TensorScatterMinOp>(table, context, lowerScatter<Min>);
  addLowering<dfg::CheckNumericsOp>(table, context, lowerCheckNumerics);
}

} // namespace distc::lower
