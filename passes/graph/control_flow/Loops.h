//===- Loops.h - What a loop's functions say of it ----------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_LOOPS_H
#define DISTC_PASSES_GRAPH_LOOPS_H

#include "dialects/dfg/Frames.h"
#include "passes/graph/control_flow/StraightLine.h"
#include "llvm/ADT/ScopeExit.h"

namespace distc {

inline mlir::Value stripIdentities(mlir::Value value) {
  while (auto identity = value.getDefiningOp<dfg::IdentityOp>())
    value = identity.getX();
  return value;
}

struct StraightLine::Loop {
  Node &node;
  dfg::FuncOp condition, body;

  std::string prefix(int64_t iteration) const { return node.name + "/" + std::to_string(iteration) + "/"; }
};

/// What a loop's functions say of how its variables change from one iteration to the next.
class StraightLine::LoopVariables {
public:
  LoopVariables(StraightLine &line, Loop &loop, llvm::ArrayRef<Datum> initial)
      : line(line), condition(loop.condition.getBody().front()), body(loop.body.getBody().front()), initial(initial) {}

  /// The number of iterations as a value, where the loop counts a variable up to another, or down to a constant; null
  /// else.
  mlir::Value getTripCount() const {
    mlir::Operation *compare = stripIdentities(condition.getTerminator()->getOperand(0)).getDefiningOp();
    return compare ? getIterations(compare) : mlir::Value();
  }

  /// How many iterations there are, a scalar, where the loop has one for each example of the batch: all that its
  /// condition asks is whether counters are below as many. Null for others.
  mlir::Value getExampleCount() const {
    if (!areWhole())
      return {};
    llvm::SmallVector<mlir::Value> conditions = {condition.getTerminator()->getOperand(0)};
    mlir::Value count;
    while (!conditions.empty()) {
      mlir::Operation *op = stripIdentities(conditions.pop_back_val()).getDefiningOp();
      if (llvm::isa_and_nonnull<dfg::LogicalAndOp>(op)) {
        conditions.append(op->operand_begin(), op->operand_end());
        continue;
      }
      mlir::Value iterations = op ? getIterations(op) : mlir::Value();
      if (!iterations || !line.countsExamples(iterations) || (count && !line.isSameCount(count, iterations)))
        return {};
      count = iterations;
    }
    return count;
  }

  /// What an iteration adds to a variable that is a counter with a known first value; none where it is none.
  std::optional<int64_t> getCounterStep(unsigned variable) const {
    auto type =
        initial[variable].value ? llvm::dyn_cast<mlir::RankedTensorType>(initial[variable].value.getType()) : nullptr;
    const bool counts =
        type && type.getRank() == 0 && type.getElementType().isInteger() && !type.getElementType().isInteger(1);
    return counts ? getStep(variable) : std::nullopt;
  }
  /// Whether a variable is the same in all iterations.
  bool isCarried(unsigned variable) const { return getNext(variable) == mlir::Value(body.getArgument(variable)); }

  /// Whether the loop is known to have more iterations than `most`: it counts up or down to a number.
  bool hasMoreThan(int64_t most) const {
    if (!areWhole())
      return false;
    mlir::Operation *compare = stripIdentities(condition.getTerminator()->getOperand(0)).getDefiningOp();
    const bool up = llvm::isa_and_nonnull<dfg::LessOp, dfg::LessEqualOp>(compare);
    if (!up && !llvm::isa_and_nonnull<dfg::GreaterOp, dfg::GreaterEqualOp>(compare))
      return false;
    std::optional<unsigned> counter = getVariable(compare->getOperand(0));
    std::optional<int64_t> limit = constantOf(compare->getOperand(1));
    std::optional<int64_t> first = counter ? line.getConstant(initial[*counter]) : std::nullopt;
    std::optional<int64_t> step = counter ? getStep(*counter) : std::nullopt;
    if (!limit || !first || !step)
      return false;
    const double last = static_cast<double>(*first) + static_cast<double>(*step) * static_cast<double>(most);
    return up ? *step > 0 && last < static_cast<double>(*limit) : *step < 0 && last > static_cast<double>(*limit);
  }

  /// The most iterations that there can be without an error: each takes the next element of something that has so many.
  std::optional<int64_t> getMostByReads() const {
    std::optional<int64_t> most;
    for (mlir::Operation &op : body)
      for (const Read &read : getReads(&op))
        if (std::optional<int64_t> bound = getMost(read); bound && (!most || *bound < *most))
          most = bound;
    return most;
  }

private:
  /// Whether condition and body take all variables, and give what a condition and the variables are.
  bool areWhole() const {
    return condition.getNumArguments() == initial.size() && body.getNumArguments() == initial.size() &&
           condition.getTerminator()->getNumOperands() == 1 &&
           body.getTerminator()->getNumOperands() == initial.size();
  }

  /// The iterations that a comparison alone would let run, as a value: of a counter from 0 by 1, or to 1 by -1.
  mlir::Value getIterations(mlir::Operation *compare) const {
    if (!llvm::isa<dfg::LessOp, dfg::GreaterOp, dfg::GreaterEqualOp>(compare))
      return {};
    mlir::Value x = stripIdentities(compare->getOperand(0)), y = stripIdentities(compare->getOperand(1));
    if (llvm::isa<dfg::GreaterOp>(compare))
      std::swap(x, y);
    std::optional<unsigned> counter = getVariable(x), limit = getVariable(y);
    if (!counter || !initial[*counter].value)
      return {};
    if (!llvm::isa<dfg::GreaterEqualOp>(compare))
      return limit && isCarried(*limit) && getStep(*counter) == 1 && line.getConstant(initial[*counter]) == 0
                 ? initial[*limit].value
                 : mlir::Value();
    return getStep(*counter) == -1 && constantOf(y) == 1 ? initial[*counter].value : mlir::Value();
  }

  /// The number of the variable that `value` is; none where it is anything else.
  std::optional<unsigned> getVariable(mlir::Value value) const {
    auto argument = llvm::dyn_cast<mlir::BlockArgument>(stripIdentities(value));
    if (!argument || argument.getArgNumber() >= initial.size())
      return std::nullopt;
    return argument.getArgNumber();
  }

  std::optional<int64_t> constantOf(mlir::Value value) const {
    if (auto constant = stripIdentities(value).getDefiningOp<dfg::ConstOp>()) {
      auto dense = llvm::dyn_cast<mlir::DenseIntElementsAttr>(constant.getValue());
      return dense && dense.getNumElements() == 1 ? std::optional(dense.getSplatValue<llvm::APInt>().getSExtValue())
                                                  : std::nullopt;
    }
    std::optional<unsigned> variable = getVariable(value);
    return variable && isCarried(*variable) ? line.getConstant(initial[*variable]) : std::nullopt;
  }

  mlir::Value getNext(unsigned variable) const { return stripIdentities(body.getTerminator()->getOperand(variable)); }

  /// What an iteration adds to a variable.
  std::optional<int64_t> getStep(unsigned variable) const {
    mlir::Operation *op = getNext(variable).getDefiningOp();
    const mlir::Value self = body.getArgument(variable);
    const bool adds = op && op->hasTrait<dfg::Adds>();
    if (!adds && !llvm::isa_and_nonnull<dfg::SubOp>(op))
      return std::nullopt;
    mlir::Value x = stripIdentities(op->getOperand(0)), y = stripIdentities(op->getOperand(1));
    if (adds && y == self)
      std::swap(x, y);
    std::optional<int64_t> by = x == self ? constantOf(y) : std::nullopt;
    return by && !adds ? -*by : by;
  }

  /// One element that an operation takes, by its index along an axis: there is an error where there is none of that
  /// index.
  struct Read {
    mlir::Value elements, index;
    unsigned axis = 0;
  };

  llvm::SmallVector<Read> getReads(mlir::Operation *op) const {
    if (auto slice = llvm::dyn_cast<dfg::StridedSliceOp>(op)) {
      llvm::SmallVector<Read> reads;
      auto begin = stripIdentities(slice.getBegin()).getDefiningOp<dfg::PackOp>();
      if (!begin || slice.getEllipsisMask() || slice.getNewAxisMask())
        return reads;
      for (auto [axis, index] : llvm::enumerate(begin->getOperands()))
        if ((slice.getShrinkAxisMask() & ~slice.getBeginMask()) >> axis & 1)
          reads.push_back({slice.getInput(), index, static_cast<unsigned>(axis)});
      return reads;
    }
    if (auto gather = llvm::dyn_cast<dfg::GatherV2Op>(op)) {
      std::optional<int64_t> axis = constantOf(gather.getAxis());
      if (axis && *axis >= 0)
        return {{gather.getParams(), gather.getIndices(), static_cast<unsigned>(*axis)}};
    }
    llvm::StringRef kind = dfg::getKind(op);
    if (kind == "TensorListGetItem" && op->getNumOperands() == 3)
      return {{op->getOperand(0), op->getOperand(1)}};
    if (kind == "TensorArrayReadV3" && op->getNumOperands() == 3)
      return {{op->getOperand(2), op->getOperand(1)}};
    return {};
  }

  /// Of a read by a counter.
  std::optional<int64_t> getMost(const Read &read) const {
    std::optional<unsigned> variable = getVariable(read.elements), counter = getVariable(read.index);
    if (!variable || !counter || !isCarried(*variable))
      return std::nullopt;
    std::optional<int64_t> first = line.getConstant(initial[*counter]), step = getStep(*counter), size;
    const Datum &datum = initial[*variable];
    if (datum.container && !datum.container->length && !datum.container->grows && !datum.container->examples) {
      size = datum.container->elements.size();
    } else if (datum.value) {
      std::optional<dfg::Dims> sizes = line.shapes.getShape(datum.value);
      if (sizes && read.axis < sizes->size() && (*sizes)[read.axis].isConstant() && !(*sizes)[read.axis].isBound())
        size = (*sizes)[read.axis].getConstant();
    }
    if (!first || *first < 0 || !step || *step < 1 || !size)
      return std::nullopt;
    std::optional<dfg::Dims> scalar = line.shapes.getShape(initial[*counter].value);
    if (!scalar || !scalar->empty())
      return std::nullopt;
    return *first < *size ? (*size - *first + *step - 1) / *step : 0;
  }

  StraightLine &line;
  mlir::Block &condition, &body;
  llvm::ArrayRef<Datum> initial;
};

} // namespace distc

#endif // DISTC_PASSES_GRAPH_LOOPS_H
