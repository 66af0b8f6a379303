//===- Loops.h - What a loop's functions say of it ----------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_PASSES_GRAPH_LOOPS_H
#define DISTC_PASSES_GRAPH_LOOPS_H

#include "dialects/dfg/Frames.h"
#include "passes/graph/control_flow/StraightLine.h"

namespace distc {

inline mlir::Value stripIdentities(mlir::Value value) {
  while (auto identity = value.getDefiningOp<dfg::IdentityOp>())
    value = identity.getX();
  return value;
}

/// As often as a loop may run that is written out.
inline constexpr int64_t kMaxIterations = 100'000;

struct StraightLine::Loop {
  Node &node;
  dfg::FuncOp condition, body;

  std::string prefix(int64_t iteration) const { return node.name + "/" + std::to_string(iteration) + "/"; }
};

/// What a loop's functions say of how its variables change from one iteration to the next.
class StraightLine::LoopVariables {
public:
  LoopVariables(StraightLine &line, Loop &loop, llvm::ArrayRef<Datum> initial)
      : line(line), condition(loop.condition.getBody().front()), body(loop.body.getBody().front()), initial(initial) {}

  /// The number of iterations as a value, where the loop counts a variable up to another, or down to a constant; null
  /// else.
  mlir::Value getTripCount() const;
  /// How many iterations there are, a scalar, where the loop has one for each example of the batch: all that its
  /// condition asks is whether counters are below as many. Null for others.
  mlir::Value getExampleCount() const;
  /// The nodes of the body that the condition, variables with `live`, and effects need; sets `live` for what these
  /// need.
  NeededNodes findNeeded(llvm::SmallVectorImpl<bool> &live) const;
  /// What an iteration adds to a variable that is a counter with a known first value; none where it is none.
  std::optional<int64_t> getCounterStep(unsigned variable) const;
  /// Whether a variable is the same in all iterations.
  bool isCarried(unsigned variable) const;
  /// Whether the loop is known to have more iterations than `most`: it counts up or down to a number.
  bool hasMoreThan(int64_t most) const;
  /// The most iterations that there can be without an error: each takes the next element of something that has so many.
  std::optional<int64_t> getMostByReads() const;
  /// The same where a branch takes the element: as many, and one more, which takes none. A loop that goes on longer
  /// may take none as well, and be no error.
  std::optional<int64_t> getMostByReadsInBranches() const;
  /// The tensors that there are no more of behind the element of iteration `most`, with the axis.
  llvm::SmallVector<std::pair<mlir::Value, int64_t>> getWhatIsRead(int64_t most) const;

private:
  /// One element that an operation takes, by its index along an axis: there is an error where there is none of that
  /// index.
  struct Read {
    mlir::Value elements, index;
    unsigned axis = 0;
  };

  /// Whether condition and body take all variables, and give what a condition and the variables are.
  bool areWhole() const;
  /// The iterations that a comparison alone would let run, as a value: of a counter from 0 by 1, or to 1 by -1.
  mlir::Value getIterations(mlir::Operation *compare) const;
  /// The number of the variable that `value` is; none where it is anything else.
  std::optional<unsigned> getVariable(mlir::Value value) const;
  std::optional<int64_t> constantOf(mlir::Value value) const;
  /// What a variable is in the next iteration.
  mlir::Value getNext(unsigned variable) const;
  /// What an iteration adds to a variable.
  std::optional<int64_t> getStep(unsigned variable) const;
  llvm::SmallVector<Read> getReads(mlir::Operation *op) const;
  /// Of a read by a counter, or by what is `step` more.
  std::optional<int64_t> getMost(const Read &read) const;
  /// As the body has it what an argument of a branch is; null where it is no argument.
  static mlir::Value getOperandOf(mlir::Operation *conditional, mlir::Value argument);

  StraightLine &line;
  mlir::Block &condition, &body;
  llvm::ArrayRef<Datum> initial;
};

} // namespace distc

#endif // DISTC_PASSES_GRAPH_LOOPS_H
