//===- random_kernels_test.cpp - Kernels draw the runtime's random numbers ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "host_kernels.h"

#include "mlir/Pass/PassManager.h"
#include "passes/lower/Passes.h"
#include "random/distributions.h"

#include <catch2/catch.hpp>
#include <cstring>

using namespace distc::test;

namespace {

constexpr int kReplicas = 3;

struct Draw {
  int32_t distribution;
  int32_t dtype;
  int64_t count;
  bool perReplica, stateless;
  bool keyed = false; // of a stateless one
  bool all = false;   // integers without bounds
};

// Counts that are no multiples of a group, of a block of threads, and smaller than a group.
std::vector<Draw> allDraws() {
  std::vector<Draw> draws;
  for (bool stateless : {false, true})
    for (bool perReplica : {false, true})
      for (int64_t count : {1, 6, 1024, 1031}) {
        for (int32_t distribution : {DRT_RANDOM_UNIFORM, DRT_RANDOM_NORMAL, DRT_RANDOM_TRUNCATED_NORMAL})
          for (int32_t dtype : {DRT_F32, DRT_F64})
            draws.push_back({distribution, dtype, count, perReplica, stateless});
        for (int32_t dtype : {DRT_I32, DRT_I64})
          draws.push_back({DRT_RANDOM_UNIFORM_INT, dtype, count, perReplica, stateless});
        if (stateless)
          draws.push_back({DRT_RANDOM_NORMAL, DRT_F32, count, perReplica, stateless, /*keyed=*/true});
        for (int32_t dtype : {DRT_I32, DRT_I64})
          if (stateless)
            draws.push_back(
                {DRT_RANDOM_UNIFORM_INT, dtype, count, perReplica, stateless, /*keyed=*/false, /*all=*/true});
      }
  return draws;
}

std::string typeName(int32_t dtype) {
  return dtype == DRT_F32 ? "f32" : dtype == DRT_F64 ? "f64" : dtype == DRT_I32 ? "i32" : "i64";
}

// Draw i is the kernel random_i: no two are equal.
std::string program(const std::vector<Draw> &draws) {
  std::string text =
      "drt.program \"by hand\" strategy \"AllReduce\" target \"cpu\" batch 0 tasks [#drt.task<\"worker\" 0 on "
      "\"localhost\" replicas " +
      std::to_string(kReplicas) +
      " from 0>]\ndrt.entry \"step\" {\n"
      "%seed = drt.feed {name = \"seed\"} : () -> tensor<2xi64>\n"
      "%key = drt.feed {name = \"key\"} : () -> tensor<3xi64>\n";
  for (const std::string type : {"i32", "i64"})
    text += "%" + type + " = drt.feed {name = \"" + type + "\"} : () -> tensor<" + type + ">\n";
  for (const Draw &draw : draws) {
    const std::string element = typeName(draw.dtype);
    const bool integers = draw.distribution == DRT_RANDOM_UNIFORM_INT && !draw.all;
    const std::string bounds = integers ? "%" + element + ", %" + element : "", bound = "tensor<" + element + ">";
    const std::string seed = draw.keyed ? "%key" : "%seed";
    text += draw.stateless ? "drt.random_stateless " + seed + (integers ? ", " + bounds : "") : "drt.random " + bounds;
    text += " {distribution = " + std::to_string(draw.distribution) + " : i32" +
            (draw.stateless ? "" : ", seed = 5 : i64, seed2 = 6 : i64") + (draw.perReplica ? ", per_replica" : "") +
            (draw.keyed ? ", keyed" : "") + "} : (";
    text += draw.keyed ? "tensor<3xi64>" : draw.stateless ? "tensor<2xi64>" : "";
    text += integers ? (draw.stateless ? ", " : "") + bound + ", " + bound : "";
    text += ") -> tensor<" + std::to_string(draw.count) + "x" + element + ">\n";
  }
  return text + "}\n";
}

struct State {
  uint32_t words[7];
};

// The lowest word carries to the highest.
constexpr uint64_t kKey = 0x123456789abcdef, kLow = 0xfffffffffffffff0, kHigh = 0xfedcba9876543210;
State stateOf(uint64_t low, uint64_t high, int replica) {
  auto part = [](uint64_t word, int shift) { return static_cast<uint32_t>(word >> shift); };
  return {{part(low, 0), part(low, 32), part(high, 0), part(high, 32), part(kKey, 0), part(kKey, 32),
           static_cast<uint32_t>(replica)}};
}

template <class T> void check(const HostKernels &kernels, const std::string &kernel, const Draw &draw, int replica) {
  T low = 3, high = 17;
  int64_t seed[2] = {7, 9};
  uint64_t keyAndCounter[3] = {kKey, kLow, kHigh};
  State state = stateOf(kLow, kHigh, replica);
  std::vector<T> drawn(static_cast<size_t>(draw.count)), expected(drawn.size());
  std::vector<void *> arguments;
  if (draw.stateless)
    arguments.push_back(draw.keyed ? static_cast<void *>(keyAndCounter) : seed);
  if (!draw.stateless || draw.perReplica)
    arguments.push_back(&state);
  if (draw.distribution == DRT_RANDOM_UNIFORM_INT && !draw.all) {
    arguments.push_back(&low);
    arguments.push_back(&high);
  }
  arguments.push_back(drawn.data());
  kernels.run(kernel, arguments);

  const drt_random_desc desc = {draw.dtype, draw.distribution, 0, 0, draw.count, draw.perReplica, 0, 0, 0};
  const drt::Philox generator =
      draw.stateless && !draw.keyed ? drt::statelessGenerator(seed) : drt::Philox(kKey, kLow, kHigh);
  drt::fillRandom(generator, desc, draw.perReplica ? replica * draw.count : 0, draw.all ? nullptr : &low,
                  draw.all ? nullptr : &high, expected.data());
  const bool exact = draw.distribution == DRT_RANDOM_UNIFORM || draw.distribution == DRT_RANDOM_UNIFORM_INT;
  for (size_t i = 0; i < drawn.size(); ++i) {
    INFO("element " << i);
    if (exact)
      REQUIRE(drawn[i] == expected[i]);
    else // Up to the last bits of logarithm, sine and cosine.
      REQUIRE(static_cast<double>(drawn[i]) == Approx(static_cast<double>(expected[i])).epsilon(1e-5).margin(1e-6));
  }
}

mlir::OwningOpRef<mlir::ModuleOp> compile(mlir::MLIRContext &context, const std::vector<Draw> &draws) {
  mlir::OwningOpRef<mlir::ModuleOp> module = parse(context, program(draws));
  mlir::PassManager manager(&context);
  manager.addPass(distc::createRandomKernels());
  REQUIRE(mlir::succeeded(manager.run(*module)));
  return module;
}

TEST_CASE("kernels draw the runtime's random numbers") {
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  const std::vector<Draw> draws = allDraws();
  HostKernels kernels(*compile(*context, draws));
  for (size_t i = 0; i < draws.size(); ++i)
    for (int replica = 0; replica < kReplicas; ++replica) {
      const Draw &draw = draws[i];
      const std::string kernel = "random_" + std::to_string(i);
      INFO(kernel << ": distribution " << draw.distribution << " of " << typeName(draw.dtype) << ", " << draw.count
                  << " elements, per replica " << draw.perReplica << ", stateless " << draw.stateless << ", replica "
                  << replica);
      switch (draw.dtype) {
      case DRT_F32:
        check<float>(kernels, kernel, draw, replica);
        break;
      case DRT_F64:
        check<double>(kernels, kernel, draw, replica);
        break;
      case DRT_I32:
        check<int32_t>(kernels, kernel, draw, replica);
        break;
      default:
        check<int64_t>(kernels, kernel, draw, replica);
      }
    }
}

TEST_CASE("states are moved on as the runtime moves them") {
  std::unique_ptr<mlir::MLIRContext> context = createContext();
  const std::vector<Draw> draws = {{DRT_RANDOM_UNIFORM, DRT_F32, 1000, false, false},
                                   {DRT_RANDOM_NORMAL, DRT_F32, 7, true, false}};
  HostKernels kernels(*compile(*context, draws));
  State states[2] = {stateOf(kLow, kHigh, 2), stateOf(kLow, kHigh, 2)};
  kernels.run("random_advance_0", {&states[0], &states[1]});
  for (size_t i = 0; i < 2; ++i) {
    const drt_random_desc desc = {draws[i].dtype, draws[i].distribution, 0, 0, draws[i].count, draws[i].perReplica, 0};
    const uint64_t low = kLow + drt::reservedPositions(desc, kReplicas);
    const State expected = stateOf(low, kHigh + (low < kLow), 2);
    CHECK(std::memcmp(&states[i], &expected, sizeof expected) == 0);
  }
}

} // namespace
