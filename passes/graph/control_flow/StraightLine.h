//===- StraightLine.h - Control flow as straight-line code ----------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Evaluates a graph at compile time as far as its control flow asks for it
// (partial evaluation). Tensors stay values of the graph; what TensorFlow keeps in
// variants and mutable resources - lists, optionals, tensor arrays, stacks - is
// known here element by element and is gone afterwards. What is left are nodes
// without control flow, in order.
//
// A predicate that is not known becomes data: both branches of a condition run and
// its results are selected; a loop runs as often as it can at most.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_STRAIGHTLINE_H
#define DISTC_PASSES_GRAPH_STRAIGHTLINE_H

#include "dialects/dfg/NumberRange.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <memory>

namespace distc {

struct Container;

/// What flows along an edge: a tensor or a handle of the graph, or a container. Neither: an element that nothing was
/// written to yet.
struct Datum {
  mlir::Value value;
  std::shared_ptr<const Container> container;

  Datum() = default;
  Datum(mlir::Value value) : value(value) {}
  Datum(std::shared_ptr<const Container> container) : container(std::move(container)) {}
  bool isUnset() const { return !value && !container; }
  bool operator==(const Datum &other) const { return value == other.value && container == other.container; }
};
using Data = llvm::SmallVector<Datum>;

/// What could be made, where it could.
inline llvm::FailureOr<mlir::Value> ifMade(mlir::Value value) {
  if (!value)
    return llvm::failure();
  return value;
}
inline llvm::FailureOr<Datum> datumIfMade(mlir::Value value) {
  if (!value)
    return llvm::failure();
  return Datum(value);
}

/// A list of tensors: a TensorList, a TensorArray (what its flow stands for), a stack, an Optional (of its components).
struct Container {
  Data elements;
  /// How many of the elements there are, a scalar, where that depends on data; null: all.
  mlir::Value length;
  mlir::Type elementType;
  /// The shape of each element, a vector with -1 for what is unknown; may be null.
  mlir::Value elementShape;
  /// A tensor of the shape of each element, where `elementShape` does not say it; may be null.
  mlir::Value like;
  /// Of the gradients of a tensor array: which array's, under which name.
  const void *arrayOf = nullptr;
  llvm::StringRef source;
  /// Of a tensor array: whether a second write to an element adds to it.
  bool accumulates = false;
  /// Of a tensor array: whether it grows where an element behind its end is written.
  bool grows = false;
  /// Of a stack: `continuing` where it was made, and `guarded` where each element was added.
  mlir::Value continuing;
  llvm::SmallVector<llvm::SmallVector<std::pair<mlir::Value, bool>, 2>> guards;
  /// Of an optional: whether there is a value, a scalar.
  mlir::Value hasValue;
  /// Of a list with an element for each example of the batch: how many, a scalar. Then `elements` is one, of tensors in
  /// which the examples lie along axis 0; `own` is what the iteration that is evaluated has written to its own. Of a
  /// stack: `elements` are what each example has added, in order.
  mlir::Value examples;
  Datum own;
  /// Of a list with an element for each example that is known element by element, of as many as the whole batch has
  /// (runEach): how many, a scalar, as the graph has it.
  mlir::Value counted;
  /// One of two optionals, which may hold tensors that have nothing to do with each other: those that either branch of
  /// a condition leaves to its own gradient.
  mlir::Value predicate;
  Datum chosen, otherwise;
};

/// Inclusive bounds of an integer scalar; none is no bound.
struct IntegerRange {
  std::optional<int64_t> least, most;
};

/// Predicates with the value that each has.
using Guard = llvm::SmallVector<std::pair<mlir::Value, bool>, 2>;

/// A piece of the graph that can be evaluated with other operands: a library function's body.
struct Scope {
  std::string prefix;
  llvm::DenseMap<mlir::Value, Datum> data;
  llvm::DenseMap<mlir::Value, Guard> guards;
  llvm::DenseSet<mlir::Value> dead;
  /// What has to run instead of a node, by its name in this scope.
  llvm::StringMap<llvm::SmallVector<mlir::Attribute>> replacements;
  llvm::StringMap<Guard> controlGuards;
  llvm::StringSet<> deadNodes;
  /// Of a function's body: what has run when it begins to.
  llvm::SmallVector<mlir::Attribute> before;
  /// The nodes are the graph's own and stay where they are; else they are copied.
  bool inPlace = false;
};

/// What of a block is needed, and which of the values that a function gives.
struct NeededNodes {
  llvm::DenseSet<mlir::Operation *> nodes;
  llvm::DenseSet<mlir::Value> results;

  bool takes(mlir::Value value) const {
    return results.contains(value) ||
           llvm::any_of(value.getUsers(), [&](mlir::Operation *user) { return nodes.contains(user); });
  }
};

class StraightLine {
public:
  /// `needed`: what endpoints need; other nodes are passed over. `keepsOrder`: control edges, and not the place in the
  /// block, say what runs before what.
  /// `steps`: those of them that a training step runs. `maxIterations`: of loops that nothing bounds and that need a
  /// bound; 0 where none is given. `batch`: what the symbol of the batch's size is of the whole batch; 0 where that is
  /// not known.
  StraightLine(dfg::GraphOp graph, const llvm::DenseSet<mlir::Operation *> &needed,
               const llvm::DenseSet<mlir::Operation *> &steps, dfg::ShapeContext &shapes, bool keepsOrder = false,
               int64_t maxIterations = 0, int64_t batch = 0);

  llvm::LogicalResult run();

  /// Whether `op` is something that has to go: it must be evaluated, or takes or makes containers.
  static bool isControlFlow(mlir::Operation *op);

private:
  /// A node that is evaluated.
  struct Node {
    mlir::Operation *op;
    /// Its operation's name in TensorFlow.
    llvm::StringRef kind;
    std::string name;
    Data operands;
    llvm::SmallVector<mlir::Attribute> controls;
    Scope &scope;

    template <typename T> T getAttr(llvm::StringRef key) const { return dfg::getSourceAttribute<T>(op, key); }
    mlir::Location getLoc() const;
  };
  using Results = llvm::FailureOr<Data>;
  using Handler = Results (StraightLine::*)(Node &);
  static Handler findHandler(llvm::StringRef kind);
  static llvm::StringRef getKind(mlir::Operation *op);

  // ---- The walk (StraightLine.cpp) -----------------------------------------------------------------------------
  /// `part`: nodes that are run; null: all.
  llvm::LogicalResult runBlock(mlir::Block &block, Scope &scope, const NeededNodes *part);
  llvm::LogicalResult runNode(mlir::Operation &op, Scope &scope);
  llvm::LogicalResult runControlFlow(Node &node, Handler handler);
  /// Whether the guards say that the node does not run at all; else what it runs under.
  bool isDead(mlir::Operation &op, Scope &scope, Guard &guard);
  /// Nodes that are made from here on run under `guard`, too.
  llvm::LogicalResult enter(const Guard &guard, llvm::StringRef name);
  Datum lookup(Scope &scope, mlir::Value value);
  /// The one of two optionals that the branch which is evaluated is told.
  Datum resolve(Datum datum);
  llvm::SmallVector<mlir::Attribute> getControls(mlir::Operation *op, Scope &scope);
  /// What has run when a function that `node` runs begins to.
  llvm::SmallVector<mlir::Attribute> getBefore(const Node &node);
  /// `op`, which does what `node` says, waits for what that waits for; what has an effect, or sees one, also for what
  /// is before the function's call; and for `others`.
  void setControls(mlir::Operation *op, const Node &node, llvm::ArrayRef<mlir::Attribute> others = {});
  /// The update that a node without semantics is, whose reference came through a Switch; null where it is none.
  llvm::FailureOr<mlir::Operation *> recognizeUpdate(const Node &node);
  /// Operands that are references which came through a Switch become what the variable holds when the node runs.
  llvm::LogicalResult readReferences(Node &node);
  /// Copies `op`; values that are known at compile time become constants.
  llvm::FailureOr<Data> copy(Node &node);
  /// Infers shapes and types of a node that is there.
  llvm::LogicalResult infer(mlir::Operation *op);
  /// Of a node that was inferred and is to be erased.
  void forget(mlir::Operation *op);
  /// Divisors and indices end the program only where `active` is true: elsewhere they are ones that cannot.
  llvm::LogicalResult predicateErrors(mlir::Operation *op, const Node &node);
  /// What stood in branches of which one ran now runs anyway: each access of a variable behind those before it.
  void orderAccess(mlir::Operation *op, mlir::Value handle, bool writes);
  void orderRead(mlir::Operation *op);
  // ---- Updates under a condition, of a graph that is exported (ConditionalUpdates.cpp) ---------------------------
  /// Whether `op` is an optimizer's update of resource variables by a dense gradient.
  bool isWrittenOut(mlir::Operation *op);
  /// Assigns what its rule says, where `active` is true, and erases it.
  llvm::LogicalResult writeOutUpdate(mlir::Operation *op, const Node &node);
  mlir::Value makeTensor(mlir::Operation &op, llvm::function_ref<mlir::Value(unsigned)> operand, llvm::StringRef name);
  /// An update that only takes place where `active` is true.
  llvm::LogicalResult predicateUpdate(mlir::Operation *op, const Node &node);
  /// Fails where an effect of `op` has no meaning if it is repeated, or if data decide whether it happens.
  llvm::LogicalResult checkEffects(const Node &node);
  bool sharesGenerator(mlir::Operation *op) const;
  std::string getGenerator(const Node &node) const;
  /// Control edges that matter: of what has effects, or has such edges itself.
  bool isRelevant(mlir::Attribute control);
  void keepEndpoints();
  void eraseReplaced();
  llvm::LogicalResult eraseDead();
  llvm::LogicalResult finish();

  mlir::InFlightDiagnostic fail(const Node &node);

  // ---- Values (StraightLineValues.cpp) -------------------------------------------------------------------------
  mlir::Location locate(llvm::StringRef name);
  template <typename Op, typename... Args> mlir::Value make(llvm::StringRef name, mlir::Type element, Args &&...args) {
    auto op = Op::create(builder, locate(name), mlir::UnrankedTensorType::get(element), std::forward<Args>(args)...);
    if (failed(infer(op)))
      return {};
    return op->getResult(0);
  }
  mlir::Value getInteger(mlir::Type element, int64_t value);
  mlir::Value getInt32(int64_t value) { return getInteger(builder.getI32Type(), value); }
  mlir::Value getVector(mlir::Type element, llvm::ArrayRef<int64_t> values);
  mlir::Value getBool(bool value) { return getInteger(builder.getI1Type(), value); }
  /// The constant that `value` is known to be, as a node; null where it is not known.
  mlir::Value getKnown(mlir::Value value);
  std::optional<int64_t> getConstant(const Datum &datum);
  IntegerRange getRange(mlir::Value value) const { return ranges.lookup(value); }
  /// The range of an integer result, from its operands'; of a tensor, of each of its elements.
  IntegerRange inferRange(mlir::Operation *op);
  /// What all elements of a tensor of predicates are, where they are known to be alike.
  std::optional<bool> getTruth(mlir::Value value) const;
  bool hasElements(mlir::Value value) const;
  /// What ranges, or one operand alone, say of predicates, a scalar or each element of a tensor.
  std::optional<bool> inferTruth(mlir::Operation *op);
  // ---- Numbers of rows, of a graph that fixes its batch (RowNumbers.cpp) ---------------------------------------
  /// Notes which results of `op` may be larger of the whole batch.
  void noteRows(mlir::Operation *op);
  bool mayBeRows(mlir::Value value) const { return rowNumbers.contains(value); }
  /// Whether the first element of a vector may be, as that of a shape.
  bool hasRowsFirst(mlir::Value value) const;
  bool takesFirst(mlir::Operation *op) const;
  /// What `value` is in a graph of any number of times the rows.
  dfg::NumberRange getRangeOfRows(mlir::Value value) const;
  /// Whether a known predicate, or number, may be another one of the whole batch.
  bool dependsOnRows(mlir::Value value) const;
  /// Notes that node `name` was decided by a known value, if that may be another one of the whole batch. `reads`: what
  /// a loop that it ends takes an element of in each iteration.
  void noteDecision(llvm::StringRef name, mlir::Value value,
                    llvm::ArrayRef<std::pair<mlir::Value, int64_t>> reads = {});
  /// How many elements a list has.
  mlir::Value countElements(const Container &list);
  mlir::Value equal(mlir::Value x, int64_t value, llvm::StringRef name);
  mlir::Value logicalAnd(mlir::Value x, mlir::Value y, llvm::StringRef name);
  mlir::Value logicalNot(mlir::Value x, llvm::StringRef name);
  /// A scalar of any type as a predicate.
  llvm::FailureOr<mlir::Value> getPredicate(Node &node, const Datum &datum);
  bool isZero(mlir::Value value);
  mlir::Value zerosLike(mlir::Value value, llvm::StringRef name);
  /// `predicate` decides; `node` is whose results they are.
  llvm::FailureOr<Datum> select(mlir::Value predicate, const Datum &chosen, const Datum &otherwise, const Node &node);
  llvm::FailureOr<Datum> add(const Datum &x, const Datum &y, const Node &node);
  /// The element that nothing was written to, as zeros.
  llvm::FailureOr<Datum> getElement(const Container &list, size_t index, const Node &node);

  // ---- Branches.cpp --------------------------------------------------------------------------------------------
  Results identity(Node &node);
  Results zerosLikeContainer(Node &node);
  Results containerShape(Node &node);
  Results sum(Node &node);
  Results ifElse(Node &node);
  Results caseOf(Node &node);
  Results callFunction(Node &node);
  Results switchOf(Node &node);
  Results merge(Node &node);
  Results optionalFromValue(Node &node);
  Results optionalGetValue(Node &node);
  Results optionalHasValue(Node &node);
  Results variableShape(Node &node);
  dfg::FuncOp getFunction(const Node &node, llvm::StringRef attribute);
  dfg::FuncOp getFunction(const Node &node, mlir::Attribute attribute);
  /// Runs a function's body under `predicate` (and what holds already), as nodes of PREFIX.
  Results call(const Node &node, dfg::FuncOp function, llvm::ArrayRef<Datum> operands, llvm::StringRef prefix,
               mlir::Value predicate = {}, const Guard &holds = {}, const NeededNodes *part = nullptr);
  Results choose(Node &node, mlir::Value predicate, dfg::FuncOp chosen, dfg::FuncOp otherwise,
                 llvm::ArrayRef<Datum> operands, llvm::StringRef prefix);

  // ---- Loops.cpp -----------------------------------------------------------------------------------------------
  struct Loop;
  class LoopVariables;
  Results whileLoop(Node &node);
  Results runForward(Loop &loop, Data state);
  /// Which of the variables something takes behind the loop.
  llvm::SmallVector<bool> findLive(const Loop &loop) const;
  llvm::LogicalResult assertEnd(Loop &loop, mlir::Value goesOn, llvm::StringRef limit);
  /// The program ends, and says `text`, where the condition holds in a branch that runs.
  llvm::LogicalResult assertNot(mlir::Value condition, const std::string &name, llvm::StringRef text);
  // ---- Loops of which data alone say when they end (UnboundedLoops.cpp) ------------------------------------------
  /// Whether it has no such form: lists, or what its gradient takes of each iteration, go on from it.
  bool needsBound(Loop &loop, const Data &initial);
  /// Makes a `dfg.while` of the loop, which needs no bound.
  Results runUnbounded(Loop &loop, const Data &initial);
  /// Of one that has no such form.
  Results refuseUnbounded(const Loop &loop);
  /// Fills `block`, a region's only one, with what `make` gives of the loop's variables.
  llvm::LogicalResult makeRegion(mlir::Block &block, llvm::ArrayRef<unsigned> carried, const Data &initial,
                                 llvm::function_ref<Results(const Data &)> make);
  /// Reads of variables run before the loop; anything else with an effect is refused.
  llvm::LogicalResult moveReads(const Loop &loop, dfg::WhileOp op);
  /// What `op` takes from outside becomes variables of it, constants are copied inside. The operation that is then.
  llvm::FailureOr<dfg::WhileOp> isolate(const Loop &loop, dfg::WhileOp op);
  Results runBackward(Loop &loop, Data state);
  llvm::FailureOr<mlir::Value> evaluateCondition(Loop &loop, llvm::ArrayRef<Datum> state, llvm::StringRef prefix);
  bool mayEnd(Loop &loop, llvm::ArrayRef<Datum> before, llvm::ArrayRef<Datum> now);
  bool isUnchanged(Loop &loop, llvm::ArrayRef<Datum> before, llvm::ArrayRef<Datum> now);

  // ---- LoopsOverExamples.cpp -----------------------------------------------------------------------------------
  /// That of one example: its number, a scalar, those of all, a vector, and how many.
  struct Iteration {
    mlir::Value number, numbers, count;
    /// Whether it has taken what an iteration of another loop left, which is in the opposite order.
    bool takesLast = false;
    /// What goes from one to the next, and is zero at first.
    llvm::DenseSet<mlir::Value> zeros;
    llvm::DenseMap<mlir::Value, mlir::Value> own;
    llvm::DenseMap<const Container *, std::shared_ptr<const Container>> ownContainers;
  };
  /// Runs a loop with an iteration for each of `count` examples, as operations on all of them.
  Results runExamples(Loop &loop, Data state, mlir::Value count);
  /// The same where iterations depend on each other: of as many as the whole batch has, one after the other.
  Results runEach(Loop &loop, Data state, mlir::Value count);
  /// A list with an element for each example, element by element; others, and where it is not known how many examples
  /// there are, as they are.
  llvm::FailureOr<Datum> countOut(const Datum &list, const Node &node);
  /// The same of an operand of which one element is taken or set, by its number.
  llvm::LogicalResult countOutOperand(Node &node, unsigned operand);
  /// Of a tensor array.
  llvm::LogicalResult countOutArray(Node &node, unsigned flow);
  /// How many `count` is of the whole batch; 0 where that is not known.
  int64_t countIterations(mlir::Value count) const;
  /// The rows of all examples, each by itself.
  llvm::FailureOr<Data> unpackExamples(const Node &node, mlir::Value all, int64_t count);
  /// As many rows as the whole batch has, as rows of the batch.
  llvm::FailureOr<mlir::Value> uncount(const Node &node, mlir::Value rows, mlir::Value count);
  /// Whether `count` is the batch's size, or a multiple of it: lists of so many are not known element by element.
  bool countsExamples(mlir::Value count) const;
  bool isSameCount(mlir::Value x, mlir::Value y) const;
  bool hasAsMany(const Container &list, mlir::Value count) const;
  /// Whether `indices` are 0, 1, ... below `count`; those of all of a list's elements.
  bool areNumbers(mlir::Value indices, mlir::Value count) const;
  bool areAll(const Container &list, mlir::Value indices) const;
  std::shared_ptr<Container> makeExamples(const Container &list, mlir::Value count, Datum all) const;
  /// A list's elements as one tensor, also where they are the same.
  llvm::FailureOr<Datum> spread(const Container &list, const Node &node);
  /// Of a value of all examples: that of the iteration that is evaluated.
  llvm::FailureOr<Datum> takeOwn(const Datum &all, const Node &node);
  llvm::FailureOr<Guard> takeOwn(const Guard &all, const Node &node);
  llvm::FailureOr<Datum> getOwn(const Container &list, const Node &node);
  /// The same of an element by its index, which may be another one's.
  llvm::FailureOr<Datum> getExample(const Container &list, const Datum &index, const Node &node);
  bool isOwn(const Datum &index) const;
  llvm::FailureOr<Datum> addExamples(const Datum &x, const Datum &y, const Node &node);
  llvm::FailureOr<Datum> selectExamples(mlir::Value predicate, const Datum &chosen, const Datum &otherwise,
                                        const Node &node);

  // ---- Lists.cpp -----------------------------------------------------------------------------------------------
  Results emptyList(Node &node);
  Results reserve(Node &node);
  Results fromTensor(Node &node);
  Results stack(Node &node);
  Results pushBack(Node &node);
  Results popBack(Node &node);
  Results setItem(Node &node);
  Results getItem(Node &node);
  Results length(Node &node);
  Results elementShape(Node &node);
  Results resize(Node &node);
  Results concat(Node &node);
  Results split(Node &node);
  Results gather(Node &node);
  Results scatter(Node &node);
  Results concatLists(Node &node);
  Results newStack(Node &node);
  Results stackPush(Node &node);
  Results stackPop(Node &node);
  Results nothing(Node &node);

  // ---- TensorArrays.cpp ----------------------------------------------------------------------------------------
  Results newArray(Node &node);
  Results arrayGradient(Node &node);
  llvm::FailureOr<const Container *> getArray(Node &node, unsigned flow);
  Results arrayWrite(Node &node);
  Results addWhere(Node &node, const Container &array);
  Results arrayRead(Node &node);
  Results arrayGather(Node &node);
  Results arrayScatter(Node &node);
  Results arrayConcat(Node &node);
  Results arraySplit(Node &node);
  Results arraySize(Node &node);

  llvm::FailureOr<const Container *> getList(const Node &node, unsigned operand);
  /// Whether all sizes in `shape` are known.
  bool countsKnown(mlir::Value shape) const;
  llvm::FailureOr<int64_t> getIndex(const Node &node, unsigned operand, llvm::StringRef what);
  /// The parts of a tensor along axis 0.
  llvm::FailureOr<Data> unpack(const Node &node, mlir::Value tensor);
  /// How many rows a tensor has, where they are examples; null where it has a known number of them.
  llvm::FailureOr<mlir::Value> countRows(const Node &node, mlir::Value tensor);
  /// The tensors of a list; fails with a diagnostic where it has others, or how many depends on data.
  llvm::FailureOr<llvm::SmallVector<mlir::Value>> getElements(const Node &node, const Container &list);
  /// The elements along a new axis 0.
  llvm::FailureOr<mlir::Value> pack(const Node &node, const Container &list);
  llvm::FailureOr<mlir::Value> packExamples(const Node &node, const Container &list);
  llvm::FailureOr<mlir::Value> concatRows(const Node &node, const Container &list);
  /// The same, and the length of each element.
  Results concatWithLengths(const Node &node, const Container &list);
  /// Element `index`, which may depend on data.
  llvm::FailureOr<Datum> getAt(const Node &node, const Container &list, const Datum &index);
  llvm::FailureOr<std::shared_ptr<Container>> setAt(const Node &node, const Container &list, const Datum &index,
                                                    const Datum &item);
  llvm::FailureOr<mlir::Value> getLength(const Node &node, const Container &list);
  llvm::FailureOr<Data> splitRows(const Node &node, mlir::Value tensor, mlir::Value lengths);
  std::shared_ptr<Container> makeList(const Node &node, mlir::Value elementShape);

  dfg::GraphOp graph;
  NeededNodes needed;
  /// Of the block that is being evaluated; null: all of it.
  const NeededNodes *running = nullptr;
  dfg::ShapeContext &shapes;
  mlir::SymbolTable symbols;
  mlir::OpBuilder builder;
  Scope top;
  /// What the nodes that are being made run under: a scalar, null: they run.
  mlir::Value active;
  /// The parts of `active` that are conditions, in one order whatever they are nested in, and that are loops which data
  /// end.
  Guard guarded;
  mlir::Value continuing;
  /// What is known of predicates in the branch that is being evaluated.
  llvm::DenseMap<mlir::Value, bool> known;
  /// Functions that are being evaluated, for those that call themselves.
  llvm::SmallVector<mlir::Operation *> calls;
  /// Nodes with effects that were made, in order.
  llvm::SmallVector<mlir::Attribute> effects;
  llvm::SmallVector<mlir::Operation *> made;
  /// Nodes that run behind something: what changes or tells the world, what waits, and what is made of their values.
  llvm::DenseSet<mlir::Operation *> ordered;
  /// Of those: updates, and what runs behind one.
  llvm::DenseSet<mlir::Operation *> behindUpdates;
  llvm::StringSet<> names;
  /// Whether the node that is being made stands in a loop, and the outermost one that it stands in.
  bool isRepeated = false;
  std::string outermostLoop;
  /// Loops of which was told that data end them, and they draw with seeds.
  llvm::StringSet<> loopsEndedWhileDrawing;
  /// The last node that draws from each generator that several do.
  llvm::StringMap<mlir::Attribute> lastDraws;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
  llvm::DenseMap<std::tuple<mlir::Value, mlir::Value, mlir::Value>, mlir::Value> selected;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Value>, mlir::Value> conjunctions, comparisons;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value>> unpacked;
  llvm::DenseMap<const Container *, mlir::Value> packed;
  /// Keeps what `packed` and `arrayOf` point to.
  llvm::SmallVector<std::shared_ptr<const Container>> kept;
  /// What a stack holds now: stacks are mutable, and their handles' containers only tell them apart.
  llvm::DenseMap<const Container *, std::shared_ptr<const Container>> stacks;
  llvm::DenseMap<mlir::Value, IntegerRange> ranges;
  /// Of tensors of predicates: what each element is.
  llvm::DenseMap<mlir::Value, bool> truths;
  /// The rows of a replica, where the graph fixes them; else 0.
  int64_t fixedRows = 0;
  const llvm::DenseSet<mlir::Operation *> &steps;
  /// Whether the node that is being evaluated is one of a step.
  bool isOfStep = false;
  /// What may be larger of the whole batch, and what it is then.
  llvm::DenseMap<mlir::Value, dfg::NumberRange> rowNumbers;
  /// Vectors of which the first element may be, and that are no constants or shapes.
  llvm::DenseSet<mlir::Value> rowVectors;
  llvm::StringMap<mlir::ArrayAttr> decisions;
  /// Of the loop over examples that is evaluated; null outside of one.
  Iteration *iteration = nullptr;
  /// Elements of lists of examples that are one value for all of them.
  llvm::DenseSet<mlir::Value> sameForAll;
  /// What was evaluated for one example, and stands for nothing.
  llvm::DenseSet<mlir::Operation *> ofOneExample;
  /// Of that: what depends on which example it is. Nothing may be left of it.
  llvm::DenseSet<mlir::Operation *> dependOnExample;
  /// Nodes of the graph that evaluation has replaced, with their results.
  llvm::SmallVector<std::pair<mlir::Operation *, Data>> replaced;
  /// Of results of updates under a condition: what the variable is afterwards.
  llvm::DenseMap<mlir::Value, mlir::Value> chosenResults;
  /// The effects before the node with control flow that is being evaluated.
  size_t effectsBefore = 0;
  /// What a list was before it was known element by element, and a tensor of all examples before its rows were counted.
  llvm::DenseMap<const Container *, const Container *> countedOut;
  llvm::DenseMap<mlir::Value, mlir::Value> counted, uncounted;
  const bool keepsOrder;
  const int64_t maxIterations, batch;
  /// Of a variable: who has written it under a condition, and who has read it under one since.
  struct Accesses {
    mlir::Attribute write;
    llvm::SmallVector<mlir::Attribute> reads;
  };
  llvm::StringMap<Accesses> accesses;
  llvm::StringMap<mlir::Operation *> nodesByName;
};

} // namespace distc

#endif // DISTC_PASSES_GRAPH_STRAIGHTLINE_H
