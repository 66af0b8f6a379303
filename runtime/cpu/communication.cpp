//===- communication.cpp - What a task's communication thread does --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// One thread a task speaks to the other tasks, in the order that all tasks share:
// the buckets of an entry as the entry lists them, then the sum that was asked
// for. So a bucket travels while the replicas go on with the rest of backward.
//
//===----------------------------------------------------------------------===//
#include "collectives/reduce.h"
#include "cpu/task.h"

#include <cstring>
#include <exception>

namespace drt {
namespace {

class Span {
public:
  Span(TimelineRow *row, const char *name, const char *category, int64_t step) : row_(row) {
    if (row_)
      row_->begin(name, category, step);
  }
  ~Span() {
    if (row_)
      row_->end();
  }

private:
  TimelineRow *row_;
};

} // namespace

void CpuTask::communicationMain() {
  for (uint32_t job = 1; asked_.wait(job, {quit_, 0}) && !quit_.load(); ++job) {
    try {
      communicate(jobs_[job % jobSlots]);
    } catch (const std::exception &error) {
      fail(error.what());
    }
    if (failed())
      return;
    finished_.add(1);
  }
}

void CpuTask::communicate(const Job &job) {
  TimelineRow *row = communicationRow_.get();
  if (!job.entry) {
    const Span span(row, "loss", "all_reduce", job.step);
    communicator_->describe(job.step, "the loss");
    communicator_->all_reduce_sum(sum_, sumCount_, DRT_F64);
    return;
  }
  for (int32_t i = 0; i < job.entry->num_buckets; ++i) {
    const drt_bucket &plan = job.entry->buckets[i];
    Bucket &state = bucket(*job.entry, i);
    if (job.answers) {
      communicator_->describe(job.step, plan.name);
      if (plan.kind == DRT_BUCKET_PULL_ROWS)
        pullRows(plan, false);
      continue;
    }
    // Its values come while owners still update others, behind which they start the bucket.
    if (plan.kind == DRT_BUCKET_GATHER && plan.pipelined && pipeline_->isMoving()) {
      const Span span(communicationRow_.get(), plan.name, "all_gather", job.step);
      communicator_->describe(job.step, plan.name);
      if (!pipeline_->finish({stop_, 0, this, plan.name}))
        return;
    }
    if (!state.started.wait(job.run * static_cast<uint32_t>(config_.localReplicas), {stop_, 0, this, plan.name}))
      return;
    delay();
    if (joint_) {
      communicator_->describe(job.step, plan.name);
      communicator_->barrier();
      continue;
    }
    if (state.pipelined) {
      const Span span(communicationRow_.get(), plan.name, "reduce_scatter", job.step);
      communicator_->describe(job.step, plan.name);
      pipeline_->reduce(*state.pipelined, job.run);
    } else if (plan.kind != DRT_BUCKET_GATHER || !plan.pipelined || !communicator_->carries_both_ways()) {
      communicate(plan, state, job.step);
    }
    delay();
    state.reduced.add(1);
  }
}

void CpuTask::communicate(const drt_bucket &plan, Bucket &state, int64_t step) {
  TimelineRow *row = communicationRow_.get();
  communicator_->describe(step, plan.name);
  if (plan.kind == DRT_BUCKET_GATHER) {
    const Span span(row, plan.name, "all_gather", step);
    return communicator_->all_gather_pieces(piecesOf(plan, [&](const drt_member &member, Range part) -> Piece {
      const int64_t size = dtypeSize(program_.variables[member.variable].type.dtype);
      return {static_cast<char *>(variables_[member.variable]) + part.begin * size, part.size() * size};
    }));
  }
  if (plan.kind == DRT_BUCKET_GATHER_ROWS) {
    const Span span(row, plan.name, "all_gather", step);
    return gatherRows(plan);
  }
  if (plan.kind == DRT_BUCKET_PULL_ROWS) {
    const Span span(row, plan.name, "pull", step);
    return pullRows(plan, true);
  }
  if (plan.kind == DRT_BUCKET_PUSH_ROWS) {
    const Span span(row, plan.name, "push", step);
    return pushRows(plan);
  }
  // The replicas are done with their contributions, so replica 0's part of its
  // arena takes the sum: no buffer beside it, and updates read it where it lies.
  const Replica &first = *replicas_[0];
  char *data = first.arena_base + plan.arena_offset;
  const Contributions contributions = {data, first.arena_stride, config_.localReplicas};
  if (state.exchange) {
    const Span span(row, plan.name, "all_reduce", step);
    return state.exchange->communicate(*communicator_, contributions);
  }
  const drt_dtype dtype = static_cast<drt_dtype>(plan.dtype);
  if (plan.kind == DRT_BUCKET_REDUCE_SCATTER) {
    const Span span(row, plan.name, "reduce_scatter", step);
    const int64_t size = dtypeSize(dtype);
    return communicator_->reduce_scatter(dtype, contributions, plan.count, divisor(plan),
                                         piecesOf(plan, [&](const drt_member &member, Range part) -> Piece {
                                           return {data + (member.offset + part.begin) * size, part.size() * size};
                                         }));
  }
  const Span span(row, plan.name, "all_reduce", step);
  communicator_->all_reduce(dtype, contributions, plan.count, divisor(plan), plan.algorithm);
}

void CpuTask::gatherRows(const drt_bucket &plan) {
  const Replica &first = *replicas_[0];
  const int64_t bytes = plan.count * dtypeSize(plan.dtype);
  char *const own = first.arena_base + plan.arena_offset, *const joined = own + gatheredOffset(plan);
  for (int32_t i = 0; i < config_.localReplicas; ++i)
    std::memcpy(joined + (config_.firstReplica + i) * bytes, own + i * first.arena_stride, static_cast<size_t>(bytes));
  // Tasks may have different numbers of replicas: each sends its part to all. One without replicas takes no part.
  Pieces parts;
  for (int32_t task = 0; task < program_.num_tasks; ++task)
    if (const drt_task &sender = program_.tasks[task]; sender.num_replicas > 0)
      parts.push_back({{joined + sender.first_replica * bytes, sender.num_replicas * bytes}});
  communicator_->all_gather_pieces(parts);
}

void CpuTask::pullRows(const drt_bucket &plan, bool asks) {
  std::vector<RowRequest> requests;
  for (int32_t i = 0; asks && i < config_.localReplicas; ++i)
    requests.push_back(replicas_[i]->pulled);
  rowExchange_.pull(*communicator_, tablesOf(plan), plan, replicasOfTasks(), requests);
}

void CpuTask::pushRows(const drt_bucket &plan) {
  std::vector<RowPush> pushes;
  for (int32_t i = 0; i < config_.localReplicas; ++i)
    pushes.push_back(replicas_[i]->pushed);
  rowExchange_.push(*communicator_, plan, replicasOfTasks(), pushes);
}

std::vector<int64_t> CpuTask::replicasOfTasks() const {
  std::vector<int64_t> replicas;
  for (const Layout::Task &task : layout_.tasks)
    replicas.push_back(task.replicas);
  return replicas;
}

void CpuTask::post(Job job) {
  jobs_[++posted_ % jobSlots] = job;
  asked_.add(1);
}

void CpuTask::drain() {
  if (!finished_.wait(posted_, {stop_, 0}))
    throwFailure();
}

void CpuTask::startSum(double *values, int64_t count) {
  if (!communicator_)
    return;
  sum_ = values;
  sumCount_ = count;
  post({nullptr, 0, enqueuedStep_});
  sumJob_ = posted_;
}

void CpuTask::finishSum() {
  if (communicator_ && !finished_.wait(sumJob_, {stop_, 0}))
    throwFailure();
}

void CpuTask::broadcastVariables() {
  if (!communicator_)
    return;
  drain();
  communicator_->describe(0, "the variables");
  if (joint_)
    return communicator_->barrier();
  communicator_->broadcast(variableMemory_, sharedBytes_, 0);
}

} // namespace drt
