//===- main.h - Runs a program's Catch2 tests ----------------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_SUPPORT_MAIN_H
#define DISTC_TEST_UNIT_SUPPORT_MAIN_H

/// The exit status, as Catch2's own main gives it.
int runTests(int argc, char **argv);

#endif // DISTC_TEST_UNIT_SUPPORT_MAIN_H
