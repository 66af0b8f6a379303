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

const drt_entry *findEntry(CpuTask &task, const char *name) {
  if (const drt_entry *entry = task.findEntry(name))
    return entry;
  throw Error(std::string("the program has servers, but no entry '") + name + "'", 70);
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

ServedReplicas::Report::Report(const drt_entry &entry) {
  for (int32_t i = 0; i < entry.num_fetches; ++i) {
    const bool isNumber = elementsOf(entry.fetches[i].type) == 1;
    offsets.push_back(isNumber ? bytes : -1);
    bytes += isNumber ? 8 : 0;
  }
}

void ServedReplicas::Report::read(const drt_entry &entry, const char *arena, char *report) const {
  for (int32_t i = 0; i < entry.num_fetches; ++i)
    if (const int64_t offset = offsets[static_cast<size_t>(i)]; offset >= 0)
      std::memcpy(report + offset, arena + entry.fetches[i].arena_offset,
                  static_cast<size_t>(dtypeSize(entry.fetches[i].type.dtype)));
}

ServedReplicas::ServedReplicas(CpuTask &task)
    : task_(task), step_(findEntry(task, "step")), update_(findEntry(task, "update")), report_(*step_),
      updateReport_(*update_), pushed_(0, 0) {}

ServedReplicas::~ServedReplicas() {
  stop();
  join();
}

void ServedReplicas::start(TaskRuntime::FeedReplica feed, int64_t firstStep) {
  feed_ = std::move(feed);
  firstStep_ = firstStep;
  updates_ = firstStep;
  makeArenas();
  makeReplicas();
  pushed_ = replicas_.front()->randomStates;
  randomPositions_ = task_.drawingBegin();
  sizes_ = sizes();
  for (const int64_t bytes : sizes_.variables)
    movedBytes_ += bytes;
  for (int32_t i = 0; i < sizes_.servers->num_gradients; ++i)
    movedBytes_ += sizes_.servers->gradients[i].count * dtypeSize(sizes_.servers->gradients[i].dtype);
  // At most: equal rows come once.
  for (int32_t t = 0; t < sizes_.servers->num_tables; ++t)
    movedBytes_ += sizes_.servers->tables[t].count * sizes_.servers->tables[t].row_bytes;
  for (int32_t i = 0; i < task_.config().localReplicas && task_.config().metered; ++i)
    uses_.push_back(std::make_unique<ServedUse>());
  std::vector<int> counts;
  std::vector<std::unique_ptr<Channel>> channels;
  if (Communicator *communicator = task_.communicator()) {
    counts = countChannels();
    channels = communicator->open_channels(0, counts);
  }
  if (isServer())
    serveHere(std::move(channels), counts);
  else
    serveElsewhere(std::move(channels));
  for (int32_t i = 0; i < task_.config().localReplicas; ++i)
    threads_.emplace_back([this, i] { replicaMain(i); });
}

bool ServedReplicas::isServer() const { return !task_.communicator() || task_.communicator()->rank() == 0; }

int32_t ServedReplicas::firstReplica() const { return task_.config().firstReplica; }

// Where other tasks of the host reach them, if they reach any: gradients are read where they are.
void ServedReplicas::makeArenas() {
  const int64_t bytes = task_.arenaStride() * (task_.config().localReplicas + 1);
  if (Communicator *communicator = task_.communicator()) {
    communicator->describe(0, "the replicas' memory");
    arenas_ = communicator->shared_memory(bytes);
  }
  if (arenas_)
    return;
  arenaMemory_ = Memory(bytes);
  arenas_ = arenaMemory_.data();
}

void ServedReplicas::makeReplicas() {
  const TaskConfig &config = task_.config();
  const int32_t replicas = config.localReplicas;
  const int64_t stride = task_.arenaStride();
  for (int32_t i = 0; i <= replicas; ++i) {
    const bool isServers = i == replicas;
    replicas_.push_back(std::make_unique<Replica>(task_, isServers ? 0 : i, isServers ? 1 : task_.coresPerReplica(),
                                                  isServers ? replicas : 1));
    Replica &replica = *replicas_.back();
    replica.arena = arenas_ + i * stride;
    replica.arena_base = isServers ? replica.arena : arenas_;
    replica.arena_stride = stride;
    replica.variables = task_.variables();
    replica.randomStates.goOn(task_.drawingBegin());
    if (isServers) {
      replica.local_replicas = 1;
      // Behind the replicas, the communication and the data.
      if (replica.timeline)
        replica.timeline = isServer() ? std::make_unique<TimelineRow>("server", config.numReplicas + 2) : nullptr;
    }
  }
}

ServedSizes ServedReplicas::sizes() const {
  ServedSizes sizes;
  sizes.servers = task_.program().servers;
  for (int32_t i = 0; i < sizes.servers->num_pulled; ++i)
    sizes.variables.push_back(task_.program().variables[sizes.servers->pulled[i]].bytes);
  sizes.reportBytes = report_.bytes;
  sizes.updateReportBytes = updateReport_.bytes;
  return sizes;
}

// One for each of a task's replicas, and one for its trainer.
std::vector<int> ServedReplicas::countChannels() const {
  Communicator &communicator = *task_.communicator();
  std::vector<int> counts(static_cast<size_t>(communicator.size()));
  const int own = task_.config().localReplicas + 1;
  communicator.describe(0, "the replicas of each task");
  communicator.all_gather(&own, sizeof own, counts.data());
  counts[0] = 0;
  return counts;
}

void ServedReplicas::serveHere(std::vector<std::unique_ptr<Channel>> channels, const std::vector<int> &counts) {
  LocalServerConfig server;
  server.servers = sizes_.servers;
  server.replicas = task_.config().numReplicas;
  server.listeners = static_cast<int32_t>(std::max<size_t>(counts.size(), 1));
  for (size_t i = 0; i < sizes_.variables.size(); ++i)
    server.variables.push_back({task_.variable(static_cast<int32_t>(sizes_.servers->pulled[i])), sizes_.variables[i]});
  for (int32_t t = 0; t < sizes_.servers->num_tables; ++t)
    server.tables.push_back(
        static_cast<const char *>(task_.variable(static_cast<int32_t>(sizes_.servers->tables[t].variable))));
  server.reportBytes = report_.bytes;
  server.updateReportBytes = updateReport_.bytes;
  server.update = [this] { return update(); };
  server.watch = this;
  server.spins = task_.spins();
  auto local = std::make_unique<LocalParameterServer>(std::move(server));
  local_ = local.get();
  server_ = std::move(local);
  channels_ = std::move(channels);
  size_t channel = 0;
  for (size_t task = 0; task < counts.size(); ++task)
    for (int i = 0; i < counts[task]; ++i)
      threads_.emplace_back([this, number = channel++, task] { answerMain(number, static_cast<int32_t>(task)); });
}

void ServedReplicas::serveElsewhere(std::vector<std::unique_ptr<Channel>> channels) {
  auto remote = std::make_unique<RemoteParameterServer>(sizes_, firstReplica(), std::move(channels));
  remote_ = remote.get();
  server_ = std::move(remote);
}

// In the threads below errors are those of channels: a task is lost, or somebody has failed.
template <class Body> bool ServedReplicas::guarded(Body body) noexcept {
  try {
    return body();
  } catch (const std::exception &error) {
    task_.fail(error.what());
    return false;
  }
}

void ServedReplicas::answerMain(size_t channel, int32_t listener) {
  task_.leaveCores();
  guarded([&] {
    answer(*local_, *channels_[channel], sizes_, listener);
    return true;
  });
  ended_.add(1);
}

void ServedReplicas::replicaMain(int32_t index) {
  task_.bindReplica(index);
  Replica &replica = *replicas_[static_cast<size_t>(index)];
  for (int64_t step = firstStep_; !stopped_.load(); ++step) {
    replica.step = step;
    const int64_t begin = uses_.empty() ? 0 : nowNs();
    if (!accounted(replica, &ServedUse::inputNs, [&] { return feed(replica, index, step - firstStep_); }) ||
        !task_.runEntry(replica, *step_))
      break;
    if (!uses_.empty()) {
      ServedUse &use = *uses_[static_cast<size_t>(index)];
      use.wallNs += nowNs() - begin;
      use.bytes += remote_ ? movedBytes_ : 0;
      ++use.steps;
    }
  }
  if (remote_ && !task_.failed())
    guarded([&] {
      remote_->leave(firstReplica() + index);
      return true;
    });
  ended_.add(1);
}

bool ServedReplicas::feed(Replica &replica, int32_t index, int64_t step) {
  return guarded([&] {
    feed_(index, step,
          [&](int32_t feed, const void *share) { replica.feedPointers[static_cast<size_t>(feed)] = share; });
    return true;
  });
}

// What updates have taken of this thread's time.
static thread_local int64_t updatingNs = 0;

// In the thread of the replica that made it complete, which the server has to itself until it returns.
bool ServedReplicas::update() {
  Replica &server = *replicas_.back();
  server.step = updates_;
  const int64_t begin = uses_.empty() ? 0 : nowNs();
  const bool good =
      feed(server, task_.config().localReplicas, updates_ - firstStep_) && task_.runEntry(server, *update_);
  ++updates_;
  {
    const std::lock_guard lock(randomMutex_);
    randomPositions_ = pushed_.positionsWith(server.randomStates);
  }
  if (good && updateReport_.bytes > 0) {
    std::vector<char> report(static_cast<size_t>(updateReport_.bytes));
    updateReport_.read(*update_, server.arena, report.data());
    local_->say(report.data());
  }
  if (!uses_.empty())
    updatingNs += nowNs() - begin;
  return good;
}

void ServedReplicas::allowUpdate() {
  ++outstanding_;
  server_->allowUpdate();
}

bool ServedReplicas::waitForUpdate() {
  std::vector<std::vector<char>> reports;
  if (!guarded([&] { return server_->waitForUpdate(reports); }))
    return false;
  --outstanding_;
  if (updateReport_.bytes > 0) {
    updateReported_ = std::move(reports.back());
    reports.pop_back();
  }
  const auto replicas = static_cast<size_t>(task_.config().localReplicas);
  if (static_cast<int32_t>(reports.size()) == task_.config().numReplicas) {
    const auto own = reports.begin() + firstReplica();
    reported_.assign(own, own + static_cast<std::ptrdiff_t>(replicas));
    return true;
  }
  std::vector<char> all(static_cast<size_t>(report_.bytes));
  for (int32_t i = 0; i < step_->num_fetches; ++i)
    if (const int64_t offset = report_.offsets[static_cast<size_t>(i)]; offset >= 0)
      average(step_->fetches[i].type.dtype, reports, offset, all.data() + offset);
  reported_.assign(replicas, all);
  return true;
}

const void *ServedReplicas::fetched(int32_t replica, const drt_fetch &fetch) const {
  if (isOf(*update_, fetch))
    return updateReported_.data() + updateReport_.offsets[static_cast<size_t>(&fetch - update_->fetches)];
  return reported_[static_cast<size_t>(replica)].data() + report_.offsets[static_cast<size_t>(&fetch - step_->fetches)];
}

std::vector<RandomPosition> ServedReplicas::randomPositions() {
  const std::lock_guard lock(randomMutex_);
  return randomPositions_;
}

GradientCounts ServedReplicas::counts() const { return server_ ? server_->counts() : GradientCounts(); }

void ServedReplicas::stop() noexcept {
  stopped_.store(true);
  if (server_)
    server_->stop();
}

bool ServedReplicas::ended() const { return ended_.reached(static_cast<uint32_t>(threads_.size())); }

void ServedReplicas::join() {
  if (remote_ && !threads_.empty() && !task_.failed())
    guarded([&] {
      remote_->leaveAsTrainer();
      return true;
    });
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
  const bool there = guarded(wait);
  replica.delay();
  replica.waitsFor.store(nullptr, std::memory_order_relaxed);
  return there;
}

// Adds what `body` takes, without the update that it may run and without what a pull waits for, to one of the
// replica's accounts.
template <class Body> bool ServedReplicas::accounted(const Replica &replica, Account account, Body body) {
  if (uses_.empty())
    return body();
  ServedUse &use = *uses_[static_cast<size_t>(replica.local_index)];
  const auto waited = [&] { return remote_ ? remote_->waitedNs(replica.global_index) : 0; };
  const int64_t waitedBefore = waited(), updatedBefore = updatingNs, begin = nowNs();
  const bool there = body();
  const int64_t waiting = waited() - waitedBefore;
  use.waitingNs += waiting;
  use.*account += nowNs() - begin - waiting - (updatingNs - updatedBefore);
  return there;
}

bool ServedReplicas::pull(Replica &replica, void *const *tensors) {
  void *const *indices = tensors + sizes_.servers->num_pulled + sizes_.servers->num_tables;
  return waitFor(replica, "variables", [&] {
    return accounted(replica, &ServedUse::transferNs, [&] {
      const std::optional<int64_t> version = server_->pull(replica.global_index, tensors, indices);
      replica.version = version.value_or(0);
      return version.has_value();
    });
  });
}

bool ServedReplicas::push(Replica &replica, void *const *gradients) {
  std::vector<char> report(static_cast<size_t>(report_.bytes));
  report_.read(*step_, replica.arena, report.data());
  // Replicas run ahead of the update that is saved: what they have drawn since is drawn again.
  if (&replica == replicas_.front().get()) {
    const std::lock_guard lock(randomMutex_);
    pushed_ = replica.randomStates;
  }
  return waitFor(replica, "an update", [&] {
    if (remote_)
      return accounted(replica, &ServedUse::transferNs,
                       [&] { return remote_->push(replica.global_index, replica.version, gradients, report.data()); });
    Memory copies;
    return accounted(replica, &ServedUse::transferNs,
                     [&] {
                       copies = local_->copyOf(gradients);
                       return true;
                     }) &&
           accounted(replica, &ServedUse::waitingNs, [&] {
             return local_->push(replica.global_index, replica.version, std::move(copies), report.data());
           });
  });
}

bool ServedReplicas::takeToken(Replica &replica) {
  return waitFor(replica, "a token", [&] {
    return accounted(replica, &ServedUse::waitingNs, [&] { return server_->takeToken(replica.global_index); });
  });
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

void drt_pull(drt_replica *r, void *const *tensors) {
  Replica &replica = Replica::of(r);
  if (!replica.task().served()->pull(replica, tensors))
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
