//===- device_replica.cpp - A replica and its device ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/device_replica.h"
#include "core/error.h"

#include <algorithm>
#include <iterator>

namespace drt::cuda {
namespace {

// Reducing gradients goes before computing: others wait for it. The driver takes the highest priority it has.
constexpr int communicationPriority = -100;

std::string rowName(const char *what, const drt_replica &replica) {
  return "replica " + std::to_string(replica.global_index) + ": " + what;
}

} // namespace

DeviceReplica::DeviceReplica(const drt_program &program, const TaskConfig &config, int32_t localIndex, Tuning *tuned)
    : Replica(program.num_primitives), program_(program), config_(config), device_(deviceOf(config, localIndex)) {
  local_index = localIndex;
  local_replicas = config.localReplicas;
  global_index = config.firstReplica + localIndex;
  num_replicas = config.numReplicas;
  tuning = tuned;
  chip = device_.chip();
  device_.makeCurrent();
  compute_ = Stream::make();
  communication_ = Stream::make(communicationPriority);
  stream = compute_.get();
  if (config.timeline) {
    timeline_.reset(new Timeline{{rowName("compute", *this), 3 * global_index},
                                 {rowName("communication", *this), 3 * global_index + 1},
                                 {rowName("copies", *this), 3 * global_index + 2},
                                 Clock::startOn(stream),
                                 {},
                                 0});
    for (Event &event : timeline_->begun)
      event = Event::make(true);
  }
  kernels_ = Kernels(*program.device, imagesFor(*program.device, device_.major(), device_.minor()));
  allocate();
  prepare();
}

void DeviceReplica::endWork() noexcept {
  // Where the device has failed, what it takes to end comes to nothing. Errors have been reported by who waited.
  const bool lives = driver().cuCtxSetCurrent(device_.context()) == CUDA_SUCCESS;
  if (lives) {
    NcclRank::abort({giveUp()});
    driver().cuStreamSynchronize(stream);
    driver().cuStreamSynchronize(communication_.get());
  }
  callSites = CallSites(0);
  libraries.reset();
}

void DeviceReplica::allocate() {
  const DeviceMemoryPlan plan = deviceMemoryPlan(program_);
  arena_ = DeviceMemory(plan.arena, "the arena");
  variables_ = DeviceMemory(plan.variables, "the variables");
  states_ = DeviceMemory(plan.randomStates, "the states of random operations");
  index_ = DeviceMemory(sizeof global_index, "the replica's number");
  // The rehearsal computes on the arena before anything is there.
  arena_.clear(stream);
  variables_.clear(stream);
  feedBuffers_ = FeedBuffers(program_, timeline_ ? &timeline_->copies : nullptr);

  int64_t fetchBytes = 0;
  size_t mostFeeds = 0, mostBuckets = 0;
  for (int32_t i = 0; i < program_.num_entries; ++i) {
    fetchBytes = std::max(fetchBytes, fetchOffsets(program_.entries[i]).back());
    mostFeeds = std::max<size_t>(mostFeeds, program_.entries[i].num_feeds);
    mostBuckets = std::max<size_t>(mostBuckets, program_.entries[i].num_buckets);
  }
  fetches_ = PinnedMemory(feedSets * fetchBytes);
  for (int i = 0; i < feedSets; ++i) {
    sets_[i].done = Event::make();
    sets_[i].fetches = fetches_.data() + i * fetchBytes;
  }
  for (size_t i = 0; i < mostBuckets; ++i) {
    ready_.push_back(Event::make());
    reduced_.push_back(Event::make());
  }
  for (int32_t i = 0; i < program_.num_variables; ++i)
    variablePointers_.push_back(variables_.data() + program_.variables[i].offset);
  feedPointers_.resize(mostFeeds);
  captured_.resize(static_cast<size_t>(program_.num_entries));
  numSpans_.resize(static_cast<size_t>(program_.num_entries));
  randomStates_.resize(static_cast<size_t>(program_.num_rng_states));
  prepared_.resize(static_cast<size_t>(program_.num_rng_states));
  seeded_.resize(static_cast<size_t>(program_.num_rng_states));

  arena = arena_base = arena_.data();
  arena_stride = 0;
  variables = variablePointers_.data();
  feeds = feedPointers_.data();
}

void DeviceReplica::prepare() {
  preparing = true;
  for (int32_t i = 0; i < program_.num_entries; ++i)
    runHostCode(program_.entries[i], 0);
  preparing = false;
  hostCalls_.allocate();
  workspace_ = DeviceMemory(workspaceBytes, "the libraries' workspace");
  workspace = workspace_.data();
  rehearse();
  uploadRandomStates();
  check(driver().cuMemcpyHtoDAsync(index_.address(), &global_index, sizeof global_index, stream), "cuMemcpyHtoDAsync");
  check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
}

// Libraries load their kernels, and make what else they need, when a call is first made, which a capture forbids. So
// their calls are made once before, alone, on the zeroed arena.
void DeviceReplica::rehearse() {
  if (program_.num_primitives == 0)
    return;
  rehearsing_ = true;
  for (int32_t i = 0; i < program_.num_entries; ++i)
    runHostCode(program_.entries[i], 0);
  rehearsing_ = false;
  arena_.clear(stream);
}

void DeviceReplica::uploadRandomStates() {
  for (size_t i = 0; i < randomStates_.size(); ++i)
    check(driver().cuMemcpyHtoDAsync(states_.address() + i * deviceAlignment, randomStates_[i].data(),
                                     sizeof randomStates_[i], stream),
          "cuMemcpyHtoDAsync");
}

std::vector<RandomPosition> DeviceReplica::randomPositions() {
  device_.makeCurrent();
  std::vector<RandomPosition> positions;
  for (size_t i = 0; i < randomStates_.size(); ++i) {
    if (!prepared_[i])
      continue;
    std::array<uint32_t, 7> words = {};
    check(driver().cuMemcpyDtoHAsync(words.data(), states_.address() + i * deviceAlignment, sizeof words, stream),
          "cuMemcpyDtoHAsync");
    check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize");
    RandomPosition position = {static_cast<int32_t>(i), seeded_[i], {}};
    std::copy_n(words.begin(), position.generator.size(), position.generator.begin());
    positions.push_back(position);
  }
  return positions;
}

void DeviceReplica::goOnDrawing(const std::vector<RandomPosition> &positions) {
  device_.makeCurrent();
  for (size_t i = 0; i < randomStates_.size(); ++i) {
    std::array<uint32_t, 6> begin;
    std::copy_n(randomStates_[i].begin(), begin.size(), begin.begin());
    const RandomPosition *position =
        prepared_[i] ? findPosition(positions, static_cast<int32_t>(i), seeded_[i], Philox(begin)) : nullptr;
    if (position)
      std::copy(position->generator.begin(), position->generator.end(), randomStates_[i].begin());
  }
  uploadRandomStates();
}

// ---- Host code ---------------------------------------------------------------------

// A function of its own: nothing here has a destructor that leaving would pass over.
bool DeviceReplica::leaves(const drt_entry &entered) {
  if (setjmp(wayOut) != 0)
    return true;
  entered.run(this);
  return false;
}

void DeviceReplica::runHostCode(const drt_entry &entered, int set) {
  entry = &entered;
  scope = -1;
  open_.clear();
  lastReduced_ = nullptr;
  feedBuffers_.addresses(entered, set, feedPointers_);
  hostCalls_.begin(entered);
  if (leaves(entered))
    throw Error(failure);
}

void DeviceReplica::capture(const drt_entry &entered, int set, Captured &into) {
  if (timeline_) {
    into.spans.reserve(numSpans_[static_cast<size_t>(&entered - program_.entries)]);
    spans_ = &into.spans;
  }
  check(driver().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  std::exception_ptr thrown;
  try {
    enqueueEntry(entered, set);
  } catch (const Error &) {
    thrown = std::current_exception();
  }
  spans_ = nullptr;
  // Also after a failure: the stream would stay captured.
  CUgraph made = nullptr;
  const CUresult status = driver().cuStreamEndCapture(stream, &made);
  Graph graph(made);
  if (thrown)
    std::rethrow_exception(thrown);
  check(status, "cuStreamEndCapture");
  CUgraphExec exec = nullptr;
  // Without the flag a graph's kernels all have the priority of the stream that it is launched on.
  check(driver().cuGraphInstantiateWithFlags(&exec, made, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY),
        "cuGraphInstantiateWithFlags");
  into.graph = GraphExec(exec);
  // While it holds collectives NCCL would not come to an end.
  check(driver().cuGraphDestroy(graph.release()), "cuGraphDestroy");
}

void DeviceReplica::enqueueEntry(const drt_entry &entered, int set) {
  if (isEmulated())
    arena_.fill(0xff, stream); // NaN; -1
  runHostCode(entered, set);
  const std::vector<int64_t> offsets = fetchOffsets(entered);
  for (int32_t i = 0; i < entered.num_fetches; ++i)
    if (const auto bytes = static_cast<size_t>(typeBytes(entered.fetches[i].type)); bytes > 0)
      check(driver().cuMemcpyDtoHAsync(sets_[set].fetches + offsets[static_cast<size_t>(i)],
                                       arena_.address() + static_cast<size_t>(entered.fetches[i].arena_offset), bytes,
                                       stream),
            "cuMemcpyDtoHAsync");
  // What was started is part of the run, whether or not somebody has waited for it.
  if (lastReduced_)
    waitFor(stream, *lastReduced_);
}

// ---- Runs --------------------------------------------------------------------------

void DeviceReplica::enqueue(const drt_entry &entered, int index, int64_t number, const std::vector<GivenFeed> &given) {
  device_.makeCurrent();
  Set &set = sets_[index];
  step = number;
  feedBuffers_.send(entered, index, number, given, local_index, set.done, stream);
  set.entry = &entered;
  set.step = number;
  set.hostRun = hostCalls_.enqueueRun(entered);
  Captured &ready = captured(entered, index);
  if (!ready.graph.get() && !shared)
    capture(entered, index, ready);
  if (timeline_) {
    set.begun = &timeline_->begun[timeline_->runs++ % std::size(timeline_->begun)];
    record(*set.begun, stream);
  }
  if (shared)
    enqueueEntry(entered, index);
  else
    check(driver().cuGraphLaunch(ready.graph.get(), stream), "cuGraphLaunch");
  record(set.done, stream);
}

bool DeviceReplica::finished(int set) {
  device_.makeCurrent();
  const CUresult status = driver().cuEventQuery(sets_[set].done.get());
  if (status == CUDA_ERROR_NOT_READY) {
    nccl.checkErrors();
    return false;
  }
  check(status, "cuEventQuery");
  hostCalls_.check(sets_[set].hostRun);
  return true;
}

void DeviceReplica::take(int index) {
  if (!timeline_)
    return;
  const Set &set = sets_[index];
  timeline_->clock.moveTo(*set.begun);
  captured(*set.entry, index).spans.report(set.step, timeline_->clock);
  feedBuffers_.report(index, timeline_->clock);
}

const void *DeviceReplica::fetched(int set, int32_t fetch) const {
  return sets_[set].fetches + fetchOffsets(*sets_[set].entry)[static_cast<size_t>(fetch)];
}

// ---- Variables ---------------------------------------------------------------------

void DeviceReplica::fetchVariables(char *to) {
  device_.makeCurrent();
  check(driver().cuMemcpyDtoHAsync(to, variables_.address(), static_cast<size_t>(variables_.bytes()), stream),
        "cuMemcpyDtoHAsync");
}

void DeviceReplica::sendVariables(const char *from) {
  device_.makeCurrent();
  check(driver().cuMemcpyHtoDAsync(variables_.address(), from, static_cast<size_t>(variables_.bytes()), stream),
        "cuMemcpyHtoDAsync");
}

void DeviceReplica::broadcastVariables() {
  device_.makeCurrent();
  const int64_t bytes = commonVariableBytes(program_);
  if (shared)
    shared->broadcast(local_index, variables_.address(), bytes, stream);
  else
    nccl.broadcast(variables_.data(), bytes, stream);
}

void DeviceReplica::fetchVariable(int32_t variable, char *to) {
  device_.makeCurrent();
  check(driver().cuMemcpyDtoHAsync(to, addressOf(variablePointers_[static_cast<size_t>(variable)]),
                                   static_cast<size_t>(program_.variables[variable].bytes), stream),
        "cuMemcpyDtoHAsync");
}

void DeviceReplica::sendVariable(int32_t variable, const char *from) {
  device_.makeCurrent();
  check(driver().cuMemcpyHtoDAsync(addressOf(variablePointers_[static_cast<size_t>(variable)]), from,
                                   static_cast<size_t>(program_.variables[variable].bytes), stream),
        "cuMemcpyHtoDAsync");
}

bool DeviceReplica::idle() {
  device_.makeCurrent();
  const CUresult status = driver().cuStreamQuery(stream);
  if (status == CUDA_ERROR_NOT_READY) {
    nccl.checkErrors();
    return false;
  }
  check(status, "cuStreamQuery");
  return true;
}

void DeviceReplica::close() {
  device_.makeCurrent();
  nccl.close();
}

ncclComm_t DeviceReplica::giveUp() noexcept {
  const bool dropped = !nccl.joined() || dropGraphs();
  ncclComm_t comm = nccl.leave();
  return dropped ? comm : nullptr;
}

void DeviceReplica::connect() {
  device_.makeCurrent();
  for (int32_t i = 0; i < program_.num_entries; ++i)
    for (int32_t b = 0; b < program_.entries[i].num_buckets; ++b)
      communicate(program_.entries[i].buckets[b], stream);
}

// NCCL ends a communicator, be it by an abort, when no graph holds its collectives any more. A graph that runs goes
// when it has ended, to which the abort brings it. Returns whether all are gone, or will be.
bool DeviceReplica::dropGraphs() noexcept {
  bool dropped = true;
  driver().cuCtxSetCurrent(device_.context()); // the thread may be the launcher's
  for (std::array<Captured, feedSets> &sets : captured_)
    for (Captured &captured : sets)
      if (CUgraphExec exec = captured.graph.release())
        dropped &= driver().cuGraphExecDestroy(exec) == CUDA_SUCCESS;
  return dropped;
}

std::vector<const TimelineRow *> DeviceReplica::rows() const {
  if (!timeline_)
    return {};
  return {&timeline_->compute, &timeline_->communication, &timeline_->copies};
}

} // namespace drt::cuda
