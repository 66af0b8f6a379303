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
/// ... the first operand, a tensor or a variable, with slices added or subtracted where the indices say.
template <typename Op> class AddsSlices : public mlir::OpTrait::TraitBase<Op, AddsSlices> {};
/// ... integers that only depend on the shapes of operands.
template <typename Op> class AsksShapes : public mlir::OpTrait::TraitBase<Op, AsksShapes> {};
/// ... quotients of which the second operand, where it is of integers, must have no zero: it ends the program.
template <typename Op> class ChecksDivisor : public mlir::OpTrait::TraitBase<Op, ChecksDivisor> {};
/// ... a boolean for each pair of elements of two operands.
template <typename Op> class Compares : public mlir::OpTrait::TraitBase<Op, Compares> {};
/// ... the first operand divided by the second.
template <typename Op> class Divides : public mlir::OpTrait::TraitBase<Op, Divides> {};
/// ... random numbers of a generator's key and counter, which are operands.
template <typename Op> class DrawsByKey : public mlir::OpTrait::TraitBase<Op, DrawsByKey> {};
/// ... random numbers: with the batch's axis, each replica draws for its own examples.
template <typename Op> class DrawsNumbers : public mlir::OpTrait::TraitBase<Op, DrawsNumbers> {};
/// ... the same element everywhere.
template <typename Op> class Fills : public mlir::OpTrait::TraitBase<Op, Fills> {};
/// ... as many rows as the data say, behind which indices are -1.
template <typename Op> class FillsUp : public mlir::OpTrait::TraitBase<Op, FillsUp> {};
/// ... a first result of distinct elements of the first operand, and a second that says which of them each element
/// is.
template <typename Op> class FindsDistinct : public mlir::OpTrait::TraitBase<Op, FindsDistinct> {};
/// ... their operand's value.
template <typename Op> class Forwards : public mlir::OpTrait::TraitBase<Op, Forwards> {};
/// ... rows or slices of the first operand, a tensor or a variable, where the second says.
template <typename Op> class Gathers : public mlir::OpTrait::TraitBase<Op, Gathers> {};
/// ... the elements of all operands but the parameters, side by side along an axis.
template <typename Op> class Joins : public mlir::OpTrait::TraitBase<Op, Joins> {};
/// ... elements of the operands of the results' type, each as it is, and zeros or a value that is given between them.
/// What has one of the traits Forwards, Fills, Joins, Permutes, Repeats, Reshapes and TakesPart needs not say so
/// (movesElements).
template <typename Op> class Moves : public mlir::OpTrait::TraitBase<Op, Moves> {};
/// ... products of matrices along the last two axes of two operands.
template <typename Op> class MultipliesMatrices : public mlir::OpTrait::TraitBase<Op, MultipliesMatrices> {};
/// ... something of each matrix, along the first operand's last two axes; all axes in front of those are in front of
/// all operands and results, but for operands that are scalars and results without elements.
template <typename Op> class OfMatrices : public mlir::OpTrait::TraitBase<Op, OfMatrices> {};
/// ... what sparse tensors have at the places that are none of -1, which are in all operands of two axes.
template <typename Op> class OfSparseTensors : public mlir::OpTrait::TraitBase<Op, OfSparseTensors> {};
/// ... elements of a variable that are its old ones or those of an operand, and no sums of both.
template <typename Op> class Overwrites : public mlir::OpTrait::TraitBase<Op, Overwrites> {};
/// ... the elements of the first operand, each once, in another order.
template <typename Op> class Permutes : public mlir::OpTrait::TraitBase<Op, Permutes> {};
/// ... (parts of) the value of the variable whose handle is the first operand, in block order.
template <typename Op> class ReadsVariable : public mlir::OpTrait::TraitBase<Op, ReadsVariable> {};
/// ... the first operand reduced along the axes that the second names.
template <typename Op> class Reduces : public mlir::OpTrait::TraitBase<Op, Reduces> {};
/// ... the elements of the first operand, each as often as a parameter says.
template <typename Op> class Repeats : public mlir::OpTrait::TraitBase<Op, Repeats> {};
/// ... an end or a message for the user: their order among effects counts, no value does.
template <typename Op> class Reports : public mlir::OpTrait::TraitBase<Op, Reports> {};
/// ... the elements of the first operand in their order, with another shape.
template <typename Op> class Reshapes : public mlir::OpTrait::TraitBase<Op, Reshapes> {};
/// ... results whose sizes are elements of parameters.
template <typename Op> class SizedByParameter : public mlir::OpTrait::TraitBase<Op, SizedByParameter> {};
/// ... with a result that, where it lacks the batch's axis, is a sum over the batch's rows.
template <typename Op> class SumsRows : public mlir::OpTrait::TraitBase<Op, SumsRows> {};
/// ... some of the elements of the operand that is the first but parameters (getWhole).
template <typename Op> class TakesPart : public mlir::OpTrait::TraitBase<Op, TakesPart> {};

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

/// Whether `op` gives elements of its operands on as they are, or puts the same one everywhere: see the trait Moves.
bool movesElements(mlir::Operation *op);

/// The operand that an operation with the trait TakesPart takes elements of.
mlir::Value getWhole(mlir::Operation *op);

/// The handle's variable where `handle` is a `dfg.var_handle` (looking through
/// identities), else null.
VarHandleOp getVariableHandle(mlir::Value handle);

} // namespace distc::dfg

#endif // DISTC_DIALECTS_DFG_DFG_H
