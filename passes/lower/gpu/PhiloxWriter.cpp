//===- PhiloxWriter.cpp - TensorFlow's random numbers in arith and math --------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "passes/lower/gpu/PhiloxWriter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include <numbers>

using namespace mlir;

namespace distc::philox {

Value PhiloxWriter::number(Type type, int64_t value) {
  return arith::ConstantOp::create(b, IntegerAttr::get(type, APInt(type.getIntOrFloatBitWidth(), value,
                                                                   /*isSigned=*/false, /*implicitTrunc=*/true)));
}

/// 64 bits from two words.
Value PhiloxWriter::join(Value lower, Value upper) {
  Type type = b.getI64Type();
  Value shifted = arith::ShLIOp::create(b, arith::ExtUIOp::create(b, type, upper), number(type, 32));
  return arith::OrIOp::create(b, arith::ExtUIOp::create(b, type, lower), shifted);
}

// ---- The generator ----------------------------------------------------------------------------

Generator PhiloxWriter::load(Value state) {
  auto word = [&](int64_t at) {
    return memref::LoadOp::create(b, state, ValueRange{arith::ConstantIndexOp::create(b, at)}).getResult();
  };
  Words counter = {word(0), word(1), word(2), word(3)};
  return {join(counter[0], counter[1]), join(counter[2], counter[3]), word(4), word(5)};
}

void PhiloxWriter::store(Generator generator, Value state) {
  int64_t at = 0;
  for (Value half : {generator.low, generator.high})
    for (int64_t shift : {0, 32}) {
      Value word =
          arith::TruncIOp::create(b, b.getI32Type(), arith::ShRUIOp::create(b, half, number(b.getI64Type(), shift)));
      memref::StoreOp::create(b, word, state, ValueRange{arith::ConstantIndexOp::create(b, at++)});
    }
}

Generator PhiloxWriter::scramble(Value seed) {
  auto part = [&](int64_t at) {
    return memref::LoadOp::create(b, seed, ValueRange{arith::ConstantIndexOp::create(b, at)}).getResult();
  };
  // TensorFlow's GenerateKey.
  Words mixed = draw({part(0), part(1), number(b.getI32Type(), 0x3ec8f720), number(b.getI32Type(), 0x02461e29)});
  return {number(b.getI64Type(), 0), join(mixed[2], mixed[3]), mixed[0], mixed[1]};
}

Generator PhiloxWriter::loadKeyed(Value words) {
  auto word = [&](int64_t at) {
    return memref::LoadOp::create(b, words, ValueRange{arith::ConstantIndexOp::create(b, at)}).getResult();
  };
  Value key = word(0);
  auto half = [&](int64_t shift) {
    return arith::TruncIOp::create(b, b.getI32Type(), arith::ShRUIOp::create(b, key, number(b.getI64Type(), shift)))
        .getResult();
  };
  return {word(1), word(2), half(0), half(32)};
}

Generator PhiloxWriter::skip(Generator from, Value positions) {
  Value low = arith::AddIOp::create(b, from.low, positions);
  Value carry = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, low, positions);
  Value high = arith::AddIOp::create(b, from.high, arith::ExtUIOp::create(b, b.getI64Type(), carry));
  return {low, high, from.key0, from.key1};
}

PhiloxWriter::Words PhiloxWriter::draw(Generator generator) {
  constexpr int64_t rounds = 10, factor0 = 0xD2511F53, factor1 = 0xCD9E8D57, weight0 = 0x9E3779B9, weight1 = 0xBB67AE85;
  Type word = b.getI32Type(), wide = b.getI64Type();
  auto upper = [&](Value x) {
    return arith::TruncIOp::create(b, word, arith::ShRUIOp::create(b, x, number(wide, 32))).getResult();
  };
  auto lower = [&](Value x) { return arith::TruncIOp::create(b, word, x).getResult(); };
  auto multiply = [&](Value x, int64_t factor) {
    return arith::MulIOp::create(b, arith::ExtUIOp::create(b, wide, x), number(wide, factor)).getResult();
  };
  auto mix = [&](Value x, Value y, Value z) {
    return arith::XOrIOp::create(b, arith::XOrIOp::create(b, x, y), z).getResult();
  };
  Words c = {lower(generator.low), upper(generator.low), lower(generator.high), upper(generator.high)};
  Value key0 = generator.key0, key1 = generator.key1;
  for (int64_t round = 0; round < rounds; ++round) {
    Value product0 = multiply(c[0], factor0), product1 = multiply(c[2], factor1);
    c = {mix(upper(product1), c[1], key0), lower(product1), mix(upper(product0), c[3], key1), lower(product0)};
    key0 = arith::AddIOp::create(b, key0, number(word, weight0));
    key1 = arith::AddIOp::create(b, key1, number(word, weight1));
  }
  return c;
}

// ---- Distributions ------------------------------------------------------------------------------

/// A random mantissa under the exponent of 1 gives [1, 2).
PhiloxWriter::Group PhiloxWriter::uniform(const Words &words, Type element) {
  Group group;
  auto fromBits = [&](Value bits, int64_t mantissa, int64_t one) {
    Value masked = arith::AndIOp::create(b, bits, number(bits.getType(), mantissa));
    Value number12 = arith::BitcastOp::create(b, element, arith::OrIOp::create(b, masked, number(bits.getType(), one)));
    group.push_back(arith::SubFOp::create(b, number12, arith::ConstantOp::create(b, b.getFloatAttr(element, 1.0))));
  };
  if (element.isF32()) {
    for (Value word : words)
      fromBits(word, 0x7fffff, 0x3f800000);
  } else { // The upper word comes first.
    for (int64_t i : {0, 2})
      fromBits(join(words[i + 1], words[i]), 0xfffffffffffff, 0x3ff0000000000000);
  }
  return group;
}

PhiloxWriter::Group PhiloxWriter::normal(const Words &words, Type element) {
  Group uniforms = uniform(words, element), group;
  auto constant = [&](Type type, double value) {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value)).getResult();
  };
  Type wide = b.getF64Type();
  for (size_t i = 0; i < uniforms.size(); i += 2) {
    Value bounded = arith::MaximumFOp::create(b, uniforms[i], constant(element, 1.0e-7));
    Value logarithm = math::LogOp::create(b, bounded);
    Value radius = math::SqrtOp::create(b, arith::MulFOp::create(b, constant(element, -2.0), logarithm));
    // Floats are multiplied by 2 pi in double, and rounded once.
    Value turn = element == wide ? uniforms[i + 1] : arith::ExtFOp::create(b, wide, uniforms[i + 1]).getResult();
    Value angle = arith::MulFOp::create(b, constant(wide, 2.0 * std::numbers::pi), turn);
    if (element != wide)
      angle = arith::TruncFOp::create(b, element, angle);
    group.push_back(arith::MulFOp::create(b, math::SinOp::create(b, angle), radius));
    group.push_back(arith::MulFOp::create(b, math::CosOp::create(b, angle), radius));
  }
  return group;
}

PhiloxWriter::Group PhiloxWriter::integers(const Words &words, Type element, Value low, Value high) {
  // An empty range, for which there is no number, gives `low`.
  Value range = !low ? Value() : arith::MaxUIOp::create(b, arith::SubIOp::create(b, high, low), number(element, 1));
  Group group;
  int64_t step = element.getIntOrFloatBitWidth() / 32;
  for (int64_t i = 0; i < 4; i += step) {
    Value bits = step == 1 ? words[i] : join(words[i], words[i + 1]);
    group.push_back(low ? arith::AddIOp::create(b, low, arith::RemUIOp::create(b, bits, range)) : bits);
  }
  return group;
}

/// Draws from the group's own positions until it has as many numbers between -2 and 2 as it needs, in the order in
/// which they come.
PhiloxWriter::Group PhiloxWriter::truncatedNormal(Generator generator, Type element) {
  int64_t size = getGroupSize(element);
  Type count = b.getI32Type();
  SmallVector<Value> initial = {number(b.getI64Type(), 0),
                                number(count, 0)}; // positions used, numbers taken; then the numbers
  initial.append(size, arith::ConstantOp::create(b, b.getFloatAttr(element, 0.0)));
  Value bound = arith::ConstantOp::create(b, b.getFloatAttr(element, 2.0));
  SmallVector<Type> types = llvm::map_to_vector(initial, [](Value value) { return value.getType(); });
  auto loop = scf::WhileOp::create(
      b, types, initial,
      [&](OpBuilder &, Location, ValueRange carried) {
        Value missing = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, carried[1], number(count, size));
        scf::ConditionOp::create(b, missing, carried);
      },
      [&](OpBuilder &, Location, ValueRange carried) {
        Value taken = carried[1];
        SmallVector<Value> next(carried.begin(), carried.end());
        for (Value candidate : normal(draw(skip(generator, carried[0])), element)) {
          Value fits = arith::CmpFOp::create(b, arith::CmpFPredicate::OLT, math::AbsFOp::create(b, candidate), bound);
          for (int64_t i = 0; i < size; ++i) {
            Value here = arith::AndIOp::create(
                b, fits, arith::CmpIOp::create(b, arith::CmpIPredicate::eq, taken, number(count, i)));
            next[2 + i] = arith::SelectOp::create(b, here, candidate, next[2 + i]);
          }
          taken = arith::AddIOp::create(b, taken, arith::ExtUIOp::create(b, count, fits));
        }
        next[0] = arith::AddIOp::create(b, carried[0], number(b.getI64Type(), 1));
        next[1] = taken;
        scf::YieldOp::create(b, next);
      });
  return Group(loop.getResults().drop_front(2));
}

PhiloxWriter::Group PhiloxWriter::drawGroup(Generator generator, Distribution distribution, Type element, Value low,
                                            Value high) {
  switch (distribution) {
  case Distribution::Uniform:
    return uniform(draw(generator), element);
  case Distribution::Normal:
    return normal(draw(generator), element);
  case Distribution::TruncatedNormal:
    return truncatedNormal(generator, element);
  case Distribution::UniformInt:
    return integers(draw(generator), element, low, high);
  }
  return {};
}

} // namespace distc::philox
