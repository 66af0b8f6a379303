//===- fiber.h - Stacks that take turns in one thread ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// The threads of a block that wait for each other at barriers. A fiber stays in the thread that made it. Sanitizers are
// told of every switch.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_FIBER_H
#define DRT_CUDA_EMULATOR_FIBER_H

#include <cstddef>

#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace drt::cuda::emulated {

class Fiber {
public:
  /// `body` runs from its beginning at the first resume() and at the first after each return. It must not throw.
  using Body = void (*)(void *argument);
  explicit Fiber(Body body);
  ~Fiber();
  Fiber(const Fiber &) = delete;
  Fiber &operator=(const Fiber &) = delete;

  /// Runs the body until it suspends or returns; true: it returned. Not from within a fiber.
  bool resume(void *argument);
  /// From within a body: back to who resumed it.
  void suspend();

private:
  struct Context {
#ifdef __x86_64__
    void *stackPointer = nullptr;
#else
    ucontext_t context;
#endif
    // What the sanitizers keep of a stack that is left.
    void *fakeStack = nullptr;
    void *tsanFiber = nullptr;
    const void *stack = nullptr;
    size_t stackBytes = 0;
  };
  static void enter();
  static void switchStacks(Context &from, Context &to);
  static void arrived(Context &at, Context *from);
  void prepare();

  Body body_;
  void *argument_ = nullptr;
  char *mapped_;
  bool started_ = false, returned_ = true;
  Context inside_, outside_;
};

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_FIBER_H
