//===- LoopVariables.cpp - What a loop's functions say of its variables ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/graph/control_flow/Loops.h"

using namespace mlir;

namespace distc {

Value StraightLine::LoopVariables::getTripCount() const {
  Operation *compare = stripIdentities(condition.getTerminator()->getOperand(0)).getDefiningOp();
  return compare ? getIterations(compare) : Value();
}

Value StraightLine::LoopVariables::getExampleCount() const {
  if (!areWhole())
    return {};
  SmallVector<Value> conditions = {condition.getTerminator()->getOperand(0)};
  Value count;
  while (!conditions.empty()) {
    Operation *op = stripIdentities(conditions.pop_back_val()).getDefiningOp();
    if (llvm::isa_and_nonnull<dfg::LogicalAndOp>(op)) {
      conditions.append(op->operand_begin(), op->operand_end());
      continue;
    }
    Value iterations = op ? getIterations(op) : Value();
    if (!iterations || !line.countsExamples(iterations) || (count && !line.isSameCount(count, iterations)))
      return {};
    count = iterations;
  }
  return count;
}

std::optional<int64_t> StraightLine::LoopVariables::getCounterStep(unsigned variable) const {
  auto type = initial[variable].value ? llvm::dyn_cast<RankedTensorType>(initial[variable].value.getType()) : nullptr;
  const bool counts =
      type && type.getRank() == 0 && type.getElementType().isInteger() && !type.getElementType().isInteger(1);
  return counts ? getStep(variable) : std::nullopt;
}

bool StraightLine::LoopVariables::isCarried(unsigned variable) const {
  return getNext(variable) == Value(body.getArgument(variable));
}

NeededNodes StraightLine::LoopVariables::findNeeded(SmallVectorImpl<bool> &live) const {
  NeededNodes found;
  if (!areWhole() || live.size() != initial.size()) {
    // A graph that is damaged; who calls the functions says so.
    for (Operation &op : body.without_terminator())
      found.nodes.insert(&op);
    found.results.insert_range(body.getTerminator()->getOperands());
    live.assign(initial.size(), true);
    return found;
  }
  SmallVector<Value> pending;
  auto addVariable = [&](unsigned variable) {
    Value next = body.getTerminator()->getOperand(variable);
    if (found.results.insert(next).second)
      pending.push_back(next);
    live[variable] = true;
  };
  for (auto [variable, argument] : llvm::enumerate(condition.getArguments()))
    if (live[variable] || !argument.use_empty())
      addVariable(variable);
  auto addNode = [&](Operation *op) {
    if (op && found.nodes.insert(op).second)
      llvm::append_range(pending, op->getOperands());
  };
  for (Operation &op : body.without_terminator())
    if (!isMemoryEffectFree(&op))
      addNode(&op);
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    addNode(value.getDefiningOp());
    if (auto argument = llvm::dyn_cast<BlockArgument>(value); argument && !live[argument.getArgNumber()])
      addVariable(argument.getArgNumber());
  }
  return found;
}

bool StraightLine::LoopVariables::hasMoreThan(int64_t most) const {
  if (!areWhole())
    return false;
  Operation *compare = stripIdentities(condition.getTerminator()->getOperand(0)).getDefiningOp();
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

std::optional<int64_t> StraightLine::LoopVariables::getMostByReads() const {
  std::optional<int64_t> most;
  for (Operation &op : body)
    for (const Read &read : getReads(&op))
      if (std::optional<int64_t> bound = getMost(read); bound && (!most || *bound < *most))
        most = bound;
  return most;
}

Value StraightLine::LoopVariables::getOperandOf(Operation *conditional, Value argument) {
  auto inside = llvm::dyn_cast<BlockArgument>(stripIdentities(argument));
  const unsigned operand = inside ? inside.getArgNumber() + 1 : 0; // behind the predicate
  return inside && operand < conditional->getNumOperands() ? conditional->getOperand(operand) : Value();
}

std::optional<int64_t> StraightLine::LoopVariables::getMostByReadsInBranches() const {
  std::optional<int64_t> most;
  auto add = [&](const Read &read) {
    std::optional<int64_t> bound = read.elements && read.index ? getMost(read) : std::nullopt;
    if (bound && (!most || *bound + 1 < *most))
      most = *bound + 1;
  };
  auto stripSwitches = [](Value value) {
    Operation *op = stripIdentities(value).getDefiningOp();
    while (op && dfg::getKind(op) == "Switch") {
      value = op->getOperand(0);
      op = stripIdentities(value).getDefiningOp();
    }
    return value;
  };
  for (Operation &op : body) {
    for (const Read &read : getReads(&op))
      add({stripSwitches(read.elements), stripSwitches(read.index), read.axis});
    if (!dfg::getKind(&op).ends_with("If"))
      continue;
    for (StringRef branch : {"then_branch", "else_branch"}) {
      auto name = dfg::getSourceAttribute<dfg::FuncAttr>(&op, branch);
      auto function = name ? line.symbols.lookup<dfg::FuncOp>(name.getFunction().getValue()) : dfg::FuncOp();
      if (!function)
        continue;
      for (Operation &inner : function.getBody().front())
        for (const Read &read : getReads(&inner))
          add({getOperandOf(&op, read.elements), getOperandOf(&op, read.index), read.axis});
    }
  }
  return most;
}

SmallVector<std::pair<Value, int64_t>> StraightLine::LoopVariables::getWhatIsRead(int64_t most) const {
  SmallVector<std::pair<Value, int64_t>> found;
  for (Operation &op : body)
    for (const Read &read : getReads(&op)) {
      if (getMost(read) != most)
        continue;
      const Datum &datum = initial[*getVariable(read.elements)];
      if (datum.value) {
        found.emplace_back(datum.value, read.axis);
        continue;
      }
      ArrayRef<Datum> elements = datum.container->elements;
      auto unpack = !elements.empty() && elements.front().value ? elements.front().value.getDefiningOp<dfg::UnpackOp>()
                                                                : dfg::UnpackOp();
      auto isPart = [](const auto &pair) { return std::get<0>(pair).value == std::get<1>(pair); };
      if (unpack && unpack.getAxis() == 0 && elements.size() == unpack.getParts().size() &&
          llvm::all_of(llvm::zip(elements, unpack.getParts()), isPart))
        found.emplace_back(unpack.getValue(), 0);
    }
  return found;
}

bool StraightLine::LoopVariables::areWhole() const {
  return condition.getNumArguments() == initial.size() && body.getNumArguments() == initial.size() &&
         condition.getTerminator()->getNumOperands() == 1 && body.getTerminator()->getNumOperands() == initial.size();
}

Value StraightLine::LoopVariables::getIterations(Operation *compare) const {
  if (!llvm::isa<dfg::LessOp, dfg::GreaterOp, dfg::GreaterEqualOp>(compare))
    return {};
  Value x = stripIdentities(compare->getOperand(0)), y = stripIdentities(compare->getOperand(1));
  if (llvm::isa<dfg::GreaterOp>(compare))
    std::swap(x, y);
  std::optional<unsigned> counter = getVariable(x), limit = getVariable(y);
  if (!counter || !initial[*counter].value)
    return {};
  if (!llvm::isa<dfg::GreaterEqualOp>(compare))
    return limit && isCarried(*limit) && getStep(*counter) == 1 && line.getConstant(initial[*counter]) == 0
               ? initial[*limit].value
               : Value();
  return getStep(*counter) == -1 && constantOf(y) == 1 ? initial[*counter].value : Value();
}

std::optional<unsigned> StraightLine::LoopVariables::getVariable(Value value) const {
  auto argument = llvm::dyn_cast<BlockArgument>(stripIdentities(value));
  if (!argument || argument.getArgNumber() >= initial.size())
    return std::nullopt;
  return argument.getArgNumber();
}

std::optional<int64_t> StraightLine::LoopVariables::constantOf(Value value) const {
  if (auto constant = stripIdentities(value).getDefiningOp<dfg::ConstOp>()) {
    auto dense = llvm::dyn_cast<DenseIntElementsAttr>(constant.getValue());
    return dense && dense.getNumElements() == 1 ? std::optional(dense.getSplatValue<llvm::APInt>().getSExtValue())
                                                : std::nullopt;
  }
  std::optional<unsigned> variable = getVariable(value);
  return variable && isCarried(*variable) ? line.getConstant(initial[*variable]) : std::nullopt;
}

Value StraightLine::LoopVariables::getNext(unsigned variable) const {
  return stripIdentities(body.getTerminator()->getOperand(variable));
}

std::optional<int64_t> StraightLine::LoopVariables::getStep(unsigned variable) const {
  Operation *op = getNext(variable).getDefiningOp();
  const Value self = body.getArgument(variable);
  const bool adds = op && op->hasTrait<dfg::Adds>();
  if (!adds && !llvm::isa_and_nonnull<dfg::SubOp>(op))
    return std::nullopt;
  Value x = stripIdentities(op->getOperand(0)), y = stripIdentities(op->getOperand(1));
  if (adds && y == self)
    std::swap(x, y);
  std::optional<int64_t> by = x == self ? constantOf(y) : std::nullopt;
  return by && !adds ? -*by : by;
}

SmallVector<StraightLine::LoopVariables::Read> StraightLine::LoopVariables::getReads(Operation *op) const {
  if (auto slice = llvm::dyn_cast<dfg::StridedSliceOp>(op)) {
    SmallVector<Read> reads;
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

std::optional<int64_t> StraightLine::LoopVariables::getMost(const Read &read) const {
  std::optional<unsigned> variable = getVariable(read.elements), counter = getVariable(read.index);
  bool isNext = false;
  for (unsigned i = 0; i < initial.size() && !counter; ++i)
    if (getStep(i) && getNext(i) == stripIdentities(read.index)) {
      counter = i;
      isNext = true;
    }
  if (!variable || !counter || !isCarried(*variable))
    return std::nullopt;
  std::optional<int64_t> first = line.getConstant(initial[*counter]), step = getStep(*counter), size;
  if (first && step && isNext)
    *first += *step;
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

} // namespace distc
