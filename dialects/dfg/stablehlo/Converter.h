//===- Converter.h - StableHLO's operations as nodes of a graph ------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Every operation has a handler, a member function that makes its nodes with a
// GraphBuilder, so that shapes are known at once, with the batch as a symbol.
// Handlers stand in a table (Converter.cpp); what is not in it has no code.
//
// Unsigned integers are signless ones of the same bits: what depends on the sign
// (comparisons, quotients, conversions, shifts to the right) looks at the operand's
// type in the module.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_DIALECTS_DFG_STABLEHLO_CONVERTER_H
#define DISTC_DIALECTS_DFG_STABLEHLO_CONVERTER_H

#include "dialects/dfg/Dfg.h"
#include "dialects/dfg/GraphBuilder.h"
#include "dialects/dfg/stablehlo/Attributes.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace distc::stablehlo {

/// The elements that a graph has for those of the module; null where there are none.
mlir::Type getElementType(mlir::Type element);

/// How a region combines two elements.
enum class Combination { Add, Mul, Max, Min, And, Or, Xor, Assign };

class Converter {
public:
  /// Nodes are made where `builder` stands.
  Converter(mlir::ModuleOp source, mlir::OpBuilder &builder, dfg::ShapeContext &shapes)
      : source(source), symbols(source), builder(builder), shapes(shapes) {}

  /// Names every operation without code that `function` needs; fails with one diagnostic for all of them.
  llvm::LogicalResult check(mlir::Operation *function);

  /// The results of `function`, for `arguments`.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> convert(mlir::Operation *function, mlir::ValueRange arguments);

  /// Functions that were made for loops and branches; they go to the end of the module of the graph.
  llvm::SmallVector<mlir::Operation *> takeFunctions() { return std::move(functions); }

  /// `value`, which operand `operand` of `op` became, in a type that has all its numbers where they are unsigned ones
  /// of up to 32 bits.
  llvm::FailureOr<mlir::Value> withSign(mlir::Operation *op, unsigned operand, mlir::Value value);

  /// What is made goes to `graph`, whose batch has at least `count` examples.
  void needExamples(dfg::GraphOp graph, int64_t count);

private:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;
  using Builder = dfg::GraphBuilder;
  using Dim = dfg::Dim;
  using Dims = dfg::Dims;
  using Result = llvm::FailureOr<Values>;
  /// Of an operation whose operands are `operands`. What is wrong: `g.fail`, or a diagnostic.
  using Handler = Result (Converter::*)(mlir::Operation *op, Values operands, Builder &g);
  struct Form {
    Handler handler = nullptr;
    /// How many operands it has; any number where negative.
    int operands = -1;
  };
  static Form findForm(llvm::StringRef name);
  /// Of an operation that takes or gives complex numbers.
  static Form findComplexForm(llvm::StringRef name);
  static bool isOfComplex(mlir::Operation *op);

  /// The values of the module's that are known where operations are converted.
  struct Scope {
    llvm::DenseMap<Value, Value> values;
  };

  llvm::LogicalResult convertBlock(mlir::Block &block, Scope &scope);
  llvm::LogicalResult convertOperation(mlir::Operation *op, Scope &scope);
  /// The name of a function of the graph's library that computes `region` of its arguments and of `captured`, which it
  /// gives as well where `givesCaptured`. `isInvariant`: arguments whose elements are the same whenever it runs.
  llvm::FailureOr<mlir::FlatSymbolRefAttr> makeFunction(mlir::Operation *op, mlir::Region &region,
                                                        llvm::StringRef suffix, mlir::ValueRange arguments,
                                                        llvm::ArrayRef<Value> captured, bool givesCaptured,
                                                        llvm::ArrayRef<bool> isInvariant);
  llvm::SmallVector<Value> getCaptured(llvm::MutableArrayRef<mlir::Region> regions);
  Result makeControlFlow(mlir::Operation *op, llvm::StringRef kind, mlir::ValueRange operands,
                         llvm::ArrayRef<mlir::NamedAttribute> functionNames, mlir::TypeRange types);

  // ---- What handlers are written with --------------------------------------------------------------------------
  static bool isUnsigned(Value value);
  /// The element type of result `number`.
  static mlir::Type elementOfResult(mlir::Operation *op, unsigned number = 0);
  static Value makeConstant(Builder &g, mlir::DenseElementsAttr value);
  static Result one(Builder &g, Value value);
  static Result fail(Builder &g, const llvm::Twine &why);
  /// The elements of an operand that says a shape.
  llvm::FailureOr<Dims> getSizes(Value value, Builder &g);
  /// `x` with its axes at `axes` of `shape`; `sizes` is the shape as a value, or null.
  Value broadcastInDim(Builder &g, Value x, llvm::ArrayRef<int64_t> axes, Dims shape, Value sizes);
  /// `x` with other axes of size 1 between its axes: no reshape, of which two sizes may be the batch's.
  Value withOtherOnes(Builder &g, Value x, Dims shape);
  /// A broadcast value as what it was broadcast from, where a node that broadcasts takes it.
  void narrow(Builder &g, Values &operands);
  /// The only constant that all elements are.
  static std::optional<llvm::APFloat> getSplatFloat(Value sourceValue);
  static std::optional<llvm::APInt> getSplatInt(Value sourceValue);
  /// What the region does with its two elements; none where it is more than one operation.
  static std::optional<Combination> getCombination(mlir::Region &region);
  static bool isIdentity(Value sourceValue, Combination combination);
  Value combine(Builder &g, Combination combination, Value x, Value y, bool isUnsigned);
  Value cumulateAxis(Builder &g, Combination combination, Value x, int64_t axis, bool isReversed, Value identity,
                     bool isUnsigned);
  Value reduceAxes(Builder &g, Combination combination, Value x, llvm::ArrayRef<int64_t> axes, bool isUnsigned);
  /// Integers in the order of the elements; of floats the total order, with -0 before 0 unless `joinsZeros`, which also
  /// makes every NaN the last of all.
  Value orderKey(Builder &g, Value x, bool isUnsigned, bool joinsZeros);
  /// The sign bit turned, so that signed comparisons order unsigned numbers.
  Value flipSign(Builder &g, Value x);
  Value widen(Builder &g, Value x, mlir::Type element);
  /// `x`, which operand `operand` of `op` became, in a wider type: as unsigned as the operand is.
  Value widenOperand(Builder &g, mlir::Operation *op, unsigned operand, Value x, mlir::Type element);
  /// A float as an integer, as XLA converts it: the nearest that the integer holds, 0 for NaN.
  Value saturate(Builder &g, Value x, mlir::Type to, bool isUnsigned);
  /// Indices as integers with a sign, of 32 or 64 bits.
  Value asIndices(Builder &g, mlir::Operation *op, unsigned operand, Value x);
  Value iota(Builder &g, Dims shape, int64_t axis, mlir::Type element, Value sizes);
  Value padAll(Builder &g, Value x, llvm::ArrayRef<int64_t> low, llvm::ArrayRef<int64_t> high,
               llvm::ArrayRef<int64_t> interior, Value value);
  Value stridedSlice(Builder &g, Value x, llvm::ArrayRef<int64_t> begin, llvm::ArrayRef<Dim> limit,
                     llvm::ArrayRef<int64_t> strides);

  // ---- Elementwise.cpp ------------------------------------------------------------------------------------------
  template <typename Op> Result elementwise(mlir::Operation *op, Values operands, Builder &g);
  template <typename Op> Result predicate(mlir::Operation *op, Values operands, Builder &g);
  Result identity(mlir::Operation *op, Values operands, Builder &g);
  Result ofOneDevice(mlir::Operation *op, Values operands, Builder &g);
  Result numberOfDevice(mlir::Operation *op, Values operands, Builder &g);
  Result constant(mlir::Operation *op, Values operands, Builder &g);
  Result compare(mlir::Operation *op, Values operands, Builder &g);
  Result convertElements(mlir::Operation *op, Values operands, Builder &g);
  Result bitcastConvert(mlir::Operation *op, Values operands, Builder &g);
  Result select(mlir::Operation *op, Values operands, Builder &g);
  Result clamp(mlir::Operation *op, Values operands, Builder &g);
  Result extremum(mlir::Operation *op, Values operands, Builder &g);
  Result bitwise(mlir::Operation *op, Values operands, Builder &g);
  Result invert(mlir::Operation *op, Values operands, Builder &g);
  /// Operands of a division of integers, wide enough for all of their values, of which the divisor is never zero;
  /// `isZero` is where it was, null where it cannot be.
  struct IntegerDivision {
    Value x, y, isZero;
  };
  /// None where the integers are unsigned and no signed ones hold them all.
  std::optional<IntegerDivision> prepareDivision(Builder &g, mlir::Operation *op, Values operands);
  /// Quotient and rest of unsigned integers of 64 bits, as signed ones of half of the dividend give them.
  std::pair<Value, Value> divideUnsigned(Builder &g, Value x, Value y);
  Result divide(mlir::Operation *op, Values operands, Builder &g);
  bool isOwnRemainder(Value x, Value y);
  Result remainder(mlir::Operation *op, Values operands, Builder &g);
  Result shift(mlir::Operation *op, Values operands, Builder &g);
  Result countBits(mlir::Operation *op, Values operands, Builder &g);
  Result cbrt(mlir::Operation *op, Values operands, Builder &g);
  Result roundAwayFromZero(mlir::Operation *op, Values operands, Builder &g);
  Result reducePrecision(mlir::Operation *op, Values operands, Builder &g);
  Result customCall(mlir::Operation *op, Values operands, Builder &g);
  // ---- Complex.cpp ----------------------------------------------------------------------------------------------
  /// A node of TensorFlow's `kind`, of which there is no operation here; `types` are its attributes.
  Value makeOpaque(Builder &g, llvm::StringRef kind, mlir::ValueRange operands, const Dims &sizes, mlir::Type element,
                   llvm::ArrayRef<mlir::NamedAttribute> types);
  Value makePart(Builder &g, llvm::StringRef kind, Value x);
  Value makeComplex(Builder &g, Value real, Value imaginary);
  Value makeLog(Builder &g, Value x);
  Result complexOf(mlir::Operation *op, Values operands, Builder &g);
  Result partOf(mlir::Operation *op, Values operands, Builder &g);
  Result complexAbs(mlir::Operation *op, Values operands, Builder &g);
  Result complexSign(mlir::Operation *op, Values operands, Builder &g);
  Result complexDivide(mlir::Operation *op, Values operands, Builder &g);
  Result complexExpm1(mlir::Operation *op, Values operands, Builder &g);
  Result complexLog(mlir::Operation *op, Values operands, Builder &g);
  Result complexLog1p(mlir::Operation *op, Values operands, Builder &g);
  Result complexSqrt(mlir::Operation *op, Values operands, Builder &g);
  Result complexPower(mlir::Operation *op, Values operands, Builder &g);
  Result complexCompare(mlir::Operation *op, Values operands, Builder &g);
  Result complexConvert(mlir::Operation *op, Values operands, Builder &g);
  Result fourierTransform(mlir::Operation *op, Values operands, Builder &g);
  // ---- Layout.cpp -----------------------------------------------------------------------------------------------
  Result broadcastInDim(mlir::Operation *op, Values operands, Builder &g);
  Result dynamicBroadcastInDim(mlir::Operation *op, Values operands, Builder &g);
  Result reshapeStatic(mlir::Operation *op, Values operands, Builder &g);
  Result dynamicReshape(mlir::Operation *op, Values operands, Builder &g);
  Result transpose(mlir::Operation *op, Values operands, Builder &g);
  Result concatenate(mlir::Operation *op, Values operands, Builder &g);
  Result reverse(mlir::Operation *op, Values operands, Builder &g);
  Result pad(mlir::Operation *op, Values operands, Builder &g);
  Result dynamicPad(mlir::Operation *op, Values operands, Builder &g);
  Result padByBatch(Builder &g, Value x, llvm::ArrayRef<Dims> paddings, Value value, llvm::ArrayRef<Value> lists = {});
  Result slice(mlir::Operation *op, Values operands, Builder &g);
  Result realDynamicSlice(mlir::Operation *op, Values operands, Builder &g);
  Result iota(mlir::Operation *op, Values operands, Builder &g);
  Result dynamicIota(mlir::Operation *op, Values operands, Builder &g);
  Result dimensionSize(mlir::Operation *op, Values operands, Builder &g);
  // ---- Reductions.cpp -------------------------------------------------------------------------------------------
  Result reduce(mlir::Operation *op, Values operands, Builder &g);
  Result reduceWindow(mlir::Operation *op, Values operands, Builder &g);
  Result cumulate(mlir::Operation *op, Values operands, Builder &g);
  Value maxOfWindowsGradient(Builder &g, Value x, Value gradient, llvm::ArrayRef<int64_t> sizes,
                             llvm::ArrayRef<int64_t> strides, llvm::ArrayRef<int64_t> dilations);
  Result selectAndScatter(mlir::Operation *op, Values operands, Builder &g);
  // ---- Order.cpp ------------------------------------------------------------------------------------------------
  Result topK(mlir::Operation *op, Values operands, Builder &g);
  Result approximateTopK(mlir::Operation *op, Values operands, Builder &g);
  Result sort(mlir::Operation *op, Values operands, Builder &g);
  // ---- Random.cpp -----------------------------------------------------------------------------------------------
  Result drawBits(mlir::Operation *op, Values operands, Builder &g);
  // ---- Products.cpp ---------------------------------------------------------------------------------------------
  Result dotGeneral(mlir::Operation *op, Values operands, Builder &g);
  Result convolution(mlir::Operation *op, Values operands, Builder &g);
  // ---- Volumes.cpp ----------------------------------------------------------------------------------------------
  /// Of `input` [n, d, h, w, c] and `kernel` [d, h, w, in, out]; `outputOrder`: which axes of the result these are.
  Result convolveVolumes(mlir::Operation *op, Value input, Value kernel, llvm::ArrayRef<int64_t> outputOrder,
                         Builder &g);
  // ---- Matrices.cpp ---------------------------------------------------------------------------------------------
  Result cholesky(mlir::Operation *op, Values operands, Builder &g);
  Result triangularSolve(mlir::Operation *op, Values operands, Builder &g);
  /// Of the call of a library of linear algebra, LAPACK's by the names that JAX gives its routines, or XLA's.
  static Form findLibraryCall(llvm::StringRef target);
  static Value factorCholesky(Builder &g, Value matrix, bool isLower);
  struct Triangle {
    bool isLeft, isLower, isAdjoint, hasUnitDiagonal;
  };
  static Value solveTriangle(Builder &g, Value matrix, Value rhs, Triangle triangle);
  /// Zeros of the type of a result that says nothing here, with the operand's axes in front.
  Value makeZeros(mlir::Operation *op, unsigned result, Value like, Builder &g);
  Result libraryCholesky(mlir::Operation *op, Values operands, Builder &g);
  Result librarySolve(mlir::Operation *op, Values operands, Builder &g);
  Result libraryLu(mlir::Operation *op, Values operands, Builder &g);
  Result householderFactors(mlir::Operation *op, Values operands, Builder &g);
  Result householderProduct(mlir::Operation *op, Values operands, Builder &g);
  Result selfAdjointEig(mlir::Operation *op, Values operands, Builder &g);
  Result singularValues(mlir::Operation *op, Values operands, Builder &g);
  // ---- Indexing.cpp ---------------------------------------------------------------------------------------------
  Result gather(mlir::Operation *op, Values operands, Builder &g);
  Result dynamicGather(mlir::Operation *op, Values operands, Builder &g);
  Result gatherOf(mlir::Operation *op, Value operand, Value indices, llvm::ArrayRef<Dim> sliceSizes, Builder &g);
  Result scatter(mlir::Operation *op, Values operands, Builder &g);
  std::optional<Result> scatterAtKnownPlace(Builder &g, Value operand, Value indices, Value updates, const Dims &window,
                                            llvm::ArrayRef<int64_t> indexMap, llvm::ArrayRef<int64_t> windowAxes,
                                            Combination combination, bool isUnsigned);
  Result updateRows(Builder &g, Value x, llvm::ArrayRef<Dim> shape, Value updates, llvm::ArrayRef<Dim> begin,
                    Combination combination, bool isUnsigned);
  Value makeNeutral(Builder &g, Combination combination, mlir::Type element, bool isUnsigned);
  Value combineSegments(Builder &g, Combination combination, Value rows, Value values, Value ids, Value count,
                        bool isUnsigned);
  /// `sizes` elements along each axis (-1: all of them) from `starts`.
  Result takeSlice(Builder &g, Value x, llvm::ArrayRef<Value> starts, llvm::ArrayRef<Dim> sizes);
  Result dynamicSlice(mlir::Operation *op, Values operands, Builder &g);
  Result dynamicUpdateSlice(mlir::Operation *op, Values operands, Builder &g);
  // ---- ControlFlow.cpp ------------------------------------------------------------------------------------------
  Result whileLoop(mlir::Operation *op, Values operands, Builder &g);
  Result caseOf(mlir::Operation *op, Values operands, Builder &g);
  Result call(mlir::Operation *op, Values operands, Builder &g);
  Result composite(mlir::Operation *op, Values operands, Builder &g);

  mlir::ModuleOp source;
  mlir::SymbolTable symbols;
  mlir::OpBuilder &builder;
  dfg::ShapeContext &shapes;
  /// What broadcast values were made from: as many axes as they have, of size 1 where they were broadcast.
  llvm::DenseMap<Value, Value> narrowed;
  llvm::SmallVector<mlir::Operation *> functions;
  /// Functions that are being converted.
  llvm::SmallVector<mlir::Operation *> calls;
  Scope *current = nullptr;
  dfg::GraphOp graph;
};

} // namespace distc::stablehlo

#endif // DISTC_DIALECTS_DFG_STABLEHLO_CONVERTER_H
