//===- main.cpp - main of every executable that distc makes ---------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/program.h"

int main(int argc, char **argv) { return drt::runProgram(drt_the_program, argc, argv); }
