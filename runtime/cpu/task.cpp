//===- task.cpp - A task on the processor's cores --------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/task.h"
#include "core/row_buckets.h"
#include "core/shares.h"
#include "cpu/affinity.h"
#include "cpu/division.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace drt {
namespace {

constexpr int64_t cacheLine = 64;

// Replicas read the same offset of every arena at once; were arenas a multiple of a
// page apart, those addresses would share the cache's sets.
constexpr int64_t arenaSkew = 17 * cacheLine;

// Turns of a waiting thread before it sleeps: some hundred microseconds where it
// has a core for itself, few where communication needs the core.
constexpr int spinsAlone = 10000, spinsBesideNetwork = 1000;

} // namespace

CpuTask::CpuTask(const drt_program &program, Communicator *communicator, TaskConfig config)
    : TaskRuntime(program, communicator, std::move(config)), layout_(findLayout()), variables_(program.num_variables),
      runs_(program.num_entries), barrier_(config_.localReplicas) {
  std::vector<int64_t> offsets(program.num_variables);
  int64_t bytes = 0;
  for (const bool isOwn : {false, true}) {
    for (int32_t i = 0; i < program.num_variables; ++i) {
      const drt_variable &variable = program.variables[i];
      if ((variable.shares > 0 || variable.owner > 0) != isOwn)
        continue;
      offsets[i] = bytes;
      const int64_t copies = variable.shares > 0  ? config_.localReplicas
                             : variable.owner > 0 ? isTask(variable.owner - 1)
                                                  : 1;
      bytes += roundUp(std::max<int64_t>(variable.bytes * copies, 1), cacheLine);
    }
    if (!isOwn)
      sharedBytes_ = bytes;
  }
  const int32_t replicas = config_.localReplicas;
  const int64_t stride = roundUp(std::max<int64_t>(program.arena_bytes, 1), 4096) + arenaSkew;
  if (config_.joint)
    joint_ = std::make_unique<JointMemory>(program, *communicator, bytes, stride);
  variableMemory_ = joint_ ? joint_->variables() : newMemory(bytes);
  for (int32_t i = 0; i < program.num_variables; ++i)
    variables_[i] = variableMemory_ + offsets[i];

  arenaMemory_ = joint_ ? joint_->arenas() : newMemory(stride * replicas);

  reportDivisionsByZero();
  mainCores_ = allowedCores();
  const int cores = static_cast<int>(mainCores_.size());
  const int hostReplicas = std::max(config_.hostReplicas, replicas);
  if (hostReplicas * coresPerReplica() <= cores)
    spins_ = isApart() ? spinsBesideNetwork : spinsAlone;
  for (int32_t i = 0; i < replicas; ++i) {
    replicas_.push_back(std::make_unique<Replica>(*this, i, coresPerReplica(),
                                                  program.cores_per_replica > 0 ? 1 : libraryThreads(hostReplicas)));
    Replica &replica = *replicas_.back();
    replica.arena_base = arenaMemory_;
    replica.arena_stride = stride;
    if (joint_) {
      replica.local_index = replica.global_index;
      replica.local_replicas = config_.numReplicas;
    }
    replica.arena = arenaMemory_ + replica.local_index * stride;
    replica.variables = variables_.data();
    if (config_.metered)
      replica.use = std::make_unique<ReplicaUse>();
  }
  for (int32_t i = 0; i < program.num_entries; ++i) {
    buckets_.emplace_back(program.entries[i].num_buckets);
    for (int32_t b = 0; b < program.entries[i].num_buckets; ++b)
      makeBucket(program.entries[i].buckets[b], buckets_.back()[b]);
  }
  if (communicator && config_.timeline)
    communicationRow_ = std::make_unique<TimelineRow>("communication", config_.numReplicas);
  if (communicator)
    communicationDelays_ = Delays::fromEnvironment(static_cast<uint64_t>(config_.numReplicas + config_.firstReplica));
  if (communicator)
    pipeline_ = std::make_unique<Pipeline>(
        Pipeline::Memory{program, variables_.data(), {arenaMemory_, stride, replicas}, config_.numReplicas},
        *communicator, communicationDelays_.get());

  // The communication thread first: threads inherit the cores of who starts them.
  if (communicator)
    threads_.emplace_back([this] { communicationMain(); });
  for (int32_t i = 1; i < replicas; ++i)
    threads_.emplace_back([this, i] { replicaMain(i); });
  if (hostReplicas * coresPerReplica() > 1)
    bindReplica(0);
  flushDenormals();
  if (program.servers)
    served_ = std::make_unique<ServedReplicas>(*this);
}

void CpuTask::makeBucket(const drt_bucket &plan, Bucket &bucket) {
  bucket.exchange = Exchange::make(plan, layout_);
  if (isApart())
    bucket.pipelined = PipelinedBucket::make(plan, communicator_, config_.localReplicas);
}

char *CpuTask::newMemory(int64_t bytes) {
  if (char *shared = communicator_ ? communicator_->shared_memory(bytes) : nullptr)
    return shared;
  memory_.emplace_back(bytes);
  return memory_.back().data();
}

bool CpuTask::needsLayout() const {
  for (int32_t i = 0; i < program_.num_variables; ++i)
    if (program_.variables[i].shares > 0 || program_.variables[i].owner > 0)
      return true;
  for (int32_t i = 0; i < program_.num_entries; ++i)
    for (int32_t b = 0; b < program_.entries[i].num_buckets; ++b)
      if (program_.entries[i].buckets[b].exchange || program_.entries[i].buckets[b].kind != DRT_BUCKET_ALL_REDUCE)
        return true;
  return false;
}

// Asked of the tasks themselves: which of them the communicator joins, and in what order, is the launcher's to say.
Layout CpuTask::findLayout() {
  if (config_.joint)
    return drt::findLayout(nullptr, 0, config_.numReplicas, config_.numReplicas);
  return drt::findLayout(needsLayout() ? communicator_ : nullptr, config_.firstReplica, config_.localReplicas,
                         config_.numReplicas);
}

CpuTask::~CpuTask() {
  stopServing(); // its replicas may ask for it until they are back
  quit_.store(true);
  go_.add(1);
  asked_.add(1);
  for (std::thread &thread : threads_)
    thread.join();
  stayOn(mainCores_);
}

void CpuTask::setFeed(int32_t feed, const void *share0, int64_t shareBytes) {
  if (joint_) {
    fed_.resize(std::max<size_t>(fed_.size(), static_cast<size_t>(feed) + 1));
    fed_[static_cast<size_t>(feed)] = {static_cast<const char *>(share0), shareBytes};
  }
  for (int32_t i = 0; i < config_.localReplicas; ++i)
    replicas_[i]->feedPointers[feed] = static_cast<const char *>(share0) + i * shareBytes;
}

void CpuTask::enqueue(const drt_entry &entry, int64_t step) {
  if (failed()) {
    awaitServed();
    throwFailure();
  }
  enqueuedStep_ = step;
  if (served_ && &entry == &served_->step()) {
    served_->allowUpdate();
    return;
  }
  entry_ = &entry;
  const uint32_t run = ++runs_[&entry - program_.entries];
  for (std::unique_ptr<Replica> &replica : replicas_)
    replica->step = step;
  // A joint plan's reports have who is late to each bucket; nothing of it is the communication's to do.
  if (communicator_ && entry.num_buckets > 0 && !alone_ && (!joint_ || config_.metered))
    post({&entry, run, step});
  ++begun_;
  if (config_.localReplicas > 1)
    go_.add(1);
  runEntry(*replicas_[0], entry);
  if (config_.localReplicas > 1)
    leave(begun_ * static_cast<uint32_t>(config_.localReplicas - 1));
  if (joint_ && config_.metered) // a step's notes are read when it has ended
    drain();
  if (failed())
    throwFailure();
}

void CpuTask::run(const drt_entry &entry, int64_t step) {
  if (!joint_ && pullsRows(entry)) {
    agreeToRun(entry, true);
    TaskRuntime::run(entry, step);
    return drain();
  }
  if (!joint_)
    return TaskRuntime::run(entry, step);
  if (entry.num_buckets > 0)
    throw Error(std::string("the entry '") + entry.name + "' is one task's alone, and reduces: an internal error", 70);
  Replica &replica = *replicas_[0];
  alone_ = true;
  replica.arena_base = replica.arena;
  replica.local_index = 0;
  replica.local_replicas = 1;
  enqueue(entry, step);
  replica.arena_base = joint_->arenas();
  replica.local_index = replica.global_index;
  replica.local_replicas = config_.numReplicas;
  alone_ = false;
}

bool CpuTask::pullsRows(const drt_entry &entry) const {
  return communicator_ && std::any_of(entry.buckets, entry.buckets + entry.num_buckets,
                                      [](const drt_bucket &bucket) { return bucket.kind == DRT_BUCKET_PULL_ROWS; });
}

bool CpuTask::agreeToRun(const drt_entry &entry, bool runs) {
  drain();
  communicator_->describe(0, entry.name);
  communicator_->broadcast(&runs, sizeof runs, 0);
  return runs;
}

void CpuTask::answer(const drt_entry &entry) {
  while (pullsRows(entry) && agreeToRun(entry, false)) {
    post({&entry, 0, 0, /*answers=*/true});
    drain();
  }
}

void CpuTask::endAlone(const drt_entry &entry) {
  if (pullsRows(entry))
    agreeToRun(entry, false);
}

// As replicas of one task begin together: nobody reads any more what this run overwrites. Feeds, which others read as
// they do operands in arenas, go where they reach them.
bool CpuTask::beginJointRun(const drt_entry &entry) {
  Replica &replica = *replicas_[0];
  if (!barrier(replica))
    return false;
  for (int32_t i = 0; i < entry.num_feeds; ++i) {
    const auto [data, bytes] = fed_[static_cast<size_t>(i)];
    if (bytes == 0)
      continue;
    char *own = joint_->feed(i) + replica.global_index * bytes;
    std::memcpy(own, data, static_cast<size_t>(bytes));
    replica.feedPointers[static_cast<size_t>(i)] = own;
  }
  return true;
}

template <class Wait> bool CpuTask::awaitOthers(Replica &replica, const char *operation, Wait wait) {
  replica.waitsFor.store(operation, std::memory_order_relaxed);
  replica.delay();
  joint_->waits(replica.global_index).fetch_add(1, std::memory_order_relaxed);
  const bool there = [&] {
    const Waiting waiting(replica.use.get());
    return wait(Patience{joint_->aborted(), spins_, this, operation});
  }();
  replica.delay();
  replica.waitsFor.store(nullptr, std::memory_order_relaxed);
  if (there)
    return true;
  try {
    communicator_->throw_if_aborted();
  } catch (const std::exception &error) {
    fail(error.what());
  }
  return false;
}

// Replica 0's wait for the others. After a failure they come as soon as they next
// call the runtime; one that computes for long is not waited for.
void CpuTask::leave(uint32_t replicas) {
  if (left_.wait(replicas, {stop_, spins_, this, "the end of the step"}))
    return;
  struct Deadline : StallWatch {
    std::atomic<bool> over{false};
    void waiting(const char *, double seconds) override { over.store(seconds > 2); }
  } deadline;
  left_.wait(replicas, {deadline.over, 0, &deadline, ""});
}

void CpuTask::wait() {
  if (!served_ || served_->outstanding() == 0 || served_->waitForUpdate())
    return;
  awaitServed();
  throwFailure();
}

// After a failure. They come as soon as they next call the runtime.
void CpuTask::awaitServed() {
  for (int tries = 0; served_ && tries < 200 && !served_->ended(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

void CpuTask::serve(FeedReplica feed, int64_t firstStep) { served_->start(std::move(feed), firstStep); }

void CpuTask::stopServing() {
  if (!served_)
    return;
  served_->stop();
  served_->join();
}

void CpuTask::fail(const std::string &message) noexcept {
  TaskRuntime::fail(message);
  if (served_)
    served_->stop();
}

bool CpuTask::runEntry(Replica &replica, const drt_entry &entry) {
  replica.entry = &entry;
  if (replica.use)
    replica.use->begin();
  if (joint_ && !alone_ && !beginJointRun(entry))
    return false;
  std::fill_n(replica.bucketStates.begin(), entry.num_buckets, Replica::BucketState::Contributions);
  const Replica *const outer = setDividingReplica(&replica); // an update runs within a step
  const bool ended = setjmp(replica.wayOut) == 0;
  if (ended)
    entry.run(&replica);
  setDividingReplica(outer);
  if (replica.use)
    replica.use->end();
  replica.scope.store(-1, std::memory_order_relaxed);
  return ended;
}

void CpuTask::bindReplica(int32_t localIndex) { bindCore(localIndex, 0); }

void CpuTask::bindCore(int32_t localIndex, int core) {
  const int hostReplicas = std::max(config_.hostReplicas, config_.localReplicas);
  if (config_.pin)
    stayOn(coresOf(coresOf(mainCores_, hostReplicas, config_.hostOffset + localIndex), coresPerReplica(), core));
  flushDenormals();
}

void CpuTask::leaveCores() const {
  stayOn(mainCores_);
  flushDenormals();
}

void CpuTask::replicaMain(int32_t localIndex) {
  bindReplica(localIndex);
  for (uint32_t entries = 1;; ++entries) {
    if (!go_.wait(entries, {quit_, spins_}) || quit_.load())
      return;
    runEntry(*replicas_[localIndex], *entry_);
    left_.add(1);
  }
}

bool CpuTask::barrier(Replica &replica) {
  if (joint_)
    return alone_ || awaitOthers(replica, "a barrier",
                                 [&](const Patience &patience) { return joint_->barrier().wait(patience); });
  if (config_.localReplicas == 1)
    return true;
  replica.waitsFor.store("a barrier", std::memory_order_relaxed);
  replica.delay();
  const bool there = [&] {
    const Waiting waiting(replica.use.get());
    return barrier_.wait({stop_, spins_, this, "a barrier"});
  }();
  replica.delay();
  replica.waitsFor.store(nullptr, std::memory_order_relaxed);
  return there;
}

void CpuTask::startBucket(Replica &replica, int32_t index) {
  bucket(*replica.entry, index).started.add(1);
  if (joint_)
    joint_->started(entryIndex(*replica.entry), index).add(1);
}

bool CpuTask::pullRows(Replica &replica, int32_t index, RowRequest request) {
  replica.pulled = request;
  if (communicator_) {
    startBucket(replica, index);
    return waitBucket(replica, index);
  }
  // All is here, and of an evaluation that writes nothing.
  const drt_bucket &plan = replica.entry->buckets[index];
  const std::vector<PulledTable> tables = tablesOf(plan);
  for (size_t i = 0; i < tables.size(); ++i)
    takeRows(plan, tables[i], request.indices[i], request.rows[i],
             [&](int64_t row) { return tables[i].data + row * tables[i].rowBytes; });
  return true;
}

std::vector<PulledTable> CpuTask::tablesOf(const drt_bucket &plan) const {
  std::vector<PulledTable> tables;
  for (int32_t i = 0; i < plan.num_members; ++i) {
    const drt_member &member = plan.members[i];
    const drt_variable &variable = program_.variables[member.variable];
    tables.push_back({static_cast<int>(member.owner - 1), static_cast<const char *>(variables_[member.variable]),
                      member.count / member.columns, member.columns * dtypeSize(variable.type.dtype),
                      countPulled(plan, i)});
  }
  return tables;
}

bool CpuTask::pushRows(Replica &replica, int32_t index, const RowPush &push) {
  if (!communicator_)
    throw Error("rows are pushed within one task: an internal error", 70);
  replica.pushed = push;
  startBucket(replica, index);
  return waitBucket(replica, index);
}

bool CpuTask::waitBucket(Replica &replica, int32_t index) {
  const drt_entry &entry = *replica.entry;
  Bucket &waited = bucket(entry, index);
  const char *name = entry.buckets[index].name;
  const uint32_t run = runs_[&entry - program_.entries];
  if (joint_)
    return awaitOthers(replica, name, [&](const Patience &patience) {
      return joint_->started(entryIndex(entry), index).wait(run * static_cast<uint32_t>(config_.numReplicas), patience);
    });
  replica.waitsFor.store(name, std::memory_order_relaxed);
  // A pipelined bucket's pieces are waited for where each is used.
  if (waited.pipelined)
    waited.pipelined->open();
  const bool there = [&] {
    const Waiting waiting(replica.use.get());
    return communicator_ && !waited.pipelined
               ? waited.reduced.wait(run, {stop_, 0, this, name})
               : waited.started.wait(run * static_cast<uint32_t>(config_.localReplicas), {stop_, spins_, this, name});
  }();
  replica.waitsFor.store(nullptr, std::memory_order_relaxed);
  replica.delay();
  return there;
}

void CpuTask::waiting(const char *operation, double seconds) {
  if (config_.stallWarning <= 0 || seconds < config_.stallWarning)
    return;
  int64_t last = warnedNs_.load();
  const int64_t now = nowNs();
  if ((last != 0 && static_cast<double>(now - last) < config_.stallWarning * 1e9) ||
      !warnedNs_.compare_exchange_strong(last, now))
    return;
  std::string arrived, late;
  for (int32_t i = 0; joint_ && i < config_.numReplicas; ++i) {
    // Those that are ahead wait; the first of them says so.
    const uint32_t own = joint_->waits(config_.firstReplica).load(std::memory_order_relaxed);
    const bool waits = static_cast<int32_t>(joint_->waits(i).load(std::memory_order_relaxed) - own) >= 0;
    if (waits && i < config_.firstReplica)
      return;
    std::string &list = waits ? arrived : late;
    list += (list.empty() ? "" : ", ") + std::to_string(i);
  }
  for (int32_t i = 0; !joint_ && i < config_.localReplicas; ++i) {
    const Replica &replica = *replicas_[i];
    const bool waits = replica.waitsFor.load(std::memory_order_relaxed) != nullptr;
    const int32_t scope = replica.scope.load(std::memory_order_relaxed);
    std::string &list = waits ? arrived : late;
    list += (list.empty() ? "" : ", ") + std::to_string(replica.global_index);
    if (!waits && scope >= 0 && scope < entry_->num_scopes)
      list += std::string(" (in ") + entry_->scopes[scope].name + ")";
  }
  if (late.empty())
    return; // the other tasks are late: the group says which
  warn("stalled for " + std::to_string(static_cast<int64_t>(seconds)) + " s in " + operation + " (" + entry_->name +
       "): arrived: replica " + (arrived.empty() ? "none" : arrived) + "; late: replica " + late);
}

std::unique_ptr<TaskRuntime> makeTask(const drt_program &program, Communicator *communicator, TaskConfig config) {
  return std::make_unique<CpuTask>(program, communicator, std::move(config));
}

std::vector<const TimelineRow *> CpuTask::timelineRows() const {
  std::vector<const TimelineRow *> rows;
  if (served_)
    rows = served_->timelineRows();
  for (const std::unique_ptr<Replica> &replica : replicas_)
    if (replica->timeline && rows.size() < replicas_.size())
      rows.push_back(replica->timeline.get());
  if (communicationRow_)
    rows.push_back(communicationRow_.get());
  return rows;
}

} // namespace drt
