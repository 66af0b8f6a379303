//===- SpecialFunctions.cpp - Functions of floats that no machine and few libraries have -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// All are computed in float64 and rounded to the element's type: terms cancel,
// and nothing that trains spends its time here.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/Dfg.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/ArrayRef.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace distc::dfg {

namespace {

/// Arithmetic in float64.
struct Doubles {
  ScalarBuilder &s;
  Type type = s.builder.getF64Type();

  Value operator()(double value) { return s.constant(type, value); }
  Value log(Value x) { return s.math<math::LogOp>(x); }
  Value polynomial(Value x, llvm::ArrayRef<double> coefficients) {
    Value sum = (*this)(coefficients.front());
    for (double next : coefficients.drop_front())
      sum = s.add(s.mul(sum, x), (*this)(next));
    return sum;
  }
};

// Lanczos' approximation with g = 7 and 9 terms (Godfrey's coefficients).
constexpr double kLanczosG = 7.0;
constexpr double kLanczosBase = 0.99999999999980993227684700473478;
constexpr double kLanczos[] = {676.520368121885098567009190444019, -1259.13921672240287047156078755283,
                               771.3234287776530788486528258894,   -176.61502916214059906584551354,
                               12.507343278686904814458936853,     -0.13857109526572011689554707,
                               9.984369578019570859563e-6,         1.50563273514931155834e-7};

/// Both functions of x >= 0.5 take z = x - 1; smaller x are reflected, and z = -x.
struct Lanczos {
  Doubles d;
  Value z, reflects, t, logT;

  Lanczos(ScalarBuilder &s, Value x) : d{s} {
    reflects = s.less(x, d(0.5));
    z = s.select(reflects, s.neg(x), s.sub(x, d(1.0)));
    t = s.add(z, d(kLanczosG + 0.5));
    logT = d.log(t);
  }
};

/// Giles, Approximating the erfinv function, 2010; in double precision. w = -log(1 - x^2).
Value erfinvOf(ScalarBuilder &s, Value x, Value w) {
  static constexpr double near[] = {
      -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
      -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
      -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
      1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
      -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
      -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
  static constexpr double far[] = {
      2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
      1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
      -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
      0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
      0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
  static constexpr double farthest[] = {
      -2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,  -3.7894654401267369937e-09,
      7.6157012080783393804e-09,  -1.4960026627149240478e-08, 2.9147953450901080826e-08,  -6.7711997758452339498e-08,
      2.2900482228026654717e-07,  -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
      7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026, 1.0103004648645343977,
      4.8499064014085844221};
  Doubles d{s};
  Value root = s.math<math::SqrtOp>(w);
  Value value = s.select(s.less(w, d(6.25)), d.polynomial(s.sub(w, d(3.125)), near),
                         s.select(s.less(w, d(16.0)), d.polynomial(s.sub(root, d(3.25)), far),
                                  d.polynomial(s.sub(root, d(5.0)), farthest)));
  // At the ends the logarithm is infinite.
  return s.select(s.isInf(w), s.mul(x, d(std::numeric_limits<double>::infinity())), s.mul(x, value));
}

/// The quantile of p < exp(-32), where Giles' polynomials end (Moshier, Cephes, ndtri).
Value normalTail(ScalarBuilder &s, Value p) {
  static constexpr double numerator[] = {
      3.23774891776946035970,    6.91522889068984211695,    3.93881025292474443415,
      1.33303460815807542389,    2.01485389549179081538e-1, 1.23716634817820021358e-2,
      3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9};
  static constexpr double denominator[] = {1.0,
                                           6.02427039364742014255,
                                           3.67983563856160859403,
                                           1.37702099489081330271,
                                           2.16236993594496635890e-1,
                                           1.34204006088543189037e-2,
                                           3.28014464682127739104e-4,
                                           2.89247864745380683936e-6,
                                           6.79019408009981274425e-9};
  Doubles d{s};
  Value x = s.math<math::SqrtOp>(s.mul(d(-2.0), d.log(p)));
  Value z = s.div(d(1.0), x);
  Value correction = s.div(s.mul(z, d.polynomial(z, numerator)), d.polynomial(z, denominator));
  return s.sub(s.add(s.div(d.log(x), x), correction), x);
}

} // namespace

Value ScalarBuilder::lgamma(Value element) {
  Value x = cast(element, builder.getF64Type());
  Lanczos lanczos(*this, x);
  Doubles &d = lanczos.d;
  Value sum = d(kLanczosBase);
  for (auto [i, coefficient] : llvm::enumerate(kLanczos))
    sum = add(sum, div(d(coefficient), add(lanczos.z, d(i + 1.0))));
  // log of sqrt(2 pi) t^(z + 1/2) exp(-t) sum, with the large terms taken together.
  Value value = add(mul(sub(add(lanczos.z, d(0.5)), div(lanczos.t, lanczos.logT)), lanczos.logT),
                    add(d(0.5 * std::log(2 * M_PI)), d.log(sum)));
  // Gamma(x) Gamma(1 - x) = pi / sin(pi x), whose sine is that of the distance to the next integer.
  Value size = abs(x);
  Value fraction = sub(size, math<math::FloorOp>(size));
  Value distance = minimum(fraction, sub(d(1.0), fraction));
  Value logSine = d.log(math<math::SinOp>(mul(d(M_PI), distance)));
  Value reflected = select(isFinite(logSine), sub(sub(d(std::log(M_PI)), logSine), value), neg(logSine));
  Value result = select(isInf(x), abs(x), select(lanczos.reflects, reflected, value));
  return cast(result, element.getType());
}

Value ScalarBuilder::digamma(Value element) {
  Value x = cast(element, builder.getF64Type());
  Lanczos lanczos(*this, x);
  Doubles &d = lanczos.d;
  Value sum = d(kLanczosBase), slope = d(0.0);
  for (auto [i, coefficient] : llvm::enumerate(kLanczos)) {
    Value at = add(lanczos.z, d(i + 1.0));
    Value term = div(d(coefficient), at);
    sum = add(sum, term);
    slope = sub(slope, div(term, at));
  }
  Value value = sub(add(lanczos.logT, div(slope, sum)), div(d(kLanczosG), lanczos.t));
  // psi(1 - x) - psi(x) = pi cot(pi x), which has the period 1.
  Value angle = mul(d(M_PI), sub(x, roundEven(x)));
  Value reflected = sub(value, div(mul(d(M_PI), math<math::CosOp>(angle)), math<math::SinOp>(angle)));
  // There are poles at 0 and the negative integers.
  Value isPole = bitAnd(lessEqual(x, d(0.0)), equal(x, math<math::FloorOp>(x)));
  Value result =
      select(isPole, d(std::numeric_limits<double>::quiet_NaN()), select(lanczos.reflects, reflected, value));
  return cast(result, element.getType());
}

Value ScalarBuilder::erfinv(Value element) {
  Value x = cast(element, builder.getF64Type());
  Doubles d{*this};
  Value w = neg(d.log(mul(sub(d(1.0), x), add(d(1.0), x))));
  return cast(erfinvOf(*this, x, w), element.getType());
}

Value ScalarBuilder::ndtri(Value element) {
  // sqrt(2) erfinv(2 p - 1), where 1 - (2 p - 1)^2 is 4 p (1 - p): no digits are lost for small p.
  Value p = cast(element, builder.getF64Type());
  Doubles d{*this};
  Value x = sub(mul(d(2.0), p), d(1.0));
  Value w = neg(d.log(mul(mul(d(4.0), p), sub(d(1.0), p))));
  Value isTail = bitAnd(less(d(0.0), p), less(p, d(std::exp(-32.0))));
  return cast(select(isTail, normalTail(*this, p), mul(d(M_SQRT2), erfinvOf(*this, x, w))), element.getType());
}

Value ScalarBuilder::special(llvm::StringRef name, ValueRange operands) {
  SmallVector<Value> wide = llvm::map_to_vector(operands, [&](Value x) { return cast(x, builder.getF64Type()); });
  Value result = SpecialFunctionOp::create(builder, loc, builder.getF64Type(), name, wide);
  return cast(result, operands.front().getType());
}

Value ScalarBuilder::nextAfter(Value x, Value y) {
  // Floats of one sign are ordered like their bits; the smallest of each sign is one bit from zero.
  Type type = x.getType();
  Type bitsType = builder.getIntegerType(type.getIntOrFloatBitWidth());
  Value bits = arith::BitcastOp::create(builder, loc, bitsType, x);
  Value zero = constant(type, 0.0), one = constant(bitsType, 1.0);
  Value grows = equal(less(x, y), less(zero, x));
  Value moved = arith::BitcastOp::create(builder, loc, type, select(grows, add(bits, one), sub(bits, one)));
  Value least = arith::BitcastOp::create(builder, loc, type, one);
  Value fromZero = select(less(zero, y), least, neg(least));
  Value next = select(equal(x, zero), fromZero, moved);
  // Where either is NaN, the result is.
  Value isNan = bitOr(notEqual(x, x), notEqual(y, y));
  return select(isNan, add(x, y), select(equal(x, y), y, next));
}

} // namespace distc::dfg
