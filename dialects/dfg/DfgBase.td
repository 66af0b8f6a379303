//===- DfgBase.td - The dataflow dialect, its types and attributes ---------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_BASE
#define DFG_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/OpBase.td"

def DFG_Dialect : Dialect {
  let name = "dfg";
  let cppNamespace = "::distc::dfg";
  let summary = "A dataflow graph that trains a model, as its author wrote it";
  let description = [{
    TensorFlow's operations at their own granularity. A node's name is its
    location (`NameLoc`). Besides what an operation declares, a node may carry

    - `device`: the device its author asked for, a string;
    - `control`: names of the nodes that must run before it although no value
      of theirs is used and no memory effect orders them (an array of strings);
    - `tf`: a dictionary of the NodeDef's attributes that the operation does not
      model (`_class`, `_output_shapes`, ...), kept for export. Text has what only an export
      needs at its head, behind aliases (`tf = #tf3`).

    Type attributes (`T`, `dtype`, `N`, ...) that follow from operand and result
    types are not stored; `getTypeAttributes()` of the node says how export
    makes them again.
  }];
  let hasOperationAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  // Registered by `registerTypes`/`registerAttributes` in DfgDialect.cpp; the hooks give the text of operations without a
  // format of their own (AssemblyFormat.h).
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttributes();
    std::optional<ParseOpHook> getParseOperationHook(::llvm::StringRef name) const override;
    ::llvm::unique_function<void(::mlir::Operation *, ::mlir::OpAsmPrinter &)> getOperationPrinter(::mlir::Operation *op) const override;
  }];
}

class DFG_Type<string name, string keyword> : TypeDef<DFG_Dialect, name> { let mnemonic = keyword; }

def DFG_StringType : DFG_Type<"String", "string"> { let summary = "element type of a DT_STRING tensor"; }
def DFG_ResourceType : DFG_Type<"Resource", "resource"> {
  let summary = "element type of a DT_RESOURCE tensor whose variable is not known (a function's argument, a table)";
}
def DFG_VariantType : DFG_Type<"Variant", "variant"> { let summary = "element type of a DT_VARIANT tensor"; }
def DFG_UnknownType : DFG_Type<"Unknown", "unknown"> {
  let summary = "element type of a result whose type the graph does not say (an operation without OpDef)";
}
def DFG_RefType : DFG_Type<"Ref", "ref"> {
  let summary = "handle of a variable";
  let description = [{
    What `dfg.var_handle` gives and reads and updates take: TensorFlow's resource
    handles and reference tensors alike. `!dfg.ref<tensor<64x128xf32>>`.
  }];
  let parameters = (ins "::mlir::Type":$valueType);
  let assemblyFormat = "`<` $valueType `>`";
}

class DFG_Attr<string name, string keyword> : AttrDef<DFG_Dialect, name> { let mnemonic = keyword; }

def DFG_ShapeAttr : DFG_Attr<"TensorShape", "shape"> {
  let summary = "a TensorShapeProto; -1 is an unknown size";
  let description = [{
    `#dfg.shape<[?, 3]>` are rows of three; `#dfg.shape<[]>` is a scalar's, and `#dfg.shape<*>` that of a tensor of unknown rank.
  }];
  let parameters = (ins "bool":$unknownRank, OptionalArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
}
def DFG_FuncAttr : DFG_Attr<"Func", "func"> {
  let summary = "a NameAttrList: a function and the attributes it is instantiated with";
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$function, "::mlir::DictionaryAttr":$attributes);
  let assemblyFormat = "`<` $function `,` $attributes `>`";
}
def DFG_SliceAttr : DFG_Attr<"Slice", "slice"> {
  let summary = "the slice of a tensor that a variable is, where the graph itself splits it";
  let description = [{
    `#dfg.slice<"table" [9, 4] at [5, 0] sizes [4, 4]>`: the tensor's name and shape in checkpoints, and along each axis where the slice begins
    and its size.
  }];
  let parameters = (ins "::mlir::StringAttr":$whole, "::mlir::DenseI64ArrayAttr":$shape, "::mlir::DenseI64ArrayAttr":$offsets,
                        "::mlir::DenseI64ArrayAttr":$sizes);
  let assemblyFormat = "`<` $whole $shape `at` $offsets `sizes` $sizes `>`";
  let genVerifyDecl = 1;
}
def DFG_PlaceholderAttr : DFG_Attr<"Placeholder", "placeholder"> {
  let summary = "an attribute of a function body that the call's instantiation fills in";
  let parameters = (ins StringRefParameter<>:$name);
  let assemblyFormat = "`<` $name `>`";
}
def DFG_RawAttr : DFG_Attr<"Raw", "raw"> {
  let summary = "an AttrValue that MLIR has no form for, as serialized bytes";
  let parameters = (ins "::mlir::StringAttr":$bytes);
  let assemblyFormat = "`<` $bytes `>`";
}

def DFG_Tensor : Type<CPred<"::llvm::isa<::mlir::TensorType>($_self)">, "tensor", "::mlir::TensorType">;
// A variable's handle, or a resource tensor where a function's argument stands for one.
def DFG_Handle : Type<CPred<"::distc::dfg::isHandle($_self)">, "variable handle", "::mlir::Type">;

#endif // DFG_BASE
