//===- in_process_communicator.h - Tasks that are threads of a test -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_SUPPORT_IN_PROCESS_COMMUNICATOR_H
#define DISTC_TEST_UNIT_SUPPORT_IN_PROCESS_COMMUNICATOR_H

#include "collectives/communicator.h"
#include "core/error.h"

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

/// As many communicators as there are tasks; everything goes through one mutex.
class InProcessGroup {
public:
  /// `carries_both_ways` is what its communicators say of themselves.
  explicit InProcessGroup(int size, bool carries_both_ways = false) : both_ways(carries_both_ways), buffers(size) {
    for (int i = 0; i < size; ++i)
      members.push_back(std::make_unique<Member>(*this, i));
  }

  drt::Communicator &member(int rank) { return *members[rank]; }

private:
  class Member : public drt::Communicator {
  public:
    Member(InProcessGroup &group, int rank) : group(group), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return static_cast<int>(group.buffers.size()); }
    bool carries_both_ways() const override { return group.both_ways; }
    void describe(int64_t, const char *) override {}
    void all_reduce_sum(void *data, int64_t count, drt_dtype dtype, int32_t) override {
      group.meet(rank_, data, [&](std::vector<void *> &buffers) {
        if (dtype == DRT_F32)
          sum<float>(buffers, count);
        else
          sum<double>(buffers, count);
      });
    }
    void broadcast(void *data, int64_t bytes, int root) override {
      group.meet(rank_, data, [&](std::vector<void *> &buffers) {
        for (void *buffer : buffers)
          if (buffer != buffers[root])
            std::memcpy(buffer, buffers[root], bytes);
      });
    }
    void all_gather(const void *data, int64_t bytes, void *gathered) override {
      exchange(data, gathered, [=](std::vector<const char *> &from, std::vector<char *> &to) {
        for (char *all : to)
          for (size_t i = 0; i < from.size(); ++i)
            std::memcpy(all + static_cast<int64_t>(i) * bytes, from[i], bytes);
      });
    }
    void all_to_all(const void *data, int64_t bytes, void *received) override {
      exchange(data, received, [=](std::vector<const char *> &from, std::vector<char *> &to) {
        for (size_t task = 0; task < to.size(); ++task)
          for (size_t i = 0; i < from.size(); ++i)
            std::memcpy(to[task] + static_cast<int64_t>(i) * bytes, from[i] + static_cast<int64_t>(task) * bytes,
                        bytes);
      });
    }
    void all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                    const std::vector<int64_t> &) override {
      Blocks mine = {static_cast<const char *>(data), &bytes_to, static_cast<char *>(received)};
      group.meet(rank_, &mine, [](std::vector<void *> &buffers) {
        for (size_t task = 0; task < buffers.size(); ++task) {
          char *to = static_cast<Blocks *>(buffers[task])->received;
          for (void *buffer : buffers) {
            const Blocks &sender = *static_cast<Blocks *>(buffer);
            const auto first = sender.bytes->begin();
            const auto at = first + static_cast<std::ptrdiff_t>(task);
            if (*at > 0)
              std::memcpy(to, sender.data + std::accumulate(first, at, int64_t(0)), *at);
            to += *at;
          }
        }
      });
    }
    void all_gather(void *gathered, const std::vector<int64_t> &bytes) override {
      Blocks mine = {nullptr, &bytes, static_cast<char *>(gathered)};
      group.meet(rank_, &mine, [](std::vector<void *> &buffers) {
        for (void *buffer : buffers) {
          char *all = static_cast<Blocks *>(buffer)->received;
          int64_t at = 0;
          for (size_t i = 0; i < buffers.size(); ++i) {
            const Blocks &sender = *static_cast<Blocks *>(buffers[i]);
            const int64_t size = (*sender.bytes)[i];
            if (size > 0 && sender.received != all)
              std::memcpy(all + at, sender.received + at, size);
            at += size;
          }
        }
      });
    }
    void barrier() override {
      group.meet(rank_, nullptr, [](std::vector<void *> &) {});
    }
    void abort(const std::string &reason) noexcept override {
      std::lock_guard<std::mutex> lock(group.mutex);
      if (group.reason.empty())
        group.reason = reason;
      group.changed.notify_all();
    }

  private:
    struct Blocks {
      const char *data;
      const std::vector<int64_t> *bytes;
      char *received;
    };
    template <class Move> void exchange(const void *data, void *received, Move move) {
      std::pair<const char *, char *> both(static_cast<const char *>(data), static_cast<char *>(received));
      group.meet(rank_, &both, [&](std::vector<void *> &buffers) {
        std::vector<const char *> from;
        std::vector<char *> to;
        for (void *buffer : buffers) {
          from.push_back(static_cast<std::pair<const char *, char *> *>(buffer)->first);
          to.push_back(static_cast<std::pair<const char *, char *> *>(buffer)->second);
        }
        move(from, to);
      });
    }
    template <class T> static void sum(std::vector<void *> &buffers, int64_t count) {
      for (int64_t i = 0; i < count; ++i) {
        T total = 0;
        for (void *buffer : buffers)
          total += static_cast<T *>(buffer)[i];
        for (void *buffer : buffers)
          static_cast<T *>(buffer)[i] = total;
      }
    }
    InProcessGroup &group;
    int rank_;
  };

  // The last to come does the work for all.
  template <class Work> void meet(int rank, void *data, Work work) {
    std::unique_lock<std::mutex> lock(mutex);
    if (!reason.empty())
      throw drt::Error(reason); // who came before has gone
    buffers[rank] = data;
    if (++arrived == buffers.size()) {
      arrived = 0;
      ++round;
      work(buffers);
      changed.notify_all();
    } else {
      changed.wait(lock, [&, mine = round] { return round != mine || !reason.empty(); });
    }
    if (!reason.empty())
      throw drt::Error(reason);
  }

  const bool both_ways;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<void *> buffers;
  size_t arrived = 0, round = 0;
  std::string reason;
  std::vector<std::unique_ptr<Member>> members;
};

#endif // DISTC_TEST_UNIT_SUPPORT_IN_PROCESS_COMMUNICATOR_H
