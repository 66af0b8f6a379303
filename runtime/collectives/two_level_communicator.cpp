//===- two_level_communicator.cpp - Sums within hosts, then between them -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/two_level_communicator.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace drt {

namespace {

class TwoLevelCommunicator final : public Communicator {
public:
  TwoLevelCommunicator(TwoLevelOptions what, Progress &where) : options(std::move(what)), progress(where) {
    int next = 0;
    for (const std::vector<int> &host : options.hosts)
      for (const int rank : host)
        host_by_host = host_by_host && rank == next++;
  }
  ~TwoLevelCommunicator() override {
    // Before the progress that they count in.
    options.hosts_between.reset();
    options.host.reset();
    options.tasks.reset();
  }

  int rank() const override { return options.tasks->rank(); }
  int size() const override { return options.tasks->size(); }

  void describe(int64_t step, const char *name) override {
    progress.step.store(step, std::memory_order_relaxed);
    progress.name.store(name, std::memory_order_relaxed);
  }

  char *shared_memory(int64_t bytes) override { return options.host ? options.host->shared_memory(bytes) : nullptr; }

  std::vector<std::unique_ptr<Channel>> open_channels(int root, const std::vector<int> &counts) override {
    const auto has_root = [&](const std::vector<int> &host) {
      return std::find(host.begin(), host.end(), root) != host.end();
    };
    const std::vector<int> &near = *std::find_if(options.hosts.begin(), options.hosts.end(), has_root);
    // Over memory with those of the root's host, over the network with the others.
    std::vector<int> of_near, of_far = counts;
    for (const int task : near) {
      of_near.push_back(counts[static_cast<size_t>(task)]);
      of_far[static_cast<size_t>(task)] = 0;
    }
    std::vector<std::unique_ptr<Channel>> far_channels = options.tasks->open_channels(root, of_far), near_channels;
    if (options.host && near.front() == first_here())
      near_channels = options.host->open_channels(
          static_cast<int>(std::find(near.begin(), near.end(), root) - near.begin()), of_near);
    // In the order of tasks; one that is not the root has one kind.
    std::vector<std::unique_ptr<Channel>> channels;
    auto far = std::make_move_iterator(far_channels.begin()), by = std::make_move_iterator(near_channels.begin());
    for (int task = 0; task < size(); ++task) {
      if (task == root || (rank() != root && rank() != task))
        continue;
      auto &next = std::find(near.begin(), near.end(), task) != near.end() ? by : far;
      for (int i = 0; i < counts[static_cast<size_t>(task)]; ++i)
        channels.push_back(*next++);
    }
    return channels;
  }

  void all_reduce_sum(void *data, int64_t count, drt_dtype dtype, int32_t algorithm) override {
    all_reduce(dtype, {static_cast<const char *>(data), 0, 1}, count, 1, algorithm);
  }

  void all_reduce(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                  int32_t algorithm) override {
    const InCollective mark(progress);
    void *result = const_cast<char *>(contributions.first);
    if (options.host)
      options.host->all_reduce(dtype, contributions, count, divisor);
    else if (contributions.parts > 1 || divisor > 1)
      reduce(dtype, result, contributions, count, divisor);
    if (options.hosts_between)
      options.hosts_between->all_reduce_sum(result, count, dtype, algorithm);
    if (options.host)
      options.host->broadcast(result, count * dtypeSize(dtype), 0);
  }

  // The tasks of a host add up, their first one exchanges with those of other hosts, and each owner takes its own.
  void reduce_scatter(drt_dtype dtype, Contributions contributions, int64_t count, int64_t divisor,
                      const Pieces &pieces) override {
    const InCollective mark(progress);
    if (options.host)
      options.host->all_reduce(dtype, contributions, count, divisor);
    else if (contributions.parts > 1 || divisor > 1)
      reduce(dtype, const_cast<char *>(contributions.first), contributions, count, divisor);
    Pieces of_hosts;
    const std::vector<Piece> *of_here = nullptr;
    for (const std::vector<int> &host : options.hosts) {
      std::vector<Piece> &all = of_hosts.emplace_back();
      for (const int task : host)
        all.insert(all.end(), pieces[static_cast<size_t>(task)].begin(), pieces[static_cast<size_t>(task)].end());
    }
    for (size_t i = 0; i < options.hosts.size(); ++i)
      if (options.hosts[i].front() == first_here())
        of_here = &of_hosts[i];
    if (options.hosts_between)
      options.hosts_between->reduce_scatter(dtype, {contributions.first, 0, 1}, count, 1, of_hosts);
    if (!options.host)
      return;
    Pieces of_first(static_cast<size_t>(options.host->size()));
    of_first.front() = *of_here;
    options.host->all_gather_pieces(of_first);
  }

  void broadcast(void *data, int64_t bytes, int root) override {
    const InCollective mark(progress);
    const auto is_there = [&](const std::vector<int> &host) {
      return std::find(host.begin(), host.end(), root) != host.end();
    };
    const auto of_root = std::find_if(options.hosts.begin(), options.hosts.end(), is_there);
    const bool is_here = of_root->front() == first_here();
    // To those of the root's host first, so that its first task can tell the other hosts.
    if (options.host && is_here)
      options.host->broadcast(data, bytes,
                              static_cast<int>(std::find(of_root->begin(), of_root->end(), root) - of_root->begin()));
    if (options.hosts_between)
      options.hosts_between->broadcast(data, bytes, static_cast<int>(of_root - options.hosts.begin()));
    if (options.host && !is_here)
      options.host->broadcast(data, bytes, 0);
  }

  void all_gather(const void *data, int64_t bytes, void *gathered) override {
    const InCollective mark(progress);
    options.tasks->all_gather(data, bytes, gathered);
  }
  void all_to_all(const void *data, int64_t bytes, void *received) override {
    const InCollective mark(progress);
    options.tasks->all_to_all(data, bytes, received);
  }
  void all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                  const std::vector<int64_t> &bytes_from) override {
    const InCollective mark(progress);
    options.tasks->all_to_all(data, bytes_to, received, bytes_from);
  }
  void all_gather(void *gathered, const std::vector<int64_t> &bytes) override {
    const InCollective mark(progress);
    // What a host's tasks give lies together where their ranks do, as those of a resource file.
    if (!host_by_host)
      return options.tasks->all_gather(gathered, bytes);
    char *const all = static_cast<char *>(gathered), *own = all, *end = all;
    std::vector<int64_t> of_hosts, here;
    for (const std::vector<int> &host : options.hosts) {
      const auto first = bytes.begin() + host.front(), last = first + static_cast<std::ptrdiff_t>(host.size());
      if (host.front() == first_here()) {
        here.assign(first, last);
        own = end;
      }
      of_hosts.push_back(std::accumulate(first, last, int64_t(0)));
      end += of_hosts.back();
    }
    char *const behind = own + std::accumulate(here.begin(), here.end(), int64_t(0));
    if (options.host)
      options.host->all_gather(own, here);
    if (options.hosts_between)
      options.hosts_between->all_gather(all, of_hosts);
    if (options.host)
      for (const auto &[from, to] : {std::pair(all, own), std::pair(behind, end)})
        options.host->broadcast(from, to - from, 0);
  }
  void barrier() override {
    const InCollective mark(progress);
    options.tasks->barrier();
  }

  void abort(const std::string &reason) noexcept override {
    for (Communicator *each : {options.host.get(), options.hosts_between.get(), options.tasks.get()})
      if (each)
        each->abort(reason);
  }

private:
  int first_here() const {
    for (const std::vector<int> &host : options.hosts)
      if (std::find(host.begin(), host.end(), rank()) != host.end())
        return host.front();
    return rank();
  }

  TwoLevelOptions options;
  Progress &progress;
  bool host_by_host = true; // the order of ranks
};

} // namespace

std::unique_ptr<Communicator> make_two_level_communicator(TwoLevelOptions options, Progress &progress) {
  return std::make_unique<TwoLevelCommunicator>(std::move(options), progress);
}

} // namespace drt
