//===- host_kernels_test.cpp - Kernels of a grid's threads, compiled for the host ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "host_kernels.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace distc::test;

namespace {

constexpr const char *kKernels = R"(
module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" constant @table : memref<2xf32> = dense<[10.0, 20.0]>
    gpu.func @functions(%x: memref<8xf32>, %y: memref<4x8xf32>) workgroup(%s: memref<4xf32, #gpu.address_space<workgroup>>) kernel
        attributes {drt.grid = array<i64: 2, 1, 1>, drt.block = array<i64: 4, 1, 1>} {
      %b = gpu.block_id x
      %t = gpu.thread_id x
      %n = gpu.block_dim x
      %first = arith.muli %b, %n : index
      %i = arith.addi %first, %t : index
      %v = memref.load %x[%i] : memref<8xf32>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %e = math.exp %v : f32
      memref.store %e, %y[%c0, %i] : memref<4x8xf32>
      %r = math.rsqrt %v : f32
      memref.store %r, %y[%c1, %i] : memref<4x8xf32>
      %table = memref.get_global @table : memref<2xf32>
      %entry = memref.load %table[%b] : memref<2xf32>
      memref.store %entry, %s[%t] : memref<4xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %shared = memref.load %s[%t] : memref<4xf32, #gpu.address_space<workgroup>>
      memref.store %shared, %y[%c2, %i] : memref<4x8xf32>
      %lane = arith.index_cast %t : index to i32
      %step = arith.constant 2 : i32
      %width = arith.constant 32 : i32
      %other, %valid = gpu.shuffle xor %lane, %step, %width : i32
      %o = arith.sitofp %other : i32 to f32
      memref.store %o, %y[%c3, %i] : memref<4x8xf32>
      gpu.return
    }
  }
})";

TEST_CASE("kernels compiled for the host are called a thread at a time") {
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  HostKernels kernels(*parse(*context, kKernels));
  float x[8] = {0.5f, 1, 2, 3, 4, 5, 6, 7}, y[4][8] = {};
  kernels.run("functions", {x, y});
  for (int i = 0; i < 8; ++i) {
    CHECK(y[0][i] == Approx(std::exp(x[i])));
    CHECK(y[1][i] == Approx(1 / std::sqrt(x[i])));
    CHECK(y[2][i] == (i < 4 ? 10 : 20));
    CHECK(y[3][i] == ((i % 4) ^ 2));
  }
}

} // namespace
