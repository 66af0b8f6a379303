//===- team.h - The threads that compute one replica's step together ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_TEAM_H
#define DRT_CPU_TEAM_H

#include "core/counter.h"
#include "core/ranges.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace drt {

/// The least number of items, each of `work` multiplications, that are worth a core of their own: to call it takes as
/// long as some ten thousand of them.
inline int64_t grainOf(int64_t work) { return (1 << 16) / std::max<int64_t>(1, work) + 1; }

/// Some threads that do one piece of work after the other together, each a part of it. Member 0 is whoever calls run();
/// the others wait between pieces: awake for a while, then asleep. One piece at a time.
class Team {
public:
  /// `members` in all. `begin(member)` is the first thing that each thread of the team's own does. `spins`: turns of
  /// looking before a member sleeps; 0 where threads outnumber cores.
  Team(int members, int spins, std::function<void(int)> begin);
  ~Team();
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;

  int size() const { return static_cast<int>(errors_.size()); }

  /// work(member) for each member; returns when all are done. An exception of a member is thrown again here, the first
  /// member's where there are several. `work` never leaves by longjmp.
  template <class Work> void run(const Work &work) {
    run([](const void *work, int member) { (*static_cast<const Work *>(work))(member); }, &work);
  }

  /// The part of [0, count) that is `member`'s of `members`, where each takes `grain` elements at least.
  static Range part(int64_t count, int64_t grain, int members, int member);

private:
  using Call = void (*)(const void *work, int member);
  void run(Call call, const void *work);
  void attempt(int member) noexcept;
  void serve(int member);

  const int spins_;
  Call call_ = nullptr;
  const void *work_ = nullptr;
  std::vector<std::exception_ptr> errors_; // of each member, in the piece of work that is done
  Counter begun_, done_;
  uint32_t pieces_ = 0;
  std::atomic<bool> quit_{false};
  std::vector<std::thread> threads_;
};

} // namespace drt

#endif // DRT_CPU_TEAM_H
