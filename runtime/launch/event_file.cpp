//===- event_file.cpp - Scalars for TensorBoard ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/event_file.h"
#include "checkpoint/crc32c.h"
#include "core/error.h"
#include "launch/event.pb.h"

#include <cstring>
#include <ctime>
#include <filesystem>
#include <unistd.h>

namespace drt {
namespace {

namespace events = distc::events;

double wallTime() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class T> void appendRaw(std::string &out, T value) {
  out.append(reinterpret_cast<const char *>(&value), sizeof value);
}

events::Event eventAt(double time) {
  events::Event event;
  event.set_wall_time(time);
  return event;
}

std::string newFile(const std::string &directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error)
    throw Error("cannot make the folder " + directory + ": " + error.message());
  char host[256] = "localhost";
  gethostname(host, sizeof host - 1);
  return directory + "/events.out.tfevents." + std::to_string(static_cast<int64_t>(wallTime())) + "." + host + "." +
         std::to_string(getpid());
}

} // namespace

EventFile::EventFile(const std::string &directory, std::optional<int64_t> restartedAt) : file_(newFile(directory)) {
  events::Event event = eventAt(wallTime());
  event.set_file_version("brain.Event:2");
  record(event.SerializeAsString());
  if (!restartedAt)
    return;
  events::Event start = eventAt(wallTime());
  start.mutable_session_log()->set_status(events::SessionLog::START);
  // Values are those behind a step, so what counts from here on is that of the next one.
  start.set_step(*restartedAt + 1);
  record(start.SerializeAsString());
}

void EventFile::scalar(std::string_view tag, int64_t step, float value) {
  const double now = wallTime();
  events::Event event = eventAt(now);
  event.set_step(step);
  events::Summary::Value *entry = event.mutable_summary()->add_value();
  entry->set_tag(std::string(tag));
  entry->set_simple_value(value);
  record(event.SerializeAsString());
  if (now - flushed_ > 1) {
    flushed_ = now;
    file_.flush();
  }
}

// A TFRecord: length, its checksum, the bytes, theirs.
void EventFile::record(const std::string &event) {
  std::string out;
  appendRaw(out, static_cast<uint64_t>(event.size()));
  appendRaw(out, maskCrc32c(crc32c(0, out.data(), out.size())));
  out += event;
  appendRaw(out, maskCrc32c(crc32c(0, event.data(), event.size())));
  file_.write(out);
}

} // namespace drt
