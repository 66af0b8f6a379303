//===- Branches.cpp - Conditions, calls and optionals as straight-line code -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Frames.h"
#include "passes/graph/control_flow/StraightLine.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;

namespace distc {

// ---- Nodes of any data ----------------------------------------------------------------------------------------------

StraightLine::Results StraightLine::identity(Node &node) { return node.operands; }

StraightLine::Results StraightLine::nothing(Node &) { return Data(); }

static Datum clear(const Datum &datum) {
  if (!datum.container)
    return {};
  auto zeros = std::make_shared<Container>(*datum.container);
  zeros->chosen = clear(zeros->chosen);
  zeros->otherwise = clear(zeros->otherwise);
  for (Datum &element : zeros->elements) {
    if (element.value)
      zeros->like = element.value;
    element = clear(element);
  }
  return Datum(std::shared_ptr<const Container>(zeros));
}

/// Elements that nothing was written to are zeros; their shapes are those of the other list.
StraightLine::Results StraightLine::zerosLikeContainer(Node &node) { return Data{clear(node.operands[0])}; }

/// What stands for a list or a tensor array in the graph is one value, of which a branch that is not taken gives zeros
/// as its gradient.
StraightLine::Results StraightLine::containerShape(Node &node) {
  return Data{getVector(llvm::cast<TensorType>(node.op->getResult(0).getType()).getElementType(), {})};
}

StraightLine::Results StraightLine::sum(Node &node) {
  Datum total = node.operands[0];
  for (const Datum &next : ArrayRef(node.operands).drop_front()) {
    FailureOr<Datum> sum = add(total, next, node);
    if (failed(sum))
      return failure();
    total = *sum;
  }
  return Data{total};
}

StraightLine::Results StraightLine::variableShape(Node &node) {
  std::optional<dfg::Dims> sizes = node.operands[0].value ? shapes.getShape(node.operands[0].value) : std::nullopt;
  SmallVector<int64_t> constants;
  for (dfg::Dim size : sizes.value_or(dfg::Dims())) {
    if (!size.isConstant())
      return fail(node) << "asks for the shape of a variable that is not known", failure();
    constants.push_back(size.getConstant());
  }
  if (!sizes)
    return fail(node) << "asks for the shape of a variable that is not known", failure();
  return Data{getVector(llvm::cast<TensorType>(node.op->getResult(0).getType()).getElementType(), constants)};
}

// ---- Optionals ------------------------------------------------------------------------------------------------------

StraightLine::Results StraightLine::optionalFromValue(Node &node) {
  auto optional = std::make_shared<Container>();
  optional->elements = node.operands;
  optional->hasValue = getBool(node.kind != "OptionalNone");
  return Data{Datum(std::shared_ptr<const Container>(optional))};
}

StraightLine::Results StraightLine::optionalGetValue(Node &node) {
  FailureOr<const Container *> optional = getList(node, 0);
  if (failed(optional))
    return failure();
  if (Value predicate = (*optional)->predicate) {
    // Who asks does not say which it is: both must be what is asked for, or none, which nobody asks where it is chosen.
    Data both[2];
    for (auto [data, datum] :
         {std::pair(&both[0], &(*optional)->chosen), std::pair(&both[1], &(*optional)->otherwise)}) {
      Node branch = node;
      branch.operands = {resolve(*datum)};
      const Container &one = *branch.operands[0].container;
      if (!one.predicate && one.elements.empty())
        continue;
      Results value = optionalGetValue(branch);
      if (failed(value))
        return failure();
      *data = *value;
    }
    if (both[0].empty() || both[1].empty())
      return both[0].empty() ? both[1] : both[0];
    for (auto [x, y] : llvm::zip(both[0], both[1])) {
      FailureOr<Datum> either = select(predicate, x, y, node);
      if (failed(either))
        return failure();
      x = *either;
    }
    return both[0];
  }
  if ((*optional)->elements.size() != node.op->getNumResults())
    return fail(node) << "takes the value of an optional that has none", failure();
  return (*optional)->elements;
}

StraightLine::Results StraightLine::optionalHasValue(Node &node) {
  FailureOr<const Container *> optional = getList(node, 0);
  if (failed(optional))
    return failure();
  if (!(*optional)->hasValue)
    return fail(node) << "asks a list whether it has a value", failure();
  return Data{(*optional)->hasValue};
}

// ---- Functions ------------------------------------------------------------------------------------------------------

dfg::FuncOp StraightLine::getFunction(const Node &node, Attribute attribute) {
  auto function = llvm::dyn_cast_or_null<dfg::FuncAttr>(attribute);
  auto found = function ? symbols.lookup<dfg::FuncOp>(function.getFunction().getValue()) : dfg::FuncOp();
  if (!found)
    fail(node) << "calls a function that the graph's library does not have";
  return found;
}

dfg::FuncOp StraightLine::getFunction(const Node &node, StringRef attribute) {
  return getFunction(node, node.getAttr<Attribute>(attribute));
}

StraightLine::Results StraightLine::call(const Node &node, dfg::FuncOp function, ArrayRef<Datum> operands,
                                         StringRef prefix, Value predicate, const Guard &holds,
                                         const NeededNodes *part) {
  Block &body = function.getBody().front();
  if (body.getNumArguments() != operands.size())
    return fail(node) << "calls function '" << function.getSymName() << "' with " << operands.size()
                      << " operands, but it takes " << body.getNumArguments(),
           failure();
  if (llvm::is_contained(calls, function.getOperation()))
    return fail(node) << "calls function '" << function.getSymName() << "', which calls itself", failure();
  Scope scope;
  scope.prefix = prefix.str();
  if (keepsOrder)
    scope.before = getBefore(node);
  for (auto [argument, operand] : llvm::zip(body.getArguments(), operands))
    scope.data[argument] = operand;
  llvm::scope_exit restore([&, outside = active, guardedOutside = guarded, knownOutside = known] {
    active = outside;
    guarded = guardedOutside;
    known = knownOutside;
  });
  if (predicate && failed(enter({{predicate, true}}, prefix)))
    return failure();
  calls.push_back(function);
  for (auto [holding, value] : holds)
    known[holding] = value;
  LogicalResult ran = runBlock(body, scope, part);
  calls.pop_back();
  if (failed(ran))
    return failure();
  Data results;
  for (Value result : body.getTerminator()->getOperands()) {
    if (part && !part->results.contains(result)) {
      results.emplace_back();
      continue;
    }
    if (scope.dead.contains(result))
      return fail(node) << "calls function '" << function.getSymName() << "', which does not give a result", failure();
    results.push_back(lookup(scope, result));
  }
  return results;
}

StraightLine::Results StraightLine::callFunction(Node &node) {
  dfg::FuncOp function;
  if (auto call = llvm::dyn_cast<dfg::CallOp>(node.op))
    function = symbols.lookup<dfg::FuncOp>(call.getCallee());
  else
    function = getFunction(node, "f");
  if (!function)
    return fail(node) << "calls a function that the graph's library does not have", failure();
  return call(node, function, node.operands, node.name + "/");
}

// ---- If and Case ----------------------------------------------------------------------------------------------------

StraightLine::Results StraightLine::choose(Node &node, Value predicate, dfg::FuncOp chosen, dfg::FuncOp otherwise,
                                           ArrayRef<Datum> operands, StringRef prefix) {
  Value opposite = logicalNot(predicate, node.name + "/not");
  if (!opposite)
    return failure();
  Results first = call(node, chosen, operands, prefix.str() + "then/", predicate, {{predicate, true}});
  if (failed(first))
    return failure();
  Results second = call(node, otherwise, operands, prefix.str() + "else/", opposite, {{predicate, false}});
  if (failed(second))
    return failure();
  Data results;
  for (auto [x, y] : llvm::zip(*first, *second)) {
    FailureOr<Datum> result = select(predicate, x, y, node);
    if (failed(result))
      return failure();
    results.push_back(*result);
  }
  return results;
}

/// Whether `function` chooses rows by what data say (Where), itself or in what it calls.
static bool choosesRows(dfg::FuncOp function, const SymbolTable &symbols, int depth = 8) {
  return function.getBody()
      .walk([&](Operation *op) {
        if (dfg::getKind(op) == "Where")
          return WalkResult::interrupt();
        SmallVector<dfg::FuncOp> called;
        op->getAttrDictionary().walk([&](SymbolRefAttr name) {
          if (auto of = symbols.lookup<dfg::FuncOp>(name.getRootReference()))
            called.push_back(of);
        });
        const bool chooses =
            depth > 0 && llvm::any_of(called, [&](dfg::FuncOp of) { return choosesRows(of, symbols, depth - 1); });
        return chooses ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether it is "some element is 0 or no number": any(x == 0 or isnan(x)), in one reduction or two.
static bool isAnyZeroOrNan(Value predicate) {
  while (predicate.getDefiningOp<dfg::AnyOp>() || predicate.getDefiningOp<dfg::IdentityOp>())
    predicate = predicate.getDefiningOp()->getOperand(0);
  auto either = predicate.getDefiningOp<dfg::LogicalOrOp>();
  auto equal = either ? either.getOperand(0).getDefiningOp<dfg::EqualOp>() : dfg::EqualOp();
  auto nan = either ? either.getOperand(1).getDefiningOp<dfg::IsNanOp>() : dfg::IsNanOp();
  return equal && nan && equal.getOperand(0) == nan.getOperand() && matchPattern(equal.getOperand(1), m_AnyZeroFloat());
}

StraightLine::Results StraightLine::ifElse(Node &node) {
  FailureOr<Value> predicate = getPredicate(node, node.operands[0]);
  dfg::FuncOp chosen = getFunction(node, "then_branch"), otherwise = getFunction(node, "else_branch");
  if (failed(predicate) || !chosen || !otherwise)
    return failure();
  ArrayRef<Datum> operands = ArrayRef(node.operands).drop_front();
  if (std::optional<int64_t> known = shapes.getConstant(*predicate)) {
    noteDecision(node.name, *predicate);
    return call(node, *known ? chosen : otherwise, operands, node.name + "/");
  }
  // Keras 3 divides the rows of a sparse gradient by a dense tensor's, and adds the rows of a table in which that has a
  // zero, whose quotients are no numbers: how many these are, data say. Where there are none it is the other branch.
  if (isAnyZeroOrNan(*predicate) && choosesRows(chosen, symbols)) {
    if (failed(
            assertNot(*predicate, node.name + "/divides",
                      "'" + node.name + "' divides the rows of a sparse gradient by a tensor that has a 0 or a NaN")))
      return failure();
    return call(node, otherwise, operands, node.name + "/");
  }
  return choose(node, *predicate, chosen, otherwise, operands, node.name + "/");
}

StraightLine::Results StraightLine::caseOf(Node &node) {
  SmallVector<dfg::FuncOp> branches;
  if (auto all = node.getAttr<ArrayAttr>("branches"))
    for (Attribute branch : all) {
      branches.push_back(getFunction(node, branch));
      if (!branches.back())
        return failure();
    }
  if (branches.empty() || !node.operands[0].value)
    return fail(node) << "has no branches, or none that is told by a number", failure();
  ArrayRef<Datum> operands = ArrayRef(node.operands).drop_front();
  // Any other number means the last one.
  const int64_t last = branches.size() - 1;
  if (std::optional<int64_t> known = getConstant(node.operands[0])) {
    noteDecision(node.name, node.operands[0].value);
    return call(node, branches[*known < 0 || *known > last ? last : *known], operands, node.name + "/");
  }
  Value none;
  Guard holds;
  SmallVector<Value> isIndex;
  SmallVector<Data> results;
  for (int64_t index = 0; index <= last; ++index) {
    std::string prefix = node.name + "/branch_" + std::to_string(index) + "/";
    Value predicate = none;
    if (index < last) {
      predicate = equal(node.operands[0].value, index, prefix + "predicate");
      Value opposite = predicate ? logicalNot(predicate, prefix + "not") : Value();
      none = opposite ? logicalAnd(none, opposite, prefix + "none") : Value();
      if (!none)
        return failure();
    }
    if (index < last)
      holds.emplace_back(predicate, true);
    Results given = call(node, branches[index], operands, prefix, predicate, holds);
    if (failed(given))
      return failure();
    if (index < last)
      holds.back().second = false;
    isIndex.push_back(predicate);
    results.push_back(std::move(*given));
  }
  Data chosen = std::move(results.back());
  for (int64_t index = last - 1; index >= 0; --index)
    for (auto [result, other] : llvm::zip(chosen, results[index])) {
      FailureOr<Datum> either = select(isIndex[index], other, result, node);
      if (failed(either))
        return failure();
      result = *either;
    }
  return chosen;
}

// ---- Switch and Merge -----------------------------------------------------------------------------------------------

/// Both outputs are the value; what hangs on one runs where the predicate is so.
StraightLine::Results StraightLine::switchOf(Node &node) {
  FailureOr<Value> predicate = getPredicate(node, node.operands[1]);
  if (failed(predicate))
    return failure();
  Scope &scope = node.scope;
  std::optional<int64_t> known = shapes.getConstant(*predicate);
  // All of a condition's are decided by the same.
  if (known)
    noteDecision(dfg::getNodeName(predicate->getDefiningOp()), *predicate);
  for (unsigned output : {0, 1}) {
    Value result = node.op->getResult(output);
    if (known) {
      if ((*known != 0) != (output == 1))
        scope.dead.insert(result);
      continue;
    }
    Guard guard = scope.guards.lookup(result);
    guard.emplace_back(*predicate, output == 1);
    scope.guards[result] = guard;
  }
  return Data{node.operands[0], node.operands[0]};
}

StraightLine::Results StraightLine::merge(Node &node) {
  Scope &scope = node.scope;
  SmallVector<unsigned> living;
  for (unsigned i = 0; i < node.operands.size(); ++i)
    if (!scope.dead.contains(node.op->getOperand(i)))
      living.push_back(i);
  Type indexType = builder.getI32Type();
  auto setGuard = [&](const Guard &guard) {
    for (Value result : node.op->getResults())
      scope.guards[result] = guard;
    scope.controlGuards[dfg::getNodeName(node.op)] = guard;
  };
  if (living.size() == 1) {
    setGuard(scope.guards.lookup(node.op->getOperand(living[0])));
    return Data{node.operands[living[0]], getInteger(indexType, living[0])};
  }
  // Exactly one input is there: the one whose predicate holds.
  if (living.size() == 2) {
    Guard first = scope.guards.lookup(node.op->getOperand(living[0]));
    Guard second = scope.guards.lookup(node.op->getOperand(living[1]));
    for (auto &[predicate, value] : first) {
      auto opposite = std::pair(predicate, !value);
      if (!llvm::is_contained(second, opposite))
        continue;
      Guard common;
      for (auto &entry : first)
        if (llvm::is_contained(second, entry))
          common.push_back(entry);
      unsigned chosen = living[value ? 0 : 1], otherwise = living[value ? 1 : 0];
      FailureOr<Datum> result = select(predicate, node.operands[chosen], node.operands[otherwise], node);
      FailureOr<Datum> index = select(predicate, getInteger(indexType, chosen), getInteger(indexType, otherwise), node);
      if (failed(result) || failed(index))
        return failure();
      setGuard(common);
      return Data{*result, *index};
    }
  }
  return fail(node) << "joins values of which distc cannot tell that exactly one is there", failure();
}

} // namespace distc
