//===- split_matmul.cpp - Products of float32 on matrix units -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/kernels/split_matmul.h"

#include "core/memory.h"
#include "cpu/kernels/matrix_units.h"
#include "cpu/kernels/packed_operand.h"
#include "cpu/kernels/sgemm.h"

#include <algorithm>
#include <optional>
#include <vector>

using namespace drt;

namespace {
// The sums of a block stay in the second-level cache while its steps go by, beside the packed rows. With half as many
// elements rows are packed twice as often: 256 x 1024 x 2048 of 64 terms takes 5.0 ms and not 4.7.
constexpr int64_t blockRows = 256, blockElements = 256 * 1024;

// Below these packing outweighs what is gained. A core of a Xeon of the Sapphire Rapids generation, GFLOP/s, and the
// better of the library's sgemm and matmul:
//
//      m     k     n   units   library
//     32   256   256     170       196
//     64    64    64     152       165
//     64   128   128     197       162
//    128   128   128     253       183
//    128   784   128     282       196
//    256   256   256     325       165
//   1024   256    32     160       194
//   3136    64    64     172       174
constexpr int64_t fewestRows = 48, fewestColumns = 48, fewestSteps = 32, smallest = 64 * 128 * 64;

constexpr int64_t panel = MatrixUnits::panel;

// As few equal parts of at most `most` as there can be, in whole multiples: how long one is.
int64_t partOf(int64_t count, int64_t most, int64_t multiple) {
  const int64_t parts = (count + most - 1) / most;
  return parts <= 1 ? count : roundUp((count + parts - 1) / parts, multiple);
}

// How many steps are multiplied at once.
int64_t depthOf(int64_t steps) { return partOf(steps, MatrixUnits::depth, MatrixUnits::group); }

// What a thread packs: rows of a block, of which each left operand's are padded to panels, and two panels.
struct Work {
  Memory left{2 * MatrixUnits::packedBytes(blockRows, MatrixUnits::depth)};
  Memory right{2 * MatrixUnits::panelBytes(MatrixUnits::depth)};
};

// Some rows of the left operands, times the right one.
class Block {
public:
  /// shape.k steps, of all terms where the operands have several.
  Block(const GemmShape &shape, float scale, const SplitOperand &right, int64_t columns,
        std::optional<SplitPanels> packed = {})
      : units(*matrixUnits()), s(shape), scale(scale), right(right), packed(packed), columnsAtOnce(columns),
        depthAtOnce(depthOf(s.k)), now(work().right.data()), next(now + MatrixUnits::panelBytes(MatrixUnits::depth)) {}

  int64_t paddedRows() const { return panelsUsed * panel; }

  /// Of the operand, or of what is gathered.
  void add(const SplitOperand &left, GatheredOperand *gathered, int64_t first, int64_t count, float *c) {
    char *to = work().left.data() + panelsUsed * MatrixUnits::panelBytes(MatrixUnits::depth);
    lefts.push_back({left, gathered, first, to});
    rows.push_back({to, count, c});
    panelsUsed += (count + panel - 1) / panel;
  }

  /// False: a gathered operand has an element without parts.
  bool multiply() {
    for (int64_t column = 0; column < s.n; column += columnsAtOnce)
      multiplyColumns(column, std::min(s.n, column + columnsAtOnce));
    lefts.clear();
    rows.clear();
    panelsUsed = 0;
    return complete;
  }

private:
  struct Left {
    SplitOperand operand;
    GatheredOperand *gathered;
    int64_t first; // row
    char *packed;
  };

  static Work &work() {
    static thread_local Work own;
    return own;
  }

  void multiplyColumns(int64_t begin, int64_t end) {
    PanelPacking packing = packingAt(0, begin, end);
    units.packRight(packing);
    for (int64_t step = 0; step < s.k; step += depthAtOnce) {
      const int64_t depth = std::min(depthAtOnce, s.k - step);
      bool leftIsComplete = true;
      for (size_t i = 0; i < lefts.size(); ++i)
        leftIsComplete &= packLeft(lefts[i], {step, depth, lefts[i].first, rows[i].count});
      for (int64_t column = begin; column < end; column += panel) {
        const bool haveParts = leftIsComplete && (packed ? packed->complete(step, column) : packing.complete);
        std::swap(now, next);
        const char *panelNow = packed ? packed->at(step, column) : now;
        packing = column + panel < end ? packingAt(step, column + panel, end) : packingAt(step + depth, begin, end);
        const int64_t width = std::min(panel, end - column);
        if (haveParts) {
          units.multiply(rows, panelNow, depth, column, width, s.ldc, s.accumulate || step > 0, packing);
        } else {
          multiplyByVectors(step, depth, column, width);
          units.packRight(packing);
        }
      }
    }
  }

  bool packLeft(const Left &left, const SplitRange &range) const {
    return left.gathered ? left.gathered->pack(units, range, left.packed)
                         : units.packLeft(left.operand, range, scale, left.packed);
  }

  // To where the panel after this one is multiplied from; nothing where all are packed.
  PanelPacking packingAt(int64_t step, int64_t column, int64_t end) const {
    PanelPacking packing;
    if (packed || step >= s.k)
      return packing;
    packing.right = right;
    packing.range = {step, std::min(depthAtOnce, s.k - step), column, std::min(panel, end - column)};
    packing.to = next;
    return packing;
  }

  // What has elements without parts, term by term.
  void multiplyByVectors(int64_t step, int64_t depth, int64_t column, int64_t width) {
    if (lefts.front().gathered) { // alone, and it lies in no matrix
      complete = false;
      return;
    }
    GemmShape part = s;
    part.n = width;
    for (const int64_t end = step + depth; step < end; step += part.k) {
      part.k = right.terms ? std::min(end - step, right.stepsOfTerm - step % right.stepsOfTerm) : end - step;
      part.accumulate = s.accumulate || step > 0;
      for (size_t i = 0; i < lefts.size(); ++i) {
        part.m = rows[i].count;
        vectorSgemm(part, scale, lefts[i].operand.at(step, lefts[i].first), right.at(step, column), rows[i].c + column);
      }
    }
  }

  const MatrixUnits &units;
  const GemmShape s;
  const float scale;
  const SplitOperand right;
  const std::optional<SplitPanels> packed; // none: packed here
  const int64_t columnsAtOnce, depthAtOnce;
  std::vector<Left> lefts;
  std::vector<PackedRows> rows; // of each of them
  int64_t panelsUsed = 0;
  bool complete = true;
  char *now, *next; // panels of the right operand
};

int64_t columnsOf(const GemmShape &s, int64_t rows) {
  return partOf(s.n, roundUp(blockElements / std::min(blockRows, rows), panel), panel);
}
} // namespace

bool drt::suitsMatrixUnits(const GemmShape &s) {
  return matrixUnits() && s.m >= fewestRows && s.n >= fewestColumns && s.k >= fewestSteps &&
         s.m * s.n * s.k >= smallest;
}

bool drt::suitsSplitSum(const GemmShape &s, int64_t terms) {
  GemmShape whole = s;
  whole.k *= terms;
  return s.transposeA && !s.transposeB && s.k % MatrixUnits::group == 0 && suitsMatrixUnits(whole);
}

SplitPanels::SplitPanels(void *memory, int64_t steps, int64_t columns)
    : steps(steps), columns(columns), depth(depthOf(steps)), flags(static_cast<char *>(memory)),
      panels(flags + bytes(steps, columns) - count(columns) * MatrixUnits::panelBytes(steps)) {}

int64_t SplitPanels::count(int64_t columns) { return (columns + panel - 1) / panel; }

int64_t SplitPanels::bytes(int64_t steps, int64_t columns) {
  constexpr int64_t cacheLine = 64;
  const int64_t depth = depthOf(steps), parts = depth > 0 ? (steps + depth - 1) / depth : 0;
  return roundUp(parts * count(columns), cacheLine) + count(columns) * MatrixUnits::panelBytes(steps);
}

char &SplitPanels::flag(int64_t step, int64_t column) const {
  return flags[step / depth * count(columns) + column / panel];
}

const char *SplitPanels::at(int64_t step, int64_t column) const {
  return panels + column / panel * MatrixUnits::panelBytes(steps) + MatrixUnits::panelBytes(step);
}

void SplitPanels::pack(const SplitOperand &right, int64_t begin, int64_t end) {
  for (int64_t column = begin * panel; column < std::min(end * panel, columns); column += panel)
    for (int64_t step = 0; step < steps; step += depth) {
      PanelPacking packing;
      packing.right = right;
      packing.range = {step, std::min(depth, steps - step), column, std::min(panel, columns - column)};
      packing.to = const_cast<char *>(at(step, column));
      matrixUnits()->packRight(packing);
      flag(step, column) = packing.complete;
    }
}

void drt::splitMatmul(const GemmShape &s, float scale, std::span<const LeftOperand> lefts, const float *b,
                      const PackedOperand *packed) {
  const int64_t height = partOf(s.m, blockRows, panel);
  const bool isPacked = packed && packed->form() == PackedForm::Split;
  Block block(s, scale, {b, s.ldb, !s.transposeB}, columnsOf(s, s.m * static_cast<int64_t>(lefts.size())),
              isPacked ? std::optional(packed->panels()) : std::nullopt);
  for (const LeftOperand &of : lefts)
    for (int64_t row = 0; row < s.m; row += height) {
      const int64_t count = std::min(height, s.m - row);
      if (block.paddedRows() > 0 && block.paddedRows() + count > blockRows)
        block.multiply();
      block.add({of.a, s.lda, s.transposeA}, nullptr, row, count, of.c + row * s.ldc);
    }
  block.multiply();
}

void drt::splitSum(const GemmShape &s, float scale, std::span<const void *const> a, const void *const *b, float *c) {
  const int64_t height = partOf(s.m, blockRows, panel);
  GemmShape whole = s;
  whole.k *= static_cast<int64_t>(a.size());
  Block block(whole, scale, {nullptr, s.ldb, true, b, s.k}, columnsOf(s, s.m));
  for (int64_t row = 0; row < s.m; row += height) {
    block.add({nullptr, s.lda, true, a.data(), s.k}, nullptr, row, std::min(height, s.m - row), c + row * s.ldc);
    block.multiply();
  }
}

bool drt::splitGathered(int64_t rows, int64_t columns, int64_t depth, GatheredOperand &left, const SplitOperand &right,
                        float *c) {
  const GemmShape s = {rows, columns, depth, false, !right.stepsAreRows, 0, right.pitch, columns, false};
  const int64_t height = partOf(rows, blockRows, panel);
  Block block(s, 1.0f, right, columnsOf(s, rows));
  bool complete = true;
  for (int64_t row = 0; row < rows && complete; row += height) {
    block.add({}, &left, row, std::min(height, rows - row), c + row * columns);
    complete = block.multiply();
  }
  return complete;
}
