//===- main.cpp - Checkpoint helper of the tests --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// checkpoint-tool slice IN PREFIX    IN's tensors, each cut unevenly along every
//                                    axis, as partitioned variables are saved
// checkpoint-tool …                  what `distc checkpoint …` does
//
//===----------------------------------------------------------------------===//
#include "checkpoint/checkpoint.h"
#include "checkpoint/tensor_type.h"
#include "core/error.h"
#include "tools/distc/checkpoint_command.h"
#include "tools/distc/tensor_file.h"

#include <cstdio>
#include <cstring>

namespace {

// The elements of a box of a dense tensor; all of one rank, axis by axis.
void cut(const char *from, const drt::Shape &shape, const drt::Shape &begin, const drt::Shape &extent, size_t axis,
         int64_t size, std::vector<char> &to) {
  if (axis == shape.size()) {
    to.insert(to.end(), from, from + size);
    return;
  }
  int64_t stride = size;
  for (size_t inner = axis + 1; inner < shape.size(); ++inner)
    stride *= shape[inner];
  for (int64_t i = 0; i < extent[axis]; ++i)
    cut(from + (begin[axis] + i) * stride, shape, begin, extent, axis + 1, size, to);
}

void addCut(drt::CheckpointWriter &writer, const distc::TensorHead &head, const std::vector<char> &bytes,
            drt::Shape begin, drt::Shape extent, size_t axis) {
  if (axis == head.shape.size()) {
    std::vector<char> slice;
    cut(bytes.data(), head.shape, begin, extent, 0, drt::elementSize(head.dtype), slice);
    writer.addSlice(head.name, head.dtype, head.shape, begin, extent, slice.data());
    return;
  }
  int64_t first = (head.shape[axis] + 2) / 3; // a third, and the rest
  for (int part = 0; part < (head.shape[axis] > first ? 2 : 1); ++part) {
    begin[axis] = part ? first : 0;
    extent[axis] = part ? head.shape[axis] - first : first;
    addCut(writer, head, bytes, begin, extent, axis + 1);
  }
}

void slice(const std::string &from, const std::string &to) {
  auto source = distc::openSource(from);
  drt::CheckpointWriter writer(to);
  for (size_t i = 0; i < source->tensors().size(); ++i) {
    const distc::TensorHead &head = source->tensors()[i];
    std::vector<char> bytes(size_t(head.bytes));
    source->read(i, bytes.data());
    drt::Shape box(head.shape.size(), 0);
    addCut(writer, head, bytes, box, box, 0);
  }
  writer.finish();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 4 || strcmp(argv[1], "slice") != 0)
    return distc::checkpointCommand(argc, argv);
  try {
    slice(argv[2], argv[3]);
  } catch (const drt::Error &error) {
    fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
