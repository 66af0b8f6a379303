//===- fiber.cpp - Stacks that take turns in one thread -------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/fiber.h"

#include "cuda/emulator/failure.h"

#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DRT_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define DRT_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define DRT_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define DRT_TSAN 1
#endif
#ifdef DRT_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef DRT_TSAN
#include <sanitizer/tsan_interface.h>
#endif

using namespace drt::cuda::emulated;

namespace {
constexpr size_t stackBytes = 128 << 10, guardBytes = 4 << 10;
thread_local Fiber *entering = nullptr;
} // namespace

#ifdef __x86_64__
// swapcontext of the C library asks the kernel for the signal mask at each switch, which costs more than a kernel's
// thread. The registers that a callee must keep lie on the stack that is left.
extern "C" void drt_emulated_switch_stacks(void **from, void *to);
asm(R"(
  .text
  .globl drt_emulated_switch_stacks
  .hidden drt_emulated_switch_stacks
  .type drt_emulated_switch_stacks,@function
drt_emulated_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  retq
  .size drt_emulated_switch_stacks, .-drt_emulated_switch_stacks
)");
#endif

Fiber::Fiber(Body body) : body_(body) {
  void *mapped = mmap(nullptr, stackBytes + guardBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  require(mapped != MAP_FAILED, CUDA_ERROR_OUT_OF_MEMORY, "no memory for the stack of a kernel's thread");
  mapped_ = static_cast<char *>(mapped);
  mprotect(mapped_, guardBytes, PROT_NONE);
  inside_.stack = mapped_ + guardBytes;
  inside_.stackBytes = stackBytes;
#ifdef DRT_TSAN
  inside_.tsanFiber = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#ifdef DRT_TSAN
  __tsan_destroy_fiber(inside_.tsanFiber);
#endif
  munmap(mapped_, stackBytes + guardBytes);
}

void Fiber::prepare() {
#ifdef __x86_64__
  // As after a call: the stack pointer is 8 off a multiple of 16 when enter() begins.
  void **top = reinterpret_cast<void **>(mapped_ + guardBytes + stackBytes);
  *--top = nullptr;
  *--top = reinterpret_cast<void *>(&Fiber::enter);
  inside_.stackPointer = top - 6; // registers that nobody reads
#else
  getcontext(&inside_.context);
  inside_.context.uc_stack.ss_sp = mapped_ + guardBytes;
  inside_.context.uc_stack.ss_size = stackBytes;
  inside_.context.uc_link = nullptr;
  makecontext(&inside_.context, &Fiber::enter, 0);
#endif
}

void Fiber::enter() {
  Fiber *fiber = entering;
  arrived(fiber->inside_, &fiber->outside_);
  for (;;) {
    fiber->body_(fiber->argument_);
    fiber->returned_ = true;
    fiber->suspend();
  }
}

bool Fiber::resume(void *argument) {
  argument_ = argument;
  if (!started_) {
    started_ = true;
    prepare();
    entering = this;
  }
  returned_ = false;
#ifdef DRT_TSAN
  outside_.tsanFiber = __tsan_get_current_fiber();
#endif
  switchStacks(outside_, inside_);
  return returned_;
}

void Fiber::suspend() { switchStacks(inside_, outside_); }

// Who comes to a stack finishes the switch; the first time it also learns where the stack that it left lies.
void Fiber::arrived(Context &at, Context *from) {
#ifdef DRT_ASAN
  __sanitizer_finish_switch_fiber(at.fakeStack, from ? &from->stack : nullptr, from ? &from->stackBytes : nullptr);
#endif
}

void Fiber::switchStacks(Context &from, Context &to) {
#ifdef DRT_ASAN
  __sanitizer_start_switch_fiber(&from.fakeStack, to.stack, to.stackBytes);
#endif
#ifdef DRT_TSAN
  __tsan_switch_to_fiber(to.tsanFiber, 0);
#endif
#ifdef __x86_64__
  drt_emulated_switch_stacks(&from.stackPointer, to.stackPointer);
#else
  swapcontext(&from.context, &to.context);
#endif
  arrived(from, &to);
}
