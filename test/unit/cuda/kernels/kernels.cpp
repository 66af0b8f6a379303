//===- kernels.cpp - Kernels of the hand-written device program -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Compiled to PTX, and to a shared object as the compiler makes them for the emulator: NAME(params), and
// NAME_parameters, how many there are. A launch has one thread, which does it all.
//
//===----------------------------------------------------------------------===//
#include "test/unit/cuda/program/shapes.h"

using namespace device_program;

namespace {

void setToIndex(float *w) {
  for (long j = 0; j < columns; ++j)
    w[j] = static_cast<float>(j);
}

void differentiateLoss(const float *x, const float *w, float *gradient, float *loss) {
  double all = 0;
  for (long j = 0; j < columns; ++j) {
    double sum = 0;
    for (long i = 0; i < rows; ++i) {
      const double d = static_cast<double>(w[j]) - static_cast<double>(x[i * columns + j]);
      sum += d;
      all += d * d / 2;
    }
    gradient[j] = static_cast<float>(sum / rows);
  }
  *loss = static_cast<float>(all / (rows * columns));
}

void subtract(float *w, const float *gradient, const float *rate) {
  for (long j = 0; j < columns; ++j)
    w[j] -= *rate * gradient[j];
}

// Philox's counter goes on by one.
void takeState(unsigned *state, unsigned *drawn) {
  for (int i = 0; i < 6; ++i)
    drawn[i] = state[i];
  ++state[0];
}

} // namespace

#ifdef __NVPTX__

extern "C" {
__attribute__((device_kernel)) void start(float *w) { setToIndex(w); }
__attribute__((device_kernel)) void differentiate(const float *x, const float *w, float *gradient, float *loss) {
  differentiateLoss(x, w, gradient, loss);
}
__attribute__((device_kernel)) void descend(float *w, const float *gradient, const float *rate) {
  subtract(w, gradient, rate);
}
__attribute__((device_kernel)) void draw(unsigned *state, unsigned *drawn) { takeState(state, drawn); }
}

#else

namespace {
template <class... Arguments> struct Kernel {
  static constexpr int parameters = sizeof...(Arguments);
  template <int... index> struct Indices {};
  template <int count, int... index> static auto indices() {
    if constexpr (count == 0)
      return Indices<index...>();
    else
      return indices<count - 1, count - 1, index...>();
  }
  template <int... index> static void call(void (*body)(Arguments...), void **params, Indices<index...>) {
    body(*static_cast<Arguments *>(params[index])...);
  }
  static void call(void (*body)(Arguments...), void **params) { call(body, params, indices<parameters>()); }
};
template <class... Arguments> Kernel<Arguments...> kernelOf(void (*)(Arguments...)) { return {}; }
} // namespace

#define KERNEL(name, body)                                                                                             \
  extern const int name##_parameters = decltype(kernelOf(body))::parameters;                                           \
  void name(void **params) { decltype(kernelOf(body))::call(body, params); }

extern "C" {
KERNEL(start, setToIndex)
KERNEL(differentiate, differentiateLoss)
KERNEL(descend, subtract)
KERNEL(draw, takeState)
}

#endif
