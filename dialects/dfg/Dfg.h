//===- Dfg.h - The dataflow dialect ------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_DFG_H
#define DISTC_DIALECTS_DFG_DFG_H

#include "dialects/dfg/GraphBuilder.h"
#include "dialects/dfg/ScalarBuilder.h"
#include "dialects/dfg/ShapeContext.h"
#include "dialects/dfg/SourceAttributes.h"
#include "dialects/dfg/TypeRules.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/RegionKindInterface.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace distc::dfg {

/// How floating-point results depend on floating-point operands: not linearly,
/// linearly in all of them together, in each of them alone, in the first, or in
/// the last alone.
enum class Linearity { None, Joint, Each, First, Last };

// Facts that analyses ask for, declared in ODS (DfgOpBase.td): traits of nodes that give ...
/// ... the sum of two operands.
template <typename Op> class Adds : public mlir::OpTrait::TraitBase<Op, Adds> {};
/// ... integers that only depend on the shapes of operands.
template <typename Op> class AsksShapes : public mlir::OpTrait::TraitBase<Op, AsksShapes> {};
/// ... a boolean for each pair of elements of two operands.
template <typename Op> class Compares : public mlir::OpTrait::TraitBase<Op, Compares> {};
/// ... the first operand divided by the second.
template <typename Op> class Divides : public mlir::OpTrait::TraitBase<Op, Divides> {};
/// ... random numbers: with the batch's axis, each replica draws for its own examples.
template <typename Op> class DrawsNumbers : public mlir::OpTrait::TraitBase<Op, DrawsNumbers> {};
/// ... a first result of distinct elements of the first operand, and a second that says which of them each element
/// is.
template <typename Op> class FindsDistinct : public mlir::OpTrait::TraitBase<Op, FindsDistinct> {};
/// ... their operand's value.
template <typename Op> class Forwards : public mlir::OpTrait::TraitBase<Op, Forwards> {};
/// ... rows or slices of the first operand, a tensor or a variable, where the second says.
template <typename Op> class Gathers : public mlir::OpTrait::TraitBase<Op, Gathers> {};
/// ... something of each matrix, along the first operand's last two axes; all axes in front of those are in front of
/// all operands and results, but for operands that are scalars and results without elements.
template <typename Op> class OfMatrices : public mlir::OpTrait::TraitBase<Op, OfMatrices> {};
/// ... (parts of) the value of the variable whose handle is the first operand, in block order.
template <typename Op> class ReadsVariable : public mlir::OpTrait::TraitBase<Op, ReadsVariable> {};
/// ... the first operand reduced along the axes that the second names.
template <typename Op> class Reduces : public mlir::OpTrait::TraitBase<Op, Reduces> {};
/// ... an end or a message for the user: their order among effects counts, no value does.
template <typename Op> class Reports : public mlir::OpTrait::TraitBase<Op, Reports> {};
/// ... the elements of the first operand in their order, with another shape.
template <typename Op> class Reshapes : public mlir::OpTrait::TraitBase<Op, Reshapes> {};
/// ... with a result that, where it lacks the batch's axis, is a sum over the batch's rows.
template <typename Op> class SumsRows : public mlir::OpTrait::TraitBase<Op, SumsRows> {};

/// Whether `type` is a variable's handle or a resource tensor that stands for one.
bool isHandle(mlir::Type type);

} // namespace distc::dfg

#include "dialects/dfg/DfgDialect.h.inc"
#include "dialects/dfg/DfgInterfaces.h.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/dfg/DfgTypes.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dfg/DfgAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/dfg/DfgOps.h.inc"

namespace distc::dfg {

/// Names of the attributes that any node may carry (see the dialect's description).
inline constexpr llvm::StringLiteral kDeviceAttr = "device";
inline constexpr llvm::StringLiteral kControlAttr = "control";
/// TensorFlow's own attributes of a NodeDef begin so; no operation's semantics depend on them.
inline constexpr llvm::StringLiteral kInternalPrefix = "_";
/// Among a call's attributes in TensorFlow: XLA compiles what is called. A convolution that stood there keeps it.
inline constexpr llvm::StringLiteral kCompiledByXla = "_XlaMustCompile";
/// On a graph, and on the module once entries are taken from it: the slices that variables are, a dictionary of
/// #dfg.slice by the variables' names.
inline constexpr llvm::StringLiteral kSlicesAttr = "dfg.slices";
/// On a function that is an entry: its name ("step"), the tensors that it gives and how the log joins the replicas'
/// values of each (arrays of strings).
inline constexpr llvm::StringLiteral kEntryAttr = "dfg.entry", kFetchesAttr = "dfg.fetches",
                                     kEntryJoinsAttr = "dfg.joins";
/// On the module, once entries are taken from the graph: the names of its placeholders (array of strings), since
/// entries have only those that they need; the tags of its scalar summaries, by tensor name; its `objects`
/// (dialects/dfg/tensorflow/Import.h).
inline constexpr llvm::StringLiteral kPlaceholdersAttr = "dfg.placeholders", kSummariesAttr = "dfg.summaries",
                                     kProgramObjectsAttr = "dfg.objects";
/// On a node that gives the index -1 to rows that are not there, which is no mistake of the data.
inline constexpr llvm::StringLiteral kPaddingAttr = "dfg.padding";
/// On a placeholder of signless integers, and on its `drt.feed`: the integers that the data have are unsigned ones.
inline constexpr llvm::StringLiteral kUnsignedFeedAttr = "dfg.unsigned";
/// On a placeholder of bools, and on its `drt.feed`: of each row of the batch whether the data have an example for it.
/// The runtime gives it, and where some have none they are the last ones.
inline constexpr llvm::StringLiteral kValidityAttr = "dfg.validity";
/// On the module that is printed: what the command line said, a dictionary (tools/distc/Stage.h).
inline constexpr llvm::StringLiteral kCommandAttr = "dfg.command";

/// Whether a part of `sizes` at `offsets` lies in a whole of `shape`, and has elements.
bool isSlice(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> offsets, llvm::ArrayRef<int64_t> sizes);

/// The node's name: that of its location, or "" where it has none.
llvm::StringRef getNodeName(mlir::Operation *op);

/// Removes the shapes that the author's graph noted on a node: its results have others now, which TensorFlow infers.
void removeNotedShapes(mlir::Operation *op);

/// Names an operation's results after its node where IR is printed.
void nameResults(mlir::Operation *op, mlir::OpAsmSetValueNameFn set);

/// The names in `control`, empty where there are none.
llvm::SmallVector<llvm::StringRef> getControlInputs(mlir::Operation *op);

/// How many examples the whole batch must have at least for the graph that `op` is or stands in; 1 where it does not
/// say.
int64_t getSmallestBatch(mlir::Operation *op);

/// The handle's variable where `handle` is a `dfg.var_handle` (looking through
/// identities), else null.
VarHandleOp getVariableHandle(mlir::Value handle);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_DFG_H
