//===- task.cpp - A task on CUDA's devices --------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/task.h"
#include "core/shares.h"

#include <algorithm>
#include <atomic>
#include <exception>

namespace drt::cuda {
namespace {

int64_t mirrorBytes(const drt_program &program) {
  if (!program.device)
    throw Error(std::string("the program was compiled for ") + program.target +
                    ", but is linked with the runtime of CUDA's devices; compile it again",
                70);
  return program.device->variable_bytes;
}

} // namespace

CudaTask::CudaTask(const drt_program &program, Communicator *communicator, TaskConfig config)
    : TaskRuntime(program, communicator, std::move(config)), mirror_(mirrorBytes(program)) {
  size_t mostFeeds = 0;
  for (int32_t i = 0; i < program.num_entries; ++i)
    mostFeeds = std::max<size_t>(mostFeeds, program.entries[i].num_feeds);
  feeds_.resize(mostFeeds);
  shareMirrors_.resize(static_cast<size_t>(program.num_variables));
  for (int32_t i = 0; i < program.num_variables; ++i)
    if (program.variables[i].shares > 0)
      shareMirrors_[static_cast<size_t>(i)] = Memory(program.variables[i].bytes * config_.localReplicas);
  replicas_.resize(static_cast<size_t>(config_.localReplicas));
  for (int32_t i = 0; config_.localReplicas > 1 && i < config_.localReplicas; ++i)
    workers_.push_back(std::make_unique<Worker>());
  if (communicator)
    communication_ = std::make_unique<Worker>();
  if (!config_.tuning.empty())
    tuning_ = std::make_unique<Tuning>(config_.tuning);
  inEachThread(
      [this](int32_t i) { replicas_[i] = std::make_unique<DeviceReplica>(program_, config_, i, tuning_.get()); });
  if (tuning_)
    tuning_->save();
  connect();
}

CudaTask::~CudaTask() {
  // Where something went wrong, other ranks may not come to a good end together with these.
  const bool clean = !failed() && std::uncaught_exceptions() == 0 && runs_.empty();
  if (!clean)
    abortRanks();
  try {
    if (clean)
      awaitCommunication();
    // Shared with a thread that is left behind.
    const auto dropped = std::make_shared<std::atomic<bool>>(true);
    if (clean)
      inEachReplica([dropped](DeviceReplica &replica) {
        if (!replica.dropGraphs())
          *dropped = false;
      });
    // Else communicators are left to the process's end: of all replicas, since one's end waits for the others'.
    if (clean)
      inEachReplica(
          [end = dropped->load()](DeviceReplica &replica) { end ? replica.close() : void(replica.nccl.leave()); });
  } catch (const Error &) {
    // All that was asked for is done.
  }
}

// All ranks meet with an id that one of them makes.
void CudaTask::connect() {
  if (config_.numReplicas == 1)
    return;
  if (sharesDevices(config_)) {
    if (communicator_)
      throw Error("--share-devices puts several replicas of a task on a device in plans with one task only", 2);
    shared_ = std::make_unique<SharedDevice>(config_.localReplicas, stop_);
    for (const std::unique_ptr<DeviceReplica> &replica : replicas_)
      replica->shared = shared_.get();
    return;
  }
  ncclUniqueId id = {};
  if (!communicator_ || communicator_->rank() == 0)
    id = NcclRank::makeId();
  if (communicator_) {
    communicator_->describe(0, "NCCL's id");
    communicator_->broadcast(&id, sizeof id, 0);
  }
  inEachReplica([id](DeviceReplica &replica) {
    replica.device().makeCurrent();
    replica.nccl.join(id, replica.global_index, replica.num_replicas);
    replica.connect();
  });
  awaitIdle("the first collectives, for which ranks connect");
}

// ---- Runs --------------------------------------------------------------------------

void CudaTask::setFeed(int32_t feed, const void *share0, int64_t shareBytes) {
  GivenFeed &given = feeds_[static_cast<size_t>(feed)];
  given = {static_cast<const char *>(share0), shareBytes, given.version + 1};
}

void CudaTask::enqueue(const drt_entry &entry, int64_t step) {
  if (runs_.size() == feedSets)
    throw Error("more runs are enqueued than there are feed buffers: an internal error of the runtime", 70);
  Run run = {&entry, step, static_cast<int>(enqueued_++ % feedSets)};
  inEachReplica([this, run](DeviceReplica &replica) { replica.enqueue(*run.entry, run.set, run.step, feeds_); });
  if (communicator_ && entry.num_buckets > 0)
    run.everywhere = communicate([communicator = communicator_, step] {
      communicator->describe(step, "the start of the step");
      communicator->barrier();
    });
  runs_.push_back(run);
}

void CudaTask::wait() {
  const Run run = runs_.front();
  await({[&] { return runEnded(run); },
         [&] {
           return "step " + std::to_string(run.step) + " (" + run.entry->name + ") on replica " + lateReplicas(run);
         },
         [&] {
           return run.entry->num_buckets > 0 && config_.numReplicas > 1 &&
                  (run.everywhere == 0 || communication_->done(run.everywhere));
         }});
  for (const std::unique_ptr<DeviceReplica> &replica : replicas_)
    replica->take(run.set);
  waited_ = run;
  runs_.pop_front();
}

bool CudaTask::runEnded(const Run &run) {
  bool ended = true;
  for (const std::unique_ptr<DeviceReplica> &replica : replicas_) {
    try {
      ended &= replica->finished(run.set);
    } catch (const Error &error) {
      throw Error("replica " + std::to_string(replica->global_index) + " on " + replica->device().name() +
                  " failed in step " + std::to_string(run.step) + " (" + run.entry->name + "): " + error.what());
    }
  }
  return ended;
}

std::string CudaTask::lateReplicas(const Run &run) {
  std::string late;
  for (const std::unique_ptr<DeviceReplica> &replica : replicas_)
    if (!replica->finished(run.set))
      late += (late.empty() ? "" : ", ") + std::to_string(replica->global_index) + ", " + replica->device().name();
  return late;
}

const void *CudaTask::fetched(int32_t localReplica, const drt_fetch &fetch) const {
  const auto index = static_cast<int32_t>(&fetch - waited_.entry->fetches);
  return replicas_[static_cast<size_t>(localReplica)]->fetched(waited_.set, index);
}

// ---- Variables ---------------------------------------------------------------------

void *CudaTask::variable(int32_t index) const {
  if (program_.variables[index].shares > 0)
    return shareMirrors_[static_cast<size_t>(index)].data();
  return mirror_.data() + program_.variables[index].offset;
}

void CudaTask::fetchVariables() {
  // The copy to memory that is not pinned keeps the thread, which watches over what runs before it.
  awaitIdle("the steps before the variables are fetched");
  replicas_[0]->fetchVariables(mirror_.data());
  forEachShare([](DeviceReplica &replica, int32_t variable, char *share) { replica.fetchVariable(variable, share); });
  awaitIdle("the variables, which are fetched");
}

void CudaTask::sendVariables() {
  replicas_[0]->sendVariables(mirror_.data());
  forEachShare([](DeviceReplica &replica, int32_t variable, char *share) { replica.sendVariable(variable, share); });
  awaitIdle("the variables, which are sent");
}

std::vector<RandomPosition> CudaTask::randomPositions() {
  awaitIdle("the steps before the places of random operations are fetched");
  return replicas_[0]->randomPositions();
}

void CudaTask::goOnDrawing(const std::vector<RandomPosition> &positions) {
  for (const auto &replica : replicas_)
    replica->goOnDrawing(positions);
  awaitIdle("the places of random operations, which are sent");
}

void CudaTask::forEachShare(const std::function<void(DeviceReplica &, int32_t variable, char *share)> &copy) {
  for (int32_t i = 0; i < program_.num_variables; ++i)
    for (int32_t r = 0; program_.variables[i].shares > 0 && r < config_.localReplicas; ++r)
      copy(*replicas_[static_cast<size_t>(r)], i, static_cast<char *>(variable(i)) + r * program_.variables[i].bytes);
}

void CudaTask::gatherPart(int32_t index, Range bytes, void *part) {
  awaitCommunication();
  drt::gatherPart(program_.variables[index], layout(), communicator_, variable(index), bytes, part);
}

void CudaTask::scatterPart(int32_t index, Range bytes, const void *part) {
  awaitCommunication();
  drt::scatterPart(program_.variables[index], layout(), communicator_, part, bytes, variable(index));
}

const Layout &CudaTask::layout() {
  if (!layout_)
    layout_ = findLayout(communicator_, config_.firstReplica, config_.localReplicas, config_.numReplicas);
  return *layout_;
}

// The other thread's turn with the other tasks is over.
void CudaTask::awaitCommunication() {
  if (communication_)
    communication_->wait(lastJob_);
}

void CudaTask::broadcastVariables() {
  if (config_.numReplicas == 1)
    return;
  inEachReplica([](DeviceReplica &replica) { replica.broadcastVariables(); });
  awaitIdle("the variables of replica 0");
}

void CudaTask::awaitIdle(const char *what) {
  await({[this] {
           return std::all_of(replicas_.begin(), replicas_.end(), [](const auto &replica) { return replica->idle(); });
         },
         [what] { return std::string(what); }, nullptr});
}

std::vector<const TimelineRow *> CudaTask::timelineRows() const {
  std::vector<const TimelineRow *> all;
  for (const std::unique_ptr<DeviceReplica> &replica : replicas_)
    for (const TimelineRow *row : replica->rows())
      all.push_back(row);
  return all;
}

} // namespace drt::cuda

std::unique_ptr<drt::TaskRuntime> drt::makeTask(const drt_program &program, Communicator *communicator,
                                                TaskConfig config) {
  return std::make_unique<cuda::CudaTask>(program, communicator, std::move(config));
}
