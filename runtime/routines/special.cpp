//===- special.cpp - Special functions of drt.h ----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// All in float64; the results are rounded to the element's type by the caller.
// Domains and values at their ends are TensorFlow's (Eigen's SpecialFunctions).
//
//===----------------------------------------------------------------------===//
#include "drt/drt.h"
#include "routines/log_gamma.h"

#include <cmath>
#include <complex>
#include <limits>

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kTiny = 1e-300;
constexpr int kMostTerms = 2000;

// Beyond this the expansions for large arguments are exact in float64 (their least term is exp(-2x)).
constexpr double kLarge = 30.0;

// sum (sign)^k a_k(order) / x^k of Hankel's expansions (Abramowitz and Stegun, 9.7.1 and 9.7.2).
double hankel(int order, double x, double sign) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 40; ++k) {
    const double odd = 2.0 * k - 1;
    const double next = term * sign * (mu - odd * odd) / (k * 8 * x);
    if (std::abs(next) >= std::abs(term) || std::abs(next) < kEpsilon * std::abs(sum))
      break;
    sum += term = next;
  }
  return sum;
}

// exp(-|x|) I_order(x), order 0 or 1: all terms of the power series have one sign.
double besselI(int order, double x) {
  const double size = std::abs(x);
  double value;
  if (size > kLarge) {
    value = hankel(order, size, -1) / std::sqrt(2 * M_PI * size);
  } else {
    double term = order ? size / 2 : 1, sum = term;
    for (int k = 1; k < kMostTerms && term > kEpsilon * sum; ++k)
      sum += term *= size * size / 4 / (k * (k + order));
    value = sum * std::exp(-size);
  }
  return order && x < 0 ? -value : value;
}

// exp(x) K_order(x).
double besselK(int order, double x) {
  if (x <= 0)
    return kInfinity;
  if (x > kLarge)
    return hankel(order, x, 1) * std::sqrt(M_PI / (2 * x));
  return std::cyl_bessel_k(order, x) * std::exp(x);
}

double digamma(double x) {
  if (x <= 0) {
    if (x == std::floor(x))
      return kNaN;
    return digamma(1 - x) - M_PI / std::tan(M_PI * x);
  }
  double shift = 0;
  for (; x < 10; ++x)
    shift -= 1 / x;
  const double w = 1 / (x * x);
  return shift + std::log(x) - 0.5 / x -
         w * (1.0 / 12 -
              w * (1.0 / 120 - w * (1.0 / 252 - w * (1.0 / 240 - w * (1.0 / 132 - w * (691.0 / 32760 - w / 12))))));
}

// Hurwitz' zeta by Euler's and Maclaurin's summation (Moshier, Cephes).
double zeta(double x, double q) {
  static constexpr double coefficients[] = {12.0,
                                            -720.0,
                                            30240.0,
                                            -1209600.0,
                                            47900160.0,
                                            -1.8924375803183791606e9,
                                            7.47242496e10,
                                            -2.950130727918164224e12,
                                            1.1646782814350067249e14,
                                            -4.5979787224074726105e15,
                                            1.8152105401943546773e17,
                                            -7.1661652561756670113e18};
  if (x == 1)
    return kInfinity;
  if (!(x > 1) || std::isnan(q))
    return kNaN;
  if (q <= 0) {
    if (q == std::floor(q))
      return x == std::floor(x) && std::fmod(x, 2) == 0 ? kInfinity : kNaN;
    if (x != std::floor(x))
      return kNaN;
  }
  double sum = std::pow(q, -x), a = q, b = 0;
  for (int i = 0; i < 9 || a <= 9; ++i) {
    a += 1;
    b = std::pow(a, -x);
    sum += b;
    if (std::abs(b) < kEpsilon / 2 * std::abs(sum))
      return sum;
  }
  if (b == 0)
    return sum; // x or q is too large for any term
  sum += b * a / (x - 1) - 0.5 * b;
  double factor = 1, k = 0;
  for (double coefficient : coefficients) {
    factor *= x + k;
    b /= a;
    const double term = factor * b / coefficient;
    sum += term;
    if (std::abs(term) < kEpsilon / 2 * std::abs(sum))
      return sum;
    factor *= x + k + 1;
    b /= a;
    k += 2;
  }
  return sum;
}

// A number and its derivative, so that one formula gives the gradient as well.
struct Dual {
  double value, slope = 0;
  Dual(double v, double s = 0) : value(v), slope(s) {}
  friend Dual operator+(Dual x, Dual y) { return {x.value + y.value, x.slope + y.slope}; }
  friend Dual operator-(Dual x, Dual y) { return {x.value - y.value, x.slope - y.slope}; }
  friend Dual operator*(Dual x, Dual y) { return {x.value * y.value, x.slope * y.value + x.value * y.slope}; }
  friend Dual operator/(Dual x, Dual y) {
    return {x.value / y.value, (x.slope - x.value / y.value * y.slope) / y.value};
  }
};
double valueOf(double x) { return x; }
double valueOf(Dual x) { return x.value; }
double slopeOf(double) { return 0; }
double slopeOf(Dual x) { return x.slope; }

// x^a exp(-x) / Gamma(a).
double powerOverGamma(double a, double x) { return std::exp(a * std::log(x) - x - drt::logGamma(a)); }
Dual powerOverGamma(Dual a, double x) {
  const double value = powerOverGamma(a.value, x);
  return {value, value * (std::log(x) - digamma(a.value)) * a.slope};
}

// The lower incomplete gamma function, regularized, by its power series: what powerOverGamma is multiplied by.
template <class T> T lowerSeries(T a, double x) {
  T term = T(1) / a, sum = term, at = a;
  for (int n = 0; n < kMostTerms; ++n) {
    at = at + T(1);
    term = term * T(x) / at;
    sum = sum + term;
    if (std::abs(valueOf(term)) <= kEpsilon * std::abs(valueOf(sum)) &&
        std::abs(slopeOf(term)) <= kEpsilon * std::abs(slopeOf(sum)))
      break;
  }
  return sum;
}
template <class T> T lowerGamma(T a, double x) { return powerOverGamma(a, x) * lowerSeries(a, x); }

// The upper one, by Legendre's continued fraction (Lentz's method, Numerical Recipes, 6.2): the same.
template <class T> T upperFraction(T a, double x) {
  T b = T(x + 1) - a, c = T(1 / kTiny), d = T(1) / b, h = d;
  for (int i = 1; i < kMostTerms; ++i) {
    const T an = (a - T(i)) * T(i);
    b = b + T(2);
    d = an * d + b;
    if (std::abs(valueOf(d)) < kTiny)
      d = T(kTiny);
    c = b + an / c;
    if (std::abs(valueOf(c)) < kTiny)
      c = T(kTiny);
    d = T(1) / d;
    const T step = d * c;
    h = h * step;
    if (std::abs(valueOf(step) - 1) <= kEpsilon && std::abs(slopeOf(step)) <= kEpsilon)
      break;
  }
  return h;
}
template <class T> T upperGamma(T a, double x) { return powerOverGamma(a, x) * upperFraction(a, x); }

// The incomplete beta function's continued fraction (Lentz's method, Numerical Recipes, 6.4).
double betaFraction(double a, double b, double x) {
  double c = 1, d = 1 - (a + b) * x / (a + 1);
  d = 1 / (std::abs(d) < kTiny ? kTiny : d);
  double h = d;
  const auto step = [&](double coefficient) {
    d = 1 + coefficient * d;
    d = 1 / (std::abs(d) < kTiny ? kTiny : d);
    c = 1 + coefficient / c;
    c = std::abs(c) < kTiny ? kTiny : c;
    h *= d * c;
    return d * c;
  };
  for (int m = 1; m < kMostTerms; ++m) {
    const double twice = 2.0 * m;
    step(m * (b - m) * x / ((a + twice - 1) * (a + twice)));
    if (std::abs(step(-(a + m) * (a + b + m) * x / ((a + twice) * (a + twice + 1))) - 1) <= kEpsilon)
      break;
  }
  return h;
}

bool usesFraction(double a, double x) { return x > 1 && x > a; }

// P(a, x) and Q(a, x); `lower` tells which.
double incompleteGamma(double a, double x, bool lower) {
  if (lower && x == 0)
    return 0;
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0)
    return kNaN;
  if (x == 0 || std::isinf(a))
    return lower ? 0 : 1;
  if (std::isinf(x))
    return lower ? 1 : 0;
  if (usesFraction(a, x)) {
    const double upper = upperGamma(a, x);
    return lower ? 1 - upper : upper;
  }
  const double part = lowerGamma(a, x);
  return lower ? part : 1 - part;
}

// Integrals of cos and sin of pi t^2 / 2, as real and imaginary part (Numerical Recipes, 6.9).
std::complex<double> fresnel(double x) {
  const double size = std::abs(x);
  std::complex<double> result;
  if (size <= 1.5) {
    double term = size, cosine = size, sine = 0;
    for (int k = 1; k < 100; ++k) {
      term *= M_PI / 2 * size * size / k;
      // Terms alternate between the two, and each changes its sign every time.
      double &sum = k % 2 ? sine : cosine;
      const double part = ((k / 2) % 2 ? -term : term) / (2 * k + 1);
      sum += part;
      if (term < kEpsilon * std::abs(sum))
        break;
    }
    result = {cosine, sine};
  } else if (size > 36974) {
    result = {0.5, 0.5}; // as in Eigen
  } else {
    const double angle = M_PI * size * size;
    std::complex<double> b(1, -angle), c = 1 / kTiny, d = 1.0 / b, h = d;
    for (int k = 2, n = 1; k < kMostTerms; ++k, n += 2) {
      const double a = -static_cast<double>(n) * (n + 1);
      b += 4;
      d = 1.0 / (a * d + b);
      c = b + a / c;
      const std::complex<double> step = c * d;
      h *= step;
      if (std::abs(step.real() - 1) + std::abs(step.imag()) < kEpsilon)
        break;
    }
    h *= std::complex<double>(size, -size);
    result = std::complex<double>(0.5, 0.5) * (1.0 - std::polar(1.0, angle / 2) * h);
  }
  return x < 0 ? -result : result;
}

// The dilogarithm of z <= 0.5, by powers of -log(1 - z) and Bernoulli's numbers.
double dilogarithm(double z) {
  if (z < -1) {
    const double l = std::log(-z);
    return -M_PI * M_PI / 6 - l * l / 2 - dilogarithm(1 / z);
  }
  static constexpr double coefficients[] = {1.0 / 36,
                                            -1.0 / 3600,
                                            1.0 / 211680,
                                            -1.0 / 10886400,
                                            1.0 / 526901760,
                                            -691.0 / 2730 / 6227020800.0,
                                            7.0 / 6 / 1307674368000.0,
                                            -3617.0 / 510 / 355687428096000.0,
                                            43867.0 / 798 / 121645100408832000.0};
  const double u = -std::log1p(-z), square = u * u;
  double sum = u - square / 4, power = u;
  for (double coefficient : coefficients)
    sum += coefficient * (power *= square);
  return sum;
}

} // namespace

extern "C" {

double drt_special_bessel_i0e(double x) { return besselI(0, x); }
double drt_special_bessel_i1e(double x) { return besselI(1, x); }
double drt_special_bessel_i0(double x) { return besselI(0, x) * std::exp(std::abs(x)); }
double drt_special_bessel_i1(double x) { return besselI(1, x) * std::exp(std::abs(x)); }
double drt_special_bessel_k0e(double x) { return besselK(0, x); }
double drt_special_bessel_k1e(double x) { return besselK(1, x); }
double drt_special_bessel_k0(double x) { return besselK(0, x) * std::exp(-x); }
double drt_special_bessel_k1(double x) { return besselK(1, x) * std::exp(-x); }
double drt_special_bessel_j0(double x) { return std::isinf(x) ? kNaN : ::j0(x); }
double drt_special_bessel_j1(double x) { return std::isinf(x) ? kNaN : ::j1(x); }
double drt_special_bessel_y0(double x) { return x < 0 ? -kInfinity : std::isinf(x) ? kNaN : ::y0(x); }
double drt_special_bessel_y1(double x) { return x < 0 ? -kInfinity : std::isinf(x) ? kNaN : ::y1(x); }

// Rybicki's sum (Numerical Recipes, 6.10): with this step it is exact in float64.
double drt_special_dawsn(double x) {
  constexpr double step = 0.2;
  const double size = std::abs(x);
  if (size > 1e9)
    return 0.5 / size; // without its sign, as in Eigen
  if (size > 1e8)
    return 0.5 / x;
  if (size < 1e-3)
    return x * (1 - 2.0 / 3 * x * x);
  const double nearest = 2 * std::floor(0.5 * size / step + 0.5), rest = size - nearest * step;
  double sum = 0;
  for (int n = -41; n <= 41; n += 2) {
    const double at = rest - n * step;
    sum += std::exp(-at * at) / (nearest + n);
  }
  return std::copysign(sum / std::sqrt(M_PI), x);
}

double drt_special_expint(double x) { return x < 0 || std::isinf(x) ? kNaN : std::expint(x); }
double drt_special_fresnel_cos(double x) { return fresnel(x).real(); }
double drt_special_fresnel_sin(double x) { return fresnel(x).imag(); }

double drt_special_spence(double x) {
  if (!(x >= 0) || std::isinf(x))
    return kNaN;
  const double z = 1 - x;
  if (x == 0)
    return M_PI * M_PI / 6;
  return z <= 0.5 ? dilogarithm(z) : M_PI * M_PI / 6 - std::log(z) * std::log(x) - dilogarithm(x);
}

double drt_special_zeta(double x, double q) { return zeta(x, q); }

double drt_special_polygamma(double n, double x) {
  if (n != std::floor(n) || n < 0)
    return kNaN;
  if (n == 0)
    return digamma(x);
  const double value = std::tgamma(n + 1) * zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -value : value;
}

double drt_special_igamma(double a, double x) { return incompleteGamma(a, x, true); }
double drt_special_igammac(double a, double x) { return incompleteGamma(a, x, false); }

double drt_special_igamma_grad_a(double a, double x) {
  if (x == 0)
    return 0;
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0)
    return kNaN;
  if (std::isinf(x) || std::isinf(a))
    return 0;
  return usesFraction(a, x) ? -upperGamma(Dual(a, 1), x).slope : lowerGamma(Dual(a, 1), x).slope;
}

// -(dP/da) / (dP/dx), in which powerOverGamma, that may be 0, is on both sides.
double drt_special_random_gamma_grad(double a, double x) {
  if (x == 0)
    return 0;
  if (std::isnan(a) || std::isnan(x) || x < 0 || a <= 0)
    return kNaN;
  if (std::isinf(x) || std::isinf(a))
    return kNaN;
  const bool isUpper = usesFraction(a, x);
  const Dual sum = isUpper ? upperFraction(Dual(a, 1), x) : lowerSeries(Dual(a, 1), x);
  const double slope = sum.value * (std::log(x) - digamma(a)) + sum.slope;
  return isUpper ? x * slope : -x * slope;
}

double drt_special_betainc(double a, double b, double x) {
  if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1) || std::isinf(a) || std::isinf(b))
    return kNaN;
  if (x == 0 || x == 1)
    return x;
  const double front =
      std::exp(drt::logGamma(a + b) - drt::logGamma(a) - drt::logGamma(b) + a * std::log(x) + b * std::log1p(-x));
  return x < (a + 1) / (a + b + 2) ? front * betaFraction(a, b, x) / a : 1 - front * betaFraction(b, a, 1 - x) / b;
}

} // extern "C"
