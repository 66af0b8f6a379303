//===- executable_test.cpp - From a plan in drt to an executable that trains ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "data/npz.h"
#include "dialects/drt/Drt.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/lower/Passes.h"
#include "passes/lower/program/EmitObject.h"
#include "passes/lower/program/LinkExecutable.h"
#include "runtime/include/drt/drt.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <unistd.h>

namespace fs = std::filesystem;

namespace {

// Linear regression, two replicas: w -= 0.25 mean(x^T (x w - y)). The update stands where UPDATE is.
constexpr const char *kPlan = R"(
#same = affine_map<(i) -> (i)>
#one = affine_map<(i) -> ()>
module {
  drt.program "by hand" strategy "AllReduce" target "cpu" batch 8 tasks [#drt.task<"worker" 0 on "localhost" replicas 2 from 0>]
  drt.variable @w : tensor<2x1xf32> {trainable, saved}
  drt.kernel @error(%p: memref<4xf32>, %y: memref<4xf32>, %e: memref<4xf32>) {
    linalg.generic {indexing_maps = [#same, #same, #same], iterator_types = ["parallel"]}
        ins(%p, %y : memref<4xf32>, memref<4xf32>) outs(%e : memref<4xf32>) {
      ^bb0(%a: f32, %b: f32, %unused: f32):
        %d = arith.subf %a, %b : f32
        linalg.yield %d : f32
    }
    drt.return
  }
  drt.kernel @loss(%e: memref<4xf32>, %l: memref<f32>) {
    %zero = arith.constant 0.0 : f32
    linalg.fill ins(%zero : f32) outs(%l : memref<f32>)
    linalg.generic {indexing_maps = [#same, #one], iterator_types = ["reduction"]} ins(%e : memref<4xf32>) outs(%l : memref<f32>) {
      ^bb0(%a: f32, %sum: f32):
        %s = arith.mulf %a, %a : f32
        %next = arith.addf %sum, %s : f32
        linalg.yield %next : f32
    }
    drt.return
  }
  drt.kernel range @zero(%begin: i64, %end: i64, %w: memref<2xf32>) {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1 : index
    %b = arith.index_cast %begin : i64 to index
    %e = arith.index_cast %end : i64 to index
    scf.for %i = %b to %e step %one {
      memref.store %zero, %w[%i] : memref<2xf32>
    }
    drt.return
  }
  drt.kernel range @descend(%begin: i64, %end: i64, %g: memref<2xf32>, %w: memref<2xf32>) {
    %rate = arith.constant 0.25 : f32
    %one = arith.constant 1 : index
    %b = arith.index_cast %begin : i64 to index
    %e = arith.index_cast %end : i64 to index
    scf.for %i = %b to %e step %one {
      %at = arith.subi %i, %b : index
      %d = memref.load %g[%at] : memref<2xf32>
      %old = memref.load %w[%i] : memref<2xf32>
      %step = arith.mulf %rate, %d : f32
      %new = arith.subf %old, %step : f32
      memref.store %new, %w[%i] : memref<2xf32>
    }
    drt.return
  }
  drt.entry "init" {
    drt.update {kernel = @zero, variables = [@w], count = 2 : i64} : () -> ()
  }
  drt.entry "step" {
    %x = drt.feed {name = "x", batched} : () -> tensor<4x2xf32>
    %y = drt.feed {name = "y", batched} : () -> tensor<4xf32>
    %w = drt.read @w : tensor<2x1xf32>
    %p = drt.matmul %x, %w : (tensor<4x2xf32>, tensor<2x1xf32>) -> tensor<4x1xf32> loc("predict/MatMul")
    %flat = tensor.collapse_shape %p [[0, 1]] : tensor<4x1xf32> into tensor<4xf32>
    %e = drt.launch @error(%flat, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("error/Sub")
    %l = drt.launch @loss(%e) : (tensor<4xf32>) -> tensor<f32> loc("loss/Sum")
    drt.fetch %l {name = "loss:0", join = 1 : i32} : (tensor<f32>) -> ()
    %column = tensor.expand_shape %e [[0, 1]] output_shape [4, 1] : tensor<4xf32> into tensor<4x1xf32>
    UPDATE
  }
})";

constexpr const char *kFromBucket = R"(
    %g = drt.matmul %x, %column {transpose_a} : (tensor<4x2xf32>, tensor<4x1xf32>) -> tensor<2x1xf32> loc("gradient/MatMul")
    drt.all_reduce_start %g {bucket = 0 : i32, mean = true, names = ["w"]} : (tensor<2x1xf32>) -> ()
    drt.all_reduce_wait 0
    drt.update {kernel = @descend, variables = [@w], bucket = 0 : i32, member = 0 : i64, count = 2 : i64} : () -> ()
)";

// An empty bucket joins the replicas; the operands are a feed and a place in the arena.
constexpr const char *kFromProduct = R"(
    drt.all_reduce_start {bucket = 0 : i32, mean = true, names = []} : () -> ()
    drt.all_reduce_wait 0
    drt.matmul_update %x, %column {kernel = @descend, variables = [@w], transpose_a, scale = 0.5 : f64} : (tensor<4x2xf32>, tensor<4x1xf32>) -> ()
)";

void compile(const std::string &update, const std::string &output) {
  std::string text = kPlan;
  text.replace(text.find("UPDATE"), 6, update);
  mlir::DialectRegistry registry;
  mlir::registerAllDialects(registry);
  registry.insert<distc::drt::DRTDialect>();
  mlir::MLIRContext context(registry);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  REQUIRE(module);
  mlir::PassManager manager(&context);
  manager.addPass(distc::createPlanMemory());
  distc::buildLowerKernelsPipeline(manager);
  manager.addPass(distc::createConvertDrtToLLVM());
  REQUIRE(mlir::succeeded(manager.run(*module)));

  llvm::Expected<distc::Target> target = distc::Target::parse("cpu");
  REQUIRE(bool(target));
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> llvmModule = distc::emitLLVM(*module, llvmContext);
  REQUIRE(llvmModule);
  auto objects = distc::emitObjects(*llvmModule, *target, {});
  REQUIRE(bool(objects));
  llvm::Error linked = distc::linkExecutable(*objects, DISTC_RUNTIME_FOLDER, *target, {}, output);
  std::string message = linked ? llvm::toString(std::move(linked)) : "";
  INFO(message);
  REQUIRE(message.empty());
}

const std::vector<float> kX = {1, 0, 0, 1, 1, 1, 2, 1, -1, 0, 0, -1, 1, -1, 2, -1}, kY = {2, -3, -1, 1, -2, 3, 5, 7};

std::vector<double> expectedWeights(int steps) {
  std::vector<double> w(2, 0.0);
  for (int step = 0; step < steps; ++step) {
    double gradient[2] = {0, 0};
    for (size_t row = 0; row < kY.size(); ++row) {
      double error = kX[2 * row] * w[0] + kX[2 * row + 1] * w[1] - kY[row];
      for (size_t i = 0; i < 2; ++i)
        gradient[i] += kX[2 * row + i] * error / 2; // the mean over two replicas
    }
    for (size_t i = 0; i < 2; ++i)
      w[i] -= 0.25 * gradient[i];
  }
  return w;
}

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("executable" + std::to_string(getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator()(const std::string &name) const { return (path / name).string(); }
  fs::path path;
};

} // namespace

TEST_CASE("a plan becomes an executable that trains") {
  const Folder folder;
  drt::NpzWriter writer(folder("data.npz"));
  writer.add("x", DRT_F32, {8, 2}, kX.data());
  writer.add("y", DRT_F32, {8}, kY.data());
  writer.finish();

  const std::string update = GENERATE(as<std::string>(), kFromBucket, kFromProduct);
  compile(update, folder("train"));
  CHECK(std::distance(fs::directory_iterator(folder.path), {}) == 2); // nothing beside the executable
  const std::string command = folder("train") + " --quiet --data " + folder("data.npz") + " --steps 3 --export-npz " +
                              folder("final.npz") + " > " + folder("out");
  REQUIRE(std::system(command.c_str()) == 0);
  const drt::NpyArray w = drt::NpzReader(folder("final.npz")).read("w");
  const std::vector<double> expected = expectedWeights(3);
  for (size_t i = 0; i < 2; ++i)
    CHECK(static_cast<const float *>(w.data)[i] == Approx(expected[i]));
  fs::remove(folder("final.npz"));
}
