//===- kernels.cpp - Kernels of the hand-written device program -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A shared object as the compiler makes them for the emulator: NAME(params), and NAME_parameters, how many there are. A
// launch has one thread, which does it all.
//
//===----------------------------------------------------------------------===//
#include "test/unit/cuda/device_program.h"

using namespace device_program;

namespace {

template <class T> T *argument(void **params, int index) { return *static_cast<T **>(params[index]); }

} // namespace

extern "C" {

extern const int32_t start_parameters = 1;
void start(void **params) {
  for (int64_t j = 0; j < columns; ++j)
    argument<float>(params, 0)[j] = static_cast<float>(j);
}

// x, w, gradient, loss
extern const int32_t differentiate_parameters = 4;
void differentiate(void **params) {
  const float *x = argument<float>(params, 0), *w = argument<float>(params, 1);
  double loss = 0;
  for (int64_t j = 0; j < columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const double d = static_cast<double>(w[j]) - static_cast<double>(x[i * columns + j]);
      sum += d;
      loss += d * d / 2;
    }
    argument<float>(params, 2)[j] = static_cast<float>(sum / rows);
  }
  *argument<float>(params, 3) = static_cast<float>(loss / (rows * columns));
}

// w, gradient, rate
extern const int32_t descend_parameters = 3;
void descend(void **params) {
  for (int64_t j = 0; j < columns; ++j)
    argument<float>(params, 0)[j] -= *argument<float>(params, 2) * argument<float>(params, 1)[j];
}

// state, drawn: Philox's counter, which goes on by one
extern const int32_t draw_parameters = 2;
void draw(void **params) {
  uint32_t *state = argument<uint32_t>(params, 0), *drawn = argument<uint32_t>(params, 1);
  for (int i = 0; i < 6; ++i)
    drawn[i] = state[i];
  ++state[0];
}
}
