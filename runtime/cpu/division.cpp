//===- division.cpp - Integer divisions by zero ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/division.h"

#include "cpu/replica.h"

#include <csignal>
#include <cstring>
#include <unistd.h>
#include <utility>

namespace drt {
namespace {

thread_local const Replica *dividing = nullptr;

void print(const char *text) {
  for (size_t left = std::strlen(text); left > 0;) {
    const ssize_t written = write(STDERR_FILENO, text, left);
    if (written <= 0)
      return;
    text += written;
    left -= static_cast<size_t>(written);
  }
}

// Only what may be called in a signal handler.
void endProcess(int, siginfo_t *info, void *) {
  print("error: ");
  const Replica *replica = dividing;
  const int32_t scope = replica ? replica->scope.load(std::memory_order_relaxed) : -1;
  if (replica && replica->entry && scope >= 0 && scope < replica->entry->num_scopes) {
    print(replica->entry->scopes[scope].name);
    print(": ");
  }
  print(info->si_code == FPE_INTDIV || info->si_code == FPE_INTOVF
            ? "an integer is divided by zero, or the lowest one by -1; look at the data that the divisor follows from\n"
            : "an arithmetic operation has no result\n");
  _exit(1);
}

} // namespace

void reportDivisionsByZero() {
  struct sigaction action = {};
  action.sa_sigaction = endProcess;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGFPE, &action, nullptr);
}

const Replica *setDividingReplica(const Replica *replica) { return std::exchange(dividing, replica); }

} // namespace drt
