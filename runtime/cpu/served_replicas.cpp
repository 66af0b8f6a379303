//===- served_replicas.cpp - Replicas at their own pace, and their server -===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/served_replicas.h"
#include "core/dtype.h"
#include "core/values.h"
#include "cpu/affinity.h"
#include "cpu/task.h"

#include <algorithm>
#include <cstring>

namespace drt {
namespace {

int64_t elementsOf(const drt_type &type) {
  int64_t count = 1;
  for (int32_t i = 0; i < type.rank; ++i)
    count *= type.shape[i];
  return count;
}

/// What a report of several gradients says for all: their mean, of floats of the C++ language's; else the first one's.
void average(int32_t dtype, const std::vector<std::vector<char>> &reports, int64_t offset, char *out) {
  double sum = 0;
  for (const std::vector<char> &report : reports)
    sum += valueAt(dtype, report.data() + offset, 0);
  const double mean = sum / static_cast<double>(reports.size());
  const auto single = static_cast<float>(mean);
  const auto half = static_cast<_Float16>(mean);
  uint32_t bits = 0;
  switch (dtype) {
  case DRT_F64:
    std::memcpy(out, &mean, sizeof mean);
    break;
  case DRT_F32:
    std::memcpy(out, &single, sizeof single);
    break;
  case DRT_F16:
    std::memcpy(out, &half, sizeof half);
    break;
  case DRT_BF16:
    std::memcpy(&bits, &single, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    std::memcpy(out, &bits, 2);
    break;
  default:
    std::memcpy(out, reports.front().data() + offset, static_cast<size_t>(dtypeSize(dtype)));
  }
}

} // namespace

ServedReplicas::ServedReplicas(CpuTask &task)
    : task_(task), step_(task.findEntry("step")), update_(task.findEntry("update")) {
  if (!step_ || !update_)
    throw Error("the program has servers, but no entries 'step' and 'update'", 70);
  for (int32_t i = 0; i < step_->num_fetches; ++i) {
    const drt_type &type = step_->fetches[i].type;
    const bool isNumber = elementsOf(type) == 1;
    reportOffsets_.push_back(isNumber ? reportBytes_ : -1);
    reportBytes_ += isNumber ? 8 : 0;
  }
}

ServedReplicas::~ServedReplicas() {
  stop();
  join();
}

void ServedReplicas::start(TaskRuntime::FeedReplica feed, int64_t firstStep) {
  const TaskConfig &config = task_.config();
  feed_ = std::move(feed);
  firstStep_ = firstStep;
  updates_ = firstStep;
  const int32_t replicas = config.localReplicas;
  const int64_t stride = task_.arenaStride();
  arenas_ = Memory(stride * (replicas + 1));
  for (int32_t i = 0; i <= replicas; ++i) {
    const bool isServer = i == replicas;
    replicas_.push_back(std::make_unique<Replica>(task_, isServer ? 0 : i, isServer ? replicas : 1));
    Replica &replica = *replicas_.back();
    replica.arena = arenas_.data() + i * stride;
    replica.arena_base = isServer ? replica.arena : arenas_.data();
    replica.arena_stride = stride;
    replica.variables = task_.variables();
    if (isServer) {
      replica.local_replicas = 1;
      if (replica.timeline)
        replica.timeline = std::make_unique<TimelineRow>("server", config.numReplicas);
    }
  }
  LocalServerConfig server;
  server.servers = task_.program().servers;
  server.replicas = replicas;
  for (int32_t i = 0; i < server.servers->num_pulled; ++i) {
    const auto index = static_cast<int32_t>(server.servers->pulled[i]);
    server.variables.push_back({task_.variable(index), task_.program().variables[index].bytes});
  }
  server.reportBytes = reportBytes_;
  server.update = [this] { return update(); };
  server.watch = this;
  server_ = std::make_unique<LocalParameterServer>(std::move(server));
  for (int32_t i = 0; i < replicas; ++i)
    threads_.emplace_back([this, i] { replicaMain(i); });
}

void ServedReplicas::replicaMain(int32_t index) {
  task_.bindReplica(index);
  Replica &replica = *replicas_[static_cast<size_t>(index)];
  for (int64_t step = firstStep_; !stopped_.load(); ++step) {
    replica.step = step;
    if (!feed(replica, index, step - firstStep_) || !task_.runEntry(replica, *step_))
      break;
  }
  ended_.add(1);
}

bool ServedReplicas::feed(Replica &replica, int32_t index, int64_t step) {
  try {
    feed_(index, step,
          [&](int32_t feed, const void *share) { replica.feedPointers[static_cast<size_t>(feed)] = share; });
    return true;
  } catch (const std::exception &error) {
    task_.fail(error.what());
    return false;
  }
}

// In the thread of the replica that made it complete, which the server has to itself until it returns.
bool ServedReplicas::update() {
  Replica &server = *replicas_.back();
  server.step = updates_;
  const bool good =
      feed(server, task_.config().localReplicas, updates_ - firstStep_) && task_.runEntry(server, *update_);
  ++updates_;
  return good;
}

void ServedReplicas::allowUpdate() {
  ++outstanding_;
  server_->allowUpdate();
}

bool ServedReplicas::waitForUpdate() {
  if (!server_->waitForUpdate())
    return false;
  --outstanding_;
  const auto replicas = static_cast<size_t>(task_.config().localReplicas);
  const std::vector<std::vector<char>> &reports = server_->reports();
  if (reports.size() == replicas) {
    reported_ = reports;
    return true;
  }
  std::vector<char> all(static_cast<size_t>(reportBytes_));
  for (int32_t i = 0; i < step_->num_fetches; ++i)
    if (const int64_t offset = reportOffsets_[static_cast<size_t>(i)]; offset >= 0)
      average(step_->fetches[i].type.dtype, reports, offset, all.data() + offset);
  reported_.assign(replicas, all);
  return true;
}

const void *ServedReplicas::fetched(int32_t replica, const drt_fetch &fetch) const {
  return reported_[static_cast<size_t>(replica)].data() + reportOffsets_[static_cast<size_t>(&fetch - step_->fetches)];
}

GradientCounts ServedReplicas::counts() const { return server_ ? server_->counts() : GradientCounts(); }

void ServedReplicas::stop() noexcept {
  stopped_.store(true);
  if (server_)
    server_->stop();
}

bool ServedReplicas::ended() const { return ended_.reached(static_cast<uint32_t>(threads_.size())); }

void ServedReplicas::join() {
  for (std::thread &thread : threads_)
    thread.join();
  threads_.clear();
}

std::vector<const TimelineRow *> ServedReplicas::timelineRows() const {
  std::vector<const TimelineRow *> rows;
  for (const std::unique_ptr<Replica> &replica : replicas_)
    if (replica->timeline)
      rows.push_back(replica->timeline.get());
  return rows;
}

// ---- For the C API -------------------------------------------------------------

template <class Wait> bool ServedReplicas::waitFor(Replica &replica, const char *operation, Wait wait) {
  replica.waitsFor.store(operation, std::memory_order_relaxed);
  replica.delay();
  const bool there = wait();
  replica.delay();
  replica.waitsFor.store(nullptr, std::memory_order_relaxed);
  return there;
}

bool ServedReplicas::pull(Replica &replica, void *const *values) {
  return waitFor(replica, "variables", [&] {
    const std::optional<int64_t> version = server_->pull(values);
    replica.version = version.value_or(0);
    return version.has_value();
  });
}

bool ServedReplicas::push(Replica &replica, void *const *gradients) {
  std::vector<char> report(static_cast<size_t>(reportBytes_));
  for (int32_t i = 0; i < step_->num_fetches; ++i)
    if (const int64_t offset = reportOffsets_[static_cast<size_t>(i)]; offset >= 0)
      std::memcpy(report.data() + offset, replica.arena + step_->fetches[i].arena_offset,
                  static_cast<size_t>(dtypeSize(step_->fetches[i].type.dtype)));
  return waitFor(replica, "an update",
                 [&] { return server_->push(replica.local_index, replica.version, gradients, report.data()); });
}

bool ServedReplicas::takeToken(Replica &replica) {
  return waitFor(replica, "a token", [&] { return server_->takeToken(replica.local_index); });
}

void ServedReplicas::waiting(const char *operation, double seconds) {
  const TaskConfig &config = task_.config();
  if (config.stallWarning <= 0 || seconds < config.stallWarning)
    return;
  int64_t last = warnedNs_.load();
  const int64_t now = nowNs();
  if ((last != 0 && static_cast<double>(now - last) < config.stallWarning * 1e9) ||
      !warnedNs_.compare_exchange_strong(last, now))
    return;
  std::string waiting, late;
  for (int32_t i = 0; i < config.localReplicas; ++i) {
    const Replica &replica = *replicas_[static_cast<size_t>(i)];
    const char *what = replica.waitsFor.load(std::memory_order_relaxed);
    const int32_t scope = replica.scope.load(std::memory_order_relaxed);
    std::string &list = what ? waiting : late;
    list += (list.empty() ? "" : ", ") + std::to_string(replica.global_index);
    if (!what && scope >= 0 && scope < step_->num_scopes)
      list += std::string(" (in ") + step_->scopes[scope].name + ")";
  }
  task_.warnOfStall("stalled for " + std::to_string(static_cast<int64_t>(seconds)) + " s in the wait for " + operation +
                    ": waiting: replica " + (waiting.empty() ? "none" : waiting) +
                    (late.empty() ? "" : "; late: replica " + late));
}

} // namespace drt

using namespace drt;

extern "C" {

void drt_pull(drt_replica *r, void *const *values) {
  Replica &replica = Replica::of(r);
  if (!replica.task().served()->pull(replica, values))
    replica.escape();
}

// No destructor may be pending where a replica escapes.
void drt_push(drt_replica *r, void *const *gradients) {
  Replica &replica = Replica::of(r);
  if (!replica.task().served()->push(replica, gradients))
    replica.escape();
}

void drt_take_token(drt_replica *r) {
  Replica &replica = Replica::of(r);
  if (!replica.task().served()->takeToken(replica))
    replica.escape();
}

void drt_take(drt_replica *r, void *const *results) { Replica::of(r).task().served()->take(results); }

} // extern "C"
