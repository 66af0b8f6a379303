//===- secret_test.cpp - Proofs of a secret -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/secret.h"

#include "core/error.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace drt;
using Catch::Contains;

TEST_CASE("a proof is of one secret and one statement") {
  const std::string secret = make_secret();
  CHECK(secret.size() == 64);
  CHECK(make_secret() != secret);
  CHECK(make_nonce().size() == 32);
  const std::string proof = prove(secret, {"task", "1"});
  CHECK(proof.size() == 32);
  CHECK(is_proof(secret, {"task", "1"}, proof));
  CHECK_FALSE(is_proof(make_secret(), {"task", "1"}, proof));
  CHECK_FALSE(is_proof(secret, {"task", "2"}, proof));
  CHECK_FALSE(is_proof(secret, {"task1"}, proof));
  CHECK_FALSE(is_proof(secret, {"tas", "k1"}, proof));
  CHECK_FALSE(is_proof(secret, {"task", "1"}, ""));
  CHECK_FALSE(is_proof(secret, {"task", "1"}, proof + "x"));
}

TEST_CASE("a secret comes from its file, or from the environment") {
  const std::string file = (std::filesystem::temp_directory_path() / ("secret-" + std::to_string(getpid()))).string();
  const auto write = [&](const std::string &text) { std::ofstream(file) << text; };
  unsetenv(secret_variable);
  CHECK(find_secret("") == "");
  setenv(secret_variable, "that of the environment", 1);
  CHECK(find_secret("") == "that of the environment");
  write("that of the file\n");
  CHECK(find_secret(file) == "that of the file");
  write("short\n");
  CHECK_THROWS_WITH(find_secret(file), Contains(file) && Contains("can be guessed"));
  write("");
  CHECK_THROWS_WITH(find_secret(file), Contains("0 characters"));
  std::remove(file.c_str());
  CHECK_THROWS_WITH(find_secret(file), Contains("--secret-file " + file + ": No such file"));
  unsetenv(secret_variable);
}
