//===- event_file.cpp - Scalars for TensorBoard ---------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Event { 1: double wall_time, 2: int64 step, 3: string file_version, 5: Summary, 7: SessionLog }
// Summary { 1: repeated Value { 1: string tag, 2: float simple_value } }
// SessionLog { 1: enum status: START = 1 }
// A few fields of three messages are written by hand rather than generated.
//
//===----------------------------------------------------------------------===//
#include "launch/event_file.h"
#include "checkpoint/crc32c.h"
#include "core/error.h"

#include <cstring>
#include <ctime>
#include <filesystem>
#include <unistd.h>

namespace drt {
namespace {

double wallTime() {
  timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

template <class T> void appendRaw(std::string &out, T value) {
  out.append(reinterpret_cast<const char *>(&value), sizeof value);
}

void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

enum WireType { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

void appendKey(std::string &out, int field, WireType type) { out += static_cast<char>(field << 3 | type); }

void appendBytes(std::string &out, int field, std::string_view bytes) {
  appendKey(out, field, Bytes);
  appendVarint(out, bytes.size());
  out += bytes;
}

std::string eventAt(double time) {
  std::string event;
  appendKey(event, 1, Fixed64);
  appendRaw(event, time);
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
  std::string event = eventAt(wallTime());
  appendBytes(event, 3, "brain.Event:2");
  record(event);
  if (!restartedAt)
    return;
  std::string session, start = eventAt(wallTime());
  appendKey(session, 1, Varint);
  appendVarint(session, 1); // START
  appendKey(start, 2, Varint);
  // Values are those behind a step, so what counts from here on is that of the next one.
  appendVarint(start, static_cast<uint64_t>(*restartedAt + 1));
  appendBytes(start, 7, session);
  record(start);
}

void EventFile::scalar(std::string_view tag, int64_t step, float value) {
  std::string entry, summary;
  appendBytes(entry, 1, tag);
  appendKey(entry, 2, Fixed32);
  appendRaw(entry, value);
  appendBytes(summary, 1, entry);
  const double now = wallTime();
  std::string event = eventAt(now);
  appendKey(event, 2, Varint);
  appendVarint(event, static_cast<uint64_t>(step));
  appendBytes(event, 5, summary);
  record(event);
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
