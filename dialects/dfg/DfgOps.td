//===- DfgOps.td - Graphs, functions, and all nodes ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_OPS
#define DFG_OPS

include "dialects/dfg/ArrayOps.td"
include "dialects/dfg/CompositeOps.td"
include "dialects/dfg/DfgOpBase.td"
include "dialects/dfg/ElementwiseOps.td"
include "dialects/dfg/LinalgOps.td"
include "dialects/dfg/NnOps.td"
include "dialects/dfg/SparseOps.td"
include "dialects/dfg/UpdateOps.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def DFG_GraphOp : Op<DFG_Dialect, "graph", [IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments,
    DeclareOpInterfaceMethods<RegionKindInterface>]> {
  let summary = "The whole graph, every node of it";
  let description = [{
    One block. Nodes stand in an order that satisfies data edges, control edges and memory effects, except the back edges of
    version-1 loops. Its attributes are the endpoints, where they are known: `train_op`, `init_op`, `loss`, `feeds`,
    `fetches`, and `versions`, `collections` (see dialects/dfg/tensorflow/Import.h) for export.
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def DFG_FuncOp : Op<DFG_Dialect, "func", [IsolatedFromAbove, FunctionOpInterface, SingleBlock]> {
  let summary = "A function of the graph's library, or an entry that was taken out of the graph";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type, OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs, OptionalAttr<StrAttr>:$sym_visibility);
  let regions = (region AnyRegion:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def DFG_ReturnOp : Op<DFG_Dialect, "return", [Pure, ReturnLike, Terminator, HasParent<"FuncOp">]> {
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "attr-dict ($operands^ `:` type($operands))?";
}

def DFG_GroupOp : DFG_Node<"group", "\"NoOp\"", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "Runs what its `control` names (NoOp)";
}

def DFG_CallOp : DFG_Node<"call", "\"PartitionedCall\", \"StatefulPartitionedCall\"", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "A call of a library function, inlined before lowering";
  let arguments = (ins Variadic<AnyType>:$operands, FlatSymbolRefAttr:$callee, UnitAttr:$stateful);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$callee `(` operands `)` attr-dict `:` functional-type(operands, results)";
  let types = "Tin:* Tout:*r";
}

def DFG_SpecialFunctionOp : Op<DFG_Dialect, "special_function", [Pure]> {
  let summary = "A function of float64 scalars that the runtime computes, inside of kernels";
  let description = [{
    `drt_special_NAME` of drt.h. What `ScalarBuilder::special` makes.
    ```mlir
    %y = dfg.special_function "bessel_i0"(%x) : (f64) -> f64
    ```
  }];
  let arguments = (ins StrAttr:$function, Variadic<F64>:$operands);
  let results = (outs F64:$result);
  let assemblyFormat = "$function `(` operands `)` attr-dict `:` functional-type(operands, results)";
}

def DFG_OpaqueOp : Op<DFG_Dialect, "opaque", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "An operation that distc has no semantics for";
  let description = [{
    Carries its name, attributes (all of the NodeDef's, in `tf`) and types, survives every rewrite and is exported as it was. An
    error only where code must be generated for it. `stateless`: it computes its results and does nothing else; without it
    the operation may read and write anything. It is TensorFlow's word, but not of the older control flow, whose nodes
    decide whether others run.
  }];
  let arguments = (ins StrAttr:$op, Variadic<AnyType>:$operands, UnitAttr:$stateless);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$op `(` $operands `)` attr-dict `:` functional-type($operands, $results)";
}
#endif // DFG_OPS
