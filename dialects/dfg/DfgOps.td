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

// ---- Attributes of the graph ----------------------------------------------------------

// A dictionary whose entries all are such attributes.
class DFG_DictOf<Attr element, string what> : DictionaryAttrBase<
    And<[DictionaryAttr.predicate,
         Concat<"::llvm::all_of(::llvm::cast<::mlir::DictionaryAttr>($_self), [&](::mlir::NamedAttribute entry) { return ",
                SubstLeaves<"$_self", "entry.getValue()", element.predicate>, "; })">]>, what>;
class DFG_HasEntry<string name, string kind>
    : CPred<"::llvm::cast<::mlir::DictionaryAttr>($_self).getAs<::mlir::" # kind # ">(\"" # name # "\")">;

def DFG_EndpointAttr : ConfinedAttr<StrAttr, [AttrConstraint<
    CPred<"!::llvm::cast<::mlir::StringAttr>($_self).getValue().split(':').first.empty()">, "that names a node">]>;
def DFG_EndpointsAttr : TypedArrayAttrBase<DFG_EndpointAttr, "names of nodes or of their tensors">;
def DFG_TextsAttr : DFG_DictOf<StrAttr, "dictionary of texts">;
def DFG_ListsAttr : DFG_DictOf<StrArrayAttr, "dictionary of lists of names">;
def DFG_CollectionsAttr : DFG_DictOf<TypedArrayAttrBase<AnyAttrOf<[StrAttr, I64Attr]>, "names and numbers">,
                                     "dictionary of lists of names and numbers">;
def DFG_SaverAttr : ConfinedAttr<DFG_TextsAttr, [AttrConstraint<
    And<[DFG_HasEntry<"filename", "StringAttr">, DFG_HasEntry<"save", "StringAttr">, DFG_HasEntry<"restore", "StringAttr">]>,
    "with filename, save and restore">]>;
def DFG_VersionsAttr : DFG_DictOf<I64Attr, "dictionary of versions">;
def DFG_ObjectsAttr : ConfinedAttr<DictionaryAttr, [AttrConstraint<
    And<[DFG_HasEntry<"graph", "StringAttr">, DFG_HasEntry<"keys", "DictionaryAttr">]>, "with graph and keys">]>;

def DFG_GraphOp : Op<DFG_Dialect, "graph", [IsolatedFromAbove, NoTerminator, SingleBlock, NoRegionArguments,
    DeclareOpInterfaceMethods<RegionKindInterface>]> {
  let summary = "The whole graph, every node of it";
  let description = [{
    One block. Nodes stand in an order that satisfies data edges, control edges and memory effects, except the back edges of
    version-1 loops. All attributes are optional.

    Endpoints, where they are known, by the names of nodes or of their tensors:

    - `train_op`, `init_op`: what a step runs, and what gives the variables their first values;
    - `loss`, `fetches`: tensors that a step gives;
    - `feeds`: tensors of all placeholders;
    - `candidates`: for each of these that has several, their names, of which the user must choose one;
    - `summaries`: the tags of scalar summaries, by tensor;
    - `shown_as`: the names that fetches have for the user, by tensor, where they are others: `dfg-inline-calls` has put in
      the call that was named.

    `smallest_batch` says how many examples the whole batch must have for the graph to be what its author wrote: shapes rely on
    it, and who fixes the batch checks it.

    For export (see dialects/dfg/tensorflow/Import.h, Export.h): `saver`, `versions`, `objects`, `collections` or
    `graph_def`, `more_collections`; `stripped` where `dfg-strip-export-info` has taken what an export needs.

    ```mlir
    dfg.graph attributes {fetches = ["accuracy:0"], loss = "loss:0", train_op = "train"} { ... }
    ```
  }];
  let arguments = (ins OptionalAttr<DFG_EndpointAttr>:$train_op, OptionalAttr<DFG_EndpointAttr>:$init_op,
                       OptionalAttr<DFG_EndpointAttr>:$loss, OptionalAttr<DFG_EndpointsAttr>:$fetches,
                       OptionalAttr<StrArrayAttr>:$feeds, OptionalAttr<DFG_ListsAttr>:$candidates,
                       OptionalAttr<DFG_TextsAttr>:$summaries, OptionalAttr<DFG_TextsAttr>:$shown_as,
                       OptionalAttr<ConfinedAttr<I64Attr, [IntPositive]>>:$smallest_batch,
                       OptionalAttr<DFG_SaverAttr>:$saver, OptionalAttr<DFG_VersionsAttr>:$versions,
                       OptionalAttr<DFG_ObjectsAttr>:$objects, OptionalAttr<DFG_RawAttr>:$collections,
                       OptionalAttr<DFG_RawAttr>:$graph_def, OptionalAttr<DFG_CollectionsAttr>:$more_collections,
                       UnitAttr:$stripped);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins), "$_state.addRegion()->emplaceBlock();">];
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
  let hasVerifier = 1;
}

def DFG_GroupOp : DFG_Node<"group", "\"NoOp\"", [MemoryEffects<[MemRead, MemWrite]>]> {
  let created = 1;
  let summary = "Runs what its `control` names (NoOp)";
}

def DFG_CallOp : DFG_Node<"call", "\"PartitionedCall\", \"StatefulPartitionedCall\"",
                          [MemoryEffects<[MemRead, MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A call of a library function, inlined before lowering";
  let arguments = (ins Variadic<AnyType>:$operands, FlatSymbolRefAttr:$callee, UnitAttr:$stateful);
  let results = (outs Variadic<AnyType>:$results);
  let assemblyFormat = "$callee `(` operands `)` attr-dict `:` functional-type(operands, results)";
  let types = "Tin:* Tout:*r";
}

def DFG_WhileOp : DFG_Node<"while", "\"\"", [Pure, IsolatedFromAbove]> {
  let created = 1;
  let summary = "A loop of which data alone say when it ends";
  let description = [{
    `operands` are the loop's variables before the first iteration, `results` what they are after the last. Both regions take them: `condition`
    yields a scalar bool, whether there is another iteration; `body` what they are next, of the same types. A variable that the body hands on as it
    is, is the same in all iterations: what the loop takes from outside is one.

    Nodes inside have no effects and no control edges, and all replicas run the same iterations: no collective is inside. Made by
    `dfg-expand-control-flow` of loops that it cannot write out; no operation of TensorFlow, which an export never has.

    ```mlir
    %root = dfg.while(%start) {
    ^bb0(%x: tensor<f32>):
      ...
      dfg.yield %goes_on : tensor<i1>
    } do {
    ^bb0(%x: tensor<f32>):
      ...
      dfg.yield %next : tensor<f32>
    } : (tensor<f32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<DFG_Tensor>:$operands);
  let results = (outs Variadic<DFG_Tensor>:$results);
  let regions = (region SizedRegion<1>:$condition, SizedRegion<1>:$body);
  let assemblyFormat = "`(` $operands `)` attr-dict-with-keyword $condition `do` $body `:` functional-type($operands, $results)";
  let hasRegionVerifier = 1;
  let shape = "loop";
  let declarations = [{
    /// Whether variable `number` is the same in all iterations.
    bool isInvariant(unsigned number) { return getBody().front().getTerminator()->getOperand(number) == getBody().getArgument(number); }
  }];
}
def DFG_YieldOp : Op<DFG_Dialect, "yield", [Pure, ReturnLike, Terminator, HasParent<"WhileOp">]> {
  let summary = "What a region of a loop gives";
  let arguments = (ins Variadic<DFG_Tensor>:$operands);
  let assemblyFormat = "attr-dict $operands `:` type($operands)";
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
  let hasVerifier = 1;
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
