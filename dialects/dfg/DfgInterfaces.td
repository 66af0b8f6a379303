//===- DfgInterfaces.td - What passes ask of a node -------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DFG_INTERFACES
#define DFG_INTERFACES

include "mlir/IR/OpBase.td"

def DFG_NodeInterface : OpInterface<"NodeInterface"> {
  let cppNamespace = "::distc::dfg";
  let description = "An operation of the original framework: how it is called there and how its types follow.";
  let methods = [
    StaticInterfaceMethod<[{
      The operation's names in TensorFlow, first the one that export writes. A
      second name is that of the other flavour of variable: "ApplyMomentum"
      is for reference variables, "ResourceApplyMomentum" for resources.
    }], "::llvm::ArrayRef<::llvm::StringLiteral>", "getTensorFlowNames">,
    StaticInterfaceMethod<[{
      How the NodeDef's type attributes follow from the types, a list of
      "NAME:SOURCE" separated by spaces. SOURCE: `0` operand 0's element type,
      `-1` that of the last operand, `r0` of result 0, `r*` of each result, `#0` the number of
      operands, `#-1` that number less one, `#/2` half of it, `#r` the number of results, `*` the
      list of all operands' types, `*r` of all results' types. `NAME|NAME2`:
      the attribute's name with reference and with resource variables.
      `=TYPE:rK` (or `r*` for all) is no attribute: it says that this result's
      element type is TYPE; `any` says nothing of it. A result without an entry has the type of the first
      entry that names an operand.
    }], "::llvm::StringRef", "getTypeAttributes">,
    StaticInterfaceMethod<[{
      How floating-point results depend on floating-point operands; the analysis
      of the batch's flow asks (passes/distribute/flow/BatchFlow.h).
    }], "::distc::dfg::Linearity", "getLinearity">,
    StaticInterfaceMethod<[{
      Where results are not linear: the power of c that they are larger by where all float operands are c > 0 times as large; none
      where they are no power of it.
    }], "::std::optional<double>", "getDegree">,
    StaticInterfaceMethod<[{
      Whether an operand says what is done with the others, and is nothing that results are computed from: sizes, axes, where a slice begins.
      `last` is the number of the last operand.
    }], "bool", "isParameter", (ins "unsigned":$operand, "unsigned":$last)>,
    StaticInterfaceMethod<[{
      The operand with the indices of the rows, or slices, of the result that those of another operand go to: one whose index is -1 goes
      nowhere. -1 where there is none. Of updates of variables, UpdateInterface::getIndicesOperand.
    }], "int", "getScatterIndices">,
  ];
  // What is said of the types is held at every node, and what any node may carry is what passes take it for.
  let verify = [{
    static const auto rules = ::distc::dfg::parseTypeRules(ConcreteOp::getTypeAttributes());
    if (failed(::distc::dfg::verifyCarried($_op)))
      return ::mlir::failure();
    return ::distc::dfg::verifyTypes($_op, rules);
  }];
}

def DFG_ShapeInterface : OpInterface<"ShapeInterface"> {
  let cppNamespace = "::distc::dfg";
  let description = "An operation whose results' shapes follow from its operands' shapes and small integer values.";
  let methods = [
    InterfaceMethod<[{
      Tells `context` the results' shapes and, where they are small integer
      tensors that shape arithmetic uses, their elements. Fails with a
      diagnostic where the operands do not fit.
    }], "::llvm::LogicalResult", "inferShapes", (ins "::distc::dfg::ShapeContext &":$context)>,
  ];
}

def DFG_ScalarInterface : OpInterface<"ScalarInterface"> {
  let cppNamespace = "::distc::dfg";
  let description = [{
    An element-wise operation with broadcasting: one element of the result from one element of each
    operand. This is all that lowering needs, for every target.
  }];
  let methods = [
    InterfaceMethod<"The result's element. `args` has one scalar an operand; bool is i1.",
      "::mlir::Value", "emitScalar", (ins "::distc::dfg::ScalarBuilder &":$s, "::mlir::ValueRange":$args)>,
  ];
}

def DFG_ReductionInterface : OpInterface<"ReductionInterface"> {
  let cppNamespace = "::distc::dfg";
  let description = "A reduction of operand 0 over the axes in operand 1 (or all, or the last, as the op says).";
  let methods = [
    InterfaceMethod<"The value that reduction starts from.", "::mlir::Value", "emitInitial", (ins "::distc::dfg::ScalarBuilder &":$s, "::mlir::Type":$type)>,
    InterfaceMethod<"One step: `element` of the operand into `accumulator`.", "::mlir::Value", "emitCombine",
      (ins "::distc::dfg::ScalarBuilder &":$s, "::mlir::Value":$accumulator, "::mlir::Value":$element)>,
    InterfaceMethod<"The result's element from the final accumulator over `count` elements.", "::mlir::Value", "emitFinal",
      (ins "::distc::dfg::ScalarBuilder &":$s, "::mlir::Value":$accumulator, "int64_t":$count)>,
  ];
}

def DFG_UpdateInterface : OpInterface<"UpdateInterface"> {
  let cppNamespace = "::distc::dfg";
  let description = [{
    An operation that updates a variable and its slots element by element from a gradient (or a value) and scalar
    hyper-parameters. Operand numbers; hyper-parameters are scalars that every element sees. A sparse gradient is two operands: the
    indices of rows, and as many rows of values; rows that no index names stay as they are.
  }];
  let methods = [
    InterfaceMethod<"Operands that are handles and are written: the variable first, then its slots.",
      "::llvm::SmallVector<unsigned>", "getWrittenOperands">,
    InterfaceMethod<"Operand that is the gradient or the assigned value, of the variable's shape; -1 for none.", "int", "getGradientOperand">,
    InterfaceMethod<"Operand with the rows' indices of a sparse gradient; -1 where the gradient is dense.", "int", "getIndicesOperand", (ins), "", "return -1;">,
    InterfaceMethod<[{
      Of a sparse gradient: whether the last axis of the indices names the first axes of the variable (ScatterNd*), so that a value is a
      slice of it; else an index is a row's number.
    }], "bool", "hasIndexVectors", (ins), "", "return false;">,
    InterfaceMethod<"Whether this is an optimizer's update by a gradient (false for a plain assignment).", "bool", "isOptimizerUpdate", (ins), "", "return true;">,
    InterfaceMethod<[{
      New elements of the written operands, in their order. `args` has one scalar an operand: the old element of a handle, an
      element of the gradient, a hyper-parameter. That of the indices is null.
    }], "::llvm::SmallVector<::mlir::Value>", "emitUpdate", (ins "::distc::dfg::ScalarBuilder &":$s, "::mlir::ValueRange":$args)>,
  ];
}

def DFG_CompositeInterface : OpInterface<"CompositeInterface"> {
  let cppNamespace = "::distc::dfg";
  let description = [{
    An operation that is made of others: `dfg-decompose` replaces it where code is generated, so that the batch's flow and the lowering
    only know its parts. A graph that is exported keeps it.
  }];
  let methods = [
    InterfaceMethod<[{
      The values that stand for the results, made with `g` of other nodes. Fails where not enough is known of shapes and parameters (`g`
      keeps what), or with a diagnostic where the operands do not fit.
    }], "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose", (ins "::distc::dfg::GraphBuilder &":$g)>,
  ];
}

#endif // DFG_INTERFACES
