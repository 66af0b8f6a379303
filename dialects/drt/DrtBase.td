//===- DrtBase.td - What the operations of a plan are derived from --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_BASE
#define DRT_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/drt/DrtInterfaces.td"

def DRT_Dialect : Dialect {
  let name = "drt";
  let cppNamespace = "::distc::drt";
  let hasOperationAttrVerify = 1;
  let useDefaultAttributePrinterParser = 1;
  let summary = "What one task runs, one to one with the runtime's C API";
  let description = [{
    An entry is a `drt.entry`; its operations work on tensors of static shape in program order. A tensor is an address at run time: what `drt.feed` or `drt.variable` names, or a place in the replica's arena, which
    `drt-plan-memory` writes into `at` (one offset in bytes a result). Linalg operations between them become kernels
    (`drt.kernel`), which `drt.launch` runs.
  }];
  // OpAsmOpInterface: results are named after the nodes that they come of.
  let hasOperationInterfaceFallback = 1;
  // The text of operations without a format of their own (AssemblyFormat.h).
  let extraClassDeclaration = [{
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
    ::llvm::unique_function<void(::mlir::Operation *, ::mlir::OpAsmPrinter &)> getOperationPrinter(::mlir::Operation *op) const override;
  }];
}

// A tensor is memory: every size is known.
def DRT_Tensor : ConfinedType<AnyRankedTensor, [HasStaticShapePred], "tensor of static shape">;

class DRT_Op<string mnemonic, list<Trait> traits = []> : Op<DRT_Dialect, mnemonic, traits>;
// How an operation accesses memory that replicas share. Every operation of an entry says so; `methods` are those that it does not leave to the
// interface's defaults (Access.cpp).
class DRT_Accesses<list<string> methods> : DeclareOpInterfaceMethods<DRT_AccessInterface, methods>;
def DRT_PrecisionAttr : ConfinedAttr<StrAttr, [AttrConstraint<CPred<"::llvm::cast<::mlir::StringAttr>($_self).getValue() == \"tf32\"">, "tf32">]>;
// The variables and tasks that an operation names are there, and of its types (References.cpp).
def DRT_SymbolUser : DeclareOpInterfaceMethods<SymbolUserOpInterface>;
// The variables that an update writes; of a group, those of each member.
def DRT_Updated : ConfinedAttr<FlatSymbolRefArrayAttr, [ArrayMinCount<1>]>;
def DRT_UpdatedGroup : ConfinedAttr<TypedArrayAttrBase<DRT_Updated, "variables of each member">, [ArrayMinCount<1>]>;
// An operation of an entry that reads its operands, and has no part in sharing.
class DRT_PlanOp<string mnemonic, list<Trait> traits = []> : DRT_Op<mnemonic, !listconcat(traits, [DRT_AccessInterface])>;
// What passes ask of an operation (Drt.h says what each means).
class DRT_Fact<string name> : NativeOpTrait<name> { let cppNamespace = "::distc::drt"; }
def DRT_Convolves : DRT_Fact<"Convolves">;
def DRT_Synchronizes : DRT_Fact<"Synchronizes">;
// An operation whose results are written to the arena.
def DRT_PlacedTrait : NativeOpTrait<"Placed"> { let cppNamespace = "::distc::drt"; }
class DRT_Placed<string mnemonic, list<Trait> traits = [Pure, DRT_AccessInterface]> : DRT_Op<mnemonic, !listconcat(traits, [DRT_PlacedTrait])> {
  dag placed = (ins OptionalAttr<DenseI64ArrayAttr>:$at);
}

#endif // DRT_BASE
