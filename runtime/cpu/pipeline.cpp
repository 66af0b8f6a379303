//===- pipeline.cpp - Updates by owners, piece by piece --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cpu/pipeline.h"

#include "core/dtype.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace drt {
namespace {

/// Two pieces are on their way before the first value comes back, and two behind the last gradient: small beside what a
/// bucket is, and large beside a message's own cost, some ten microseconds of a network.
constexpr int64_t pieceBytes = 256 << 10;

/// Values that go in one round when no gradients are left: the owner has the whole way for itself.
constexpr size_t mostPiecesARound = 4;

using Header = int64_t; // of what a task sends in a round: pieces that it is ready for, beside those on their way

int64_t aligned(int64_t bytes) { return (bytes + 7) / 8 * 8; }

} // namespace

std::unique_ptr<PipelinedBucket> PipelinedBucket::make(const drt_bucket &bucket, const Communicator *communicator,
                                                       int32_t localReplicas) {
  if (!bucket.pipelined || bucket.kind != DRT_BUCKET_REDUCE_SCATTER || !communicator ||
      !communicator->carries_both_ways())
    return nullptr;
  std::unique_ptr<PipelinedBucket> pipelined(new PipelinedBucket(bucket, localReplicas));
  std::vector<std::vector<Piece>> ofOwners(static_cast<size_t>(communicator->size()));
  for (int32_t m = 0; m < bucket.num_members; ++m)
    cut(bucket, m, ofOwners[static_cast<size_t>(bucket.members[m].owner - 1)]);
  for (size_t i = 0, before = 1; before != pipelined->pieces_.size(); ++i) {
    before = pipelined->pieces_.size();
    for (std::vector<Piece> &pieces : ofOwners)
      if (i < pieces.size())
        pipelined->pieces_.push_back(std::move(pieces[i]));
    if (pipelined->pieces_.size() > before)
      pipelined->rounds_.push_back(pipelined->pieces_.size());
  }
  pipelined->updated_ = std::make_unique<Counter[]>(pipelined->pieces_.size());
  return pipelined;
}

/// Adds a member to the pieces of its owner.
void PipelinedBucket::cut(const drt_bucket &bucket, int32_t m, std::vector<Piece> &pieces) {
  const drt_member &member = bucket.members[m];
  const int64_t size = dtypeSize(bucket.dtype);
  for (int64_t begin = 0; begin < member.count;) {
    // Where a part ends two replicas may update beside each other, in cache lines of their own.
    const int64_t room = pieces.empty() ? 0 : (pieceBytes - pieces.back().bytes) / size / rangeGrain * rangeGrain;
    if (room == 0) {
      pieces.push_back({static_cast<int32_t>(member.owner - 1)});
      continue;
    }
    const Range range = {begin, std::min(begin + room, member.count)};
    pieces.back().parts.push_back({m, static_cast<int32_t>(member.variable), range});
    pieces.back().bytes += range.size() * size;
    begin = range.end;
  }
}

Counter &PipelinedBucket::readiness(size_t i, int32_t rank, uint32_t run, uint32_t &target) {
  const auto replicas = static_cast<uint32_t>(localReplicas_);
  if (pieces_[i].owner != rank) {
    target = run * replicas;
    return opened_;
  }
  target = run * replicas * static_cast<uint32_t>(pieces_[i].parts.size());
  return updated_[i];
}

Counter &Pipeline::readiness(const Moving &moving, uint32_t &target) const {
  return moving.bucket->readiness(moving.piece, communicator_.rank(), moving.run, target);
}

int64_t Pipeline::countReady() const {
  int64_t ready = 0;
  for (const Moving &moving : moving_) {
    uint32_t target = 0;
    if (!readiness(moving, target).reached(target))
      break;
    ++ready;
  }
  return ready;
}

char *Pipeline::gradientOf(const PipelinedBucket &bucket, const Part &part) const {
  const drt_bucket &plan = bucket.bucket_;
  return const_cast<char *>(memory_.arenas.first) + plan.arena_offset +
         (plan.members[part.member].offset + part.range.begin) * dtypeSize(plan.dtype);
}

char *Pipeline::valueOf(const Part &part) const {
  return static_cast<char *>(memory_.variables[part.variable]) +
         part.range.begin * dtypeSize(memory_.program.variables[part.variable].type.dtype);
}

void Pipeline::reduce(PipelinedBucket &bucket, uint32_t run) {
  size_t begin = 0;
  for (const size_t end : bucket.rounds_) {
    std::vector<Moving> reduced;
    for (size_t i = begin; i < end; ++i)
      reduced.push_back({&bucket, i, run});
    round(reduced);
    moving_.insert(moving_.end(), reduced.begin(), reduced.end());
    bucket.reduced_.add(static_cast<uint32_t>(end - begin));
    begin = end;
  }
}

bool Pipeline::finish(const Patience &patience) {
  while (!moving_.empty()) {
    uint32_t target = 0;
    if (Counter &ready = readiness(moving_.front(), target); !ready.wait(target, patience))
      return false;
    round({});
  }
  return true;
}

// To each task: how many pieces this one is ready for, the gradients that go to it, and values that this one owns.
// Every task knows how much comes. As many values go as gradients, if so many are there: each way of an owner carries
// as much.
void Pipeline::round(const std::vector<Moving> &reduced) {
  if (delays_)
    delays_->pause();
  const int self = communicator_.rank(), tasks = communicator_.size();
  const auto most = static_cast<int64_t>(reduced.empty() ? mostPiecesARound : reduced.size());
  const std::vector<Moving> values(moving_.begin(), moving_.begin() + std::min(agreed_, most));
  moving_.erase(moving_.begin(), moving_.begin() + static_cast<int64_t>(values.size()));
  const Header ready = countReady();
  for (const Moving &moving : reduced)
    sumReplicas(moving);

  sent_.clear();
  std::vector<int64_t> to(static_cast<size_t>(tasks)), from(static_cast<size_t>(tasks));
  for (int task = 0; task < tasks; ++task) {
    if (task == self)
      continue;
    const size_t before = sent_.size();
    send(&ready, sizeof ready);
    int64_t comes = sizeof(Header);
    for (const Moving &moving : reduced)
      if (const Piece &piece = pieceOf(moving); piece.owner == task)
        eachPart(moving, [&](const Part &part, int64_t bytes) { send(gradientOf(*moving.bucket, part), bytes); });
      else if (piece.owner == self)
        comes += piece.bytes;
    for (const Moving &moving : values)
      if (const Piece &piece = pieceOf(moving); piece.owner == self)
        eachPart(moving, [&](const Part &part, int64_t bytes) { send(valueOf(part), bytes); });
      else if (piece.owner == task)
        comes += piece.bytes;
    // Headers and elements are aligned behind it.
    sent_.resize(static_cast<size_t>(aligned(static_cast<int64_t>(sent_.size()))));
    to[static_cast<size_t>(task)] = static_cast<int64_t>(sent_.size() - before);
    from[static_cast<size_t>(task)] = aligned(comes);
  }
  received_.resize(static_cast<size_t>(std::accumulate(from.begin(), from.end(), int64_t(0))));
  communicator_.all_to_all(sent_.data(), to, received_.data(), from);

  agreed_ = ready;
  std::vector<const char *> gradients; // of the pieces that this task owns, of every other task
  const char *at = received_.data();
  for (int task = 0; task < tasks; ++task) {
    if (task == self)
      continue;
    Header theirs = 0;
    std::memcpy(&theirs, at, sizeof theirs);
    agreed_ = std::min(agreed_, theirs);
    const char *next = at + sizeof theirs;
    gradients.push_back(next);
    for (const Moving &moving : reduced)
      next += pieceOf(moving).owner == self ? pieceOf(moving).bytes : 0;
    for (const Moving &moving : values)
      if (pieceOf(moving).owner == task)
        eachPart(moving, [&](const Part &part, int64_t bytes) {
          std::memcpy(valueOf(part), next, static_cast<size_t>(bytes));
          next += bytes;
        });
    at += from[static_cast<size_t>(task)];
  }
  for (const Moving &moving : reduced)
    if (pieceOf(moving).owner == self)
      eachPart(moving, [&](const Part &part, int64_t bytes) {
        sumTasks(*moving.bucket, part, gradients);
        for (const char *&gradient : gradients)
          gradient += bytes;
      });
}

// Of this task, divided by all replicas.
void Pipeline::sumReplicas(const Moving &moving) {
  const drt_bucket &plan = moving.bucket->bucket_;
  const int64_t divisor = plan.reduction == DRT_REDUCE_MEAN ? memory_.numReplicas : 1;
  if (memory_.arenas.parts == 1 && divisor == 1)
    return;
  for (const Part &part : pieceOf(moving).parts) {
    char *own = gradientOf(*moving.bucket, part);
    drt::reduce(static_cast<drt_dtype>(plan.dtype), own, {own, memory_.arenas.stride, memory_.arenas.parts},
                part.range.size(), divisor);
  }
}

// The owner adds its own to what the others sent, in the order of tasks, as Communicator::reduce_scatter does.
void Pipeline::sumTasks(const PipelinedBucket &bucket, const Part &part, std::vector<const char *> gradients) {
  char *own = gradientOf(bucket, part);
  gradients.push_back(own);
  drt::reduce(static_cast<drt_dtype>(bucket.bucket_.dtype), own, gradients.data(),
              static_cast<int32_t>(gradients.size()), part.range.size(), 1);
}

void Pipeline::send(const void *data, int64_t bytes) {
  const char *first = static_cast<const char *>(data);
  sent_.insert(sent_.end(), first, first + bytes);
}

} // namespace drt
