//===- SortedRows.cpp - Rows by index, sorted for threads ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/SortedRows.h"

#include "passes/lower/TensorType.h"
#include "passes/lower/plan/Addresses.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace distc {
namespace {

/// Elements that a block sorts, and sums up.
constexpr int64_t kTile = 512;
/// Runs that one launch merges: a thread searches each of them.
constexpr int64_t kMostRuns = 16;

RankedTensorType sortedType(int64_t count, Type word) { return RankedTensorType::get({2, count}, word); }

/// Positions and rows in 32 bits where they fit.
Type getWord(OpBuilder &b, int64_t count, int64_t rows) {
  const int64_t most = std::numeric_limits<int32_t>::max();
  return count < most && rows < most ? b.getI32Type() : b.getI64Type();
}

} // namespace

// ---- Sorting --------------------------------------------------------------------------------------

Sorted RowSorter::sort(ImplicitLocOpBuilder &b, StringRef name, Value operand, int64_t count, Type word,
                       ArrayRef<int64_t> parameters, KeyFn key) {
  const int64_t tile = std::clamp<int64_t>(llvm::PowerOf2Ceil(count), 32, kTile);
  Sorted sorted = sortTiles(b, name, operand, count, word, tile, parameters, key);
  // As few launches as there can be, each merging about as many runs.
  const auto doublings = static_cast<int64_t>(llvm::Log2_64_Ceil(llvm::divideCeil(count, tile)));
  int64_t launchesLeft = llvm::divideCeil(doublings, llvm::Log2_64(kMostRuns));
  int64_t length = tile;
  for (int64_t left = doublings; left > 0; --launchesLeft) {
    const int64_t taken = llvm::divideCeil(left, launchesLeft);
    sorted = merge(b, sorted, length, int64_t(1) << taken);
    length <<= taken;
    left -= taken;
  }
  return sorted;
}

/// Where a key goes is how many of its tile come before it.
Sorted RowSorter::sortTiles(ImplicitLocOpBuilder &b, StringRef name, Value operand, int64_t count, Type word,
                            int64_t tile, ArrayRef<int64_t> parameters, KeyFn key) {
  SmallVector<int64_t> all = {tile};
  llvm::append_range(all, parameters);
  RankedTensorType type = sortedType(count, word);
  auto write = [&](ThreadWriter &w, ValueRange operands, ValueRange results) {
    Value keys = w.addShared(tile, word);
    Value thread = w.getThread(), base = w.mul(w.getBlock(), tile), at = w.add(base, thread);
    Value isThere = w.isInside(at, count);
    Value mine = w.when(isThere, w.constant(word, 0), [&] { return ThreadWriter::Values{key(w, operands[0], at)}; })[0];
    w.store(mine, keys, thread);
    w.barrier();
    Value one = w.number(1), none = w.number(0);
    w.when(isThere, [&] {
      Value inTile = w.min(w.number(tile), w.sub(w.number(count), base));
      Value place = w.loop(none, inTile, none, [&](Value other, ValueRange carried) {
        Value theirs = w.load(keys, other);
        Value isBefore = w.either(w.less(theirs, mine), w.both(w.equal(theirs, mine), w.less(other, thread)));
        return ThreadWriter::Values{w.add(carried[0], w.select(isBefore, one, none))};
      })[0];
      place = w.add(base, place);
      w.store(mine, results[0], place);
      w.store(w.fromIndex(word, at), results[0], w.add(place, count));
    });
  };
  return {launches.launch(b, ("sort_" + name).str(), all, type, operand, count, tile, write)[0], count};
}

/// Where a key goes is how many come before it in each of the runs: of equal ones those of earlier runs.
Sorted RowSorter::merge(ImplicitLocOpBuilder &b, Sorted runs, int64_t length, int64_t runsEach) {
  const int64_t count = runs.count, threads = 256;
  auto write = [&](ThreadWriter &w, ValueRange operands, ValueRange results) {
    Value at = w.getNumber();
    w.when(w.isInside(at, count), [&] {
      Value mine = w.load(operands[0], at), run = w.div(at, length);
      Value firstRun = w.mul(w.div(run, runsEach), runsEach);
      Value place = w.loop(w.number(0), w.number(runsEach), w.mul(firstRun, length), [&](Value i, ValueRange carried) {
        Value other = w.add(firstRun, i), begin = w.min(w.mul(other, length), w.number(count));
        Value size = w.min(w.number(length), w.sub(w.number(count), begin));
        Value isEarlier = w.less(other, run);
        Value before = w.search(operands[0], begin, size, std::min(length, count), count, [&](Value key) {
          return w.either(w.less(key, mine), w.both(isEarlier, w.equal(key, mine)));
        });
        Value own = w.sub(at, begin); // those before it in its own run
        return ThreadWriter::Values{w.add(carried[0], w.select(w.equal(other, run), own, before))};
      })[0];
      w.store(mine, results[0], place);
      w.store(w.load(operands[0], w.add(at, count)), results[0], w.add(place, count));
    });
  };
  RankedTensorType type = typeOf(runs.tensor);
  return {launches.launch(b, "merge", {length, runsEach}, type, runs.tensor, count, threads, write)[0], count};
}

// ---- Indices --------------------------------------------------------------------------------------

Value RowSorter::writeRow(ThreadWriter &w, Value indices, Value at, ArrayRef<int64_t> sizes, Type word) {
  Value row = w.number(0), isInside = w.constant(w.b.getI1Type(), 1);
  const auto depth = static_cast<int64_t>(sizes.size());
  for (auto [axis, size] : llvm::enumerate(sizes)) {
    Value index = w.load(indices, w.add(w.mul(at, depth), static_cast<int64_t>(axis)));
    isInside = w.both(isInside, w.isInside(index, size));
    row = w.add(w.mul(row, size), w.toIndex(index));
  }
  return w.select(isInside, w.fromIndex(word, row), w.constant(word, -1));
}

Sorted RowSorter::sortIndices(ImplicitLocOpBuilder &b, Value indices, ArrayRef<int64_t> sizes) {
  const int64_t count = typeOf(indices).getNumElements() / static_cast<int64_t>(sizes.size());
  Type word = getWord(b, count, llvm::product_of(sizes));
  return sort(b, "rows", indices, count, word, sizes,
              [&](ThreadWriter &w, Value x, Value at) { return writeRow(w, x, at, sizes, word); });
}

Segments RowSorter::getSegments(ImplicitLocOpBuilder &b, Value indices, ArrayRef<int64_t> sizes) {
  auto found = known.find(getStorage(indices));
  if (found != known.end() && sizes.size() == 1 && sizes[0] == found->second.ends)
    return found->second;
  Sorted sorted = sortIndices(b, indices, sizes);
  const int64_t rows = llvm::product_of(sizes), count = sorted.count, threads = 256;
  auto write = [&](ThreadWriter &w, ValueRange operands, ValueRange results) {
    Value row = w.getNumber();
    w.when(w.isInside(row, rows + 1), [&] {
      Value wanted = w.fromIndex(sorted.getWord(), row);
      Value begin = w.search(operands[0], w.number(0), w.number(count), count, count,
                             [&](Value key) { return w.less(key, wanted); });
      w.store(w.fromIndex(sorted.getWord(), begin), results[0], row);
    });
  };
  auto type = RankedTensorType::get({rows + 1}, sorted.getWord());
  return {sorted, launches.launch(b, "segments", rows, type, sorted.tensor, rows + 1, threads, write)[0], 1};
}

// ---- Distinct values ------------------------------------------------------------------------------

SmallVector<Value> RowSorter::countMarked(ImplicitLocOpBuilder &b, Value first, int64_t count) {
  SmallVector<Value> levels;
  Type word = typeOf(first).getElementType();
  Value last = first;
  for (bool isFirst = true; isFirst || count > 1; isFirst = false) {
    const int64_t tiles = llvm::divideCeil(count, kTile);
    auto write = [&](ThreadWriter &w, ValueRange operands, ValueRange results) {
      Value sums = w.addShared(kTile, word);
      Value thread = w.getThread(), at = w.getNumber(), none = w.constant(word, 0);
      Value isThere = w.isInside(at, count);
      Value mine = w.when(isThere, none, [&] {
        Value found = w.load(operands[0], at);
        if (isFirst)
          found = w.select(w.equal(w.toIndex(found), at), w.constant(word, 1), none);
        return ThreadWriter::Values{found};
      })[0];
      Value sum = mine;
      w.store(sum, sums, thread);
      for (int64_t step = 1; step < kTile; step *= 2) {
        w.barrier();
        Value isBehind = w.lessOrEqual(w.number(step), thread);
        Value other = w.load(sums, w.select(isBehind, w.sub(thread, w.number(step)), thread));
        sum = w.add(sum, w.select(isBehind, other, none));
        w.barrier();
        w.store(sum, sums, thread);
      }
      w.when(isThere, [&] { w.store(w.sub(sum, mine), results[0], at); });
      w.when(w.equal(thread, w.number(kTile - 1)), [&] { w.store(sum, results[1], w.getBlock()); });
    };
    SmallVector<Value> made = launches.launch(
        b, "count", isFirst, {RankedTensorType::get({count}, word), RankedTensorType::get({tiles}, word)}, last, count,
        kTile, write);
    levels.push_back(made[0]);
    last = made[1];
    count = tiles;
  }
  levels.push_back(last);
  return levels;
}

Value RowSorter::writePrefix(ThreadWriter &w, ValueRange levels, Value at) {
  Value sum = w.number(0);
  for (Value level : levels) {
    sum = w.add(sum, w.toIndex(w.load(level, at)));
    at = w.div(at, kTile);
  }
  return sum;
}

void RowSorter::replaceUnique(drt::UniqueOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  RankedTensorType x = typeOf(op.getX());
  const int64_t count = x.getNumElements(), threads = 256;
  if (count == 0) {
    for (Value result : op.getResults())
      result.replaceAllUsesWith(drt::EmptyOp::create(b, result.getType(), DenseI64ArrayAttr()));
    op.erase();
    return;
  }
  // The value itself is the key.
  Type word = getWord(b, count, 0);
  if (x.getElementTypeBitWidth() > word.getIntOrFloatBitWidth())
    word = x.getElementType();
  Sorted sorted = sort(b, "values", op.getX(), count, word, {}, [&](ThreadWriter &w, Value buffer, Value at) {
    Value value = w.load(buffer, at);
    return value.getType() == word ? value : arith::ExtSIOp::create(w.b, word, value).getResult();
  });

  // Of each position: where its value occurs first; and where its segment begins and ends.
  auto writeFirst = [&](ThreadWriter &w, ValueRange operands, ValueRange results) {
    Value at = w.getNumber(), all = w.number(count), none = w.number(0);
    w.when(w.isInside(at, count), [&] {
      Value mine = w.load(operands[0], at);
      auto search = [&](auto isBefore) { return w.search(operands[0], none, all, count, count, isBefore); };
      Value begin = search([&](Value key) { return w.less(key, mine); });
      Value end = search([&](Value key) { return w.lessOrEqual(key, mine); });
      Value position = w.toIndex(w.load(operands[0], w.add(at, count)));
      w.store(w.load(operands[0], w.add(begin, count)), results[0], position);
      w.store(w.fromIndex(word, begin), results[1], position);
      w.store(w.fromIndex(word, end), results[1], w.add(position, count));
    });
  };
  SmallVector<Value> found =
      launches.launch(b, "first", {}, {RankedTensorType::get({count}, word), sortedType(count, word)}, sorted.tensor,
                      count, threads, writeFirst);
  SmallVector<Value> levels = countMarked(b, found[0], count);

  // Values are numbered as they occur first. Behind the last of them is padding, which has no segment.
  auto write = [&](ThreadWriter &w, ValueRange operands, ValueRange results) {
    Value at = w.getNumber();
    ValueRange prefix = operands.drop_front(3).drop_back();
    w.when(w.isInside(at, count), [&] {
      Type index = typeOf(op.getIdx()).getElementType();
      auto put = [&](Value value, Value place, Value begin, Value end) {
        w.store(value, results[0], place);
        w.store(w.fromIndex(index, w.sub(w.toIndex(end), w.toIndex(begin))), results[2], place);
        w.store(begin, results[3], place);
        w.store(end, results[3], w.add(place, count));
      };
      Value first = w.toIndex(w.load(operands[1], at)), number = writePrefix(w, prefix, first);
      w.store(w.fromIndex(index, number), results[1], at);
      w.when(w.equal(first, at), [&] {
        put(w.load(operands[0], at), number, w.load(operands[2], at), w.load(operands[2], w.add(at, count)));
      });
      Value distinct = w.toIndex(w.load(operands.back(), w.number(0))), none = w.constant(word, 0);
      w.when(w.lessOrEqual(distinct, at), [&] { put(w.constant(x.getElementType(), -1), at, none, none); });
    });
  };
  SmallVector<Value> operands = {op.getX(), found[0], found[1]};
  llvm::append_range(operands, levels);
  SmallVector<RankedTensorType> types = {typeOf(op.getY()), typeOf(op.getIdx()), typeOf(op.getCount()),
                                         sortedType(count, word)};
  SmallVector<Value> made = launches.launch(b, "unique", {}, types, operands, count, threads, write);
  for (auto [before, now] : llvm::zip(op.getResults(), made))
    before.replaceAllUsesWith(now);
  op.erase();
  known[made[1]] = {sorted, made[3], count};
  distinct.insert(made[0]);
}

bool RowSorter::isDistinct(Value indices) const { return distinct.contains(getStorage(indices)); }

} // namespace distc
