//===- HashIntegers.cpp - Buckets of integers by the hash of their decimal digits ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/SourceAttributes.h"
#include "mlir/IR/Builders.h"
#include "passes/rewrite/Passes.h"
#include <map>

using namespace mlir;

namespace distc::rewrite {
#define GEN_PASS_DEF_HASHINTEGERS
#include "passes/rewrite/Passes.h.inc"

namespace {

/// Words of 64 bits, one for each element of a tensor, as nodes.
class Words {
public:
  Words(OpBuilder &builder, StringRef name, TensorType of)
      : builder(builder), name(name), word(builder.getI64Type()), words(of.clone(word)),
        truths(of.clone(builder.getI1Type())) {}

  Value constant(uint64_t value) {
    Value &known = constants[value];
    if (!known) {
      auto type = RankedTensorType::get({}, word);
      known = dfg::ConstOp::create(builder, locate(), type,
                                   DenseElementsAttr::get(type, APInt(64, value, /*isSigned=*/false)))
                  .getResult();
    }
    return known;
  }
  Value cast(Value x) { return make<dfg::CastOp>(x, words); }
  Value add(Value x, Value y) { return make<dfg::AddV2Op>({x, y}, words); }
  Value sub(Value x, Value y) { return make<dfg::SubOp>({x, y}, words); }
  Value mul(Value x, Value y) { return make<dfg::MulOp>({x, y}, words); }
  Value mul(Value x, uint64_t y) { return mul(x, constant(y)); }
  Value abs(Value x) { return make<dfg::AbsOp>(x, words); }
  Value quotient(Value x, uint64_t y) { return make<dfg::TruncateDivOp>({x, constant(y)}, words); }
  Value remainder(Value x, uint64_t y) { return make<dfg::TruncateModOp>({x, constant(y)}, words); }
  Value bitXor(Value x, Value y) { return make<dfg::BitwiseXorOp>({x, y}, words); }
  Value bitOr(Value x, Value y) { return make<dfg::BitwiseOrOp>({x, y}, words); }
  Value bitAnd(Value x, uint64_t mask) { return make<dfg::BitwiseAndOp>({x, constant(mask)}, words); }
  Value left(Value x, Value by) { return make<dfg::LeftShiftOp>({x, by}, words); }
  /// By 0 to 63 bits. Zeros follow, where RightShift brings in copies of the sign.
  Value right(Value x, Value by) {
    Value all = constant(~uint64_t(0)), above = left(left(all, sub(constant(63), by)), constant(1));
    return make<dfg::BitwiseAndOp>({make<dfg::RightShiftOp>({x, by}, words), bitXor(above, all)}, words);
  }
  Value right(Value x, unsigned by) {
    return bitAnd(make<dfg::RightShiftOp>({x, constant(by)}, words), ~uint64_t(0) >> by);
  }
  Value rotate(Value x, unsigned by) { return bitOr(right(x, by), left(x, constant(64 - by))); }
  Value equal(Value x, uint64_t y) { return make<dfg::EqualOp>({x, constant(y)}, truths); }
  Value less(Value x, Value y) { return make<dfg::LessOp>({x, y}, truths); }
  Value less(Value x, uint64_t y) { return less(x, constant(y)); }
  Value both(Value x, Value y) { return make<dfg::LogicalAndOp>({x, y}, truths); }
  Value select(Value condition, Value x, Value y) { return make<dfg::SelectV2Op>({condition, x, y}, words); }

private:
  template <typename Op> Value make(ValueRange operands, Type type) {
    OperationState state(locate(), Op::getOperationName(), operands, type);
    return builder.create(state)->getResult(0);
  }
  Location locate() { return NameLoc::get(builder.getStringAttr(name + "/" + Twine(count++))); }

  OpBuilder &builder;
  std::string name;
  Type word;
  TensorType words, truths;
  unsigned count = 0;
  std::map<uint64_t, Value> constants;
};

/// The decimal digits of integers as AsString writes them. They are bytes of words, the last one the highest byte of
/// the last word: so what is at a string's end is the same whatever its length.
class Digits {
public:
  Digits(Words &w, Value x, unsigned bits) : w(w) {
    const unsigned mostDigits = bits == 64 ? 19 : bits == 32 ? 10 : bits == 16 ? 5 : 3;
    mostCharacters = mostDigits + 1;
    Value rest = w.cast(x), isNegative = w.less(rest, uint64_t(0));
    SmallVector<Value> digits, isAbsent;
    digitCount = w.constant(0);
    for (unsigned place = 0; place < mostDigits; ++place) {
      // The lowest integer has no opposite: the digits of negative ones are negative until then.
      digits.push_back(w.add(w.abs(w.remainder(rest, 10)), w.constant('0')));
      Value isZero = w.equal(rest, 0);
      isAbsent.push_back(isZero);
      digitCount = place == 0 ? w.constant(1) : w.select(isZero, digitCount, w.constant(place + 1));
      rest = w.quotient(rest, 10);
    }
    length = w.select(isNegative, w.add(digitCount, w.constant(1)), digitCount);
    for (Value &word : last)
      word = w.constant(0);
    for (unsigned place = 0; place < mostCharacters; ++place) {
      Value sign = w.select(w.both(isNegative, w.equal(digitCount, place)), w.constant('-'), w.constant(0));
      Value character = place == 0            ? digits[0]
                        : place == mostDigits ? sign
                                              : w.select(isAbsent[place], sign, digits[place]);
      Value &word = last[place / 8];
      word = w.bitOr(word, w.left(character, w.constant(8 * (7 - place % 8))));
    }
  }

protected:
  /// As many bits as `bytes` has of them.
  Value bits(Value bytes) { return w.left(bytes, w.constant(3)); }
  /// Eight bytes from byte `offset`, 0 to 8, of two words on.
  Value load(Value low, Value high, Value offset) {
    Value by = bits(offset);
    Value joined = w.bitOr(w.right(low, by), w.left(w.left(high, w.constant(1)), w.sub(w.constant(63), by)));
    return w.select(w.equal(offset, 8), high, joined);
  }

  Words &w;
  unsigned mostCharacters;
  Value digitCount, length;
  Value last[3]; // the last word first
};

/// FarmHash's Fingerprint64 (farmhashna::Hash64 of google/farmhash), as StringToHashBucketFast has it.
class Fingerprints : Digits {
public:
  using Digits::Digits;

  Value make() {
    Value hash = w.select(w.less(length, 4), upTo3(), from4To7());
    if (mostCharacters >= 8)
      hash = w.select(w.less(length, 8), hash, from8To16());
    if (mostCharacters > 16)
      hash = w.select(w.less(length, 17), hash, from17To32());
    return hash;
  }

private:
  static constexpr uint64_t k0 = 0xc3a5c85c97cb3127, k1 = 0xb492b66fbe98f273, k2 = 0x9ae16a3b2f90404f;

  Value shiftMix(Value v) { return w.bitXor(v, w.right(v, 47)); }
  Value hashLength16(Value u, Value v, Value mul) {
    Value a = shiftMix(w.mul(w.bitXor(u, v), mul));
    return w.mul(shiftMix(w.mul(w.bitXor(v, a), mul)), mul);
  }
  Value mulOfLength() { return w.add(w.constant(k2), w.mul(length, 2)); }

  Value upTo3() {
    Value begin = w.sub(w.constant(8), length);
    auto character = [&](Value place) { return w.bitAnd(w.right(last[0], bits(w.add(begin, place))), 0xff); };
    Value a = character(w.constant(0)), b = character(w.right(length, 1)), c = w.right(last[0], 56);
    Value y = w.add(a, w.left(b, w.constant(8))), z = w.add(length, w.left(c, w.constant(2)));
    return w.mul(shiftMix(w.bitXor(w.mul(y, k2), w.mul(z, k0))), k2);
  }
  Value from4To7() {
    Value a = w.bitAnd(w.right(last[0], bits(w.sub(w.constant(8), length))), 0xffffffff);
    return hashLength16(w.add(length, w.left(a, w.constant(3))), w.right(last[0], 32), mulOfLength());
  }
  Value from8To16() {
    Value mul = mulOfLength(), b = last[0];
    Value a = w.add(load(last[1], last[0], w.sub(w.constant(16), length)), w.constant(k2));
    Value c = w.add(w.mul(w.rotate(b, 37), mul), a), d = w.mul(w.add(w.rotate(a, 25), b), mul);
    return hashLength16(c, d, mul);
  }
  Value from17To32() {
    Value mul = mulOfLength(), begin = w.sub(w.constant(24), length);
    Value a = w.mul(load(last[2], last[1], begin), k1), b = load(last[1], last[0], begin);
    Value c = w.mul(last[0], mul), d = w.mul(last[1], k2);
    return hashLength16(w.add(w.add(w.rotate(w.add(a, b), 43), w.rotate(c, 30)), d),
                        w.add(w.add(a, w.rotate(w.add(b, w.constant(k2)), 18)), c), mul);
  }
};

/// SipHash-2-4 (Aumasson and Bernstein, SipHash: a fast short-input PRF, 2012), as StringToHashBucketStrong has it by
/// its key.
class KeyedHashes : Digits {
public:
  using Digits::Digits;

  Value make(uint64_t key0, uint64_t key1) {
    Value a = w.constant(key0), b = w.constant(key1);
    State state = {w.bitXor(a, w.constant(0x736f6d6570736575)), w.bitXor(b, w.constant(0x646f72616e646f6d)),
                   w.bitXor(a, w.constant(0x6c7967656e657261)), w.bitXor(b, w.constant(0x7465646279746573))};
    // The last word has the length in its highest byte, and is there also where nothing else is left for it.
    Value wholeWords = w.right(length, 3), lengthByte = w.left(length, w.constant(56));
    for (unsigned word = 0; word <= mostCharacters / 8; ++word) {
      Value isLast = w.equal(wholeWords, word);
      Value text = fromStart(word);
      State next = state;
      absorb(next, w.select(isLast, w.bitOr(text, lengthByte), text));
      Value isThere = w.less(wholeWords, word);
      for (auto [old, made] : llvm::zip(state, next))
        old = word == 0 ? made : w.select(isThere, old, made);
    }
    state[2] = w.bitXor(state[2], w.constant(0xff));
    for (unsigned i = 0; i < 4; ++i)
      mix(state);
    return w.bitXor(w.bitXor(state[0], state[1]), w.bitXor(state[2], state[3]));
  }

private:
  using State = std::array<Value, 4>;

  /// Word `index` of the string, zeros behind its end.
  Value fromStart(unsigned index) {
    // By how many words the string has, begun ones too.
    Value found = w.constant(0);
    for (unsigned words = index + 1; words <= (mostCharacters + 7) / 8; ++words) {
      const unsigned at = words - 1 - index; // as `last` counts
      Value offset = w.sub(w.constant(8 * words), length);
      Value here = at == 0 ? w.right(last[0], bits(offset)) : load(last[at], last[at - 1], offset);
      Value isLonger = w.less(w.constant(8 * (words - 1)), length);
      found = w.select(isLonger, here, found);
    }
    return found;
  }
  void absorb(State &v, Value word) {
    v[3] = w.bitXor(v[3], word);
    mix(v);
    mix(v);
    v[0] = w.bitXor(v[0], word);
  }
  Value rotateLeft(Value x, unsigned by) { return w.rotate(x, 64 - by); }
  void mix(State &v) {
    v[0] = w.add(v[0], v[1]);
    v[2] = w.add(v[2], v[3]);
    v[1] = w.bitXor(rotateLeft(v[1], 13), v[0]);
    v[3] = w.bitXor(rotateLeft(v[3], 16), v[2]);
    v[0] = rotateLeft(v[0], 32);
    v[2] = w.add(v[2], v[1]);
    v[0] = w.add(v[0], v[3]);
    v[1] = w.bitXor(rotateLeft(v[1], 17), v[2]);
    v[3] = w.bitXor(rotateLeft(v[3], 21), v[0]);
    v[2] = rotateLeft(v[2], 32);
  }
};

/// Whether `op` writes integers as they are, without padding.
bool writesIntegers(dfg::OpaqueOp op) {
  if (!op || op.getOp() != "AsString" || op->getNumOperands() != 1)
    return false;
  auto type = llvm::dyn_cast<TensorType>(op->getOperand(0).getType());
  auto width = dfg::getSourceAttribute<IntegerAttr>(op, "width");
  auto fill = dfg::getSourceAttribute<StringAttr>(op, "fill");
  return type && type.getElementType().isSignlessInteger() && type.getElementTypeBitWidth() >= 8 &&
         (!width || width.getValue().getSExtValue() == -1) && (!fill || fill.getValue().empty());
}

/// As many buckets as there can be, so that twice a remainder is positive.
constexpr int64_t kMostBuckets = int64_t(1) << 61;

/// The remainder of a number without a sign: of twice that of its upper 63 bits, and the last one.
Value makeBucket(Words &w, Value number, uint64_t count) {
  Value twice = w.mul(w.remainder(w.right(number, 1), count), 2);
  return w.remainder(w.add(twice, w.bitAnd(number, 1)), count);
}

/// `key`: two words of a keyed hash; none: a fingerprint.
void replaceHash(dfg::OpaqueOp hash, Value x, uint64_t count, ArrayRef<int64_t> key) {
  OpBuilder builder(hash);
  auto type = llvm::cast<TensorType>(x.getType());
  const unsigned bits = type.getElementTypeBitWidth();
  Words w(builder, dfg::getNodeName(hash), type);
  Value number = key.empty() ? Fingerprints(w, x, bits).make() : KeyedHashes(w, x, bits).make(key[0], key[1]);
  Operation *result = makeBucket(w, number, count).getDefiningOp();
  result->setLoc(hash.getLoc());
  if (auto control = hash->getDiscardableAttr(dfg::kControlAttr))
    result->setAttr(dfg::kControlAttr, control);
  hash->replaceAllUsesWith(result->getResults());
  hash.erase();
}

/// The two words of a keyed hash.
std::optional<SmallVector<int64_t>> getKey(dfg::OpaqueOp hash) {
  auto key = dfg::getSourceAttribute<ArrayAttr>(hash, "key");
  if (!key || key.size() != 2 || !llvm::all_of(key, llvm::IsaPred<IntegerAttr>))
    return std::nullopt;
  return llvm::map_to_vector(key.getAsRange<IntegerAttr>(),
                             [](IntegerAttr word) { return word.getValue().getSExtValue(); });
}

/// Whether `op` crosses columns of integers, one of each for an example.
bool crossesIntegers(dfg::OpaqueOp op) {
  auto hashes = dfg::getSourceAttribute<BoolAttr>(op, "hashed_output");
  auto key = dfg::getSourceAttribute<IntegerAttr>(op, "hash_key"),
       count = dfg::getSourceAttribute<IntegerAttr>(op, "num_buckets");
  auto isColumn = [](Type type) {
    auto column = llvm::dyn_cast<RankedTensorType>(type);
    return column && column.getRank() == 2 && column.getDimSize(1) == 1 && column.getElementType().isInteger(64);
  };
  return op.getOp() == "SparseCross" && hashes && hashes.getValue() && key && count && count.getInt() > 0 &&
         count.getInt() <= kMostBuckets && op->getNumResults() == 3 && op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperandTypes(), isColumn);
}

/// Of columns that are all there each example has one cross: the hash of one after the other (FingerprintCat64 of
/// TensorFlow's fingerprint.h).
void replaceCross(dfg::OpaqueOp cross) {
  OpBuilder builder(cross);
  auto type = llvm::cast<RankedTensorType>(cross->getOperand(0).getType());
  StringRef name = dfg::getNodeName(cross);
  Words w(builder, name, type);
  constexpr uint64_t kMul = 0xc6a4a7935bd1e995;
  auto shiftMix = [&](Value x) { return w.bitXor(x, w.right(x, 47)); };
  Value hash = w.constant(dfg::getSourceAttribute<IntegerAttr>(cross, "hash_key").getValue().getZExtValue());
  for (Value column : cross->getOperands()) {
    hash = w.bitXor(w.bitXor(hash, w.constant(kMul)), w.mul(shiftMix(w.mul(column, kMul)), kMul));
    hash = shiftMix(w.mul(shiftMix(w.mul(hash, kMul)), kMul));
  }
  Value bucket = makeBucket(w, hash, dfg::getSourceAttribute<IntegerAttr>(cross, "num_buckets").getInt());
  auto locate = [&](StringRef what) { return NameLoc::get(builder.getStringAttr(name + "/" + what)); };
  Type word = builder.getI64Type();
  auto vector = [&](int64_t size) { return RankedTensorType::get({size}, word); };
  auto constant = [&](StringRef what, RankedTensorType of, ArrayRef<int64_t> values) -> Value {
    return dfg::ConstOp::create(builder, locate(what), of, DenseElementsAttr::get(of, values)).getResult();
  };
  auto scalar = RankedTensorType::get({}, word);
  Value zero = constant("zero", scalar, {0}), one = constant("one", scalar, {1}),
        row = constant("row", vector(1), {-1});
  auto make = [&](StringRef what, StringRef op, ValueRange operands, Type result,
                  ArrayRef<NamedAttribute> attributes = {}) {
    return builder.create(OperationState(locate(what), op, operands, result, attributes))->getResult(0);
  };
  const int64_t rows = type.getDimSize(0);
  Value shape = make("shape", dfg::ShapeOp::getOperationName(), cross->getOperand(0), vector(2));
  Value count = make("count", dfg::GatherV2Op::getOperationName(), {shape, zero, zero}, scalar);
  Value numbers = make("examples", dfg::RangeOp::getOperationName(), {zero, count, one}, vector(rows));
  Value values = make("values", dfg::ReshapeOp::getOperationName(), {bucket, row}, vector(rows));
  Value zeros = make("places", dfg::ZerosLikeOp::getOperationName(), numbers, vector(rows));
  Value indices =
      make("indices", dfg::PackOp::getOperationName(), {numbers, zeros}, RankedTensorType::get({rows, 2}, word),
           builder.getNamedAttr("axis", builder.getI64IntegerAttr(1)));
  cross->replaceAllUsesWith(ValueRange{indices, values, shape});
  cross.erase();
}

struct HashIntegers : impl::HashIntegersBase<HashIntegers> {
  void runOnOperation() override {
    SmallVector<dfg::OpaqueOp> hashes, crosses;
    getOperation().walk([&](dfg::OpaqueOp op) {
      if (crossesIntegers(op))
        crosses.push_back(op);
      if ((op.getOp() == "StringToHashBucketFast" || op.getOp() == "StringToHashBucketStrong") &&
          op->getNumOperands() == 1)
        hashes.push_back(op);
    });
    llvm::for_each(crosses, replaceCross);
    for (dfg::OpaqueOp hash : hashes) {
      auto text = hash->getOperand(0).getDefiningOp<dfg::OpaqueOp>();
      auto count = dfg::getSourceAttribute<IntegerAttr>(hash, "num_buckets");
      const bool isKeyed = hash.getOp() == "StringToHashBucketStrong";
      std::optional<SmallVector<int64_t>> key = isKeyed ? getKey(hash) : SmallVector<int64_t>();
      if (writesIntegers(text) && key && count && count.getInt() > 0 && count.getInt() <= kMostBuckets)
        replaceHash(hash, text->getOperand(0), count.getInt(), *key);
    }
  }
};

} // namespace
} // namespace distc::rewrite
