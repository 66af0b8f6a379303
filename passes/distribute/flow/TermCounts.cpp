//===- TermCounts.cpp - How many terms a sum has ----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/flow/TermCounts.h"
#include "dialects/dfg/Dfg.h"
#include <cmath>
#include <vector>

using namespace mlir;

namespace distc {

namespace {

constexpr size_t kMaxCounts = 256;

/// Every product of a number of `counts` and some of `sizes`.
void multiply(std::set<int64_t> &counts, ArrayRef<int64_t> sizes) {
  for (int64_t size : sizes)
    for (int64_t count : std::vector<int64_t>(counts.begin(), counts.end()))
      if (counts.size() < kMaxCounts)
        counts.insert(count * size);
}

bool isNumberOf(const std::set<int64_t> &counts, double number) {
  return llvm::any_of(counts, [&](int64_t count) { return isNear(number, static_cast<double>(count)); });
}

SmallVector<int64_t> sizesOf(Value value) {
  auto type = llvm::dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? SmallVector<int64_t>(type.getShape()) : SmallVector<int64_t>();
}

} // namespace

bool isNear(double x, double y) { return std::abs(x - y) < 1e-5 * std::abs(y); }

bool TermCounts::isOfRows(double number) const { return isNumberOf(ofRows, number) && !isNumberOf(others, number); }

TermCounts TermCounter::find(Value sum, int depth) {
  TermCounts counts;
  Operation *op = sum.getDefiningOp();
  if (!op || depth == 0 || llvm::isa<dfg::ConstOp>(op))
    return counts;
  if (op->hasTrait<dfg::SumsRows>() || llvm::isa<dfg::MatMulOp, dfg::L2LossOp>(op))
    return addAxes(op->getOperand(0), sum, depth);
  // What is computed of a sum otherwise is another number's terms.
  auto node = llvm::dyn_cast<dfg::NodeInterface>(op);
  if (op->hasTrait<dfg::Reshapes>() || op->hasTrait<dfg::Forwards>() ||
      (llvm::isa<dfg::ScalarInterface>(op) && node && node.getLinearity() != dfg::Linearity::None))
    for (Value operand : op->getOperands()) {
      TermCounts own = count(operand, depth - 1);
      counts.ofRows.insert(own.ofRows.begin(), own.ofRows.end());
      counts.others.insert(own.others.begin(), own.others.end());
    }
  if (rows > 1 && (op->hasTrait<dfg::Adds>() || llvm::isa<dfg::AddNOp>(op)))
    addSummands(sum, counts, depth);
  return counts;
}

/// Sums of as many terms each have so many times their number together.
void TermCounter::addSummands(Value sum, TermCounts &counts, int depth) {
  SmallVector<Value> summands, worklist = {sum};
  constexpr size_t kMaxSummands = 1024;
  while (!worklist.empty() && summands.size() + worklist.size() < kMaxSummands) {
    Value value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (op && (op->hasTrait<dfg::Adds>() || op->hasTrait<dfg::Forwards>() || llvm::isa<dfg::AddNOp>(op)))
      llvm::append_range(worklist, op->getOperands());
    else
      summands.push_back(value);
  }
  if (!worklist.empty() || summands.empty())
    return;
  const auto times = static_cast<int64_t>(summands.size());
  std::optional<TermCounts> common;
  for (Value summand : summands) {
    TermCounts own = count(summand, depth - 1);
    if (!common)
      common = own;
    std::erase_if(common->ofRows, [&](int64_t number) { return !own.ofRows.count(number); });
    std::erase_if(common->others, [&](int64_t number) { return !own.others.count(number); });
  }
  for (int64_t number : common->ofRows)
    counts.ofRows.insert(number * times);
  for (int64_t number : common->others)
    counts.others.insert(number * times);
}

TermCounts TermCounter::addAxes(Value terms, Value sum, int depth) {
  // Sizes that the result has not.
  SmallVector<int64_t> sizes = sizesOf(terms), added = sizes;
  for (int64_t size : sizesOf(sum))
    if (auto *it = llvm::find(added, size); it != added.end())
      added.erase(it);
  const std::optional<int64_t> axis = axisOf(terms), kept = axisOf(sum);
  // A product of rows with a matrix adds up features.
  if (axis && kept && llvm::isa<dfg::MatMulOp>(sum.getDefiningOp()))
    return {};
  TermCounts counts = count(terms, depth - 1);
  const int64_t ofBatch = axis && !kept && *axis < static_cast<int64_t>(sizes.size()) ? sizes[*axis] : 0;
  if (auto *it = llvm::find(added, ofBatch); ofBatch > 0 && it != added.end()) {
    added.erase(it);
    // What lies in the batch's axis beside the examples are terms of each one.
    if (ofBatch != rows)
      multiply(counts.others, {ofBatch / rows});
    multiply(counts.others, added);
    for (int64_t other : counts.others)
      counts.ofRows.insert(other * rows);
    return counts;
  }
  multiply(counts.ofRows, added);
  // The batch's axis is there still, or was added before.
  if ((axis && kept) || !counts.ofRows.empty()) {
    multiply(counts.others, added);
    return counts;
  }
  // Which axis is the batch's is not known.
  for (int64_t size : added)
    if (size % rows == 0)
      counts.ofRows.insert(size);
  multiply(counts.ofRows, added);
  return counts;
}

} // namespace distc
