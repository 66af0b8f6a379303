//===- device_program.cpp - A device's program, written by hand -----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/cuda/program/device_program.h"

#include <fstream>
#include <iterator>
#include <memory>

namespace device_program {

bool failing = false;

namespace {

constexpr int64_t lossOffset = 0, stateOffset = 256, bucketOffset = 512, sumOffset = 1024, arenaBytes = 2048;
constexpr int64_t variableOffset = 256, variableBytes = 768;
static_assert(columns * sizeof(float) <= 512);

enum { Start, Differentiate, Descend, Draw };
constexpr drt_kernel kernels[] = {{"start", {1, 1, 1}, {1, 1, 1}, 1},
                                  {"differentiate", {1, 1, 1}, {1, 1, 1}, 4},
                                  {"descend", {1, 1, 1}, {1, 1, 1}, 3},
                                  {"draw", {1, 1, 1}, {1, 1, 1}, 2}};

constexpr int64_t xShape[] = {rows, columns}, wShape[] = {columns}, stateShape[] = {6};
constexpr drt_type scalar = {DRT_F32, 0, nullptr};
constexpr drt_variable variable = {
    "w", {DRT_F32, 1, wShape}, columns * 4, DRT_VARIABLE_TRAINABLE | DRT_VARIABLE_SAVED, nullptr, nullptr, 0,
    0,   variableOffset};
constexpr drt_feed feeds[] = {{"x", {DRT_F32, 2, xShape}, 1, 0}, {"rate", scalar, 0, 0}};
constexpr drt_fetch fetches[] = {{"loss:0", scalar, DRT_JOIN_MEAN, 0, lossOffset},
                                 {"state:0", {DRT_I32, 1, stateShape}, DRT_JOIN_CONCAT, 0, stateOffset}};
constexpr drt_scope scopes[] = {{"gradients/w", "kernel"}, {"train/w", "update"}};
constexpr drt_member members[] = {{"w", 0, columns, 1, columns}};
constexpr drt_bucket bucket = {
    "group 0", DRT_BUCKET_ALL_REDUCE, DRT_F32, DRT_REDUCE_MEAN, bucketOffset, columns, 1, members, nullptr};

void init(drt_replica *replica) {
  void *arguments[] = {replica->variables[0]};
  drt_launch(replica, Start, arguments);
}

void differentiate(drt_replica *replica) {
  void *arguments[] = {const_cast<void *>(replica->feeds[0]), replica->variables[0], replica->arena + bucketOffset,
                       replica->arena + lossOffset};
  drt_launch(replica, Differentiate, arguments);
}

void step(drt_replica *replica) {
  drt_scope_begin(replica, 0);
  if (failing)
    drt_fail(replica, "the test wants it so");
  differentiate(replica);
  drt_scope_end(replica, 0);
  drt_all_reduce_start(replica, 0);
  void *drawing[] = {drt_random_state(replica, 0, 3, 4), replica->arena + stateOffset};
  drt_launch(replica, Draw, drawing);
  drt_all_reduce_wait(replica, 0);
  drt_scope_begin(replica, 1);
  void *sum = replica->arena + sumOffset;
  drt_copy(replica, sum, drt_all_reduce_result(replica, 0), columns * 4);
  void *arguments[] = {replica->variables[0], sum, const_cast<void *>(replica->feeds[1])};
  drt_launch(replica, Descend, arguments);
  drt_scope_end(replica, 1);
}

void eval(drt_replica *replica) { differentiate(replica); }

constexpr drt_entry entries[] = {{"init", init, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr},
                                 {"step", step, 2, feeds, 2, fetches, 2, scopes, 1, &bucket},
                                 {"eval", eval, 1, feeds, 1, fetches, 0, nullptr, 0, nullptr}};

const std::string &image() {
  static const std::string bytes = [] {
    std::ifstream file(DISTC_TEST_KERNELS, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  return bytes;
}

struct Program {
  drt_image image;
  drt_device_code device;
  std::vector<drt_task> tasks;
  drt_program program;
};

} // namespace

const drt_program &program(int32_t replicas, int32_t tasks) {
  static std::vector<std::unique_ptr<Program>> all; // what a program says of itself is never freed
  Program &p = *all.emplace_back(std::make_unique<Program>());
  p.image = {DISTC_TEST_ARCH, image().data(), static_cast<int64_t>(image().size())};
  p.device = {1, &p.image, 4, kernels, variableBytes};
  for (int32_t i = 0; i < tasks; ++i)
    p.tasks.push_back({"worker", i, "localhost", i * (replicas / tasks), replicas / tasks});
  p.program = {DRT_ABI_VERSION,
               "0.1.0",
               "fake.meta",
               "AllReduce",
               "cuda:emulated",
               rows * replicas,
               replicas,
               arenaBytes,
               tasks,
               p.tasks.data(),
               1,
               &variable,
               -1,
               3,
               entries,
               0,
               1,
               1,
               0,
               "step: gradients/w, group 0, train/w\n",
               &p.device};
  return p.program;
}

std::vector<float> examples(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count * columns));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(static_cast<int>(i * 7919 % 1009) - 500) * 0.01f;
  return x;
}

Expected expected(const std::vector<float> &x, int32_t replicas, int64_t steps, float rate) {
  const int64_t all = static_cast<int64_t>(x.size()) / columns, batch = rows * replicas;
  Expected result;
  for (int64_t j = 0; j < columns; ++j)
    result.w.push_back(static_cast<float>(j));
  for (int64_t k = 0; k < steps; ++k) {
    double loss = 0;
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < batch; ++i) {
        const double d = static_cast<double>(result.w[static_cast<size_t>(j)]) -
                         static_cast<double>(x[static_cast<size_t>((k * batch + i) % all * columns + j)]);
        sum += d;
        loss += d * d / 2;
      }
      result.w[static_cast<size_t>(j)] -= rate * static_cast<float>(sum / static_cast<double>(batch));
    }
    result.losses.push_back(loss / static_cast<double>(batch * columns));
  }
  return result;
}

} // namespace device_program
