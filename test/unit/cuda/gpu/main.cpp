//===- main.cpp - The tests of tasks on devices, on the machine's own -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/support/main.h"

#include "core/error.h"
#include "cuda/device.h"

#include <cstdio>

int main(int argc, char **argv) {
  try {
    drt::cuda::countDevices();
  } catch (const drt::Error &error) {
    std::printf("skipped: %s\n", error.what());
    return 77;
  }
  return runTests(argc, argv);
}
