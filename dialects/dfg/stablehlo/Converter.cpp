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
  if (auto complex = llvm::dyn_cast<ComplexType>(element))
    return complex.getElementType().isF32() || complex.getElementType().isF64() ? element : Type();
  return element.isF16() || element.isBF16() || element.isF32() || element.isF64() ? element : Type();
}

// ---- The table --------------------------------------------------------------------------------------------------

Converter::Form Converter::findForm(StringRef name) {
  using C = Converter;
  static const llvm::StringMap<Form> table = {
      {"func.call", {&C::call}},
      {"stablehlo.composite", {&C::composite}},
      // Elements.
      {"stablehlo.constant", {&C::constant, 0}},
      {"stablehlo.abs", {&C::elementwise<dfg::AbsOp>, 1}},
      {"stablehlo.add", {&C::bitwise, 2}},
      {"stablehlo.subtract", {&C::elementwise<dfg::SubOp>, 2}},
      {"stablehlo.multiply", {&C::bitwise, 2}},
      {"stablehlo.and", {&C::bitwise, 2}},
      {"stablehlo.or", {&C::bitwise, 2}},
      {"stablehlo.xor", {&C::bitwise, 2}},
      {"stablehlo.not", {&C::invert, 1}},
      {"stablehlo.popcnt", {&C::countBits, 1}},
      {"stablehlo.count_leading_zeros", {&C::countBits, 1}},
      {"stablehlo.divide", {&C::divide, 2}},
      {"stablehlo.remainder", {&C::remainder, 2}},
      {"stablehlo.maximum", {&C::extremum, 2}},
      {"stablehlo.minimum", {&C::extremum, 2}},
      {"stablehlo.negate", {&C::elementwise<dfg::NegOp>, 1}},
      {"stablehlo.sign", {&C::elementwise<dfg::SignOp>, 1}},
      {"stablehlo.exponential", {&C::elementwise<dfg::ExpOp>, 1}},
      {"stablehlo.exponential_minus_one", {&C::elementwise<dfg::Expm1Op>, 1}},
      {"stablehlo.log", {&C::elementwise<dfg::LogOp>, 1}},
      {"stablehlo.log_plus_one", {&C::elementwise<dfg::Log1pOp>, 1}},
      {"stablehlo.sqrt", {&C::elementwise<dfg::SqrtOp>, 1}},
      {"stablehlo.rsqrt", {&C::elementwise<dfg::RsqrtOp>, 1}},
      {"stablehlo.cbrt", {&C::cbrt, 1}},
      {"stablehlo.power", {&C::elementwise<dfg::PowOp>, 2}},
      {"stablehlo.sine", {&C::elementwise<dfg::SinOp>, 1}},
      {"stablehlo.cosine", {&C::elementwise<dfg::CosOp>, 1}},
      {"stablehlo.tan", {&C::elementwise<dfg::TanOp>, 1}},
      {"stablehlo.tanh", {&C::elementwise<dfg::TanhOp>, 1}},
      {"stablehlo.atan2", {&C::elementwise<dfg::Atan2Op>, 2}},
      {"stablehlo.logistic", {&C::elementwise<dfg::SigmoidOp>, 1}},
      {"stablehlo.ceil", {&C::elementwise<dfg::CeilOp>, 1}},
      {"stablehlo.floor", {&C::elementwise<dfg::FloorOp>, 1}},
      {"stablehlo.round_nearest_even", {&C::elementwise<dfg::RoundOp>, 1}},
      {"stablehlo.round_nearest_afz", {&C::roundAwayFromZero, 1}},
      {"stablehlo.reduce_precision", {&C::reducePrecision, 1}},
      {"stablehlo.is_finite", {&C::predicate<dfg::IsFiniteOp>, 1}},
      {"stablehlo.compare", {&C::compare, 2}},
      {"stablehlo.convert", {&C::convertElements, 1}},
      {"stablehlo.bitcast_convert", {&C::bitcastConvert, 1}},
      {"stablehlo.select", {&C::select, 3}},
      {"stablehlo.clamp", {&C::clamp, 3}},
      {"stablehlo.shift_left", {&C::shift, 2}},
      {"stablehlo.shift_right_logical", {&C::shift, 2}},
      {"stablehlo.shift_right_arithmetic", {&C::shift, 2}},
      {"stablehlo.optimization_barrier", {&C::identity}},
      {"stablehlo.custom_call", {&C::customCall}},
      // What devices do together, of one device.
      {"stablehlo.all_reduce", {&C::ofOneDevice}},
      {"stablehlo.all_gather", {&C::ofOneDevice}},
      {"stablehlo.all_to_all", {&C::ofOneDevice}},
      {"stablehlo.reduce_scatter", {&C::ofOneDevice}},
      {"stablehlo.collective_broadcast", {&C::ofOneDevice}},
      {"stablehlo.collective_permute", {&C::ofOneDevice}},
      {"stablehlo.partition_id", {&C::numberOfDevice, 0}},
      {"stablehlo.replica_id", {&C::numberOfDevice, 0}},
      // Where values should be kept, which the strategy says here.
      {"sdy.sharding_constraint", {&C::identity, 1}},
      {"sdy.propagation_barrier", {&C::identity, 1}},
      {"sdy.reshard", {&C::identity, 1}},
      {"chlo.acos", {&C::elementwise<dfg::AcosOp>, 1}},
      {"chlo.acosh", {&C::elementwise<dfg::AcoshOp>, 1}},
      {"chlo.asin", {&C::elementwise<dfg::AsinOp>, 1}},
      {"chlo.asinh", {&C::elementwise<dfg::AsinhOp>, 1}},
      {"chlo.atan", {&C::elementwise<dfg::AtanOp>, 1}},
      {"chlo.atanh", {&C::elementwise<dfg::AtanhOp>, 1}},
      {"chlo.sinh", {&C::elementwise<dfg::SinhOp>, 1}},
      {"chlo.cosh", {&C::elementwise<dfg::CoshOp>, 1}},
      {"chlo.tan", {&C::elementwise<dfg::TanOp>, 1}},
      {"chlo.erf", {&C::elementwise<dfg::ErfOp>, 1}},
      {"chlo.erfc", {&C::elementwise<dfg::ErfcOp>, 1}},
      {"chlo.erf_inv", {&C::elementwise<dfg::ErfinvOp>, 1}},
      {"chlo.lgamma", {&C::elementwise<dfg::LgammaOp>, 1}},
      {"chlo.digamma", {&C::elementwise<dfg::DigammaOp>, 1}},
      {"chlo.polygamma", {&C::elementwise<dfg::PolygammaOp>, 2}},
      {"chlo.zeta", {&C::elementwise<dfg::ZetaOp>, 2}},
      {"chlo.bessel_i1e", {&C::elementwise<dfg::BesselI1eOp>, 1}},
      {"chlo.next_after", {&C::elementwise<dfg::NextAfterOp>, 2}},
      {"chlo.is_inf", {&C::predicate<dfg::IsInfOp>, 1}},
      {"chlo.square", {&C::elementwise<dfg::SquareOp>, 1}},
      // Complex numbers; Complex.cpp has what is other of them than of real ones.
      {"stablehlo.complex", {&C::complexOf, 2}},
      {"stablehlo.real", {&C::partOf, 1}},
      {"stablehlo.imag", {&C::partOf, 1}},
      {"stablehlo.fft", {&C::fourierTransform, 1}},
      // Layout.
      {"stablehlo.broadcast_in_dim", {&C::broadcastInDim, 1}},
      {"stablehlo.dynamic_broadcast_in_dim", {&C::dynamicBroadcastInDim, 2}},
      {"stablehlo.reshape", {&C::reshapeStatic, 1}},
      {"stablehlo.dynamic_reshape", {&C::dynamicReshape, 2}},
      {"stablehlo.transpose", {&C::transpose, 1}},
      {"stablehlo.concatenate", {&C::concatenate}},
      {"stablehlo.reverse", {&C::reverse, 1}},
      {"stablehlo.pad", {&C::pad, 2}},
      {"stablehlo.dynamic_pad", {&C::dynamicPad, 5}},
      {"stablehlo.slice", {&C::slice, 1}},
      {"stablehlo.real_dynamic_slice", {&C::realDynamicSlice, 4}},
      {"stablehlo.iota", {&C::iota, 0}},
      {"stablehlo.dynamic_iota", {&C::dynamicIota, 1}},
      {"stablehlo.get_dimension_size", {&C::dimensionSize, 1}},
      // Reductions and products.
      {"stablehlo.reduce", {&C::reduce}},
      {"stablehlo.reduce_window", {&C::reduceWindow, 2}},
      {"stablehlo.select_and_scatter", {&C::selectAndScatter, 3}},
      {"chlo.top_k", {&C::topK, 1}},
      {"stablehlo.sort", {&C::sort}},
      {"stablehlo.dot_general", {&C::dotGeneral, 2}},
      {"stablehlo.convolution", {&C::convolution, 2}},
      {"stablehlo.cholesky", {&C::cholesky, 1}},
      {"stablehlo.triangular_solve", {&C::triangularSolve, 2}},
      // Rows by index.
      {"stablehlo.gather", {&C::gather, 2}},
      {"stablehlo.dynamic_gather", {&C::dynamicGather, 3}},
      {"stablehlo.scatter", {&C::scatter, 3}},
      {"stablehlo.dynamic_slice", {&C::dynamicSlice}},
      {"stablehlo.dynamic_update_slice", {&C::dynamicUpdateSlice}},
      {"stablehlo.rng_bit_generator", {&C::drawBits, 1}},
      // Control flow.
      {"stablehlo.while", {&C::whileLoop}},
      {"stablehlo.if", {&C::caseOf, 1}},
      {"stablehlo.case", {&C::caseOf, 1}},
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
                             "annotate_device_placement", "mhlo.erf", "mhlo.topk", "ApproxTopK",
                             "stablehlo.dynamic_reduce_window", "stablehlo.dynamic_rng_bit_generator", "distc.index"},
                            target);
}

/// What to write in place of operations and types that there is no code for; "" where nothing is known.
static StringRef getWayOut(StringRef name) {
  if (name.contains("complex"))
    return "write it with real and imaginary parts";
  if (name.contains("lapack_"))
    return "of real matrices there are solutions, inverses, determinants, factors (Cholesky's, LU, QR), eigenvalues of "
           "symmetric ones and singular values: write it with those";
  if (name.contains("top_k"))
    return "how many are taken depends on the batch's size: weigh the examples by their rank, "
           "jnp.argsort(jnp.argsort(-x)) < k";
  return "";
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
      if (!findForm(op->getName().getStringRef()).handler)
        ++unknown[op->getName().getIdentifier()];
      else if (isOfComplex(op) && !findComplexForm(op->getName().getStringRef()).handler)
        ++unknown[text(op->getName().getStringRef() + " of complex numbers")];
      else if (!target.empty() && !isKnownCall(target) && !findLibraryCall(target).handler)
        ++unknown[text("stablehlo.custom_call @" + target)];
      for (Type type : op->getResultTypes())
        if (auto tensor = llvm::dyn_cast<RankedTensorType>(type);
            !tensor || !getElementType(tensor.getElementType()) || tensor.getEncoding()) {
          std::string printed;
          llvm::raw_string_ostream(printed) << type;
          ++types[text(printed)];
        }
      const bool isKnown = findForm(getText(op, "name")).handler;
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
  llvm::SetVector<StringRef> ways;
  for (auto *counts : {&unknown, &types})
    for (auto &entry : *counts)
      if (StringRef way = getWayOut(entry.first.getValue()); !way.empty())
        ways.insert(way);
  for (StringRef way : ways)
    error << "; " << way;
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
  Form form = (isOfComplex(op) ? findComplexForm : findForm)(op->getName().getStringRef());
  if (!form.handler)
    return op->emitError() << "there is no code for operation '" << op->getName() << "'";
  if (form.operands >= 0 && op->getNumOperands() != static_cast<unsigned>(form.operands))
    return op->emitError() << "operation '" << op->getName() << "' takes " << form.operands << " operands, but has "
                           << op->getNumOperands();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    Value value = scope.values.lookup(operand);
    if (!value)
      return op->emitError() << "operation '" << op->getName() << "' takes a value that is not there";
    operands.push_back(value);
  }
  Builder g(builder, shapes, op);
  Result results = (this->*form.handler)(op, std::move(operands), g);
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
  // False is less than true.
  bool natural = isUnsigned(sourceValue) || value->getBitWidth() == 1;
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
