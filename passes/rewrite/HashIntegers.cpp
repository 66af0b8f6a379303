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

/// FarmHash's Fingerprint64 (farmhashna::Hash64 of google/farmhash) of the decimal digits of integers, as
/// StringToHashBucketFast has it of what AsString writes. Digits are bytes of words, the last one the highest byte of
/// the last word: so what the hash takes from a string's end is the same whatever its length.
class Fingerprints {
public:
  Fingerprints(Words &w, Value x, unsigned bits) : w(w) {
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
  /// As many bits as `bytes` has of them.
  Value bits(Value bytes) { return w.left(bytes, w.constant(3)); }
  /// Eight bytes from byte `offset`, 0 to 8, of two words on.
  Value load(Value low, Value high, Value offset) {
    Value by = bits(offset);
    Value joined = w.bitOr(w.right(low, by), w.left(w.left(high, w.constant(1)), w.sub(w.constant(63), by)));
    return w.select(w.equal(offset, 8), high, joined);
  }

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

  Words &w;
  unsigned mostCharacters;
  Value digitCount, length;
  Value last[3]; // the last word first
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

void replaceHash(dfg::OpaqueOp hash, Value x, uint64_t count) {
  OpBuilder builder(hash);
  auto type = llvm::cast<TensorType>(x.getType());
  Words w(builder, dfg::getNodeName(hash), type);
  Value number = Fingerprints(w, x, type.getElementTypeBitWidth()).make();
  // Without a sign: twice the remainder of the upper 63 bits, and the last one.
  Value twice = w.mul(w.remainder(w.right(number, 1), count), 2);
  OperationState bucket(hash.getLoc(), dfg::TruncateModOp::getOperationName(),
                        {w.add(twice, w.bitAnd(number, 1)), w.constant(count)}, type.clone(builder.getI64Type()));
  Operation *result = builder.create(bucket);
  if (auto control = hash->getDiscardableAttr(dfg::kControlAttr))
    result->setAttr(dfg::kControlAttr, control);
  hash->replaceAllUsesWith(result->getResults());
  hash.erase();
}

struct HashIntegers : impl::HashIntegersBase<HashIntegers> {
  void runOnOperation() override {
    SmallVector<dfg::OpaqueOp> hashes;
    getOperation().walk([&](dfg::OpaqueOp op) {
      if (op.getOp() == "StringToHashBucketFast" && op->getNumOperands() == 1)
        hashes.push_back(op);
    });
    for (dfg::OpaqueOp hash : hashes) {
      auto text = hash->getOperand(0).getDefiningOp<dfg::OpaqueOp>();
      auto count = dfg::getSourceAttribute<IntegerAttr>(hash, "num_buckets");
      constexpr int64_t kMostBuckets = int64_t(1) << 61; // so that twice a remainder is positive
      if (writesIntegers(text) && count && count.getInt() > 0 && count.getInt() <= kMostBuckets)
        replaceHash(hash, text->getOperand(0), count.getInt());
    }
  }
};

} // namespace
} // namespace distc::rewrite
