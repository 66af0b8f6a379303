//===- division_test.cpp - Integer divisions by zero ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/division.h"

#include <catch2/catch.hpp>

#include <string>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((no_sanitize("integer-divide-by-zero"))) static int divide(volatile int &x, volatile int &y) {
  return x / y;
}

TEST_CASE("an integer divided by zero ends the process with status 1 and a message") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    drt::reportDivisionsByZero();
    volatile int one = 1, zero = 0;
    _exit(divide(one, zero) ? 0 : 2);
  }
  close(ends[1]);
  std::string message;
  char buffer[256];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    message.append(buffer, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
  CHECK_THAT(message, Catch::Matchers::StartsWith("error: an integer is divided by zero"));
}
