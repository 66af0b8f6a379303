//===- Converter.cpp - The walk over a module, and the table of its operations -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/stablehlo/Elementwise.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace distc::stablehlo {

Type getElementType(Type element) {
  if (auto integer = llvm::dyn_cast<IntegerType>(element))
    return llvm::is_contained({1u, 8u, 16u, 32u, 64u}, integer.getWidth())
               ? IntegerType::get(element.getContext(), integer.getWidth())
               : Type();
  return element.isF16() || element.isBF16() || element.isF32() || element.isF64() ? element : Type();
}

// ---- The table --------------------------------------------------------------------------------------------------

Converter::Handler Converter::findHandler(StringRef name) {
  using C = Converter;
  static const llvm::StringMap<Handler> table = {
      {"func.call", &C::call},
      {"stablehlo.composite", &C::composite},
      // Elements.
      {"stablehlo.constant", &C::constant},
      {"stablehlo.abs", &C::elementwise<dfg::AbsOp>},
      {"stablehlo.add", &C::bitwise},
      {"stablehlo.subtract", &C::elementwise<dfg::SubOp>},
      {"stablehlo.multiply", &C::bitwise},
      {"stablehlo.and", &C::bitwise},
      {"stablehlo.or", &C::bitwise},
      {"stablehlo.xor", &C::bitwise},
      {"stablehlo.not", &C::invert},
      {"stablehlo.divide", &C::divide},
      {"stablehlo.remainder", &C::remainder},
      {"stablehlo.maximum", &C::extremum},
      {"stablehlo.minimum", &C::extremum},
      {"stablehlo.negate", &C::elementwise<dfg::NegOp>},
      {"stablehlo.sign", &C::elementwise<dfg::SignOp>},
      {"stablehlo.exponential", &C::elementwise<dfg::ExpOp>},
      {"stablehlo.exponential_minus_one", &C::elementwise<dfg::Expm1Op>},
      {"stablehlo.log", &C::elementwise<dfg::LogOp>},
      {"stablehlo.log_plus_one", &C::elementwise<dfg::Log1pOp>},
      {"stablehlo.sqrt", &C::elementwise<dfg::SqrtOp>},
      {"stablehlo.rsqrt", &C::elementwise<dfg::RsqrtOp>},
      {"stablehlo.cbrt", &C::cbrt},
      {"stablehlo.power", &C::elementwise<dfg::PowOp>},
      {"stablehlo.sine", &C::elementwise<dfg::SinOp>},
      {"stablehlo.cosine", &C::elementwise<dfg::CosOp>},
      {"stablehlo.tan", &C::elementwise<dfg::TanOp>},
      {"stablehlo.tanh", &C::elementwise<dfg::TanhOp>},
      {"stablehlo.atan2", &C::elementwise<dfg::Atan2Op>},
      {"stablehlo.logistic", &C::elementwise<dfg::SigmoidOp>},
      {"stablehlo.ceil", &C::elementwise<dfg::CeilOp>},
      {"stablehlo.floor", &C::elementwise<dfg::FloorOp>},
      {"stablehlo.round_nearest_even", &C::elementwise<dfg::RoundOp>},
      {"stablehlo.round_nearest_afz", &C::roundAwayFromZero},
      {"stablehlo.is_finite", &C::predicate<dfg::IsFiniteOp>},
      {"stablehlo.compare", &C::compare},
      {"stablehlo.convert", &C::convertElements},
      {"stablehlo.bitcast_convert", &C::bitcastConvert},
      {"stablehlo.select", &C::select},
      {"stablehlo.clamp", &C::clamp},
      {"stablehlo.shift_left", &C::shift},
      {"stablehlo.shift_right_logical", &C::shift},
      {"stablehlo.shift_right_arithmetic", &C::shift},
      {"stablehlo.optimization_barrier", &C::identity},
      {"stablehlo.custom_call", &C::customCall},
      {"chlo.acos", &C::elementwise<dfg::AcosOp>},
      {"chlo.acosh", &C::elementwise<dfg::AcoshOp>},
      {"chlo.asin", &C::elementwise<dfg::AsinOp>},
      {"chlo.asinh", &C::elementwise<dfg::AsinhOp>},
      {"chlo.atan", &C::elementwise<dfg::AtanOp>},
      {"chlo.atanh", &C::elementwise<dfg::AtanhOp>},
      {"chlo.sinh", &C::elementwise<dfg::SinhOp>},
      {"chlo.cosh", &C::elementwise<dfg::CoshOp>},
      {"chlo.tan", &C::elementwise<dfg::TanOp>},
      {"chlo.erf", &C::elementwise<dfg::ErfOp>},
      {"chlo.erfc", &C::elementwise<dfg::ErfcOp>},
      {"chlo.erf_inv", &C::elementwise<dfg::ErfinvOp>},
      {"chlo.lgamma", &C::elementwise<dfg::LgammaOp>},
      {"chlo.digamma", &C::elementwise<dfg::DigammaOp>},
      {"chlo.polygamma", &C::elementwise<dfg::PolygammaOp>},
      {"chlo.zeta", &C::elementwise<dfg::ZetaOp>},
      {"chlo.bessel_i1e", &C::elementwise<dfg::BesselI1eOp>},
      {"chlo.next_after", &C::elementwise<dfg::NextAfterOp>},
      {"chlo.is_inf", &C::predicate<dfg::IsInfOp>},
      {"chlo.square", &C::elementwise<dfg::SquareOp>},
      // Layout.
      {"stablehlo.broadcast_in_dim", &C::broadcastInDim},
      {"stablehlo.dynamic_broadcast_in_dim", &C::dynamicBroadcastInDim},
      {"stablehlo.reshape", &C::reshapeStatic},
      {"stablehlo.dynamic_reshape", &C::dynamicReshape},
      {"stablehlo.transpose", &C::transpose},
      {"stablehlo.concatenate", &C::concatenate},
      {"stablehlo.reverse", &C::reverse},
      {"stablehlo.pad", &C::pad},
      {"stablehlo.dynamic_pad", &C::dynamicPad},
      {"stablehlo.slice", &C::slice},
      {"stablehlo.real_dynamic_slice", &C::realDynamicSlice},
      {"stablehlo.iota", &C::iota},
      {"stablehlo.dynamic_iota", &C::dynamicIota},
      {"stablehlo.get_dimension_size", &C::dimensionSize},
      // Reductions and products.
      {"stablehlo.reduce", &C::reduce},
      {"stablehlo.reduce_window", &C::reduceWindow},
      {"stablehlo.select_and_scatter", &C::selectAndScatter},
      {"chlo.top_k", &C::topK},
      {"stablehlo.dot_general", &C::dotGeneral},
      {"stablehlo.convolution", &C::convolution},
      // Rows by index.
      {"stablehlo.gather", &C::gather},
      {"stablehlo.dynamic_gather", &C::dynamicGather},
      {"stablehlo.scatter", &C::scatter},
      {"stablehlo.dynamic_slice", &C::dynamicSlice},
      {"stablehlo.dynamic_update_slice", &C::dynamicUpdateSlice},
      // Control flow.
      {"stablehlo.while", &C::whileLoop},
      {"stablehlo.if", &C::caseOf},
      {"stablehlo.case", &C::caseOf},
  };
  return table.lookup(name);
}

/// What the last operation of a region is, which gives its results.
static bool isReturn(Operation *op) {
  return llvm::is_contained({"func.return", "stablehlo.return"}, op->getName().getStringRef());
}

/// The regions of these are looked at as a whole, not converted.
static bool hasCombiner(Operation *op) {
  return llvm::is_contained({"stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.select_and_scatter",
                             "stablehlo.scatter", "stablehlo.sort"},
                            op->getName().getStringRef());
}

/// The custom calls that have a meaning here.
static bool isKnownCall(StringRef target) {
  return llvm::is_contained({"shape_assertion", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape",
                             "annotate_device_placement", "mhlo.erf", "mhlo.topk"},
                            target);
}

LogicalResult Converter::check(Operation *function) {
  llvm::MapVector<StringAttr, int64_t> unknown, types;
  auto text = [&](const Twine &name) { return StringAttr::get(function->getContext(), name); };
  llvm::SetVector<Operation *> reached;
  reached.insert(function);
  for (size_t i = 0; i < reached.size(); ++i) {
    reached[i]->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (op == reached[i] || isReturn(op))
        return WalkResult::advance();
      StringRef target = getText(op, "call_target_name");
      if (!findHandler(op->getName().getStringRef()))
        ++unknown[op->getName().getIdentifier()];
      else if (!target.empty() && !isKnownCall(target))
        ++unknown[text("stablehlo.custom_call @" + target)];
      for (Type type : op->getResultTypes())
        if (auto tensor = llvm::dyn_cast<RankedTensorType>(type);
            !tensor || !getElementType(tensor.getElementType()) || tensor.getEncoding()) {
          std::string printed;
          llvm::raw_string_ostream(printed) << type;
          ++types[text(printed)];
        }
      const bool isKnown = findHandler(getText(op, "name"));
      for (StringRef attribute : {"callee", "decomposition"})
        if (auto callee = op->getAttrOfType<FlatSymbolRefAttr>(attribute); callee && !isKnown)
          if (Operation *called = symbols.lookup(callee.getValue()))
            reached.insert(called);
      return hasCombiner(op) ? WalkResult::skip() : WalkResult::advance();
    });
  }
  if (unknown.empty() && types.empty())
    return success();
  InFlightDiagnostic error = emitError(function->getLoc());
  auto list = [&](StringRef what, llvm::MapVector<StringAttr, int64_t> &counts) {
    error << what;
    llvm::interleave(
        counts, [&](auto &entry) { error << entry.first.getValue() << " (" << entry.second << ")"; },
        [&] { error << ", "; });
  };
  if (!unknown.empty())
    list("there is no code for the operations ", unknown);
  if (!types.empty())
    list(unknown.empty() ? "there is no code for values of type " : "; nor for values of type ", types);
  return error;
}

// ---- The walk ------------------------------------------------------------------------------------------------------

FailureOr<SmallVector<Value>> Converter::convert(Operation *function, ValueRange arguments) {
  if (function->getNumRegions() != 1 || function->getRegion(0).empty() || !function->getRegion(0).hasOneBlock())
    return function->emitError("is no function of one block"), failure();
  if (llvm::is_contained(calls, function))
    return function->emitError("is a function that calls itself"), failure();
  Block &block = function->getRegion(0).front();
  if (block.getNumArguments() != arguments.size())
    return function->emitError() << "takes " << block.getNumArguments() << " arguments, but is given "
                                 << arguments.size(),
           failure();
  calls.push_back(function);
  Scope scope;
  for (auto [parameter, argument] : llvm::zip(block.getArguments(), arguments))
    scope.values[parameter] = argument;
  LogicalResult done = convertBlock(block, scope);
  calls.pop_back();
  if (failed(done))
    return failure();
  SmallVector<Value> results;
  for (Value result : block.back().getOperands())
    results.push_back(scope.values.lookup(result));
  return results;
}

LogicalResult Converter::convertBlock(Block &block, Scope &scope) {
  if (block.empty() || !isReturn(&block.back()))
    return block.getParentOp()->emitError("has a region that returns nothing");
  llvm::scope_exit restore([&, before = current] { current = before; });
  current = &scope;
  // Of an operation that is not registered MLIR does not know that it ends the block.
  for (Operation &op : llvm::make_range(block.begin(), std::prev(block.end())))
    if (failed(convertOperation(&op, scope)))
      return failure();
  for (Value result : block.back().getOperands())
    if (!scope.values.lookup(result))
      return block.back().emitError("gives a value that is not there");
  return success();
}

LogicalResult Converter::convertOperation(Operation *op, Scope &scope) {
  Handler handler = findHandler(op->getName().getStringRef());
  if (!handler)
    return op->emitError() << "there is no code for operation '" << op->getName() << "'";
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Value value = scope.values.lookup(operand);
    if (!value)
      return op->emitError() << "operation '" << op->getName() << "' takes a value that is not there";
    operands.push_back(value);
  }
  Builder g(builder, shapes, op);
  Result results = (this->*handler)(op, std::move(operands), g);
  if (g.failed() || failed(results)) {
    if (!g.getReason().empty())
      return op->emitError() << "node '" << dfg::getNodeName(op) << "' (operation '" << op->getName()
                             << "'): " << g.getReason();
    return failure();
  }
  if (results->size() != op->getNumResults())
    return op->emitError() << "operation '" << op->getName() << "' has " << op->getNumResults()
                           << " results, where it gives " << results->size();
  for (auto [result, value] : llvm::zip(op->getResults(), *results)) {
    // What was made must be what the module says.
    auto type = llvm::dyn_cast<RankedTensorType>(result.getType());
    std::optional<Dims> shape = shapes.getShape(value);
    bool fits = type && shape && shape->size() == static_cast<size_t>(type.getRank()) &&
                dfg::GraphBuilder::elementOf(value) == getElementType(type.getElementType());
    for (size_t axis = 0; fits && axis < shape->size(); ++axis)
      fits = type.isDynamicDim(axis) || !(*shape)[axis].isConstant() ||
             (*shape)[axis].getConstant() == type.getDimSize(axis);
    if (!fits)
      return op->emitError() << "node '" << dfg::getNodeName(op) << "' (operation '" << op->getName()
                             << "') gives a value of type " << value.getType() << " where the module says "
                             << result.getType();
    scope.values[result] = value;
  }
  return success();
}

// ---- What handlers are written with ----------------------------------------------------------------------------

bool Converter::isUnsigned(Value value) { return getElementTypeOrSelf(value.getType()).isUnsignedInteger(); }

Type Converter::elementOfResult(Operation *op, unsigned number) {
  return getElementType(getElementTypeOrSelf(op->getResult(number).getType()));
}

Value Converter::makeConstant(Builder &g, DenseElementsAttr value) {
  if (g.failed())
    return {};
  Location loc = NameLoc::get(g.builder.getStringAttr(dfg::getNodeName(g.node) + "/const"));
  auto constant = dfg::ConstOp::create(g.builder, loc, value.getType(), value);
  g.made.push_back(constant);
  if (failed(llvm::cast<dfg::ShapeInterface>(constant.getOperation()).inferShapes(g.shapes)))
    return (void)g.fail("has a constant without a shape"), Value();
  return constant;
}

Converter::Result Converter::one(Builder &g, Value value) {
  if (g.failed() || !value)
    return failure();
  return Values{value};
}

Converter::Result Converter::fail(Builder &g, const Twine &why) { return (void)g.fail(why), failure(); }

FailureOr<dfg::Dims> Converter::getSizes(Value value, Builder &g) {
  std::optional<Dims> sizes = value ? shapes.getElements(value) : std::nullopt;
  if (sizes && llvm::all_of(*sizes, [](Dim size) { return size.isKnown(); }))
    return *sizes;
  std::optional<Dims> shape = value ? shapes.getShape(value) : std::nullopt;
  if (shape && shape->size() == 1 && shape->front() == Dim(0))
    return Dims();
  return (void)g.fail("an operand that says sizes depends on data"), failure();
}

/// What made a value, before it was broadcast.
static Operation *getBroadcast(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && llvm::is_contained({"stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim"},
                                  op->getName().getStringRef()))
    op = op->getOperand(0).getDefiningOp();
  return op;
}

std::optional<APFloat> Converter::getSplatFloat(Value sourceValue) {
  Operation *op = getBroadcast(sourceValue);
  auto splat = op ? op->getAttrOfType<SplatElementsAttr>("value") : SplatElementsAttr();
  if (!splat || !llvm::isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<APFloat>();
}

std::optional<APInt> Converter::getSplatInt(Value sourceValue) {
  Operation *op = getBroadcast(sourceValue);
  auto splat = op ? op->getAttrOfType<SplatElementsAttr>("value") : SplatElementsAttr();
  if (!splat || !llvm::isa<IntegerType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<APInt>();
}

std::optional<Combination> Converter::getCombination(Region &region) {
  if (!region.hasOneBlock() || region.getNumArguments() != 2)
    return std::nullopt;
  Block &block = region.front();
  Operation *last = block.empty() ? nullptr : &block.back();
  if (!last || !isReturn(last) || last->getNumOperands() != 1)
    return std::nullopt;
  Value result = last->getOperand(0);
  if (result == block.getArgument(1) && &block.front() == last)
    return Combination::Assign;
  Operation *op = result.getDefiningOp();
  if (!op || op != &block.front() || op->getNextNode() != last || op->getNumOperands() != 2)
    return std::nullopt;
  Value x = block.getArgument(0), y = block.getArgument(1);
  if (!(op->getOperand(0) == x && op->getOperand(1) == y) && !(op->getOperand(0) == y && op->getOperand(1) == x))
    return std::nullopt;
  static const llvm::StringMap<Combination> table = {
      {"stablehlo.add", Combination::Add},     {"stablehlo.multiply", Combination::Mul},
      {"stablehlo.maximum", Combination::Max}, {"stablehlo.minimum", Combination::Min},
      {"stablehlo.and", Combination::And},     {"stablehlo.or", Combination::Or},
      {"stablehlo.xor", Combination::Xor},
  };
  auto it = table.find(op->getName().getStringRef());
  if (it == table.end())
    return std::nullopt;
  // Of booleans a sum is a disjunction, and so on.
  if (getElementTypeOrSelf(x.getType()).isInteger(1)) {
    if (it->second == Combination::Add || it->second == Combination::Max)
      return Combination::Or;
    if (it->second == Combination::Mul || it->second == Combination::Min)
      return Combination::And;
  }
  return it->second;
}

bool Converter::isIdentity(Value sourceValue, Combination combination) {
  if (std::optional<APFloat> value = getSplatFloat(sourceValue)) {
    switch (combination) {
    case Combination::Add:
      return value->isZero();
    case Combination::Mul:
      return value->isExactlyValue(1.0);
    case Combination::Max:
      return value->isInfinity() && value->isNegative();
    case Combination::Min:
      return value->isInfinity() && !value->isNegative();
    default:
      return false;
    }
  }
  std::optional<APInt> value = getSplatInt(sourceValue);
  if (!value)
    return false;
  bool natural = isUnsigned(sourceValue);
  switch (combination) {
  case Combination::Add:
  case Combination::Or:
  case Combination::Xor:
    return value->isZero();
  case Combination::Mul:
    return value->isOne();
  case Combination::And:
    return value->isAllOnes();
  case Combination::Max:
    return natural ? value->isZero() : value->isMinSignedValue();
  case Combination::Min:
    return natural ? value->isAllOnes() : value->isMaxSignedValue();
  case Combination::Assign:
    return true;
  }
  return false;
}

} // namespace distc::stablehlo
