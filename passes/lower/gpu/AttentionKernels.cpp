//===- AttentionKernels.cpp - drt-attention-kernels -------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// FlashAttention (Dao et al., 2022; the loops' order and what a warp has are of FlashAttention-2, 2023). A block has 64
// queries of a head, a warp 16 of them, and goes through the keys, 64 at a time in the block's memory; for the
// gradients of keys and values it has 64 keys and goes through the queries. Each result is written by the one block
// that has its row, from sums in a fixed order.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/lower/Passes.h"
#include "passes/lower/gpu/DeviceLaunches.h"
#include "passes/lower/gpu/MatrixUnits.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;

namespace distc {

#define GEN_PASS_DEF_ATTENTIONKERNELS
#include "passes/lower/Passes.h.inc"

namespace attention {
namespace {

constexpr int64_t kWarp = 32, kWarps = 4, kBlockThreads = kWarp * kWarps;
constexpr int64_t kWarpRows = 16, kBlockRows = kWarpRows * kWarps;
constexpr int64_t kTile = 64;  // rows of the other side in the block's memory
constexpr int64_t kChunk = 16; // of a tile, whose scores are made at once
constexpr int64_t kColumns = 8, kDepth = 16, kVector = 8;
// Powers of two are an instruction.
constexpr double kLog2E = 1.4426950408889634;
/// Of a row's statistics.
constexpr int64_t kMost = 0, kSum = 1;

struct Shape {
  int64_t batch, queries, keys, heads, size;
  SmallVector<int64_t> bias; // its four sizes, or none
  double scale;

  template <typename Op> static Shape of(Op op) {
    auto query = cast<RankedTensorType>(op.getQuery().getType());
    Shape shape = {query.getDimSize(0),
                   query.getDimSize(1),
                   cast<RankedTensorType>(op.getKey().getType()).getDimSize(1),
                   query.getDimSize(2),
                   query.getDimSize(3),
                   {},
                   op.getScale().convertToDouble()};
    if (op.getBias())
      shape.bias = llvm::to_vector(cast<RankedTensorType>(op.getBias().getType()).getShape());
    return shape;
  }

  SmallVector<int64_t> parameters() const {
    SmallVector<int64_t> all = {batch, queries, keys, heads, size, llvm::bit_cast<int64_t>(scale)};
    all.append(bias);
    return all;
  }
  /// Threads of blocks that have the `rows` of each head between them.
  int64_t countThreads(int64_t rows) const {
    return batch * heads * llvm::divideCeil(rows, kBlockRows) * kBlockThreads;
  }
};

/// What the three kernels have in common: the block's rows of `own`, and tiles of the other side.
class AttentionWriter {
public:
  using Values = SmallVector<Value>;
  using Left = MatrixUnits::Left;
  using Result = MatrixUnits::Result;

  /// `rows`: tokens of the block's side, `others`: of the one that it goes through.
  AttentionWriter(ThreadWriter &writer, const Shape &shape, int64_t rows, int64_t others)
      : w(writer), b(writer.b), s(shape), rows(rows), others(others), units(w, w.rem(w.getThread(), kWarp)) {
    const int64_t tiles = llvm::divideCeil(rows, kBlockRows);
    first = w.mul(w.rem(w.getBlock(), tiles), kBlockRows);
    const Value matrix = w.div(w.getBlock(), tiles);
    head = w.rem(matrix, s.heads);
    example = w.div(matrix, s.heads);
    const Value begin = w.add(w.add(first, w.mul(w.div(w.getThread(), kWarp), kWarpRows)), units.getGroup());
    for (int64_t half : {0, 1}) {
      own[half] = w.add(begin, half * kColumns);
      // What is behind the last row computes the last row's numbers, and writes none.
      inside[half] = rows % kBlockRows ? w.less(own[half], w.number(rows)) : Value();
      clamped[half] = inside[half] ? w.min(own[half], w.number(rows - 1)) : own[half];
    }
  }

  /// Where a token's elements of the block's head begin.
  Value getToken(Value token, int64_t tokens) {
    const Value row = w.add(w.mul(example, tokens), token);
    return w.mul(w.add(w.mul(row, s.heads), head), s.size);
  }
  /// Of a number for each row of scores.
  Value getRow(Value query) { return w.add(w.mul(w.add(w.mul(example, s.heads), head), s.queries), query); }

  /// The block's rows of a tensor.
  SmallVector<Left> loadOwn(Value buffer) {
    const Value row[2] = {w.add(getToken(clamped[0], rows), units.getPair()),
                          w.add(getToken(clamped[1], rows), units.getPair())};
    SmallVector<Left> loaded;
    for (int64_t at = 0; at < s.size; at += kDepth)
      loaded.push_back({units.loadPair(buffer, w.add(row[0], at)), units.loadPair(buffer, w.add(row[1], at)),
                        units.loadPair(buffer, w.add(row[0], at + 8)), units.loadPair(buffer, w.add(row[1], at + 8))});
    return loaded;
  }

  /// Sums as multiplyRows and addProducts leave them, to the block's rows of a tensor.
  void storeOwn(ValueRange sums, std::array<Value, 2> factors, Value buffer) {
    for (int64_t half : {0, 1})
      whenInside(half, [&] {
        const Value row = w.add(getToken(own[half], rows), units.getPair());
        for (int64_t column = 0; column < s.size; column += kColumns) {
          const ValueRange pair = sums.slice(column / kColumns * 4 + half * 2, 2);
          units.storePair(multiply(pair[0], factors[half]), multiply(pair[1], factors[half]), buffer,
                          w.add(row, column));
        }
      });
  }

  /// A number for each of the block's queries, the `number`-th of each row: four lanes have a row, one of them writes.
  void storeRows(std::array<Value, 2> values, Value buffer, int64_t number = 0) {
    w.when(w.equal(units.getPair(), w.number(0)), [&] {
      for (int64_t half : {0, 1})
        whenInside(half, [&] { w.store(values[half], buffer, w.add(getRow(own[half]), number * countRows())); });
    });
  }
  std::array<Value, 2> loadRows(Value buffer, int64_t number = 0) {
    return {loadRow(buffer, clamped[0], number), loadRow(buffer, clamped[1], number)};
  }
  Value loadRow(Value buffer, Value query, int64_t number = 0) {
    return w.load(buffer, w.add(getRow(query), number * countRows()));
  }
  int64_t countRows() const { return s.batch * s.heads * s.queries; }

  SharedRows addTile() { return units.addRows(kTile, s.size); }

  /// Rows [begin, begin + kTile) of the other side; what is behind its end becomes zero.
  void loadTile(Value buffer, const SharedRows &tile, Value begin) {
    const auto type = VectorType::get({kVector}, b.getBF16Type());
    const int64_t vectors = s.size / kVector;
    for (int64_t i = 0; i < kTile * vectors; i += kBlockThreads) {
      const Value number = w.add(w.getThread(), i), row = w.div(number, vectors);
      const Value column = w.mul(w.rem(number, vectors), kVector), token = w.add(begin, row);
      const Value isThere = isOther(token);
      const Value at = w.add(getToken(clampOther(token), others), column);
      auto loaded = vector::LoadOp::create(b, type, buffer, ValueRange{at});
      loaded.setAlignment(16);
      Value elements = loaded;
      if (isThere)
        elements = w.select(isThere, elements, arith::ConstantOp::create(b, b.getZeroAttr(type)));
      auto stored =
          vector::StoreOp::create(b, elements, tile.buffer, ValueRange{w.add(w.mul(row, tile.pitch), column)});
      stored.setAlignment(16);
    }
  }

  /// `write` for each tile of the other side, in the block's memory after `load`; all threads are at the same one.
  Values forTiles(ValueRange carried, function_ref<void(Value begin)> load,
                  function_ref<Values(Value begin, ValueRange carried)> write) {
    return w.loop(w.number(0), w.number(llvm::divideCeil(others, kTile)), carried, [&](Value tile, ValueRange now) {
      const Value begin = w.mul(tile, kTile);
      load(begin);
      w.barrier();
      Values next = write(begin, now);
      w.barrier();
      return next;
    });
  }
  Values forChunks(ValueRange carried, function_ref<Values(Value row, ValueRange carried)> write) {
    return w.loop(w.number(0), w.number(kTile / kChunk), carried,
                  [&](Value chunk, ValueRange now) { return write(w.mul(chunk, kChunk), now); });
  }

  /// Whether a token of the other side is there; null where all are.
  Value isOther(Value token) { return others % kTile ? w.less(token, w.number(others)) : Value(); }
  Value clampOther(Value token) { return others % kTile ? w.min(token, w.number(others - 1)) : token; }
  /// The other side's token of element `i` of a result whose first column is `column`.
  Value getOther(Value column, int64_t i) { return w.add(w.add(column, units.getPair()), i % 2); }

  /// Of a score, times log2 e.
  Value scaleScore(Value product, Value bias, Value query, Value key) {
    Value score = multiply(product, units.number(s.scale * kLog2E));
    if (!bias)
      return score;
    Value at = w.number(0);
    for (auto [size, position] : llvm::zip(s.bias, Values{example, head, query, key}))
      at = w.add(w.mul(at, size), size == 1 ? w.number(0) : position);
    return arith::AddFOp::create(b, score, multiply(w.load(bias, at), units.number(kLog2E)));
  }

  void whenInside(int64_t half, function_ref<void()> write) {
    if (inside[half])
      w.when(inside[half], write);
    else
      write();
  }

  Values zeros() { return Values(s.size / kColumns * 4, units.number(0)); }
  Value multiply(Value x, Value y) { return arith::MulFOp::create(b, x, y); }
  Value add(Value x, Value y) { return arith::AddFOp::create(b, x, y); }
  Value subtract(Value x, Value y) { return arith::SubFOp::create(b, x, y); }
  Value power(Value x) { return math::Exp2Op::create(b, x); }
  Value invert(Value x) { return arith::DivFOp::create(b, units.number(1), x); }

  ThreadWriter &w;
  ImplicitLocOpBuilder &b;
  const Shape &s;
  int64_t rows, others;
  MatrixUnits units;
  Value first, head, example;
  std::array<Value, 2> own, clamped, inside; // the lane's rows: g and g + 8
};

/// Operands: query, key, value, bias. Results: output, statistics.
void writeForward(ThreadWriter &writer, const Shape &shape, ValueRange operands, ValueRange results) {
  AttentionWriter a(writer, shape, shape.queries, shape.keys);
  ImplicitLocOpBuilder &b = a.b;
  const Value bias = shape.bias.empty() ? Value() : operands[3];
  const SmallVector<MatrixUnits::Left> query = a.loadOwn(operands[0]);
  const SharedRows keys = a.addTile(), values = a.addTile();
  const Value zero = a.units.number(0), none = a.units.number(-std::numeric_limits<double>::infinity());

  // Of both rows: the largest score so far, and the lane's part of the sum of exponentials; then the output.
  SmallVector<Value> start = {none, none, zero, zero};
  start.append(a.zeros());
  SmallVector<Value> end = a.forTiles(
      start,
      [&](Value begin) {
        a.loadTile(operands[1], keys, begin);
        a.loadTile(operands[2], values, begin);
      },
      [&](Value begin, ValueRange now) {
        SmallVector<MatrixUnits::Result> scores;
        std::array<Value, 2> most = {now[0], now[1]};
        for (int64_t column = 0; column < kTile; column += kColumns) {
          const Value row = writer.number(column);
          MatrixUnits::Result score = a.units.multiplyRows(query, keys, row);
          for (int64_t i = 0; i < 4; ++i) {
            const Value key = a.getOther(writer.add(begin, column), i), isThere = a.isOther(key);
            score[i] = a.scaleScore(score[i], bias, a.clamped[i / 2], a.clampOther(key));
            if (isThere)
              score[i] = writer.select(isThere, score[i], none);
            most[i / 2] = arith::MaximumFOp::create(b, most[i / 2], score[i]);
          }
          scores.push_back(score);
        }
        SmallVector<Value> next(now.begin(), now.end());
        std::array<Value, 2> shift;
        for (int64_t half : {0, 1}) {
          next[half] = a.units.maximumOfRow(most[half]);
          // A row whose scores are all minus infinity so far has no exponential yet.
          Value isNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ, next[half], none);
          shift[half] = writer.select(isNone, zero, next[half]);
          const Value kept = a.power(a.subtract(now[half], shift[half]));
          next[2 + half] = a.multiply(now[2 + half], kept);
          for (size_t at = 4 + 2 * half; at < next.size(); at += 4)
            for (size_t i : {at, at + 1})
              next[i] = a.multiply(next[i], kept);
        }
        for (MatrixUnits::Result &score : scores)
          for (int64_t i = 0; i < 4; ++i) {
            score[i] = a.power(a.subtract(score[i], shift[i / 2]));
            next[2 + i / 2] = a.add(next[2 + i / 2], score[i]);
          }
        for (int64_t row = 0; row < kTile; row += kDepth) {
          const MatrixUnits::Result &one = scores[row / kColumns], &other = scores[row / kColumns + 1];
          a.units.addProducts(MutableArrayRef(next).drop_front(4),
                              {a.units.pack(one[0], one[1]), a.units.pack(one[2], one[3]),
                               a.units.pack(other[0], other[1]), a.units.pack(other[2], other[3])},
                              values, writer.number(row));
        }
        return next;
      });
  std::array<Value, 2> factors, sums;
  for (int64_t half : {0, 1}) {
    sums[half] = a.units.sumOfRow(end[2 + half]);
    factors[half] = a.invert(sums[half]);
  }
  a.storeOwn(ValueRange(end).drop_front(4), factors, results[0]);
  a.storeRows({end[0], end[1]}, results[1], kMost);
  a.storeRows(sums, results[1], kSum);
}

/// Of one element: its probability, from its score and its row's largest, both times log2 e, and one over its row's
/// sum; zero where there is none.
Value writeProbability(AttentionWriter &a, Value score, Value most, Value factor, Value isThere) {
  // Nothing is above the largest, should this score have been rounded otherwise.
  const Value below = arith::MinimumFOp::create(a.b, a.subtract(score, most), a.units.number(0));
  const Value probability = a.multiply(a.power(below), factor);
  return isThere ? a.w.select(isThere, probability, a.units.number(0)) : probability;
}

/// Operands: query, key, value, bias, statistics, output_grad, output. Results: query_grad, dots.
void writeQueryGradient(ThreadWriter &writer, const Shape &shape, ValueRange operands, ValueRange results) {
  AttentionWriter a(writer, shape, shape.queries, shape.keys);
  const Value bias = shape.bias.empty() ? Value() : operands[3];
  const ValueRange rest = operands.drop_front(shape.bias.empty() ? 3 : 4);
  const SmallVector<MatrixUnits::Left> query = a.loadOwn(operands[0]), grad = a.loadOwn(rest[1]),
                                       output = a.loadOwn(rest[2]);
  const SharedRows keys = a.addTile(), values = a.addTile();
  const std::array<Value, 2> most = a.loadRows(rest[0], kMost), sums = a.loadRows(rest[0], kSum),
                             factors = {a.invert(sums[0]), a.invert(sums[1])};
  std::array<Value, 2> dots = {a.units.number(0), a.units.number(0)};
  for (auto [one, other] : llvm::zip(output, grad))
    for (int64_t i = 0; i < 4; ++i) {
      const std::array<Value, 2> x = a.units.unpack(one[i]), y = a.units.unpack(other[i]);
      for (int64_t j : {0, 1})
        dots[i % 2] = a.add(dots[i % 2], a.multiply(x[j], y[j]));
    }
  for (int64_t half : {0, 1})
    dots[half] = a.units.sumOfRow(dots[half]);
  a.storeRows(dots, results[1]);

  SmallVector<Value> end = a.forTiles(
      a.zeros(),
      [&](Value begin) {
        a.loadTile(operands[1], keys, begin);
        a.loadTile(operands[2], values, begin);
      },
      [&](Value begin, ValueRange carried) {
        return a.forChunks(carried, [&](Value row, ValueRange now) {
          MatrixUnits::Result gradients[2];
          for (int64_t part : {0, 1}) {
            const Value column = writer.add(row, part * kColumns);
            MatrixUnits::Result score = a.units.multiplyRows(query, keys, column);
            const MatrixUnits::Result ofProbability = a.units.multiplyRows(grad, values, column);
            for (int64_t i = 0; i < 4; ++i) {
              const Value key = a.getOther(writer.add(begin, column), i);
              const Value probability =
                  writeProbability(a, a.scaleScore(score[i], bias, a.clamped[i / 2], a.clampOther(key)), most[i / 2],
                                   factors[i / 2], a.isOther(key));
              gradients[part][i] = a.multiply(probability, a.subtract(ofProbability[i], dots[i / 2]));
            }
          }
          SmallVector<Value> next(now.begin(), now.end());
          a.units.addProducts(
              next,
              {a.units.pack(gradients[0][0], gradients[0][1]), a.units.pack(gradients[0][2], gradients[0][3]),
               a.units.pack(gradients[1][0], gradients[1][1]), a.units.pack(gradients[1][2], gradients[1][3])},
              keys, row);
          return next;
        });
      });
  const Value scale = a.units.number(shape.scale);
  a.storeOwn(end, {scale, scale}, results[0]);
}

/// Operands: query, key, value, bias, statistics, output_grad, dots. Results: key_grad, value_grad.
void writeKeyValueGradient(ThreadWriter &writer, const Shape &shape, ValueRange operands, ValueRange results) {
  AttentionWriter a(writer, shape, shape.keys, shape.queries);
  const Value bias = shape.bias.empty() ? Value() : operands[3];
  const ValueRange rest = operands.drop_front(shape.bias.empty() ? 3 : 4);
  const SmallVector<MatrixUnits::Left> key = a.loadOwn(operands[1]), value = a.loadOwn(operands[2]);
  const SharedRows queries = a.addTile(), grads = a.addTile();
  SmallVector<Value> start = a.zeros(); // of the key's gradient, then of the value's
  const auto half = static_cast<int64_t>(start.size());
  start.append(a.zeros());

  SmallVector<Value> end = a.forTiles(
      start,
      [&](Value begin) {
        a.loadTile(operands[0], queries, begin);
        a.loadTile(rest[1], grads, begin);
      },
      [&](Value begin, ValueRange carried) {
        return a.forChunks(carried, [&](Value row, ValueRange now) {
          MatrixUnits::Result probabilities[2], gradients[2];
          for (int64_t part : {0, 1}) {
            const Value column = writer.add(row, part * kColumns);
            MatrixUnits::Result score = a.units.multiplyRows(key, queries, column);
            const MatrixUnits::Result ofProbability = a.units.multiplyRows(value, grads, column);
            for (int64_t i = 0; i < 4; ++i) {
              const Value query = a.getOther(writer.add(begin, column), i), known = a.clampOther(query);
              const Value most = a.loadRow(rest[0], known, kMost), factor = a.invert(a.loadRow(rest[0], known, kSum));
              const Value dot = a.loadRow(rest[2], known);
              probabilities[part][i] = writeProbability(a, a.scaleScore(score[i], bias, known, a.clamped[i / 2]), most,
                                                        factor, a.isOther(query));
              gradients[part][i] = a.multiply(probabilities[part][i], a.subtract(ofProbability[i], dot));
            }
          }
          auto pack = [&](MatrixUnits::Result(&parts)[2]) -> MatrixUnits::Left {
            return {a.units.pack(parts[0][0], parts[0][1]), a.units.pack(parts[0][2], parts[0][3]),
                    a.units.pack(parts[1][0], parts[1][1]), a.units.pack(parts[1][2], parts[1][3])};
          };
          SmallVector<Value> next(now.begin(), now.end());
          a.units.addProducts(MutableArrayRef(next).take_front(half), pack(gradients), queries, row);
          a.units.addProducts(MutableArrayRef(next).drop_front(half), pack(probabilities), grads, row);
          return next;
        });
      });
  const Value scale = a.units.number(shape.scale), one = a.units.number(1);
  a.storeOwn(ValueRange(end).take_front(half), {scale, scale}, results[0]);
  a.storeOwn(ValueRange(end).drop_front(half), {one, one}, results[1]);
}

using WriteFn = void (*)(ThreadWriter &, const Shape &, ValueRange, ValueRange);

} // namespace
} // namespace attention

namespace {

struct AttentionKernels : impl::AttentionKernelsBase<AttentionKernels> {
  void runOnOperation() override {
    DeviceLaunches launches(getOperation(), "attention");
    for (drt::EntryOp entry : getEntries(getOperation()))
      for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
        if (auto forward = dyn_cast<drt::AttentionOp>(op))
          launch(launches, forward, "forward", attention::Shape::of(forward).queries, attention::writeForward);
        else if (auto gradient = dyn_cast<drt::AttentionQueryGradientOp>(op))
          launch(launches, gradient, "query_gradient", attention::Shape::of(gradient).queries,
                 attention::writeQueryGradient);
        else if (auto gradient = dyn_cast<drt::AttentionKeyValueGradientOp>(op))
          launch(launches, gradient, "key_value_gradient", attention::Shape::of(gradient).keys,
                 attention::writeKeyValueGradient);
      }
  }

  template <typename Op>
  void launch(DeviceLaunches &launches, Op op, StringRef name, int64_t rows, attention::WriteFn write) {
    const attention::Shape shape = attention::Shape::of(op);
    ImplicitLocOpBuilder b(op.getLoc(), op);
    SmallVector<RankedTensorType> results;
    for (Type type : op->getResultTypes())
      results.push_back(cast<RankedTensorType>(type));
    SmallVector<Value> made =
        launches.launch(b, name, shape.parameters(), results, op->getOperands(), shape.countThreads(rows),
                        attention::kBlockThreads, [&](ThreadWriter &writer, ValueRange operands, ValueRange buffers) {
                          write(writer, shape, operands, buffers);
                        });
    cast<drt::LaunchOp>(made.front().getDefiningOp()).setAtAttr(op.getAtAttr());
    op->replaceAllUsesWith(made);
    op->erase();
  }
};

} // namespace
} // namespace distc
