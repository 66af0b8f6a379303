//===- fake_program.cpp - What generated code would be, written by hand ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "test/unit/support/fake_program.h"

#include <chrono>
#include <memory>
#include <thread>

namespace fake {

int32_t failing_replica = -1, hanging_replica = -1;

namespace {

// Arena: the loss in the first cache line, then the bucket, then eval's result.
constexpr int64_t lossOffset = 0, bucketOffset = 64, rowMeanOffset = 64 + columns * 4 + 64 - columns * 4 % 64;

struct Shapes {
  int64_t x[2], rate[1], w[1], rowMeans[1];
};

struct Program {
  Shapes shapes;
  drt_variable variable;
  drt_feed feeds[2], evalFeeds[1];
  drt_fetch stepFetches[1], evalFetches[2];
  drt_scope scopes[2];
  drt_bucket bucket;
  drt_member members[1];
  drt_entry entries[3];
  std::vector<drt_task> tasks;
  drt_program program;
};

void setToIndex(int64_t begin, int64_t end, const void *, void *const *arguments) {
  for (int64_t i = begin; i < end; ++i)
    static_cast<float *>(arguments[0])[i] = static_cast<float>(i);
}

void descend(int64_t begin, int64_t end, const void *gradient, void *const *arguments) {
  float *w = static_cast<float *>(arguments[0]);
  const float rate = *static_cast<const float *>(arguments[1]);
  for (int64_t i = begin; i < end; ++i)
    w[i] -= rate * static_cast<const float *>(gradient)[i - begin];
}

void init(drt_replica *replica) {
  void *arguments[] = {replica->variables[0]};
  drt_update_local(replica, columns, setToIndex, arguments);
}

int64_t rowsOf(drt_replica *replica);

void step(drt_replica *replica) {
  drt_scope_begin(replica, 0);
  if (replica->global_index == failing_replica && replica->step == 3)
    drt_fail(replica, "the test wants it so");
  while (replica->global_index == hanging_replica && replica->step == 3)
    std::this_thread::sleep_for(std::chrono::seconds(1));
  const float *x = static_cast<const float *>(replica->feeds[0]);
  const float *w = static_cast<const float *>(replica->variables[0]);
  float *gradient = reinterpret_cast<float *>(replica->arena + bucketOffset);
  const int64_t rows = rowsOf(replica);
  double loss = 0;
  for (int64_t j = 0; j < columns; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < rows; ++i) {
      const double d = w[j] - x[i * columns + j];
      sum += d;
      loss += d * d / 2;
    }
    gradient[j] = static_cast<float>(sum / static_cast<double>(rows));
  }
  *reinterpret_cast<float *>(replica->arena + lossOffset) =
      static_cast<float>(loss / static_cast<double>(rows * columns));
  drt_scope_end(replica, 0);
  drt_all_reduce_start(replica, 0);
  drt_all_reduce_wait(replica, 0);
  drt_scope_begin(replica, 1);
  void *arguments[] = {replica->variables[0], const_cast<void *>(replica->feeds[1])};
  drt_update(replica, 0, 0, columns, descend, arguments);
  drt_scope_end(replica, 1);
}

// row_means[i] = mean of row i of x; the mean of those, too.
void eval(drt_replica *replica) {
  const float *x = static_cast<const float *>(replica->feeds[0]);
  float *means = reinterpret_cast<float *>(replica->arena + rowMeanOffset);
  const int64_t rows = rowsOf(replica);
  double all = 0;
  for (int64_t i = 0; i < rows; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < columns; ++j)
      sum += x[i * columns + j];
    means[i] = static_cast<float>(sum / columns);
    all += sum / columns;
  }
  *reinterpret_cast<float *>(replica->arena + lossOffset) = static_cast<float>(all / static_cast<double>(rows));
}

int64_t localRows = 0; // the same in every replica of a program; set by program()

int64_t rowsOf(drt_replica *) { return localRows; }

} // namespace

const drt_program &program(int32_t replicas, int32_t tasks, int64_t batch) {
  static std::vector<std::unique_ptr<Program>> all; // what a program says of itself is never freed
  Program &p = *all.emplace_back(std::make_unique<Program>());
  localRows = batch / replicas;
  p.shapes = {{localRows, columns}, {0}, {columns}, {localRows}};
  const drt_type f32w = {DRT_F32, 1, p.shapes.w}, scalar = {DRT_F32, 0, p.shapes.rate};
  p.variable = {"w", f32w, columns * 4, DRT_VARIABLE_TRAINABLE | DRT_VARIABLE_SAVED, nullptr, nullptr, 0, 0, 0};
  p.feeds[0] = {"x", {DRT_F32, 2, p.shapes.x}, 1, 0};
  p.feeds[1] = {"rate", scalar, 0, 0};
  p.evalFeeds[0] = p.feeds[0];
  p.stepFetches[0] = {"loss:0", scalar, DRT_JOIN_MEAN, 0, lossOffset};
  p.evalFetches[0] = {"row_mean:0", {DRT_F32, 1, p.shapes.rowMeans}, DRT_JOIN_CONCAT, 0, rowMeanOffset};
  p.evalFetches[1] = {"mean:0", scalar, DRT_JOIN_MEAN, 0, lossOffset};
  p.scopes[0] = {"gradients/w", "kernel"};
  p.scopes[1] = {"train/w", "update"};
  p.members[0] = {"w", 0, columns, 1, columns};
  p.bucket = {"group 0", DRT_BUCKET_ALL_REDUCE, DRT_F32, DRT_REDUCE_MEAN, bucketOffset, columns, 1, p.members, nullptr};
  p.entries[0] = {"init", init, 0, nullptr, 0, nullptr, 0, nullptr, 0, nullptr};
  p.entries[1] = {"step", step, 2, p.feeds, 1, p.stepFetches, 2, p.scopes, 1, &p.bucket};
  p.entries[2] = {"eval", eval, 1, p.evalFeeds, 2, p.evalFetches, 0, nullptr, 0, nullptr};
  for (int32_t i = 0; i < tasks; ++i)
    p.tasks.push_back({"worker", i, "localhost", i * (replicas / tasks), replicas / tasks});
  p.program = {DRT_ABI_VERSION,
               "0.1.0",
               "fake.meta",
               "AllReduce",
               "x86-64",
               batch,
               replicas,
               rowMeanOffset + localRows * 4,
               tasks,
               p.tasks.data(),
               1,
               &p.variable,
               -1,
               3,
               p.entries,
               0,
               0,
               1,
               0,
               "step: gradients/w, group 0, train/w\n",
               nullptr};
  return p.program;
}

std::vector<float> expected(const std::vector<float> &x, int64_t batch, int64_t steps, float rate) {
  const int64_t rows = static_cast<int64_t>(x.size()) / columns;
  std::vector<float> w(columns);
  for (int64_t j = 0; j < columns; ++j)
    w[j] = static_cast<float>(j);
  for (int64_t k = 0; k < steps; ++k)
    for (int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < batch; ++i)
        sum += w[j] - x[(k * batch + i) % rows * columns + j];
      w[j] -= rate * static_cast<float>(sum / static_cast<double>(batch));
    }
  return w;
}

} // namespace fake
