//===- network_communicator.h - What communicators over a network share ---===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_NETWORK_COMMUNICATOR_H
#define DRT_COLLECTIVES_NETWORK_COMMUNICATOR_H

#include "collectives/communicator.h"
#include "collectives/progress.h"
#include "core/error.h"

#include <functional>
#include <mutex>
#include <string>

namespace drt {

/// What ends collectives over connections between tasks, and how that is said: a connection only knows that it broke.
class NetworkCommunicator : public Communicator {
public:
  /// Says why a connection broke, in the user's terms. May block a while, and may be empty.
  using Explain = std::function<std::string(const std::string &error)>;

  void describe(int64_t step, const char *name) final {
    progress_.step.store(step, std::memory_order_relaxed);
    progress_.name.store(name, std::memory_order_relaxed);
  }

  void abort(const std::string &reason) noexcept final {
    try {
      const std::lock_guard lock(mutex_);
      if (!reason_.empty())
        return;
      reason_ = reason.empty() ? "aborted" : reason;
    } catch (const std::exception &) {
      return;
    }
    break_connections();
  }

  bool carries_both_ways() const final { return true; }

  void throw_if_aborted() final {
    const std::lock_guard lock(mutex_);
    if (!reason_.empty())
      throw Error(reason_);
  }

  // Whatever differs from task to task is one exchange, of which a task's own part is copied here.
  void all_gather(const void *data, int64_t bytes, void *gathered) final;
  void all_gather(void *gathered, const std::vector<int64_t> &bytes) final;
  void all_to_all(const void *data, int64_t bytes, void *received) final;
  void all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                  const std::vector<int64_t> &bytes_from) final;

protected:
  /// `progress` outlives the communicator.
  NetworkCommunicator(Progress &progress, Explain explain) : progress_(progress), explain_(std::move(explain)) {}

  /// to[p] to each other task p, from[p] from it; both ways at once, as far as the connections allow. A collective:
  /// what one task sends to another is what that one receives, and may be nothing. This task's own pieces are none of
  /// it.
  virtual void exchange(const std::vector<Piece> &to, const std::vector<Piece> &from) = 0;

  /// Makes what waits at a connection fail, and whatever comes. Once, when the reason is there; any thread.
  virtual void break_connections() noexcept = 0;

  /// Runs a collective; a `Failure`, of a connection, becomes an Error in the user's terms.
  template <class Failure, class Collective> void guarded(Collective &&collective) {
    const InCollective mark(progress_);
    translated<Failure>(collective);
  }

  /// As guarded, of what is no collective: others may be under way.
  template <class Failure, class Transfer> void translated(Transfer &&transfer) {
    throw_if_aborted();
    try {
      transfer();
    } catch (const Failure &failure) {
      throw_if_aborted();
      const std::string message = explain_ ? explain_(failure.what()) : std::string(failure.what());
      throw_if_aborted(); // a cause that came meanwhile counts
      abort(message);
      throw Error(message);
    }
  }

private:
  Progress &progress_;
  const Explain explain_;
  std::mutex mutex_;
  std::string reason_; // of the abort; guarded by mutex_
};

} // namespace drt

#endif // DRT_COLLECTIVES_NETWORK_COMMUNICATOR_H
