//===- DfgDialect.cpp - The dataflow dialect --------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/AssemblyFormat.h"
#include "dialects/dfg/AttachedAttributes.h"
#include "dialects/dfg/BatchMultiple.h"
#include "dialects/dfg/ConstantFormat.h"
#include "dialects/dfg/GraphNames.h"
#include "dialects/dfg/NodeNames.h"
#include "dialects/dfg/SourceAttributes.h"
#include "dialects/dfg/VariableKinds.h"
#include "dialects/dfg/shapes/ShapeFunctions.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/dfg/DfgDialect.cpp.inc"
#include "dialects/dfg/DfgInterfaces.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/dfg/DfgTypes.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dfg/DfgAttrs.cpp.inc"
namespace distc::dfg {

namespace {

/// What only an export needs stands at the head of a text, behind aliases, and what is read stays short. A location
/// is a node's name, which stands where the node does.
struct Aliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, llvm::raw_ostream &os) const override {
    // With no text: none, whatever the builtin dialect says.
    if (llvm::isa<NameLoc, FusedLoc, UnknownLoc>(attribute))
      return AliasResult::FinalAlias;
    if (auto raw = llvm::dyn_cast<RawAttr>(attribute); raw && raw.getBytes().size() > kShortBytes) {
      os << "raw";
      return AliasResult::FinalAlias;
    }
    auto kept = llvm::dyn_cast<DictionaryAttr>(attribute);
    if (!kept || kept.empty() || !llvm::all_of(kept, [](NamedAttribute entry) { return isForExport(entry.getName()); }))
      return AliasResult::NoAlias;
    os << kSourceAttributes;
    return AliasResult::FinalAlias;
  }

  static constexpr size_t kShortBytes = 32;
};

} // namespace

void DFGDialect::initialize() {
  addInterfaces<Aliases>();
  registerTypes();
  registerAttributes();
  registerDFGDialectOperations(this);
  attachNameVerifier(*getContext());
}

void DFGDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/dfg/DfgTypes.cpp.inc"
      >();
}

void DFGDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dfg/DfgAttrs.cpp.inc"
      >();
}

std::optional<Dialect::ParseOpHook> DFGDialect::getParseOperationHook(llvm::StringRef name) const {
  return getSharedParser(name, getContext());
}

llvm::unique_function<void(Operation *, OpAsmPrinter &)> DFGDialect::getOperationPrinter(Operation *) const {
  return printOperandsAndAttributes;
}

namespace {

bool isSlices(Attribute value) {
  auto slices = llvm::dyn_cast<DictionaryAttr>(value);
  return slices && llvm::all_of(slices, [](NamedAttribute slice) { return llvm::isa<SliceAttr>(slice.getValue()); });
}

bool isMultiple(Attribute value) { return isAtLeast(value, 1) && llvm::cast<IntegerAttr>(value).getInt() <= INT32_MAX; }

const AttachedAttribute kAttached[] = {
    {kSlicesAttr, isOn<GraphOp, ModuleOp>, "a graph or the module", isSlices, "a dictionary of #dfg.slice"},
    {kEntryAttr, isOn<FuncOp>, "a function", isA<StringAttr>, "a string"},
    {kFetchesAttr, isOn<FuncOp>, "a function", isStrings, "an array of strings"},
    {kEntryJoinsAttr, isOn<FuncOp>, "a function", isStrings, "an array of strings"},
    {kPlaceholdersAttr, isOn<ModuleOp>, "the module", isStrings, "an array of strings"},
    {kSummariesAttr, isOn<ModuleOp>, "the module", isA<DictionaryAttr>, "a dictionary"},
    {kProgramObjectsAttr, isOn<ModuleOp>, "the module", isA<DictionaryAttr>, "a dictionary"},
    {kPaddingAttr, isOnNode, "a node", isA<UnitAttr>, "a unit"},
    {kUnsignedFeedAttr, isOnNode, "a feed", isA<UnitAttr>, "a unit"},
    {kValidityAttr, isOnNode, "a feed", isA<UnitAttr>, "a unit"},
    {kCommandAttr, isOn<ModuleOp>, "the module", isA<DictionaryAttr>, "a dictionary"},
    {kBatchMultipleAttr, isOn<ModuleOp>, "the module", isMultiple, "a number from 1 to 2^31 - 1"},
};

} // namespace

LogicalResult DFGDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return verifyAttached(op, attribute, kAttached, getNamespace());
}

LogicalResult verifyCarried(Operation *op) {
  auto carries = [&](llvm::StringRef name, bool (*isValue)(Attribute value), llvm::StringRef what) -> LogicalResult {
    Attribute value = op->getDiscardableAttr(name);
    if (!value || isValue(value))
      return success();
    return op->emitOpError() << "attribute '" << name << "' is not " << what;
  };
  return success(succeeded(carries(kControlAttr, isStrings, "an array of nodes' names")) &&
                 succeeded(carries(kDeviceAttr, isA<StringAttr>, "a string")) &&
                 succeeded(carries(kSourceAttributes, isA<DictionaryAttr>, "a dictionary")));
}

bool isHandle(Type type) {
  if (auto tensor = llvm::dyn_cast<TensorType>(type))
    return llvm::isa<ResourceType>(tensor.getElementType());
  return llvm::isa<RefType>(type);
}

llvm::StringRef getNodeName(Operation *op) {
  StringAttr name = getNodeNameAttr(op);
  return name ? name.getValue() : "";
}

void removeNotedShapes(Operation *op) { removeSourceAttribute(op, "_output_shapes"); }

void nameResults(Operation *op, OpAsmSetValueNameFn set) {
  // The scopes' slashes are not for names of values.
  std::string name = getNodeName(op).str();
  std::replace(name.begin(), name.end(), '/', '.');
  if (!name.empty())
    set(op->getResult(0), name);
}

llvm::SmallVector<llvm::StringRef> getControlInputs(Operation *op) {
  llvm::SmallVector<llvm::StringRef> names;
  for (Attribute name : getControl(op))
    names.push_back(llvm::cast<StringAttr>(name).getValue());
  return names;
}

int64_t getSmallestBatch(Operation *op) {
  auto graph = llvm::dyn_cast<GraphOp>(op);
  if (!graph)
    graph = op->getParentOfType<GraphOp>();
  return graph ? static_cast<int64_t>(graph.getSmallestBatch().value_or(1)) : 1;
}

int64_t getBatchMultiple(Operation *op) {
  auto module = llvm::dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  auto multiple = module ? module->getAttrOfType<IntegerAttr>(kBatchMultipleAttr) : IntegerAttr();
  return multiple ? multiple.getInt() : 1;
}

bool movesElements(Operation *op) {
  return op->hasTrait<Moves>() || op->hasTrait<Forwards>() || op->hasTrait<Fills>() || op->hasTrait<Joins>() ||
         op->hasTrait<Permutes>() || op->hasTrait<Repeats>() || op->hasTrait<Reshapes>() || op->hasTrait<TakesPart>();
}

Value getWhole(Operation *op) {
  auto node = llvm::cast<NodeInterface>(op);
  const unsigned last = op->getNumOperands() - 1;
  unsigned number = 0;
  while (number < last && node.isParameter(number, last))
    ++number;
  return op->getOperand(number);
}

VarHandleOp getVariableHandle(Value handle) {
  Operation *op = handle.getDefiningOp();
  while (auto identity = llvm::dyn_cast_or_null<IdentityOp>(op))
    op = identity.getX().getDefiningOp();
  return llvm::dyn_cast_or_null<VarHandleOp>(op);
}

bool isSlice(ArrayRef<int64_t> shape, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes) {
  return offsets.size() == shape.size() && sizes.size() == shape.size() &&
         llvm::all_of(llvm::zip(shape, offsets, sizes), [](auto axis) {
           auto [whole, offset, size] = axis;
           return offset >= 0 && size > 0 && offset <= whole && size <= whole - offset;
         });
}

LogicalResult SliceAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringAttr whole,
                                DenseI64ArrayAttr shape, DenseI64ArrayAttr offsets, DenseI64ArrayAttr sizes) {
  if (isSlice(shape, offsets, sizes))
    return success();
  return emitError() << "'" << whole.getValue() << "' of shape [" << shape.asArrayRef() << "] has no slice at ["
                     << offsets.asArrayRef() << "] of sizes [" << sizes.asArrayRef() << "]";
}

LogicalResult VarHandleOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto variable = symbols.lookupNearestSymbolFrom<VariableOp>(*this, getVariableAttr());
  if (!variable)
    return emitOpError() << "names variable '" << getVariable() << "', which does not exist";
  auto ref = llvm::dyn_cast<RefType>(getHandle().getType());
  if (ref && ref.getValueType() != variable.getType())
    return emitOpError() << "is a handle of " << ref.getValueType() << ", but variable '" << getVariable() << "' is "
                         << variable.getType();
  return success();
}

LogicalResult VariableOp::verify() {
  if (!llvm::isa<TensorType>(getType()))
    return emitOpError() << "is of type " << getType() << "; a variable is a tensor";
  if (getKind() != "resource" && getKind() != "ref" && getKind() != kCapturedKind && getKind() != kLocalKind)
    return emitOpError() << "is of kind \"" << getKind() << "\"; it is \"resource\", \"ref\", \"" << kCapturedKind
                         << "\" or \"" << kLocalKind << "\"";
  return success();
}

// Whether the graph's library has the function, and whether it fits, is asked where the call is to be inlined.
LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  Operation *callee = symbols.lookupNearestSymbolFrom(*this, getCalleeAttr());
  if (!callee || llvm::isa<FuncOp>(callee))
    return success();
  return (emitOpError() << "calls '" << getCallee() << "', which is no function").attachNote(callee->getLoc())
         << "it is this";
}

LogicalResult ReturnOp::verify() {
  auto function = llvm::cast<FuncOp>((*this)->getParentOp());
  if (function.getResultTypes().size() != getNumOperands())
    return emitOpError() << "gives " << getNumOperands() << " values of a function of "
                         << function.getResultTypes().size();
  return success();
}

LogicalResult SpecialFunctionOp::verify() {
  // drt_special_* of runtime/include/drt/drt.h, by how many arguments they have.
  const auto arguments = llvm::StringSwitch<unsigned>(getFunction())
                             .Cases("bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bessel_j0", "bessel_j1", 1)
                             .Cases("bessel_k0", "bessel_k0e", "bessel_k1", "bessel_k1e", "bessel_y0", "bessel_y1", 1)
                             .Cases("dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence", 1)
                             .Cases("polygamma", "zeta", "igamma", "igammac", "igamma_grad_a", 2)
                             .Cases("random_gamma_grad", "draw_gamma", "draw_poisson", 2)
                             .Cases("betainc", "draw_binomial", 3)
                             .Default(0);
  if (arguments == 0)
    return emitOpError() << "calls \"" << getFunction() << "\", which the runtime has not";
  if (arguments != getNumOperands())
    return emitOpError() << "has " << getNumOperands() << " arguments; \"" << getFunction() << "\" has " << arguments;
  return success();
}

LogicalResult WhileOp::verifyRegions() {
  for (Region *region : {&getCondition(), &getBody()}) {
    StringRef which = region == &getBody() ? "body" : "condition";
    if (region->empty() || !llvm::isa_and_nonnull<YieldOp>(region->front().getTerminator()))
      return emitOpError() << "has a " << which << " that yields nothing";
    if (region->getArgumentTypes().size() != getNumOperands())
      return emitOpError() << "has " << getNumOperands() << " variables, but its " << which << " takes "
                           << region->getNumArguments();
    for (Operation &op : region->front())
      if (!isMemoryEffectFree(&op) || !llvm::isa_and_nonnull<DFGDialect>(op.getDialect()))
        return op.emitOpError() << "is inside of a loop, where there is nothing but values of dfg without effects";
  }
  auto isAlike = [](Type x, Type y) {
    return getElementTypeOrSelf(x) == getElementTypeOrSelf(y) && succeeded(verifyCompatibleShape(x, y));
  };
  ValueRange next = getBody().front().getTerminator()->getOperands();
  if (next.size() != getNumOperands() || getNumResults() != getNumOperands())
    return emitOpError() << "has " << getNumOperands() << " variables, but its body yields " << next.size()
                         << ", and it gives " << getNumResults();
  for (unsigned number = 0; number < getNumOperands(); ++number) {
    Type type = getOperand(number).getType();
    for (Type other : {getCondition().getArgument(number).getType(), getBody().getArgument(number).getType(),
                       next[number].getType(), getResult(number).getType()})
      if (!isAlike(type, other))
        return emitOpError() << "has variable " << number << " of type " << type << ", and of type " << other;
  }
  ValueRange goesOn = getCondition().front().getTerminator()->getOperands();
  if (goesOn.size() != 1 || !isAlike(goesOn[0].getType(), RankedTensorType::get({}, IntegerType::get(getContext(), 1))))
    return emitOpError() << "must have a condition that yields one scalar bool";
  return success();
}

ParseResult parseConstantType(OpAsmParser &parser, Type &type, ElementsAttr value) {
  if (succeeded(parser.parseOptionalColon()))
    return parser.parseType(type);
  type = value.getType();
  return success();
}

void printConstantType(OpAsmPrinter &printer, Operation *, Type type, ElementsAttr value) {
  if (type != value.getType())
    printer << " : " << type;
}

void TensorShapeAttr::print(AsmPrinter &printer) const {
  printer << (getUnknownRank() ? "<*" : "<");
  if (!getUnknownRank() || !getSizes().empty()) {
    printer << '[';
    llvm::interleaveComma(getSizes(), printer, [&](int64_t size) {
      if (size == -1)
        printer << '?';
      else
        printer << size;
    });
    printer << ']';
  }
  printer << '>';
}

Attribute TensorShapeAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> sizes;
  if (parser.parseLess())
    return {};
  const bool unknownRank = succeeded(parser.parseOptionalStar());
  auto parseSize = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalQuestion())) {
      sizes.push_back(-1);
      return success();
    }
    return parser.parseInteger(sizes.emplace_back());
  };
  if (parser.parseCommaSeparatedList(unknownRank ? AsmParser::Delimiter::OptionalSquare : AsmParser::Delimiter::Square,
                                     parseSize) ||
      parser.parseGreater())
    return {};
  return get(parser.getContext(), unknownRank, sizes);
}

OpFoldResult ConstOp::fold(FoldAdaptor) { return getValue(); }

void OpaqueOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (getStateless())
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}

RegionKind GraphOp::getRegionKind(unsigned) { return RegionKind::Graph; }

ParseResult FuncOp::parse(OpAsmParser &parser, OperationState &result) {
  auto buildType = [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results,
                      function_interface_impl::VariadicFlag,
                      std::string &) { return builder.getFunctionType(arguments, results); };
  return function_interface_impl::parseFunctionOp(parser, result, /*allowVariadic=*/false,
                                                  getFunctionTypeAttrName(result.name), buildType,
                                                  getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
}

void FuncOp::print(OpAsmPrinter &printer) {
  function_interface_impl::printFunctionOp(printer, *this, /*isVariadic=*/false, getFunctionTypeAttrName(),
                                           getArgAttrsAttrName(), getResAttrsAttrName());
}

} // namespace distc::dfg
