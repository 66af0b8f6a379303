//===- log_gamma.h - The logarithm of the gamma function -----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_ROUTINES_LOG_GAMMA_H
#define DRT_ROUTINES_LOG_GAMMA_H

#include <math.h>

namespace drt {

/// log |Gamma(x)|. std::lgamma leaves the sign in a variable that all threads write.
inline double logGamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

} // namespace drt

#endif // DRT_ROUTINES_LOG_GAMMA_H
