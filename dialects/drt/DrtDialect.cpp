//===- DrtDialect.cpp - The runtime's dialect ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/AssemblyFormat.h"
#include "dialects/dfg/AttachedAttributes.h"
#include "dialects/drt/Servers.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/drt/DrtDialect.cpp.inc"
#include "dialects/drt/DrtInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/drt/DrtAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/drt/DrtOps.cpp.inc"

void distc::drt::DRTDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/drt/DrtAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/drt/DrtOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/drt/ServerOps.cpp.inc"
      >();
}

namespace distc::drt {

namespace {

struct ResultNames : OpAsmOpInterface::FallbackModel<ResultNames> {
  static bool classof(Operation *op) { return llvm::isa_and_nonnull<DRTDialect>(op->getDialect()); }
  void getAsmResultNames(Operation *op, OpAsmSetValueNameFn set) const {
    if (op->getNumResults() > 0)
      dfg::nameResults(op, set);
  }
  void getAsmBlockArgumentNames(Operation *, Region &, OpAsmSetValueNameFn) const {}
  void getAsmBlockNames(Operation *, OpAsmSetBlockNameFn) const {}
  static llvm::StringRef getDefaultDialect() { return ""; }
};

} // namespace

void *DRTDialect::getRegisteredInterfaceForOp(TypeID interface, OperationName) {
  static ResultNames names;
  return interface == TypeID::get<OpAsmOpInterface>() ? &names : nullptr;
}

static bool isKernel(Operation *op) { return llvm::isa<FunctionOpInterface>(op); }

static const dfg::AttachedAttribute kAttached[] = {
    {kDividedAttr, isKernel, "a kernel",
     [](Attribute value) {
       auto numbers = llvm::dyn_cast<DenseI64ArrayAttr>(value);
       return numbers && numbers.size() == 2;
     },
     "array<i64: EXTENT, GRAIN>"},
    {kGridAttr, isKernel, "a kernel", dfg::isA<DenseI64ArrayAttr>, "array<i64: X, Y, Z>"},
    {kBlockAttr, isKernel, "a kernel", dfg::isA<DenseI64ArrayAttr>, "array<i64: X, Y, Z>"},
    {kScheduleAttr, isKernel, "a kernel", dfg::isA<StringAttr>, "a string"},
    {kRowsAttr, [](Operation *op) { return !isKernel(op); }, "an operation of a kernel",
     [](Attribute value) { return dfg::isAtLeast(value, 0); }, "a 64-bit integer that is not negative"},
};

LogicalResult DRTDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return dfg::verifyAttached(op, attribute, kAttached, getNamespace());
}

std::optional<Dialect::ParseOpHook> DRTDialect::getParseOperationHook(llvm::StringRef name) const {
  return getSharedParser(name, getContext());
}

llvm::unique_function<void(Operation *, OpAsmPrinter &)> DRTDialect::getOperationPrinter(Operation *) const {
  return printOperandsAndAttributes;
}

ProgramOp findProgram(ModuleOp module) {
  auto programs = module.getOps<ProgramOp>();
  return programs.empty() ? ProgramOp() : *programs.begin();
}

int64_t getCores(ModuleOp module) {
  ProgramOp program = findProgram(module);
  return program ? program.getCores().value_or(1) : 1;
}

FailureOr<ProgramOp> getProgram(Operation *user) {
  auto module = llvm::dyn_cast<ModuleOp>(user);
  if (ProgramOp program = findProgram(module ? module : user->getParentOfType<ModuleOp>()))
    return program;
  return user->emitError("needs to know the program's tasks; run drt-describe-program");
}

FailureOr<ProgramOp> getPlannedProgram(Operation *user) {
  FailureOr<ProgramOp> program = getProgram(user);
  if (succeeded(program) && !program->getArenaBytes())
    return program->emitError("is no whole plan: it does not say how large the arena is; run drt-plan-memory");
  return program;
}

llvm::SmallVector<int64_t> ProgramOp::getTaskReplicas() {
  return llvm::map_to_vector(getTasks().getAsRange<TaskAttr>(), [](TaskAttr task) { return task.getNumReplicas(); });
}

std::optional<int64_t> EntryOp::getTask() {
  if (getName() == "eval" || !getBody().front().getOps<TakeOp>().empty())
    return 0;
  return std::nullopt;
}

void EntryOp::build(OpBuilder &builder, OperationState &state, StringRef name) {
  state.getOrAddProperties<Properties>().name = builder.getStringAttr(name);
  state.addRegion()->emplaceBlock();
}

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name, FunctionType type) {
  auto &properties = state.getOrAddProperties<Properties>();
  properties.sym_name = builder.getStringAttr(name);
  properties.sym_visibility = builder.getStringAttr("private");
  properties.function_type = TypeAttr::get(type);
  state.addRegion();
}

// Always private: only this module's entries run a kernel.
ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  if (succeeded(parser.parseOptionalKeyword("range")))
    result.addAttribute(getRangeAttrName(result.name), parser.getBuilder().getUnitAttr());
  if (function_interface_impl::parseFunctionOp(
          parser, result, /*allowVariadic=*/false, getFunctionTypeAttrName(result.name),
          [](Builder &builder, ArrayRef<Type> arguments, ArrayRef<Type> results, function_interface_impl::VariadicFlag,
             std::string &) { return builder.getFunctionType(arguments, results); },
          getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name)))
    return failure();
  result.attributes.set(getSymVisibilityAttrName(result.name), parser.getBuilder().getStringAttr("private"));
  return success();
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << (getRange() ? " range " : " ");
  printer.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(), /*isVariadic=*/false,
                                                  getResultTypes());
  function_interface_impl::printFunctionAttributes(printer, *this,
                                                   {getRangeAttrName(), getSymVisibilityAttrName(),
                                                    getFunctionTypeAttrName(), getArgAttrsAttrName(),
                                                    getResAttrsAttrName()});
  if (getBody().empty())
    return;
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

int64_t ProgramOp::getNumReplicas() { return llvm::sum_of(getTaskReplicas(), int64_t(0)); }

} // namespace distc::drt
