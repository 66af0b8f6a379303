//===- DfgOpBase.td - Base classes: a node is declared in a few lines --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_OP_BASE
#define DFG_OP_BASE

include "dialects/dfg/DfgBase.td"
include "dialects/dfg/DfgInterfaces.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

// A node of the graph.
//   tensorflow  its names there, comma-separated string literals
//   types       how type attributes follow (NodeInterface::getTypeAttributes)
//   linearity   None, Joint (in all float operands together), Each (in each one alone), First, Last (in the first, the last alone)
//   degree      of a function that is not linear: NodeInterface::getDegree, an expression
//   parameters  NodeInterface::isParameter, an expression of `operand` and of `last`, the number of the last one
//   scatters    NodeInterface::getScatterIndices
//   shape       a function of ShapeFunctions.h: LogicalResult NAME(Operation *, ShapeContext &)
//   created     whether C++ makes it with ODS' own builders: others have a single one, for builders are a quarter of their code and nearly
//               all nodes are made by their names (GraphBuilder::make, import)
class DFG_Node<string mnemonic, string tensorflow, list<Trait> traits = []>
    : Op<DFG_Dialect, mnemonic, traits # [
        DeclareOpInterfaceMethods<DFG_NodeInterface>, DeclareOpInterfaceMethods<DFG_ShapeInterface>,
        DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  bit created = 0;
  let skipDefaultBuilders = !not(created);
  let builders = !if(created, []<OpBuilder>, [
    OpBuilder<(ins "::mlir::TypeRange":$types, "::mlir::ValueRange":$operands, CArg<"::llvm::ArrayRef<::mlir::NamedAttribute>", "{}">:$attributes), [{
      $_state.addTypes(types);
      $_state.addOperands(operands);
      $_state.addAttributes(attributes);
    }]>]);
  string types = "";
  string linearity = "None";
  string degree = "std::nullopt";
  string parameters = "false";
  int scatters = -1;
  string shape = "unknown";
  code declarations = "";
  let extraClassDeclaration = declarations;
  code definitions = "";
  let extraClassDefinition = [{
    ::llvm::ArrayRef<::llvm::StringLiteral> $cppClass::getTensorFlowNames() {
      static constexpr ::llvm::StringLiteral names[] = {}] # tensorflow # [{};
      return names;
    }
    ::llvm::StringRef $cppClass::getTypeAttributes() { return "}] # types # [{"; }
    ::distc::dfg::Linearity $cppClass::getLinearity() { return ::distc::dfg::Linearity::}] # linearity # [{; }
    ::std::optional<double> $cppClass::getDegree() { return }] # degree # [{; }
    bool $cppClass::isParameter([[maybe_unused]] unsigned operand, [[maybe_unused]] unsigned last) { return }] # parameters # [{; }
    int $cppClass::getScatterIndices() { return }] # scatters # [{; }
    ::llvm::LogicalResult $cppClass::inferShapes(::distc::dfg::ShapeContext &context) {
      return ::distc::dfg::shapes::}] # shape # [{(getOperation(), context);
    }
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn set) {
      if (getOperation()->getNumResults() > 0)
        ::distc::dfg::nameResults(getOperation(), set);
    }
  }] # definitions;
}

// ---- Facts that analyses ask for (Dfg.h says what each means) ------------------------------------

class DFG_Fact<string name> : NativeOpTrait<name> { let cppNamespace = "::distc::dfg"; }
def DFG_Adds : DFG_Fact<"Adds">;
def DFG_AddsSlices : DFG_Fact<"AddsSlices">;
def DFG_AsksShapes : DFG_Fact<"AsksShapes">;
def DFG_ChecksDivisor : DFG_Fact<"ChecksDivisor">;
def DFG_Compares : DFG_Fact<"Compares">;
def DFG_Divides : DFG_Fact<"Divides">;
def DFG_DrawsByKey : DFG_Fact<"DrawsByKey">;
def DFG_DrawsNumbers : DFG_Fact<"DrawsNumbers">;
def DFG_Fills : DFG_Fact<"Fills">;
def DFG_FillsUp : DFG_Fact<"FillsUp">;
def DFG_FindsDistinct : DFG_Fact<"FindsDistinct">;
def DFG_Forwards : DFG_Fact<"Forwards">;
def DFG_Gathers : DFG_Fact<"Gathers">;
def DFG_Joins : DFG_Fact<"Joins">;
def DFG_Moves : DFG_Fact<"Moves">;
def DFG_MultipliesMatrices : DFG_Fact<"MultipliesMatrices">;
def DFG_OfMatrices : DFG_Fact<"OfMatrices">;
def DFG_OfSparseTensors : DFG_Fact<"OfSparseTensors">;
def DFG_Overwrites : DFG_Fact<"Overwrites">;
def DFG_Permutes : DFG_Fact<"Permutes">;
def DFG_ReadsVariable : DFG_Fact<"ReadsVariable">;
def DFG_Reduces : DFG_Fact<"Reduces">;
def DFG_Repeats : DFG_Fact<"Repeats">;
def DFG_Reports : DFG_Fact<"Reports">;
def DFG_Reshapes : DFG_Fact<"Reshapes">;
def DFG_SizedByParameter : DFG_Fact<"SizedByParameter">;
def DFG_SumsRows : DFG_Fact<"SumsRows">;
def DFG_TakesPart : DFG_Fact<"TakesPart">;

// ---- Element-wise ----------------------------------------------------------------

// `body` sees `s` (ScalarBuilder) and the operands' scalars by the names below, and returns the result's.
class DFG_Elementwise<string mnemonic, string tensorflow, code body, list<Trait> traits = []>
    : DFG_Node<mnemonic, tensorflow, traits # [Pure, DeclareOpInterfaceMethods<DFG_ScalarInterface>]> {
  let types = "T:0";
  let shape = "broadcast";
  string names = "";
  let results = (outs DFG_Tensor:$result);
  let definitions = [{
    ::mlir::Value $cppClass::emitScalar(::distc::dfg::ScalarBuilder &s, ::mlir::ValueRange args) {
      }] # names # [{
      }] # body # [{
    }
  }];
}
class DFG_Unary<string mnemonic, string tensorflow, code body, list<Trait> traits = []>
    : DFG_Elementwise<mnemonic, tensorflow, body, traits> {
  let arguments = (ins DFG_Tensor:$x);
  let names = "[[maybe_unused]] ::mlir::Value x = args[0];";
}
class DFG_Binary<string mnemonic, string tensorflow, code body, list<Trait> traits = []>
    : DFG_Elementwise<mnemonic, tensorflow, body, traits> {
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$y);
  let names = "[[maybe_unused]] ::mlir::Value x = args[0], y = args[1];";
}
class DFG_Ternary<string mnemonic, string tensorflow, code body, list<Trait> traits = []>
    : DFG_Elementwise<mnemonic, tensorflow, body, traits> {
  let arguments = (ins DFG_Tensor:$x, DFG_Tensor:$y, DFG_Tensor:$z);
  let names = "[[maybe_unused]] ::mlir::Value x = args[0], y = args[1], z = args[2];";
}

// ---- Reductions --------------------------------------------------------------------

class DFG_Reduction<string mnemonic, string tensorflow, code initial, code combine, code final = "return accumulator;", list<Trait> traits = []>
    : DFG_Node<mnemonic, tensorflow, traits # [Pure, DFG_Reduces, DeclareOpInterfaceMethods<DFG_ReductionInterface>]> {
  let arguments = (ins DFG_Tensor:$input, DFG_Tensor:$axes, DefaultValuedAttr<BoolAttr, "false">:$keep_dims);
  let results = (outs DFG_Tensor:$result);
  let types = "T:0 Tidx:1";
  let parameters = "operand == 1";
  let shape = "reduction";
  let definitions = [{
    ::mlir::Value $cppClass::emitInitial(::distc::dfg::ScalarBuilder &s, ::mlir::Type type) { }] # initial # [{ }
    ::mlir::Value $cppClass::emitCombine(::distc::dfg::ScalarBuilder &s, ::mlir::Value accumulator, ::mlir::Value element) { }] # combine # [{ }
    ::mlir::Value $cppClass::emitFinal(::distc::dfg::ScalarBuilder &s, ::mlir::Value accumulator, int64_t count) { }] # final # [{ }
  }];
}

// ---- Layout and everything else without an element-wise rule ---------------------------

class DFG_Pure<string mnemonic, string tensorflow, list<Trait> traits = []>
    : DFG_Node<mnemonic, tensorflow, traits # [Pure]>;

// ---- Made of others -------------------------------------------------------------------------------

// `decomposition`: a function of Decompositions.h, FailureOr<SmallVector<Value>> NAME(Operation *, GraphBuilder &). Results' shapes follow
// from it, unless another shape function is named. `effects`: of what draws random numbers.
class DFG_Composite<string mnemonic, string tensorflow, string decomposition, list<Trait> effects = [Pure]>
    : DFG_Node<mnemonic, tensorflow, effects # [DeclareOpInterfaceMethods<DFG_CompositeInterface>]> {
  let shape = "composite";
  let definitions = [{
    ::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>> $cppClass::decompose(::distc::dfg::GraphBuilder &g) {
      return ::distc::dfg::decompositions::}] # decomposition # [{(getOperation(), g);
    }
  }];
}

// ---- Updates --------------------------------------------------------------------------------

// A written handle: the variable or one of its slots.
def DFG_Written : Arg<DFG_Handle, "", [MemRead, MemWrite]>;

// `written`: operand numbers of the handles; `gradient`: of the gradient; `body` sees `s` and `args`, names them
// itself, and returns the new elements {variable, slots...}.
class DFG_Update<string mnemonic, string tensorflow, string written, int gradient, code body, list<Trait> traits = []>
    : DFG_Node<mnemonic, tensorflow, traits # [DeclareOpInterfaceMethods<DFG_UpdateInterface, ["isOptimizerUpdate"]>]> {
  // A reference variable's update gives the variable again; a resource's gives nothing.
  let results = (outs Optional<DFG_Tensor>:$updated);
  let shape = "update";
  bit optimizer = 1;
  let definitions = [{
    ::llvm::SmallVector<unsigned> $cppClass::getWrittenOperands() { return {}] # written # [{}; }
    int $cppClass::getGradientOperand() { return }] # gradient # [{; }
    bool $cppClass::isOptimizerUpdate() { return }] # optimizer # [{; }
    ::llvm::SmallVector<::mlir::Value> $cppClass::emitUpdate(::distc::dfg::ScalarBuilder &s, ::mlir::ValueRange args) {
      }] # body # [{
    }
  }];
}

// The same of rows: `indices` is the operand that names them. `body` sees `args` without it, so that it is the rule of the
// dense update, whose operands are otherwise the same.
class DFG_SparseUpdate<string mnemonic, string tensorflow, string written, int gradient, int indices, code body, list<Trait> traits = []>
    : DFG_Node<mnemonic, tensorflow, traits # [DeclareOpInterfaceMethods<DFG_UpdateInterface, ["isOptimizerUpdate", "getIndicesOperand", "hasIndexVectors"]>]> {
  let results = (outs Optional<DFG_Tensor>:$updated);
  let shape = "update";
  bit optimizer = 1;
  bit nd = 0;
  let definitions = [{
    ::llvm::SmallVector<unsigned> $cppClass::getWrittenOperands() { return {}] # written # [{}; }
    int $cppClass::getGradientOperand() { return }] # gradient # [{; }
    int $cppClass::getIndicesOperand() { return }] # indices # [{; }
    bool $cppClass::hasIndexVectors() { return }] # nd # [{; }
    bool $cppClass::isOptimizerUpdate() { return }] # optimizer # [{; }
    ::llvm::SmallVector<::mlir::Value> $cppClass::emitUpdate(::distc::dfg::ScalarBuilder &s, ::mlir::ValueRange operands) {
      ::llvm::SmallVector<::mlir::Value> args(operands);
      args.erase(args.begin() + }] # indices # [{);
      }] # body # [{
    }
  }];
}

#endif // DFG_OP_BASE
