//===- timeline_parts.cpp - What tasks hand over of their timelines -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "fuzz_target.h"

#include "launch/timeline_parts.h"

using namespace drt;

std::vector<std::string> seeds() {
  TimelineRow row("replica 1", 1, 4);
  for (int64_t step = 0; step < 3; ++step) {
    row.add({"dense/MatMul", "matmul", 1000 * step, 1000 * step + 400, step});
    row.add({"bucket 0", "all_reduce", 1000 * step + 400, 1000 * step + 900, step});
  }
  ClockComparison comparison;
  comparison.exchanged(5000, 100, 200, 5300);
  TimelinePacker packer({&row}, comparison.alignment(false), "machine");
  const std::string part = packer.next();
  return {part, part.substr(0, part.size() / 2)};
}

void readBytes(std::string_view bytes) {
  TimelineWriter writer("/dev/null", 0);
  TimelineUnpacker unpacker(writer, 1);
  try {
    unpacker.take(bytes);
  } catch (const MalformedPart &) {
  }
  writer.publish("{}");
}
