//===- variables.cpp - A task's variables, in files -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/variables.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/object_graph.h"
#include "checkpoint/slice_region.h"
#include "core/dtype.h"
#include "data/npz.h"
#include "drt/objects.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

namespace drt {
namespace {

Shape extents(const int64_t *shape, int32_t rank) { return {shape, shape + rank}; }

// A variable's key in the checkpoints of its program.
std::string keyOf(const drt_variable &variable) {
  if (&drt_the_objects)
    for (int32_t i = 0; i < drt_the_objects.num_keys; ++i)
      if (std::strcmp(drt_the_objects.keys[i].variable, variable.name) == 0)
        return drt_the_objects.keys[i].key;
  return variable.name;
}

std::string_view objectGraph() {
  return &drt_the_objects ? std::string_view(drt_the_objects.graph, size_t(drt_the_objects.graph_bytes)) : "";
}

// Parts of one variable, put together.
struct Whole {
  int32_t dtype;
  Shape shape;
  std::vector<char> bytes;
};

// By name.
using Wholes = std::map<std::string, Whole>;

void place(Wholes &wholes, const std::string &name, const drt_variable &variable, const void *source) {
  const int32_t rank = variable.type.rank;
  const char *data = static_cast<const char *>(source);
  Whole &whole = wholes[name];
  if (whole.bytes.empty()) {
    whole = {variable.type.dtype, extents(variable.full_shape, rank), {}};
    whole.bytes.resize(elementCount({whole.dtype, rank, variable.full_shape}) * dtypeSize(whole.dtype));
  }
  const int64_t size = dtypeSize(whole.dtype);
  const Region part = {extents(variable.slice_begin, rank), extents(variable.type.shape, rank)};
  const Region all = {Shape(rank, 0), whole.shape};
  RegionRuns runs(part, all);
  for (int64_t from, to, count; runs.next(from, to, count);)
    std::memcpy(whole.bytes.data() + to * size, data + from * size, count * size);
}

template <typename Writer> void writeAll(Writer &writer, const Wholes &wholes) {
  for (const auto &[name, whole] : wholes)
    writer.add(name, whole.dtype, whole.shape, whole.bytes.data());
}

// Calls `use` with each variable that checkpoints hold, and its number.
template <typename Use> void forEachSaved(const drt_program &program, Use use) {
  for (int32_t i = 0; i < program.num_variables; ++i)
    if (program.variables[i].flags & DRT_VARIABLE_SAVED)
      use(program.variables[i], i);
}

// Whether the tasks do not all have it: shares, or what one of them owns.
bool isSpread(const drt_variable &v) { return v.shares > 0 || v.owner > 0; }

// Of all shares, or of the variable as its owner has it.
drt_type wholeType(const drt_variable &v) {
  return v.shares ? drt_type{v.type.dtype, v.full_rank, v.full_shape} : v.type;
}

} // namespace

bool hasSpread(const drt_program &program) {
  return std::any_of(program.variables, program.variables + program.num_variables, isSpread);
}

WholeVariables::WholeVariables(TaskRuntime &task) : task_(task), wholes_(task.program().num_variables) {
  const drt_program &program = task.program();
  const bool first = !task.communicator() || task.communicator()->rank() == 0;
  task.fetchVariables();
  for (int32_t i = 0; i < program.num_variables; ++i) {
    const drt_variable &v = program.variables[i];
    if (!isSpread(v))
      continue;
    if (first)
      wholes_[i].resize(elementCount(wholeType(v)) * dtypeSize(v.type.dtype));
    task.gatherShares(i, first ? wholes_[i].data() : nullptr);
  }
}

const void *WholeVariables::data(int32_t variable) const {
  return isSpread(task_.program().variables[variable]) ? wholes_[variable].data() : task_.variable(variable);
}

void restoreVariables(TaskRuntime &task, const std::string &prefix) {
  const bool first = !task.communicator() || task.communicator()->rank() == 0;
  std::optional<CheckpointReader> opened;
  std::optional<ObjectKeys> keys;
  if (first) {
    opened.emplace(prefix);
    keys.emplace(*opened, objectGraph());
  }
  task.fetchVariables(); // what a checkpoint does not hold keeps its value
  forEachSaved(task.program(), [&](const drt_variable &v, int32_t i) {
    const drt_type type = wholeType(v);
    std::vector<char> spread(isSpread(v) ? elementCount(type) * dtypeSize(type.dtype) : 0);
    void *const data = isSpread(v) ? spread.data() : task.variable(i);
    const Shape shape = extents(type.shape, type.rank);
    const std::string key = first ? keys->find(v.name, keyOf(v)) : std::string();
    if (first && v.full_shape && !v.shares)
      opened->readSlice(key, type.dtype, extents(v.full_shape, type.rank), extents(v.slice_begin, type.rank), shape,
                        data);
    else if (first)
      opened->read(key, type.dtype, shape, data);
    if (isSpread(v))
      task.scatterShares(i, data);
  });
  task.sendVariables();
}

void saveVariables(const WholeVariables &variables, CheckpointWriter &writer) {
  Wholes wholes;
  forEachSaved(variables.task().program(), [&](const drt_variable &v, int32_t i) {
    const int32_t rank = v.type.rank;
    const std::string key = keyOf(v);
    // TensorFlow reads no slices of float16.
    if (v.full_shape && !v.shares && v.type.dtype == DRT_F16)
      place(wholes, key, v, variables.data(i));
    else if (v.full_shape && !v.shares)
      writer.addSlice(key, v.type.dtype, extents(v.full_shape, rank), extents(v.slice_begin, rank),
                      extents(v.type.shape, rank), variables.data(i));
    else
      writer.add(key, v.type.dtype, extents(wholeType(v).shape, wholeType(v).rank), variables.data(i));
  });
  writeAll(writer, wholes);
  if (const std::string_view objects = objectGraph(); !objects.empty())
    writer.addString(std::string(kObjectGraphKey), objects);
}

void exportVariables(const WholeVariables &variables, const std::string &path) {
  const drt_program &program = variables.task().program();
  NpzWriter writer(path);
  Wholes wholes;
  for (int32_t i = 0; i < program.num_variables; ++i) {
    const drt_variable &v = program.variables[i];
    if (!v.full_shape || v.shares)
      writer.add(v.name, v.type.dtype, extents(wholeType(v).shape, wholeType(v).rank), variables.data(i));
    else
      place(wholes, v.name, v, variables.data(i));
  }
  writeAll(writer, wholes);
  writer.finish();
}

} // namespace drt
