//===- pipeline.h - Updates by owners, piece by piece ----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// What a parameter server would hold is updated by its owner: gradients go there, the
// new value comes back. One after the other a network would carry one way at a time, so
// a bucket goes in pieces, and while one piece's gradients go to the owner, the values of
// an earlier one are on their way back:
//
//   gradients to the owner    p0  p1  p2  p3  p4
//   the owner updates             p0  p1  p2  p3  p4
//   values to the others                  p0  p1  p2  p3  p4
//
// A piece's values may travel when its owner has updated it and all others no longer
// read the old ones. When that is depends on the time that replicas take, and all tasks
// must do the same: so each round of the communication also tells how many pieces this
// task is ready for, and the next round carries values of those that all are ready for.
// Gradients never wait for values, so whatever replicas wait for comes.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_PIPELINE_H
#define DRT_CPU_PIPELINE_H

#include "collectives/communicator.h"
#include "core/counter.h"
#include "core/delays.h"
#include "core/dtype.h"
#include "core/layout.h"
#include "core/ranges.h"
#include "drt/drt.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace drt {

/// A bucket with drt_bucket.pipelined, in pieces. Counters go on over all runs of the entry, which are counted from 1.
class PipelinedBucket {
public:
  /// Null where the bucket's gradients do not go so.
  static std::unique_ptr<PipelinedBucket> make(const drt_bucket &bucket, const Communicator *communicator,
                                               int32_t localReplicas);

  /// Elements of one member.
  struct Part {
    int32_t member;
    int32_t variable; // index in the program
    Range range;
  };
  /// Parts of members of one owner.
  struct Piece {
    int32_t owner; // task
    int64_t bytes = 0;
    std::vector<Part> parts;
  };

  const std::vector<Piece> &pieces() const { return pieces_; }

  // ---- Of replicas ---------------------------------------------------------------

  /// The calling replica no longer reads what the bucket's variables were.
  void open() { opened_.add(1); }

  /// Calls update(range) for the parts of `elements`, a range of the member of `count` elements that begins at element
  /// `offset` of the bucket, when their gradients are there; a replica of the owner calls it once a run, for its own
  /// elements. False where the task failed meanwhile.
  template <class Update>
  bool updateMember(int64_t offset, int64_t count, Range elements, uint32_t run, const Patience &patience,
                    Update update) {
    for (size_t i = 0; i < pieces_.size(); ++i)
      for (const Part &part : pieces_[i].parts) {
        // One without elements, which has no part, may begin where another does.
        if (const drt_member &member = bucket_.members[part.member]; member.offset != offset || member.count != count)
          continue;
        const Range own = {std::max(part.range.begin, elements.begin), std::min(part.range.end, elements.end)};
        if (!own.empty()) {
          const auto before = static_cast<uint32_t>(i + 1);
          if (!reduced_.wait((run - 1) * static_cast<uint32_t>(pieces_.size()) + before, patience))
            return false;
          update(own);
        }
        updated_[i].add(1);
      }
    return true;
  }

private:
  friend class Pipeline;

  PipelinedBucket(const drt_bucket &bucket, int32_t localReplicas) : bucket_(bucket), localReplicas_(localReplicas) {}

  static void cut(const drt_bucket &bucket, int32_t member, std::vector<Piece> &pieces);

  /// What says that values of piece `i` may go, or come, in this run, when it reaches `target`.
  Counter &readiness(size_t i, int32_t rank, uint32_t run, uint32_t &target);

  const drt_bucket &bucket_;
  const int32_t localReplicas_;
  std::vector<Piece> pieces_;  // the first of each owner, the second of each, …
  std::vector<size_t> rounds_; // where in pieces_ each round ends: a piece of each owner, so that all ways carry
  Counter opened_;             // by replicas
  Counter reduced_;            // pieces whose gradients are there, in their order
  std::unique_ptr<Counter[]> updated_; // of each piece, by each replica of its owner, once for each part
};

/// What the communication thread does of an entry's pipelined buckets.
class Pipeline {
public:
  /// Where data of the task lie.
  struct Memory {
    const drt_program &program;
    void *const *variables;
    Contributions arenas; // of the replicas, from their beginning
    int64_t numReplicas;  // over all tasks
  };

  /// `delays`: null unless a test asks for them.
  Pipeline(Memory memory, Communicator &communicator, Delays *delays)
      : memory_(memory), communicator_(communicator), delays_(delays) {}

  /// Sends the gradients of the bucket, which all replicas have written, to their owners. Values of pieces that were
  /// sent before, also of other buckets, follow meanwhile.
  void reduce(PipelinedBucket &bucket, uint32_t run);

  /// Whether values of pieces that were reduced have not come.
  bool isMoving() const { return !moving_.empty(); }

  /// Until the values of all that was reduced are there. False where the task failed meanwhile.
  bool finish(const Patience &patience);

private:
  struct Moving {
    PipelinedBucket *bucket;
    size_t piece;
    uint32_t run;
  };

  using Piece = PipelinedBucket::Piece;
  using Part = PipelinedBucket::Part;

  const Piece &pieceOf(const Moving &moving) const { return moving.bucket->pieces_[moving.piece]; }
  Counter &readiness(const Moving &moving, uint32_t &target) const;
  int64_t countReady() const;
  char *gradientOf(const PipelinedBucket &bucket, const Part &part) const;
  char *valueOf(const Part &part) const;
  /// visit(part, its bytes)
  template <class Visit> void eachPart(const Moving &moving, Visit visit) const {
    for (const Part &part : pieceOf(moving).parts)
      visit(part, part.range.size() * dtypeSize(moving.bucket->bucket_.dtype));
  }

  void round(const std::vector<Moving> &reduced);
  void sumReplicas(const Moving &moving);
  void sumTasks(const PipelinedBucket &bucket, const Part &part, std::vector<const char *> gradients);
  void send(const void *data, int64_t bytes);

  const Memory memory_;
  Communicator &communicator_;
  Delays *const delays_;
  std::deque<Moving> moving_; // pieces that were reduced, and whose values have not come
  int64_t agreed_ = 0;        // the first of them, for which all tasks are ready
  std::vector<char> sent_, received_;
};

} // namespace drt

#endif // DRT_CPU_PIPELINE_H
