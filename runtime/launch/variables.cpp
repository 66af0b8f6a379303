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
#include "drt/checkpoint_keys.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>

namespace drt {
namespace {

Shape extents(const int64_t *shape, int32_t rank) { return {shape, shape + rank}; }

// Where a variable is in a checkpoint of its program.
struct Place {
  std::string key;
  Shape whole; // the shape of what has the key, if `isSlice`
  Shape begin;
  bool isSlice = false;
};

std::span<const drt_checkpoint_key> checkpointKeys() {
  if (!&drt_the_checkpoint_keys)
    return {};
  return {drt_the_checkpoint_keys.keys, size_t(drt_the_checkpoint_keys.num_keys)};
}

std::string_view objectGraph() {
  if (!&drt_the_checkpoint_keys || drt_the_checkpoint_keys.graph_bytes == 0)
    return {};
  return {drt_the_checkpoint_keys.graph, size_t(drt_the_checkpoint_keys.graph_bytes)};
}

// Parts of one variable, put together.
struct Whole {
  int32_t dtype;
  Shape shape;
  std::vector<char> bytes;
};

// By name.
using Wholes = std::map<std::string, Whole>;

void put(Wholes &wholes, const Place &place, const drt_type &type, const void *source) {
  const char *data = static_cast<const char *>(source);
  Whole &whole = wholes[place.key];
  if (whole.bytes.empty()) {
    whole = {type.dtype, place.whole, {}};
    whole.bytes.resize(elementCount({type.dtype, type.rank, place.whole.data()}) * dtypeSize(type.dtype));
  }
  const int64_t size = dtypeSize(whole.dtype);
  const Region part = {place.begin, extents(type.shape, type.rank)};
  const Region all = {Shape(type.rank, 0), whole.shape};
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

// Whether task 0, which reads and writes files, has not all of it: shares, or what another task owns.
bool isSpread(const drt_variable &v) { return v.shares > 0 || v.owner > 1; }

// Of all shares, or of the variable as its owner has it.
drt_type wholeType(const drt_variable &v) {
  return v.shares ? drt_type{v.type.dtype, v.full_rank, v.full_shape} : v.type;
}

// In files that have each variable of the graph under its name.
Place placeByName(const drt_variable &v) {
  if (!v.full_shape || v.shares)
    return {v.name, {}, {}, false};
  return {v.name, extents(v.full_shape, v.type.rank), extents(v.slice_begin, v.type.rank), true};
}

Place placeInCheckpoint(const drt_variable &v) {
  Place place = placeByName(v);
  for (const drt_checkpoint_key &row : checkpointKeys()) {
    if (std::strcmp(row.variable, v.name) != 0)
      continue;
    place.key = row.key;
    if (!row.full_shape)
      break;
    // What the strategy makes of the variable is a slice of the graph's slice.
    Shape begin = extents(row.slice_begin, row.rank);
    for (size_t axis = 0; axis < place.begin.size(); ++axis)
      begin[axis] += place.begin[axis];
    return {row.key, extents(row.full_shape, row.rank), begin, true};
  }
  return place;
}

// The objects' variables that are none of the program's.
std::vector<CarriedVariable> readCarried(const drt_program &program, const CheckpointReader &reader,
                                         const ObjectKeys &keys) {
  std::set<std::string> own;
  forEachSaved(program, [&](const drt_variable &v, int32_t) { own.insert(placeInCheckpoint(v).key); });
  std::vector<CarriedVariable> carried;
  for (const auto &[key, stored] : keys.common()) {
    const CheckpointTensor &tensor = reader.at(stored);
    const int64_t size = dtypeSize(tensor.dtype);
    if (own.count(key) != 0 || size == 0) // strings, which nothing here reads, are no numbers that training needs
      continue;
    const drt_type type = {tensor.dtype, int32_t(tensor.shape.size()), tensor.shape.data()};
    CarriedVariable &variable = carried.emplace_back(CarriedVariable{key, tensor.dtype, tensor.shape, {}});
    variable.bytes.resize(elementCount(type) * size);
    reader.read(stored, tensor.dtype, tensor.shape, variable.bytes.data());
  }
  return carried;
}

} // namespace

bool hasSpread(const drt_program &program) {
  return std::any_of(program.variables, program.variables + program.num_variables, isSpread);
}

static bool isFirst(TaskRuntime &task) { return !task.communicator() || task.communicator()->rank() == 0; }

// All of a variable's elements, in task 0; where the tasks do not all have it every task calls it.
static const void *gatherWhole(TaskRuntime &task, int32_t variable, std::vector<char> &room) {
  const drt_variable &v = task.program().variables[variable];
  if (!isSpread(v))
    return task.variable(variable);
  room.resize(isFirst(task) ? elementCount(wholeType(v)) * dtypeSize(v.type.dtype) : 0);
  task.gatherShares(variable, isFirst(task) ? room.data() : nullptr);
  return room.data();
}

// Of a spread variable, what task 0 reads of it goes at once to those who hold it: it says which part comes next.
class PartsOut {
public:
  PartsOut(TaskRuntime &task, int32_t variable) : task_(task), variable_(variable) {}
  /// In task 0.
  void send(const char *data, int64_t at, int64_t bytes) {
    for (int64_t sent = 0; sent < bytes; sent += TaskRuntime::partBytes)
      announce({at + sent, at + std::min(sent + TaskRuntime::partBytes, bytes)}, data + sent);
  }
  void end() { announce({0, 0}, nullptr); }
  /// In the others, until the end.
  void receive() {
    while (announce({0, 0}, nullptr)) {
    }
  }

private:
  bool announce(Range part, const char *data) {
    if (Communicator *communicator = task_.communicator()) {
      communicator->describe(0, task_.program().variables[variable_].name);
      communicator->broadcast(&part, sizeof part, 0);
    }
    if (!part.empty())
      task_.scatterPart(variable_, part, data);
    return !part.empty();
  }

  TaskRuntime &task_;
  const int32_t variable_;
};

void restoreVariables(TaskRuntime &task, const std::string &prefix, std::vector<CarriedVariable> *carried) {
  const bool first = isFirst(task);
  std::optional<CheckpointReader> opened;
  std::optional<ObjectKeys> keys;
  if (first) {
    opened.emplace(prefix);
    keys.emplace(*opened, objectGraph());
  }
  task.fetchVariables(); // what a checkpoint does not hold keeps its value
  forEachSaved(task.program(), [&](const drt_variable &v, int32_t i) {
    PartsOut parts(task, i);
    if (!first) {
      if (isSpread(v))
        parts.receive();
      return;
    }
    const drt_type type = wholeType(v);
    Place place = placeInCheckpoint(v);
    // A slice of the graph's own has its name where it was not saved by the graph's saver.
    if (place.key != v.name && place.isSlice && !opened->find(place.key) && opened->find(v.name))
      place = placeByName(v);
    const std::string key = keys->find(v.name, place.key);
    const Shape shape = extents(type.shape, type.rank);
    const Shape whole = place.isSlice ? place.whole : shape,
                begin = place.isSlice ? place.begin : Shape(shape.size(), 0);
    if (!isSpread(v))
      return opened->readSlice(key, type.dtype, whole, begin, shape, task.variable(i));
    opened->readSliceInParts(key, type.dtype, whole, begin, shape,
                             [&](const char *data, int64_t at, int64_t bytes) { parts.send(data, at, bytes); });
    parts.end();
  });
  task.sendVariables();
  if (first && carried)
    *carried = readCarried(task.program(), *opened, *keys);
}

namespace {

/// What a checkpoint is written of: variables of a task, or of a copy of them.
struct Source {
  const drt_program &program;
  TaskRuntime *task; // null: what is written is here
  std::function<const void *(int32_t variable)> data;
  const SavedParts *parts = nullptr; // null: all is written
  int part = 0;

  bool has(const drt_variable &v) const { return !parts || parts->partOf(v) == part; }
};

/// Whether a variable is a slice in the checkpoint that must be stored whole: TensorFlow reads no slices of float16.
bool isStoredWhole(const drt_variable &v, const Place &place) { return place.isSlice && wholeType(v).dtype == DRT_F16; }

void save(const Source &source, const std::vector<CarriedVariable> &carried, CheckpointWriter *writer) {
  Wholes wholes;
  std::set<std::string> saved;
  forEachSaved(source.program, [&](const drt_variable &v, int32_t i) {
    const drt_type type = wholeType(v);
    const Place place = placeInCheckpoint(v);
    const Shape shape = extents(type.shape, type.rank);
    saved.insert(place.key);
    if (!source.has(v))
      return;
    const bool isElsewhere = source.task && isSpread(v);
    if (isStoredWhole(v, place)) {
      std::vector<char> room;
      const void *data = isElsewhere ? gatherWhole(*source.task, i, room) : source.data(i);
      if (writer)
        put(wholes, place, type, data);
      return;
    }
    if (!writer) {
      if (isElsewhere)
        source.task->gatherShares(i, nullptr);
      return;
    }
    static_assert(CheckpointWriter::kChunk == TaskRuntime::partBytes, "what task 0 asks for is what others give");
    const CheckpointWriter::Source parts = [&](char *chunk, int64_t at, int64_t bytes) {
      source.task->gatherPart(i, {at, at + bytes}, chunk);
    };
    if (place.isSlice && isElsewhere)
      writer->addSlice(place.key, type.dtype, place.whole, place.begin, shape, parts);
    else if (place.isSlice)
      writer->addSlice(place.key, type.dtype, place.whole, place.begin, shape, source.data(i));
    else if (isElsewhere)
      writer->add(place.key, type.dtype, shape, parts);
    else
      writer->add(place.key, type.dtype, shape, source.data(i));
  });
  if (!writer)
    return;
  writeAll(*writer, wholes);
  if (source.part != 0)
    return;
  for (const CarriedVariable &variable : carried) {
    saved.insert(variable.key);
    writer->add(variable.key, variable.dtype, variable.shape, variable.bytes.data());
  }
  if (const std::string_view objects = objectGraph(); !objects.empty())
    writer->addString(std::string(kObjectGraphKey), keepSaved(objects, saved));
}

// Where a copy's variables begin: on lines of the cache of their own.
constexpr int64_t kAlignment = 64;

} // namespace

void saveVariables(TaskRuntime &task, const std::vector<CarriedVariable> &carried, CheckpointWriter *writer) {
  task.fetchVariables();
  save({task.program(), &task, [&](int32_t i) { return task.variable(i); }}, carried, writer);
}

std::optional<SavedParts> SavedParts::of(const drt_program &program) {
  SavedParts found;
  found.writers_.push_back(0);
  bool isOwned = false, isPossible = true;
  forEachSaved(program, [&](const drt_variable &v, int32_t) {
    isPossible = isPossible && v.shares == 0 && !isStoredWhole(v, placeInCheckpoint(v));
    if (v.owner > 0)
      found.writers_.push_back(v.owner - 1);
    isOwned = isOwned || v.owner > 1;
  });
  if (!isOwned || !isPossible)
    return std::nullopt;
  std::sort(found.writers_.begin(), found.writers_.end());
  found.writers_.erase(std::unique(found.writers_.begin(), found.writers_.end()), found.writers_.end());
  return found;
}

int SavedParts::partOf(int task) const {
  const auto found = std::find(writers_.begin(), writers_.end(), task);
  return found == writers_.end() ? -1 : static_cast<int>(found - writers_.begin());
}

int SavedParts::partOf(const drt_variable &variable) const {
  return variable.owner > 0 ? partOf(variable.owner - 1) : 0;
}

void savePart(TaskRuntime &task, const SavedParts &parts, int part, const std::vector<CarriedVariable> &carried,
              CheckpointWriter &writer) {
  task.fetchVariables();
  save({task.program(), nullptr, [&](int32_t i) { return task.variable(i); }, &parts, part}, carried, &writer);
}

int64_t VariablesCopy::bytesOf(const drt_program &program, const SavedParts *parts, int part) {
  int64_t bytes = 0;
  forEachSaved(program, [&](const drt_variable &v, int32_t) {
    bytes += !parts || parts->partOf(v) == part ? roundUp(v.bytes, kAlignment) : 0;
  });
  return bytes;
}

VariablesCopy::VariablesCopy(TaskRuntime &task, const SavedParts *parts, int part)
    : program_(task.program()), parts_(parts), part_(part), offsets_(static_cast<size_t>(program_.num_variables)),
      memory_(bytesOf(program_, parts, part)) {
  task.fetchVariables();
  int64_t offset = 0;
  forEachSaved(program_, [&](const drt_variable &v, int32_t i) {
    if (parts_ && parts_->partOf(v) != part_)
      return;
    offsets_[static_cast<size_t>(i)] = offset;
    std::memcpy(memory_.data() + offset, task.variable(i), static_cast<size_t>(v.bytes));
    offset += roundUp(v.bytes, kAlignment);
  });
}

void VariablesCopy::save(const std::vector<CarriedVariable> &carried, CheckpointWriter &writer) const {
  const auto data = [this](int32_t i) -> const void * { return memory_.data() + offsets_[static_cast<size_t>(i)]; };
  drt::save({program_, nullptr, data, parts_, part_}, carried, &writer);
}

void exportVariables(TaskRuntime &task, const std::string &path) {
  const drt_program &program = task.program();
  std::optional<NpzWriter> writer;
  if (isFirst(task))
    writer.emplace(path);
  Wholes wholes;
  task.fetchVariables();
  for (int32_t i = 0; i < program.num_variables; ++i) {
    const drt_variable &v = program.variables[i];
    const drt_type type = wholeType(v);
    std::vector<char> room;
    const void *data = gatherWhole(task, i, room);
    if (!writer)
      continue;
    if (const Place place = placeByName(v); place.isSlice)
      put(wholes, place, type, data);
    else
      writer->add(v.name, type.dtype, extents(type.shape, type.rank), data);
  }
  if (!writer)
    return;
  writeAll(*writer, wholes);
  writer->finish();
}

} // namespace drt
