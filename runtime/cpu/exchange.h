//===- exchange.h - How a bucket's gradients become one, beyond a sum -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A bucket with a drt_exchange. Each replica compresses its own gradient g plus
// what earlier steps left of it, e (error feedback): what everybody sees of it is
// c = D(C(g + e)), and e becomes g + e - c. The result is the sum or mean of the c, or
// what an aggregator makes of them; so it is the same wherever the replicas run. In a
// task only c is kept, in place of g; between tasks C(g + e) travels.
//
// PowerSGD has a path of its own (power_sgd.h). Gradients of a type that a
// compressor does not know (it knows float32) or an aggregator does not (float32
// and float64) go without.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_EXCHANGE_H
#define DRT_CPU_EXCHANGE_H

#include "collectives/communicator.h"
#include "collectives/reduce.h"
#include "core/layout.h"
#include "collectives/aggregation.h"
#include "cpu/compressor.h"
#include "cpu/power_sgd.h"

#include <memory>
#include <vector>

namespace drt {

class Replica;

class Exchange {
public:
  /// Null where the bucket's gradients are just summed. `bucket` outlives it. Throws Error where the aggregator needs
  /// more replicas.
  static std::unique_ptr<Exchange> make(const drt_bucket &bucket, const Layout &layout);

  /// Compresses a replica's contribution. In its own thread, before it starts the bucket.
  void encode(int32_t localReplica, char *contribution);

  /// Between tasks: in the communication thread, when all replicas have started. `contributions` are the task's;
  /// the first one's memory takes the result where there is one result (see isChoice).
  void communicate(Communicator &communicator, Contributions contributions);

  /// What is left to do by all replicas of the task together, when the bucket has arrived: in each replica's
  /// thread. False when the task failed meanwhile. Afterwards `reduced` says whether the result lies in the first
  /// contribution.
  bool finish(Replica &replica, Contributions contributions, bool &reduced);

  /// out[i] = the result for elements [0, count) of `contributions`; out may be the first of them.
  void combine(int32_t localReplica, void *out, Contributions contributions, int64_t count) const;

  /// Whether the replicas' gradients stay apart until an update combines them, also between tasks.
  bool isChoice() const { return aggregation_ != nullptr; }
  /// Where they lie: the task's own, or those of all tasks.
  Contributions sources(Contributions contributions) const;

private:
  Exchange(const drt_bucket &bucket, const Layout &layout);
  void gatherAll(Communicator &communicator, Contributions contributions);
  void sumHalves(Communicator &communicator, char *result);
  void sumSparse(Communicator &communicator, char *result);

  const drt_bucket &bucket_;
  const Layout &layout_;
  std::unique_ptr<Compressor> compressor_;
  std::unique_ptr<Aggregation> aggregation_;
  std::unique_ptr<PowerSgd> powerSgd_;
  int64_t divisor_;

  // Between tasks only.
  std::vector<char> wires_;    // what the task's replicas send, side by side
  std::vector<char> received_; // what all tasks sent
  std::vector<char> gathered_; // every replica's gradients, where one is chosen
  std::vector<float> parts_;   // of halves while they are summed
};

} // namespace drt

#endif // DRT_CPU_EXCHANGE_H
