//===- ControlFlow.cpp - Calls, loops and branches ---------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Calls are inlined here. Loops and branches become While and Case nodes with
// functions of the graph's library, whose further arguments are the values that the
// regions take from around them.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Converter.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace distc::stablehlo {

Converter::Result Converter::call(Operation *op, Values operands, Builder &g) {
  auto callee = op->getAttrOfType<FlatSymbolRefAttr>("callee");
  Operation *function = callee ? symbols.lookup(callee.getValue()) : nullptr;
  if (!function)
    return fail(g, "calls a function that the module does not have");
  return convert(function, operands);
}

/// An operation that is named, with a function that computes the same of others.
Converter::Result Converter::composite(Operation *op, Values operands, Builder &g) {
  Form form = findForm(getText(op, "name"));
  if (form.handler && (form.operands < 0 || operands.size() == static_cast<size_t>(form.operands)))
    return (this->*form.handler)(op, std::move(operands), g);
  auto decomposition = op->getAttrOfType<FlatSymbolRefAttr>("decomposition");
  Operation *function = decomposition ? symbols.lookup(decomposition.getValue()) : nullptr;
  if (!function)
    return fail(g, "is a composite whose decomposition the module does not have");
  return convert(function, operands);
}

SmallVector<Value> Converter::getCaptured(MutableArrayRef<Region> regions) {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(regions, captured);
  return captured.takeVector();
}

FailureOr<FlatSymbolRefAttr> Converter::makeFunction(Operation *op, Region &region, StringRef suffix,
                                                     ValueRange arguments, ArrayRef<Value> captured, bool givesCaptured,
                                                     ArrayRef<bool> isInvariant) {
  if (!region.hasOneBlock() || region.getNumArguments() + captured.size() != arguments.size())
    return op->emitError() << "node '" << dfg::getNodeName(op) << "' has a region that does not take its operands",
           failure();
  MLIRContext *context = op->getContext();
  OperationState state(op->getLoc(), dfg::FuncOp::getOperationName());
  Block *block = &state.addRegion()->emplaceBlock();
  SmallVector<Type> types;
  for (auto [number, argument] : llvm::enumerate(arguments)) {
    types.push_back(argument.getType());
    Value parameter = block->addArgument(argument.getType(), op->getLoc());
    if (auto shape = shapes.getShape(argument))
      shapes.setShape(parameter, *shape);
    // What no iteration changes is what it was.
    if (auto elements = shapes.getElements(argument); elements && isInvariant[number])
      shapes.setElements(parameter, *elements);
    else if (auto type = llvm::dyn_cast<RankedTensorType>(argument.getType());
             type && type.getElementType().isInteger() && type.hasStaticShape() &&
             type.getNumElements() <= dfg::ShapeContext::kMaxElements)
      // A counter: not known, but sizes beside it in a vector of them are.
      shapes.setElements(parameter, Dims(type.getNumElements(), Dim()));
  }
  // Broadcasts outside are values here.
  auto narrowedOutside = std::move(narrowed);
  narrowed.clear();
  llvm::scope_exit restore([&] { narrowed = std::move(narrowedOutside); });
  Scope scope;
  for (auto [parameter, argument] : llvm::zip(region.getArguments(), block->getArguments()))
    scope.values[parameter] = argument;
  for (auto [value, argument] : llvm::zip(captured, block->getArguments().drop_front(region.getNumArguments())))
    scope.values[value] = argument;
  LogicalResult done = success();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(block);
    done = convertBlock(region.front(), scope);
  }
  SmallVector<Value> results;
  if (succeeded(done)) {
    for (Value result : region.front().back().getOperands())
      results.push_back(scope.values.lookup(result));
    if (givesCaptured)
      llvm::append_range(results, block->getArguments().drop_front(region.getNumArguments()));
    OpBuilder atEnd(context);
    atEnd.setInsertionPointToEnd(block);
    dfg::ReturnOp::create(atEnd, op->getLoc(), results);
  }
  std::string name = (dfg::getNodeName(op) + "_" + suffix + "_" + Twine(functions.size())).str();
  state.addAttribute(SymbolTable::getSymbolAttrName(), builder.getStringAttr(name));
  state.addAttribute("function_type", TypeAttr::get(builder.getFunctionType(types, ValueRange(results).getTypes())));
  Operation *function = Operation::create(state);
  if (failed(done)) {
    function->destroy();
    return failure();
  }
  functions.push_back(function);
  return FlatSymbolRefAttr::get(context, name);
}

Converter::Result Converter::makeControlFlow(Operation *op, StringRef kind, ValueRange operands,
                                             ArrayRef<NamedAttribute> functionNames, TypeRange types) {
  auto node = dfg::OpaqueOp::create(builder, op->getLoc(), types, kind, operands);
  dfg::setSourceAttributes(node, functionNames);
  return Values(node->getResults());
}

/// Whether values of one may be where those of the other are.
static bool areAlike(Type x, Type y) {
  auto a = llvm::dyn_cast<RankedTensorType>(x), b = llvm::dyn_cast<RankedTensorType>(y);
  return a && b && a.getElementType() == b.getElementType() && succeeded(verifyCompatibleShape(a, b));
}

static dfg::FuncAttr getReference(FlatSymbolRefAttr name) {
  return dfg::FuncAttr::get(name.getContext(), name, DictionaryAttr::get(name.getContext()));
}

Converter::Result Converter::whileLoop(Operation *op, Values operands, Builder &g) {
  if (op->getNumRegions() != 2 || operands.size() != op->getNumResults() || !op->getRegion(1).hasOneBlock() ||
      op->getRegion(1).front().empty())
    return fail(g, "is no loop of a condition and a body");
  SmallVector<Value> captured = getCaptured(op->getRegions());
  Values state(operands);
  for (Value value : captured)
    state.push_back(current->values.lookup(value));
  // What the body hands on as it is.
  SmallVector<bool> isInvariant(state.size(), true);
  Block &body = op->getRegion(1).front();
  if (body.back().getNumOperands() != operands.size() || body.getNumArguments() != operands.size())
    return fail(g, "has a body that does not give its variables");
  for (size_t number = 0; number < operands.size(); ++number)
    isInvariant[number] = body.back().getOperand(number) == body.getArgument(number);
  FailureOr<FlatSymbolRefAttr> condition =
      makeFunction(op, op->getRegion(0), "cond", state, captured, false, isInvariant);
  if (failed(condition))
    return failure();
  FailureOr<FlatSymbolRefAttr> step = makeFunction(op, op->getRegion(1), "body", state, captured, true, isInvariant);
  if (failed(step))
    return failure();
  for (auto [input, output] : llvm::zip(state, llvm::cast<dfg::FuncOp>(functions.back()).getResultTypes()))
    if (!areAlike(input.getType(), output))
      return fail(g, "has a body that gives a variable another type");
  Result results =
      makeControlFlow(op, "StatelessWhile", state,
                      {g.attribute("body", getReference(*step)), g.attribute("cond", getReference(*condition))},
                      ValueRange(state).getTypes());
  for (auto [number, both] : llvm::enumerate(llvm::zip(*results, state))) {
    auto [result, before] = both;
    if (auto shape = shapes.getShape(before))
      shapes.setShape(result, *shape);
    if (auto elements = shapes.getElements(before); elements && isInvariant[number])
      shapes.setElements(result, *elements);
  }
  results->truncate(operands.size());
  return results;
}

Converter::Result Converter::caseOf(Operation *op, Values operands, Builder &g) {
  if (operands.size() != 1 || op->getNumRegions() == 0)
    return fail(g, "has no branches");
  const bool isIf = op->getName().getStringRef() == "stablehlo.if";
  const int64_t count = op->getNumRegions();
  if (std::optional<int64_t> number = count == 1 ? 0 : g.shapes.getConstant(operands[0])) {
    // The branch is known: its nodes are made here. What is out of range is the last.
    if (isIf)
      number = *number ? 0 : 1;
    Region &region = op->getRegion(*number < 0 || *number >= count ? count - 1 : *number);
    if (!region.hasOneBlock() || region.getNumArguments() != 0)
      return fail(g, "has a branch that takes arguments");
    if (failed(convertBlock(region.front(), *current)))
      return failure();
    return llvm::map_to_vector(region.front().back().getOperands(),
                               [&](Value result) { return current->values.lookup(result); });
  }
  SmallVector<Value> captured = getCaptured(op->getRegions());
  Values inputs;
  for (Value value : captured)
    inputs.push_back(current->values.lookup(value));
  SmallVector<bool> isInvariant(inputs.size(), true);
  SmallVector<Attribute> branches;
  SmallVector<Type> types;
  for (Region &region : op->getRegions()) {
    FailureOr<FlatSymbolRefAttr> branch =
        makeFunction(op, region, "branch", inputs, captured, /*givesCaptured=*/false, isInvariant);
    if (failed(branch))
      return failure();
    branches.push_back(getReference(*branch));
    auto outputs = llvm::cast<dfg::FuncOp>(functions.back()).getResultTypes();
    if (outputs.size() != op->getNumResults())
      return fail(g, "has a branch that does not give its results");
    for (auto [number, output] : llvm::enumerate(outputs))
      if (branches.size() > 1 && !areAlike(output, types[number]))
        return fail(g, "has branches that give values of different types");
    types.assign(outputs.begin(), outputs.end());
  }
  // What all of them give.
  auto first = llvm::cast<dfg::FuncOp>(functions.back());
  auto given = llvm::cast<dfg::ReturnOp>(first.getBody().front().getTerminator()).getOperands();
  SmallVector<Value> all = {operands[0]};
  llvm::append_range(all, inputs);
  SmallVector<NamedAttribute> attributes;
  if (isIf && branches.size() == 2)
    attributes = {g.attribute("else_branch", branches[1]), g.attribute("then_branch", branches[0])};
  else
    attributes = {g.attribute("branches", g.builder.getArrayAttr(branches))};
  Result results = makeControlFlow(op, isIf ? "StatelessIf" : "StatelessCase", all, attributes, given.getTypes());
  for (auto [result, value] : llvm::zip(*results, given))
    if (auto shape = shapes.getShape(value))
      shapes.setShape(result, *shape);
  return results;
}

} // namespace distc::stablehlo
