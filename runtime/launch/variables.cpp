//===- variables.cpp - A task's variables, in files -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/variables.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/slice_region.h"
#include "core/dtype.h"
#include "data/npz.h"

#include <cstring>
#include <map>

namespace drt {
namespace {

Shape extents(const int64_t *shape, int32_t rank) { return {shape, shape + rank}; }

// Parts of one variable, put together.
struct Whole {
  int32_t dtype;
  Shape shape;
  std::vector<char> bytes;
};

void place(Whole &whole, const drt_variable &variable, const char *data) {
  const int32_t rank = variable.type.rank;
  const int64_t size = dtypeSize(whole.dtype);
  const Region part = {extents(variable.slice_begin, rank), extents(variable.type.shape, rank)};
  const Region all = {Shape(rank, 0), whole.shape};
  RegionRuns runs(part, all);
  for (int64_t from, to, count; runs.next(from, to, count);)
    std::memcpy(whole.bytes.data() + to * size, data + from * size, count * size);
}

} // namespace

void restoreVariables(TaskRuntime &task, const std::string &prefix) {
  const drt_program &program = task.program();
  const CheckpointReader reader(prefix);
  for (int32_t i = 0; i < program.num_variables; ++i) {
    const drt_variable &v = program.variables[i];
    if (!(v.flags & DRT_VARIABLE_SAVED))
      continue;
    const int32_t rank = v.type.rank;
    if (v.full_shape)
      reader.readSlice(v.name, v.type.dtype, extents(v.full_shape, rank), extents(v.slice_begin, rank),
                       extents(v.type.shape, rank), task.variable(i));
    else
      reader.read(v.name, v.type.dtype, extents(v.type.shape, rank), task.variable(i));
  }
}

void saveVariables(const TaskRuntime &task, CheckpointWriter &writer) {
  const drt_program &program = task.program();
  for (int32_t i = 0; i < program.num_variables; ++i) {
    const drt_variable &v = program.variables[i];
    if (!(v.flags & DRT_VARIABLE_SAVED))
      continue;
    const int32_t rank = v.type.rank;
    if (v.full_shape)
      writer.addSlice(v.name, v.type.dtype, extents(v.full_shape, rank), extents(v.slice_begin, rank),
                      extents(v.type.shape, rank), task.variable(i));
    else
      writer.add(v.name, v.type.dtype, extents(v.type.shape, rank), task.variable(i));
  }
}

void exportVariables(const TaskRuntime &task, const std::string &path) {
  const drt_program &program = task.program();
  NpzWriter writer(path);
  std::map<std::string, Whole> parted;
  for (int32_t i = 0; i < program.num_variables; ++i) {
    const drt_variable &v = program.variables[i];
    const int32_t rank = v.type.rank;
    const char *data = static_cast<const char *>(task.variable(i));
    if (!v.full_shape) {
      writer.add(v.name, v.type.dtype, extents(v.type.shape, rank), data);
      continue;
    }
    Whole &whole = parted[v.name];
    if (whole.bytes.empty()) {
      whole = {v.type.dtype, extents(v.full_shape, rank), {}};
      whole.bytes.resize(elementCount({v.type.dtype, rank, v.full_shape}) * dtypeSize(v.type.dtype));
    }
    place(whole, v, data);
  }
  for (const auto &[name, whole] : parted)
    writer.add(name, whole.dtype, whole.shape, whole.bytes.data());
  writer.finish();
}

} // namespace drt
