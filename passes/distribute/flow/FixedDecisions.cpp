//===- FixedDecisions.cpp - What a fixed batch's size decides in functions ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Conditions and loops that are written out are looked at while they are evaluated
// (RowNumbers.cpp). Those that stay have functions, or a loop's frame, in which a
// number of rows may go from iteration to iteration. So values are followed forward
// through the graph and the functions that it runs, until nothing changes: which of
// them are made of a size that may be the batch's, and what they may be where that is
// any number of times the rows. Each function is followed once for all its callers.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/FixedDecisions.h"
#include "dialects/dfg/Frames.h"
#include "dialects/dfg/NumberRange.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/distribute/flow/BatchAxis.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace distc {
namespace {

/// What is known of a value.
struct RowNumber {
  /// Whether a size that may be the batch's is in it.
  bool isOfRows = false;
  /// A vector of which the first element alone may be one, as of a shape.
  bool isFirst = false;
  /// Of what is of rows, or a constant; of such a vector, that of its first element.
  dfg::NumberRange range;
};

class DecisionFinder {
public:
  DecisionFinder(dfg::GraphOp graph, int64_t rows) : graph(graph), rows(rows), symbols(graph->getParentOp()) {}

  Operation *find(llvm::function_ref<bool(Operation *)> needed) {
    SmallVector<Operation *> nodes;
    for (Operation &op : graph.getBody().front())
      if (needed(&op))
        nodes.push_back(&op);
    do {
      changed = false;
      for (Operation *op : nodes)
        visit(op);
      for (size_t i = 0; i < functions.size(); ++i)
        for (Operation &op : llvm::cast<dfg::FuncOp>(functions[i]).getBody().front().without_terminator())
          visit(&op);
    } while (changed);
    // Of what decides in a function, the node of the graph that runs it.
    llvm::DenseSet<Operation *> seen;
    for (Operation *op : nodes)
      if (decides(op, seen))
        return op;
    return nullptr;
  }

private:
  RowNumber get(Value value) const {
    if (auto it = known.find(value); it != known.end())
      return it->second;
    RowNumber number;
    auto constant = value.getDefiningOp<dfg::ConstOp>();
    if (!constant)
      return number;
    if (auto elements = llvm::dyn_cast<DenseIntElementsAttr>(constant.getValue());
        elements && elements.getType().getRank() == 1 && elements.getNumElements() > 0) {
      const int64_t first = (*elements.value_begin<APInt>()).getSExtValue();
      number.isFirst = first > 0 && first % rows == 0;
      if (number.isFirst)
        number.range.least = static_cast<double>(first);
    }
    if (auto splat = llvm::dyn_cast<SplatElementsAttr>(constant.getValue()); splat && !number.isFirst) {
      if (splat.getElementType().isInteger(1))
        number.range = dfg::NumberRange::of(splat.getSplatValue<bool>() ? 1 : 0);
      else if (splat.getElementType().isInteger())
        number.range = dfg::NumberRange::of(static_cast<double>(splat.getSplatValue<APInt>().getSExtValue()));
      else if (llvm::isa<FloatType>(splat.getElementType()))
        number.range = dfg::NumberRange::of(splat.getSplatValue<APFloat>().convertToDouble());
    }
    return number;
  }

  /// What is known grows, and ranges that grow again have no bounds, so that loops end.
  void note(Value value, RowNumber number) {
    auto [it, isNew] = known.try_emplace(value, number);
    RowNumber &old = it->second;
    if (isNew) {
      changed |= number.isOfRows || number.isFirst || number.range.isOne();
      return;
    }
    RowNumber joined = {old.isOfRows || number.isOfRows, old.isFirst || number.isFirst, old.range};
    if (!old.range.contains(number.range))
      joined.range = {};
    changed |= joined.isOfRows != old.isOfRows || joined.isFirst != old.isFirst ||
               !(joined.range.least == old.range.least && joined.range.most == old.range.most);
    old = joined;
  }

  static RowNumber join(RowNumber x, RowNumber y) {
    return {x.isOfRows || y.isOfRows, x.isFirst || y.isFirst, dfg::hull(x.range, y.range)};
  }

  /// The functions that `op` runs, in the order of its attributes.
  SmallVector<dfg::FuncOp> getFunctions(Operation *op) {
    SmallVector<dfg::FuncOp> found;
    auto add = [&](FlatSymbolRefAttr name) {
      if (auto function = symbols.lookup<dfg::FuncOp>(name.getValue()); function && !function.isExternal())
        found.push_back(function);
    };
    if (auto call = llvm::dyn_cast<dfg::CallOp>(op))
      add(call.getCalleeAttr());
    else if (llvm::isa<dfg::OpaqueOp>(op))
      dfg::getSourceAttributes(op).walk([&](dfg::FuncAttr function) { add(function.getFunction()); });
    return found;
  }

  dfg::FuncOp getFunction(Operation *op, StringRef attribute) {
    auto function = dfg::getSourceAttribute<dfg::FuncAttr>(op, attribute);
    return function ? symbols.lookup<dfg::FuncOp>(function.getFunction().getValue()) : dfg::FuncOp();
  }

  static StringRef getKind(Operation *op) {
    StringRef kind = dfg::getKind(op);
    kind.consume_front("Stateless");
    return kind;
  }

  /// Hands op's operands from `first` on to a function that it runs. Where it has others, as many as they are.
  void enter(dfg::FuncOp function, Operation *op, unsigned first) {
    functions.insert(function);
    ValueRange operands = op->getOperands().drop_front(std::min(first, op->getNumOperands()));
    Block &body = function.getBody().front();
    for (BlockArgument argument : body.getArguments()) {
      if (operands.size() == body.getNumArguments()) {
        note(argument, get(operands[argument.getArgNumber()]));
        continue;
      }
      RowNumber all;
      for (Value operand : operands)
        all.isOfRows |= get(operand).isOfRows || get(operand).isFirst;
      note(argument, all);
    }
  }

  static OperandRange getReturned(dfg::FuncOp function) {
    return function.getBody().front().getTerminator()->getOperands();
  }

  void visitFunctions(Operation *op, ArrayRef<dfg::FuncOp> called) {
    const StringRef kind = getKind(op);
    if (kind == "While") {
      dfg::FuncOp body = getFunction(op, "body");
      for (dfg::FuncOp function : called)
        enter(function, op, 0);
      if (body && getReturned(body).size() == op->getNumResults())
        for (auto [result, returned, operand] : llvm::zip(op->getResults(), getReturned(body), op->getOperands())) {
          for (dfg::FuncOp function : called)
            if (function.getBody().front().getNumArguments() == op->getNumResults())
              note(function.getBody().front().getArgument(result.getResultNumber()), get(returned));
          note(result, get(operand));
          note(result, get(returned));
        }
      return;
    }
    const bool isCondition = kind == "If" || kind == "Case";
    for (dfg::FuncOp function : called)
      enter(function, op, isCondition ? 1 : 0);
    const bool isKnown =
        isCondition || llvm::isa<dfg::CallOp>(op) || kind == "PartitionedCall" || kind == "StatefulPartitionedCall";
    for (OpResult result : op->getResults())
      for (dfg::FuncOp function : called) {
        OperandRange returned = getReturned(function);
        if (isKnown && returned.size() == op->getNumResults()) {
          note(result, get(returned[result.getResultNumber()]));
          continue;
        }
        RowNumber all;
        for (Value value : returned)
          all.isOfRows |= get(value).isOfRows || get(value).isFirst;
        note(result, all);
      }
    if (isCondition && op->getNumOperands() > 0 && get(op->getOperand(0)).isOfRows)
      for (Value result : op->getResults())
        note(result, {true, false, {}});
  }

  bool takesFirst(Operation *op, unsigned result) const {
    if (llvm::isa<dfg::UnpackOp, dfg::SplitOp, dfg::SplitVOp>(op))
      return result == 0;
    auto slice = llvm::dyn_cast<dfg::StridedSliceOp>(op);
    if (slice && slice.getBeginMask())
      return true;
    auto constant = op->getOperand(1).getDefiningOp<dfg::ConstOp>();
    auto from = constant ? llvm::dyn_cast<DenseIntElementsAttr>(constant.getValue()) : DenseIntElementsAttr();
    return !from ||
           llvm::any_of(from.getValues<APInt>(), [](const APInt &at) { return at.isZero() || at.isNegative(); });
  }

  void visit(Operation *op) {
    if (op->getNumResults() == 0 || llvm::isa<dfg::ConstOp, dfg::RankOp>(op))
      return;
    if (SmallVector<dfg::FuncOp> called = getFunctions(op); !called.empty())
      return visitFunctions(op, called);
    const StringRef kind = getKind(op);
    if (kind == "Switch" || kind == "Merge" || kind == "Enter" || kind == "Exit" || kind == "NextIteration" ||
        kind == "LoopCond" || kind == "Identity") {
      if (op->getNumOperands() == 0)
        return;
      RowNumber joined = get(op->getOperand(0));
      if (kind == "Merge")
        for (Value operand : op->getOperands().drop_front())
          joined = join(joined, get(operand));
      for (Value result : op->getResults())
        note(result, joined);
      return;
    }
    // Sizes of what has rows, or may have.
    auto mayHaveRows = [&](Value value) {
      auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
      return !type || (type.getRank() > 0 &&
                       (type.isDynamicDim(0) || (type.getDimSize(0) > 0 && type.getDimSize(0) % rows == 0)));
    };
    const bool asksSizes = llvm::isa<dfg::SizeOp>(op);
    if (asksSizes || op->hasTrait<dfg::AsksShapes>()) {
      for (auto [operand, result] : llvm::zip(op->getOperands(), op->getResults())) {
        if (!mayHaveRows(operand))
          continue;
        RowNumber number = {asksSizes, !asksSizes, {}};
        if (auto type = llvm::dyn_cast<RankedTensorType>(operand.getType()); type && type.hasStaticShape())
          number.range.least = static_cast<double>(asksSizes ? type.getNumElements() : type.getDimSize(0));
        note(result, number);
      }
      return;
    }
    if (op->hasTrait<dfg::TakesPart>()) {
      if (RowNumber of = get(dfg::getWhole(op)); of.isFirst && !of.isOfRows) {
        for (OpResult result : op->getResults()) {
          if (!takesFirst(op, result.getResultNumber()))
            continue;
          auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
          const bool isNumber = type && type.hasStaticShape() && type.getNumElements() == 1;
          RowNumber number = {isNumber, !isNumber, {}};
          number.range.least = of.range.least;
          note(result, number);
        }
        return;
      }
    }
    bool isOfRows = false, isFirst = false;
    for (OpOperand &operand : op->getOpOperands()) {
      if (isParameterOperand(op, operand.getOperandNumber()))
        continue;
      const RowNumber number = get(operand.get());
      // What is the same of any number of rows is no number of them: `any rows, and …`.
      isOfRows |= number.isOfRows && !number.range.isOne();
      isFirst |= number.isFirst;
    }
    const bool keepsFirst = llvm::isa<dfg::ScalarInterface, dfg::CastOp>(op) || op->hasTrait<dfg::Forwards>();
    for (Value result : op->getResults())
      note(result,
           {isOfRows || (isFirst && !keepsFirst), isFirst && keepsFirst && !isOfRows,
            isFirst ? dfg::NumberRange() : dfg::inferNumberRange(op, [&](Value value) { return get(value).range; })});
  }

  bool isOpen(Value value) const {
    const RowNumber number = get(value);
    return (number.isOfRows || number.isFirst) && !number.range.isOne();
  }

  /// Whether rows decide what `op` does, or something in the functions that it runs.
  bool decides(Operation *op, llvm::DenseSet<Operation *> &seen) {
    const StringRef kind = getKind(op);
    const int operand =
        llvm::StringSwitch<int>(kind).Cases({"If", "Case", "LoopCond"}, 0).Case("Switch", 1).Default(-1);
    if (operand >= 0 && operand < static_cast<int>(op->getNumOperands()) && isOpen(op->getOperand(operand)))
      return true;
    if (kind == "While")
      if (dfg::FuncOp condition = getFunction(op, "cond");
          condition && !getReturned(condition).empty() && isOpen(getReturned(condition).front()))
        return true;
    for (dfg::FuncOp function : getFunctions(op))
      if (seen.insert(function).second)
        for (Operation &inner : function.getBody().front().without_terminator())
          if (decides(&inner, seen))
            return true;
    return false;
  }

  dfg::GraphOp graph;
  const int64_t rows;
  SymbolTable symbols;
  llvm::SetVector<Operation *> functions;
  llvm::DenseMap<Value, RowNumber> known;
  bool changed = false;
};

} // namespace

Operation *findFixedDecision(dfg::GraphOp graph, int64_t rows, llvm::function_ref<bool(Operation *)> needed) {
  return DecisionFinder(graph, rows).find(needed);
}

} // namespace distc
