//===- library_test.cpp - Libraries that are there, and that are not ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "cuda/api/library.h"
#include "cuda/api/tables.h"

#include <catch2/catch.hpp>

using namespace drt;
using namespace drt::cuda;
using Catch::Matchers::Contains;

TEST_CASE("a library that is missing is an error that says where it was looked for") {
  CHECK_THROWS_WITH(Library({"cuFoo", {"libcufoo.so.13", "libcufoo.so.12"}, "install cuFoo"}),
                    Contains("cannot open cuFoo, libcufoo.so.13 or libcufoo.so.12") && Contains("LD_LIBRARY_PATH") &&
                        Contains("/usr/local/cuda/lib64") && Contains("beside the executable") &&
                        Contains("install cuFoo"));
  CHECK_THROWS_WITH(Library({"the C library", {"libc.so.6"}, "install another"}).symbol("cuFooBar"),
                    Contains("too old") && Contains("cuFooBar") && Contains("install another"));
  CHECK(Library({"the C library", {"libc.so.6"}, "install another"}).symbol("cuFooBar", "malloc") != nullptr);
}

TEST_CASE("the driver's version says which libraries there may be") {
  using Names = std::vector<std::string>;
  CHECK(sonamesFor("libfoo.so", 13010) == Names{"libfoo.so.13", "libfoo.so.12"});
  CHECK(sonamesFor("libfoo.so", 12040) == Names{"libfoo.so.12"});
  CHECK(sonamesFor("libfoo.so", 14000) == Names{"libfoo.so.13", "libfoo.so.12"});
  CHECK_THROWS_WITH(sonamesFor("libfoo.so", 11080), Contains("is of CUDA 11.8") && Contains("update NVIDIA's driver"));
  CHECK_NOTHROW(requireDriver("cuDNN", 12060, 12040)); // any minor version
  CHECK_THROWS_WITH(requireDriver("cuDNN", 13000, 12040), Contains("cuDNN was built for CUDA 13.0") &&
                                                              Contains("of CUDA 12.4") &&
                                                              Contains("install the one for CUDA 12"));
}

// A machine need not have them; those that it has have every function.
TEST_CASE("the machine's libraries have every function that the tables list") {
  const auto opened = [](const char *soname, const auto &table) {
    try {
      table();
    } catch (const Error &error) {
      CHECK_THAT(error.what(), Contains(soname) && Contains("it was looked for"));
      WARN(error.what());
    }
  };
  opened("libcuda.so.1", [] { driver(); });
  // Which of them is taken, the driver says.
  opened("libcu", [] { cublasLt(); });
  opened("libcu", [] {
    const size_t version = cudnn().cudnnGetVersion();
    CHECK(version >= 90000);
  });
  opened("libnccl.so.2", [] {
    int version = 0;
    const ncclResult_t status = nccl().ncclGetVersion(&version);
    CHECK(status == ncclSuccess);
    CHECK(version >= 22000);
  });
}
