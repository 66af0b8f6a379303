//===- timeline_test.cpp --------------------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/timeline.h"

#include <catch2/catch.hpp>
#include <thread>

using namespace drt;

TEST_CASE("a row keeps its newest events") {
  TimelineRow row("replica 0", 0, 3);
  for (int64_t i = 0; i < 3; ++i)
    row.add({"work", "kernel", i, i + 1, 0});
  CHECK(row.events().size() == 3);
  CHECK(row.events().front().beginNs == 0);
  for (int64_t i = 3; i < 10; ++i)
    row.add({"work", "kernel", i, i + 1, 0});
  const std::vector<TimelineRow::Event> events = row.events();
  REQUIRE(events.size() == 3);
  for (int64_t i = 0; i < 3; ++i)
    CHECK(events[static_cast<size_t>(i)].beginNs == 7 + i);
}

TEST_CASE("a row is read while its thread writes") {
  TimelineRow row("replica 0", 0, 8);
  std::atomic<bool> ends = false;
  std::thread writer([&] {
    for (int64_t i = 0; !ends; ++i)
      row.add({"work", "kernel", i, i, i});
  });
  for (int read = 0; read < 20000; ++read) {
    const std::vector<TimelineRow::Event> events = row.events();
    for (size_t i = 0; i < events.size(); ++i) {
      const TimelineRow::Event &event = events[i];
      if (event.beginNs != event.endNs || event.beginNs != event.step || event.step != events[0].step + int64_t(i)) {
        FAIL_CHECK("torn: " << event.beginNs << " " << event.endNs << " " << event.step);
        read = 20000;
        break;
      }
    }
  }
  ends = true;
  writer.join();
}
