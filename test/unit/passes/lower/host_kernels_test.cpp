//===- host_kernels_test.cpp - Kernels of a grid's threads, compiled for the host ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "dialects/drt/Drt.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/lower/Passes.h"
#include "runtime/cuda/emulator/emulated.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace fs = std::filesystem;

// ---- The emulator: threads one behind the other, so there is nothing to wait for -------

static uint32_t registers[13];

extern "C" uint32_t drt_emulated_register(int32_t which) { return registers[which]; }
extern "C" void drt_emulated_barrier(void) {}
// What lane `lane` gives is known to the test: every lane has its own number as value.
extern "C" uint32_t drt_emulated_shuffle(int32_t mode, uint32_t mask, uint32_t value, uint32_t lane, uint32_t clamp) {
  REQUIRE(mode == DRT_EMULATED_BUTTERFLY);
  REQUIRE(mask == 0xffffffffu);
  REQUIRE(clamp == 31);
  return value ^ lane;
}

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

// The shared object of the module's only image, in `path`.
void compile(const fs::path &path) {
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  registry.insert<distc::drt::DRTDialect>();
  mlir::MLIRContext context(registry);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(kKernels, &context);
  REQUIRE(module);
  mlir::PassManager manager(&context);
  distc::buildLowerGpuKernelsPipeline(manager);
  distc::MakeImagesOptions options;
  options.target = "cuda:emulated";
  manager.addPass(distc::createMakeImages(options));
  REQUIRE(mlir::succeeded(manager.run(*module)));
  auto images = (*module)->getAttrOfType<mlir::ArrayAttr>(distc::drt::kImagesAttr);
  REQUIRE(images.size() == 1);
  auto image = mlir::cast<mlir::DictionaryAttr>(images[0]);
  CHECK(image.getAs<mlir::StringAttr>("arch").getValue() == "host");
  llvm::StringRef data = image.getAs<mlir::StringAttr>("data").getValue();
  std::ofstream(path, std::ios::binary).write(data.data(), static_cast<std::streamsize>(data.size()));
}

TEST_CASE("kernels compiled for the host are called a thread at a time") {
  const fs::path path = fs::temp_directory_path() / ("distc-kernels-" + std::to_string(getpid()) + ".so");
  compile(path);
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  INFO((library ? "" : dlerror()));
  fs::remove(path);
  REQUIRE(library);
  auto kernel = reinterpret_cast<void (*)(void **)>(dlsym(library, "functions"));
  REQUIRE(kernel);
  auto *count = static_cast<const int32_t *>(dlsym(library, "functions_parameters"));
  REQUIRE(count);
  CHECK(*count == 2);

  float x[8] = {0.5f, 1, 2, 3, 4, 5, 6, 7}, y[4][8] = {};
  void *buffers[] = {x, y}, *parameters[] = {&buffers[0], &buffers[1]};
  registers[DRT_EMULATED_NTID] = 4;
  registers[DRT_EMULATED_NCTAID] = 2;
  for (uint32_t block = 0; block < 2; ++block)
    for (uint32_t thread = 0; thread < 4; ++thread) {
      registers[DRT_EMULATED_CTAID] = block;
      registers[DRT_EMULATED_TID] = thread;
      kernel(parameters);
    }
  for (int i = 0; i < 8; ++i) {
    CHECK(y[0][i] == Approx(std::exp(x[i])));
    CHECK(y[1][i] == Approx(1 / std::sqrt(x[i])));
    CHECK(y[2][i] == (i < 4 ? 10 : 20));
    CHECK(y[3][i] == ((i % 4) ^ 2));
  }
  dlclose(library);
}

} // namespace
