//===- RowKernels.cpp - Rows by index, by kernels -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/lower/Passes.h"
#include "passes/lower/TensorType.h"
#include "passes/lower/gpu/DeviceKernel.h"
#include "passes/lower/gpu/SortedRows.h"
#include "passes/lower/gpu/TopK.h"
#include "passes/lower/plan/Addresses.h"
#include "runtime/include/drt/drt.h"

#include <cmath>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_ROWKERNELS
#include "passes/lower/Passes.h.inc"

namespace {

/// How rows are combined: the kinds of drt.scatter.
struct Combination {
  int32_t kind;
  Type element;
  bool fromNothing; // a segment's: NaN takes the place of what came before, as in TensorFlow's kernel

  /// What changes nothing.
  Value getNeutral(ThreadWriter &w) const {
    if (auto type = dyn_cast<FloatType>(element)) {
      const llvm::fltSemantics &semantics = type.getFloatSemantics();
      APFloat value = APFloat::getZero(semantics);
      if (kind == DRT_SCATTER_MUL)
        value = APFloat::getOne(semantics);
      else if (kind == DRT_SCATTER_MIN || kind == DRT_SCATTER_MAX)
        value = APFloat::getLargest(semantics, /*Negative=*/kind == DRT_SCATTER_MAX);
      return arith::ConstantOp::create(w.b, FloatAttr::get(type, value));
    }
    const unsigned width = element.getIntOrFloatBitWidth();
    APInt value(width, kind == DRT_SCATTER_MUL ? 1 : 0);
    if (kind == DRT_SCATTER_MIN || kind == DRT_SCATTER_MAX)
      value = kind == DRT_SCATTER_MIN ? APInt::getSignedMaxValue(width) : APInt::getSignedMinValue(width);
    return arith::ConstantOp::create(w.b, IntegerAttr::get(element, value));
  }

  Value combine(ThreadWriter &w, Value x, Value update) const {
    const bool isFloat = isa<FloatType>(element);
    auto choose = [&](arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofIntegers) -> Value {
      Value better = isFloat ? arith::CmpFOp::create(w.b, ofFloats, update, x).getResult()
                             : arith::CmpIOp::create(w.b, ofIntegers, update, x).getResult();
      return arith::SelectOp::create(w.b, better, update, x);
    };
    switch (kind) {
    case DRT_SCATTER_ADD:
      return isFloat ? arith::AddFOp::create(w.b, x, update).getResult() : arith::AddIOp::create(w.b, x, update);
    case DRT_SCATTER_SUB:
      return isFloat ? arith::SubFOp::create(w.b, x, update).getResult() : arith::SubIOp::create(w.b, x, update);
    case DRT_SCATTER_MUL:
      return isFloat ? arith::MulFOp::create(w.b, x, update).getResult() : arith::MulIOp::create(w.b, x, update);
    case DRT_SCATTER_MIN:
      return choose(fromNothing ? arith::CmpFPredicate::ULT : arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt);
    case DRT_SCATTER_MAX:
      return choose(fromNothing ? arith::CmpFPredicate::UGT : arith::CmpFPredicate::OGT, arith::CmpIPredicate::sgt);
    default:
      return update;
    }
  }

  /// Of what is combined into one before it is combined with the row.
  Combination ofParts() const { return {kind == DRT_SCATTER_SUB ? DRT_SCATTER_ADD : kind, element, fromNothing}; }
};

struct RowKernels : impl::RowKernelsBase<RowKernels> {
  void runOnOperation() override {
    DeviceLaunches all(getOperation(), "rows");
    launches = &all;
    for (drt::EntryOp entry : getEntries(getOperation())) {
      RowSorter sorter(all);
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
        auto routine = dyn_cast<drt::RoutineOp>(op);
        if ((!isa<drt::UniqueOp, drt::ScatterOp, drt::SparseUpdateOp>(op) &&
             (!routine || routine.getName() != "top_k")) ||
            !hasCode(op))
          continue;
        if (auto unique = dyn_cast<drt::UniqueOp>(op))
          sorter.replaceUnique(unique);
        else if (auto scatter = dyn_cast<drt::ScatterOp>(op))
          replaceScatter(scatter, sorter);
        else if (auto update = dyn_cast<drt::SparseUpdateOp>(op))
          sortUpdate(update, sorter);
        else if (routine)
          replaceTopK(routine, all);
      }
    }
  }

private:
  /// drt-check-for-gpu refuses the others.
  static bool hasCode(Operation &op) {
    return llvm::all_of(llvm::concat<const Type>(op.getOperandTypes(), op.getResultTypes()), [](Type type) {
      Type element = cast<RankedTensorType>(type).getElementType();
      return element.isSignlessInteger() || isa<FloatType>(element);
    });
  }

  /// A thread an element of the result goes through its row's updates.
  void replaceScatter(drt::ScatterOp op, RowSorter &sorter) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    RankedTensorType result = typeOf(op.getResult());
    const int64_t elements = result.getNumElements(), count = typeOf(op.getIndices()).getNumElements() / op.getDepth();
    const bool isEmpty = elements == 0 || count == 0;
    ArrayRef<int64_t> sizes = result.getShape().take_front(op.getDepth());
    const int64_t row = llvm::product_of(result.getShape().drop_front(op.getDepth()));
    const Combination combination{static_cast<int32_t>(op.getKind()), result.getElementType(), !op.getInitial()};
    const bool isLast = combination.kind == DRT_SCATTER_UPDATE;

    SmallVector<Value> operands;
    Segments segments;
    int64_t chunk = 0;
    if (!isEmpty) {
      segments = sorter.getSegments(b, op.getIndices(), sizes);
      operands = {op.getUpdates(), segments.sorted.tensor, segments.bounds};
      chunk = isLast ? 0 : chooseChunk(count);
      if (chunk)
        operands.push_back(joinChunks(b, op, segments.sorted, row, chunk));
    }
    if (op.getInitial())
      operands.push_back(op.getInitial());

    auto write = [&](ThreadWriter &w, ValueRange in, ValueRange out) {
      Value at = w.getNumber();
      w.when(w.isInside(at, elements), [&] {
        Value start = op.getInitial() ? w.load(in.back(), at) : combination.getNeutral(w);
        if (isEmpty)
          return w.store(start, out[0], at);
        Value slice = w.div(at, row), column = w.rem(at, row);
        Value begin = w.toIndex(w.load(in[2], slice)), end = w.toIndex(w.load(in[2], w.add(slice, segments.ends)));
        auto load = [&](Value place) {
          Value position = w.toIndex(w.load(in[1], w.add(place, count)));
          return w.load(in[0], w.add(w.mul(position, row), column));
        };
        if (isLast) {
          Value last =
              w.when(w.less(begin, end), start, [&] { return ThreadWriter::Values{load(w.sub(end, w.number(1)))}; })[0];
          return w.store(last, out[0], at);
        }
        auto go = [&](Value from, Value to, Value carried, llvm::function_ref<Value(Value)> element) {
          return w.loop(from, to, carried, [&](Value place, ValueRange now) {
            return ThreadWriter::Values{combination.combine(w, now[0], element(place))};
          })[0];
        };
        if (!chunk)
          return w.store(go(begin, end, start, load), out[0], at);
        // Chunks that lie whole in the segment are joined already.
        Value first = w.div(w.add(begin, chunk - 1), chunk), behind = w.div(end, chunk);
        Value front = w.min(w.mul(first, chunk), end), back = w.max(w.mul(behind, chunk), front);
        Value sum = go(begin, front, start, load);
        sum = go(first, behind, sum, [&](Value part) { return w.load(in[3], w.add(w.mul(part, row), column)); });
        w.store(go(back, end, sum, load), out[0], at);
      });
    };
    SmallVector<int64_t> parameters = {combination.kind, static_cast<int64_t>(op.getDepth()), row,    count, chunk,
                                       segments.ends,    op.getInitial() != nullptr,          isEmpty};
    if (elements == 0)
      op.replaceAllUsesWith(drt::EmptyOp::create(b, result, DenseI64ArrayAttr()).getResult());
    else
      op.replaceAllUsesWith(launches->launch(b, "scatter", parameters, result, operands, elements, kThreads, write)[0]);
    op.erase();
  }

  /// A row that most indices name would be one thread's work. In two steps a thread has as much in each; 0: one is
  /// enough.
  static int64_t chooseChunk(int64_t count) {
    constexpr int64_t least = 16, most = 512;
    if (count < 4 * least)
      return 0;
    const auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(count)));
    return std::clamp(static_cast<int64_t>(llvm::PowerOf2Ceil(root)), least, most);
  }

  /// Of each whole chunk of the sorted updates, all of them combined, where they are one row's: `tensor<chunks x row>`.
  Value joinChunks(ImplicitLocOpBuilder &b, drt::ScatterOp op, const Sorted &sorted, int64_t row, int64_t chunk) {
    const int64_t count = sorted.count, chunks = count / chunk;
    const Combination parts =
        Combination{static_cast<int32_t>(op.getKind()), typeOf(op.getResult()).getElementType(), !op.getInitial()}
            .ofParts();
    auto write = [&](ThreadWriter &w, ValueRange in, ValueRange out) {
      Value at = w.getNumber();
      w.when(w.isInside(at, chunks * row), [&] {
        Value begin = w.mul(w.div(at, row), chunk), column = w.rem(at, row);
        Value isOne = w.equal(w.load(in[1], begin), w.load(in[1], w.add(begin, chunk - 1)));
        w.when(isOne, [&] {
          Value sum = w.loop(begin, w.add(begin, chunk), parts.getNeutral(w), [&](Value place, ValueRange now) {
            Value position = w.toIndex(w.load(in[1], w.add(place, count)));
            Value update = w.load(in[0], w.add(w.mul(position, row), column));
            return ThreadWriter::Values{parts.combine(w, now[0], update)};
          })[0];
          w.store(sum, out[0], at);
        });
      });
    };
    auto type = RankedTensorType::get({chunks, row}, parts.element);
    return launches->launch(b, "chunks", {parts.kind, parts.fromNothing, row, chunk}, type,
                            {op.getUpdates(), sorted.tensor}, chunks * row, kThreads, write)[0];
  }

  /// Its kernel is written when places are known.
  static void sortUpdate(drt::SparseUpdateOp op, RowSorter &sorter) {
    if (typeOf(op.getValues()).getNumElements() == 0)
      return op.erase();
    // Values that are distinct, behind which there is padding.
    if (op.getDepth() == 1 && sorter.isDistinct(op.getIndices()))
      return op.setDistinct(true);
    ImplicitLocOpBuilder b(op.getLoc(), op);
    auto name = cast<FlatSymbolRefAttr>(op.getVariables()[0]);
    auto variable = SymbolTable::lookupNearestSymbolFrom<drt::VariableOp>(op, name.getAttr());
    ArrayRef<int64_t> sizes = typeOf(variable).getShape().take_front(op.getDepth());
    op.getIndicesMutable().assign(sorter.sortIndices(b, op.getIndices(), sizes).tensor);
    op.setSorted(true);
  }

  static RankedTensorType typeOf(drt::VariableOp variable) { return cast<RankedTensorType>(variable.getType()); }
  static RankedTensorType typeOf(Value tensor) { return distc::typeOf(tensor); }

  DeviceLaunches *launches = nullptr;
};

} // namespace
} // namespace distc
