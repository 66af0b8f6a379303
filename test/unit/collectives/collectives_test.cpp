//===- collectives_test.cpp - What each collective delivers -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cluster.h"

#include "collectives/all_reduce_algorithms.h"
#include "collectives/reduce_sum.h"

#include <catch2/catch.hpp>

#include <latch>
#include <thread>

#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <numeric>

using namespace drt;
using namespace drt::test;

namespace {

const std::vector<std::string> &no_errors(int size) {
  static std::vector<std::string> none;
  none.assign(static_cast<size_t>(size), "");
  return none;
}

/// Small integers, so that the sum is exact in every type.
template <class T> T value(int rank, int64_t i) { return static_cast<T>((i * 7 + rank * 3) % 101 - 50); }

template <class T>
void check_sum(Communicator &c, int64_t count, drt_dtype dtype, std::vector<std::string> &wrong,
               int32_t algorithm = DRT_ALL_REDUCE_AUTO) {
  std::vector<T> data(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    data[static_cast<size_t>(i)] = value<T>(c.rank(), i);
  c.all_reduce_sum(data.data(), count, dtype, algorithm);
  for (int64_t i = 0; i < count; ++i) {
    T expected = 0;
    for (int rank = 0; rank < c.size(); ++rank)
      expected += value<T>(rank, i);
    if (data[static_cast<size_t>(i)] != expected) {
      wrong[static_cast<size_t>(c.rank())] =
          "type " + std::to_string(dtype) + ", count " + std::to_string(count) + ", element " + std::to_string(i);
      return;
    }
  }
}

} // namespace

TEST_CASE("all-reduce sums over 1 to 5 tasks, any count and type") {
  int size = GENERATE(1, 2, 3, 4, 5);
  const Hosts hosts = GENERATE(Hosts::Network, Hosts::Encrypted, Hosts::One, Hosts::Several);
  std::vector<std::string> wrong(static_cast<size_t>(size));
  auto errors = run_tasks(local_cluster(size, hosts), [&](Group &group, int) {
    // Around the border between the two algorithms (32 KiB), fewer elements than
    // tasks, and counts that no number of tasks divides.
    for (int64_t count : {0, 1, 2, 3, 7, 1001, 8191, 8192, 8193, 100003}) {
      check_sum<float>(group.communicator(), count, DRT_F32, wrong);
      check_sum<double>(group.communicator(), count, DRT_F64, wrong);
      check_sum<int32_t>(group.communicator(), count, DRT_I32, wrong);
      check_sum<int64_t>(group.communicator(), count, DRT_I64, wrong);
    }
    group.leave();
  });
  CHECK(errors == no_errors(size));
  CHECK(wrong == no_errors(size));
}

namespace {

/// Tasks of a test, which swap messages under one lock.
class Post {
public:
  void send(int from, int to, const void *data, int64_t bytes) {
    std::lock_guard lock(mutex);
    const char *first = static_cast<const char *>(data);
    boxes[{from, to}].emplace_back(first, first + bytes);
    changed.notify_all();
  }
  void receive(int from, int to, void *data, int64_t bytes) {
    std::unique_lock lock(mutex);
    auto &box = boxes[{from, to}];
    changed.wait(lock, [&] { return !box.empty(); });
    REQUIRE(static_cast<int64_t>(box.front().size()) == bytes);
    std::memcpy(data, box.front().data(), box.front().size());
    box.pop_front();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<std::vector<char>>> boxes;
};

class PostSwap final : public Swap {
public:
  PostSwap(Post &post, int rank) : post(post), rank(rank) {}
  void operator()(int to, const void *sent, int64_t sent_bytes, int from, void *received,
                  int64_t received_bytes) override {
    if (sent_bytes > 0)
      post.send(rank, to, sent, sent_bytes);
    if (received_bytes > 0)
      post.receive(from, rank, received, received_bytes);
  }

private:
  Post &post;
  const int rank;
};

} // namespace

TEST_CASE("every algorithm sums over 1 to 7 tasks, any count, to the same bits") {
  const int size = GENERATE(1, 2, 3, 4, 5, 6, 7);
  const int32_t algorithm = GENERATE(DRT_ALL_REDUCE_RING, DRT_ALL_REDUCE_DOUBLING, DRT_ALL_REDUCE_HALVING);
  // The last is more than a segment of a ring.
  const int64_t count = GENERATE(0, 1, 2, 3, 5, 1001, 300001);
  Post post;
  std::vector<std::vector<float>> data(static_cast<size_t>(size));
  std::vector<double> want(static_cast<size_t>(count));
  for (int rank = 0; rank < size; ++rank)
    for (int64_t i = 0; i < count; ++i) {
      data[static_cast<size_t>(rank)].push_back(1.0f / static_cast<float>(i * 3 + rank * 17 + 1));
      want[static_cast<size_t>(i)] += data[static_cast<size_t>(rank)].back();
    }
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      PostSwap swap(post, rank);
      std::vector<char> scratch;
      allReduce(algorithm, reinterpret_cast<char *>(data[static_cast<size_t>(rank)].data()), count, sum_type(DRT_F32),
                rank, size, swap, scratch);
    });
  for (std::thread &thread : threads)
    thread.join();
  for (const std::vector<float> &each : data)
    CHECK(each == data.front());
  double worst = 0;
  for (size_t i = 0; i < want.size(); ++i)
    worst = std::max(worst, std::abs(data.front()[i] - want[i]) / want[i]);
  CHECK(worst < 1e-6);
}

TEST_CASE("communicators add up by the algorithm that is asked for, any count") {
  const int size = GENERATE(2, 3, 5);
  const Hosts hosts = GENERATE(Hosts::Network, Hosts::Encrypted);
  std::vector<std::string> wrong(static_cast<size_t>(size));
  auto errors = run_tasks(local_cluster(size, hosts), [&](Group &group, int) {
    for (const int32_t algorithm : {DRT_ALL_REDUCE_RING, DRT_ALL_REDUCE_DOUBLING, DRT_ALL_REDUCE_HALVING})
      for (int64_t count : {1, 2, 3, 5, 1001, 70001}) { // the last is more than a segment of a ring
        check_sum<float>(group.communicator(), count, DRT_F32, wrong, algorithm);
        check_sum<int64_t>(group.communicator(), count, DRT_I64, wrong, algorithm);
      }
    group.leave();
  });
  CHECK(errors == no_errors(size));
  CHECK(wrong == no_errors(size));
}

TEST_CASE("an algorithm is chosen by bytes and tasks, unless the strategy names one") {
  CHECK(chooseAllReduce(DRT_ALL_REDUCE_AUTO, 32 << 10, 8) == DRT_ALL_REDUCE_DOUBLING);
  CHECK(chooseAllReduce(DRT_ALL_REDUCE_AUTO, (32 << 10) + 1, 8) == DRT_ALL_REDUCE_HALVING);
  CHECK(chooseAllReduce(DRT_ALL_REDUCE_AUTO, (32 << 10) + 1, 2) == DRT_ALL_REDUCE_RING);
  CHECK(chooseAllReduce(DRT_ALL_REDUCE_AUTO, 2 << 20, 8) == DRT_ALL_REDUCE_RING);
  CHECK(chooseAllReduce(DRT_ALL_REDUCE_RING, 4, 8) == DRT_ALL_REDUCE_RING);
  CHECK(chooseAllReduce(DRT_ALL_REDUCE_DOUBLING, 2 << 20, 8) == DRT_ALL_REDUCE_DOUBLING);
}

TEST_CASE("every task has the same bits after an all-reduce of rounded numbers") {
  int size = GENERATE(2, 3, 4);
  const int64_t count = GENERATE(1000, 50001);
  const Hosts hosts = GENERATE(Hosts::Network, Hosts::Encrypted, Hosts::One, Hosts::Several);
  std::vector<std::vector<float>> results(static_cast<size_t>(size));
  auto errors = run_tasks(local_cluster(size, hosts), [&](Group &group, int rank) {
    std::vector<float> &data = results[static_cast<size_t>(rank)];
    data.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = 1.0f / static_cast<float>(i * 3 + static_cast<size_t>(rank) * 17 + 1);
    group.communicator().all_reduce_sum(data.data(), count, DRT_F32);
    group.leave();
  });
  CHECK(errors == no_errors(size));
  for (const auto &result : results)
    CHECK(std::memcmp(result.data(), results[0].data(), results[0].size() * sizeof(float)) == 0);
}

TEST_CASE("broadcast, all-gather and barrier") {
  int size = GENERATE(1, 2, 3, 4, 5);
  const Hosts hosts = GENERATE(Hosts::Network, Hosts::Encrypted, Hosts::One, Hosts::Several, Hosts::Alternate);
  std::vector<std::string> wrong(static_cast<size_t>(size));
  auto errors = run_tasks(local_cluster(size, hosts), [&](Group &group, int rank) {
    Communicator &c = group.communicator();
    for (int root = 0; root < size; ++root) {
      for (int64_t bytes : {0, 1, 13, 100001}) {
        std::vector<uint8_t> data(static_cast<size_t>(bytes), static_cast<uint8_t>(rank + 1));
        c.broadcast(data.data(), bytes, root);
        if (data != std::vector<uint8_t>(data.size(), static_cast<uint8_t>(root + 1)))
          wrong[static_cast<size_t>(rank)] = "broadcast of " + std::to_string(bytes);
      }
    }
    int64_t mine = rank * 10;
    std::vector<int64_t> all(static_cast<size_t>(size), -1);
    c.all_gather(&mine, sizeof mine, all.data());
    for (int other = 0; other < size; ++other)
      if (all[static_cast<size_t>(other)] != other * 10)
        wrong[static_cast<size_t>(rank)] = "all-gather";
    std::vector<int64_t> blocks(static_cast<size_t>(size) * 3);
    for (size_t i = 0; i < blocks.size(); ++i)
      blocks[i] = rank * 100 + static_cast<int64_t>(i / 3); // block i is for task i
    std::vector<int64_t> received(blocks.size(), -1);
    c.all_to_all(blocks.data(), 3 * sizeof(int64_t), received.data());
    for (size_t i = 0; i < received.size(); ++i)
      if (received[i] != static_cast<int64_t>(i / 3) * 100 + rank)
        wrong[static_cast<size_t>(rank)] = "all-to-all";

    // Blocks of different sizes, some empty: task i is sent i of them by each, and gives i to all.
    std::vector<int64_t> sizes(static_cast<size_t>(size)), mine_only(static_cast<size_t>(size), rank * 8);
    for (int other = 0; other < size; ++other)
      sizes[static_cast<size_t>(other)] = other * 8;
    std::vector<int64_t> sent;
    for (int other = 0; other < size; ++other)
      sent.insert(sent.end(), static_cast<size_t>(other), rank * 100 + other);
    std::vector<int64_t> got(static_cast<size_t>(rank) * static_cast<size_t>(size), -1);
    c.all_to_all(sent.data(), sizes, got.data(), mine_only);
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != static_cast<int64_t>(i) / rank * 100 + rank)
        wrong[static_cast<size_t>(rank)] = "all-to-all of different sizes";
    std::vector<int64_t> parts(static_cast<size_t>(size) * static_cast<size_t>(size - 1) / 2, -1);
    std::fill_n(parts.begin() + rank * (rank - 1) / 2, rank, rank);
    c.all_gather(parts.data(), sizes);
    size_t at = 0;
    for (int other = 0; other < size; ++other)
      for (int i = 0; i < other; ++i)
        if (parts[at++] != other)
          wrong[static_cast<size_t>(rank)] = "all-gather of different sizes";
    // The same as pieces, which lie one behind the other, and with a gap between them.
    for (size_t gap : {size_t(0), size_t(1)}) {
      std::vector<int64_t> values(static_cast<size_t>(size) * (2 + gap), -1);
      Pieces pieces;
      for (size_t other = 0; other < static_cast<size_t>(size); ++other)
        pieces.push_back({{reinterpret_cast<char *>(values.data() + other * (2 + gap)), 2 * sizeof(int64_t)}});
      std::fill_n(reinterpret_cast<int64_t *>(pieces[static_cast<size_t>(rank)].front().data), 2, rank);
      c.all_gather_pieces(pieces);
      for (size_t i = 0; i < values.size(); ++i)
        if (values[i] != (i % (2 + gap) < 2 ? static_cast<int64_t>(i / (2 + gap)) : -1))
          wrong[static_cast<size_t>(rank)] = "all-gather of pieces";
    }
    c.barrier();
    group.leave();
  });
  CHECK(errors == no_errors(size));
  CHECK(wrong == no_errors(size));
}

TEST_CASE("reduce-scatter gives owners their pieces, wherever these lie") {
  const int size = GENERATE(1, 2, 3, 4, 5);
  const Hosts hosts = GENERATE(Hosts::Network, Hosts::Encrypted, Hosts::One, Hosts::Several, Hosts::Alternate);
  const bool shared = GENERATE(false, true);
  constexpr int64_t count = 30, replicas = 2;
  std::vector<std::string> wrong(static_cast<size_t>(size));
  auto errors = run_tasks(local_cluster(size, hosts), [&](Group &group, int rank) {
    Communicator &c = group.communicator();
    std::vector<float> own(count * replicas);
    char *memory = shared ? c.shared_memory(count * replicas * int64_t(sizeof(float))) : nullptr;
    float *data = memory ? reinterpret_cast<float *>(memory) : own.data();
    for (int64_t i = 0; i < count * replicas; ++i)
      data[i] = static_cast<float>(size * replicas * (rank + 1 + i));
    // Element i is of task i * i, and the last task has none.
    Pieces pieces(static_cast<size_t>(size));
    const auto owner = [&](int64_t i) { return static_cast<size_t>(i * i % std::max(size - 1, 1)); };
    for (int64_t i = 0; i < count; ++i)
      pieces[owner(i)].push_back({reinterpret_cast<char *>(data + i), sizeof(float)});
    c.reduce_scatter(DRT_F32, {reinterpret_cast<char *>(data), count * int64_t(sizeof(float)), replicas}, count,
                     size * replicas, pieces);
    for (int64_t i = 0; i < count; ++i) {
      const auto sum = static_cast<float>(size * (size + 1) + size * (2 * i + count)); // of rank + 1 + i and + count
      if (owner(i) == static_cast<size_t>(rank) && data[i] != sum)
        wrong[static_cast<size_t>(rank)] = "element " + std::to_string(i) + " is " + std::to_string(data[i]);
    }
    c.barrier();
    group.leave();
  });
  CHECK(errors == no_errors(size));
  CHECK(wrong == no_errors(size));
}

TEST_CASE("a type that cannot be summed is refused by name") {
  CHECK_THROWS_WITH(sum_type(DRT_BOOL), Catch::Contains("all-reduce between tasks of TensorFlow type 10"));
}

TEST_CASE("abort ends a collective that waits, here and there") {
  auto cluster = local_cluster(3, GENERATE(Hosts::Network, Hosts::Encrypted, Hosts::One, Hosts::Several));
  for (GroupOptions &options : cluster)
    options.failure_timeout = 3; // as long is a cause awaited
  std::latch ended(2);
  auto errors = run_tasks(cluster, [&](Group &group, int rank) {
    struct Ending {
      std::latch &ended;
      int rank;
      ~Ending() {
        if (rank != 2)
          ended.count_down();
      }
    } ending{ended, rank};
    // Who is still joining would fail there, before it is counted.
    group.communicator().barrier();
    // Takes no part, so that nobody can complete, but stays: a task that goes is a loss of its own.
    if (rank == 2)
      return ended.wait();
    std::vector<float> data(100000, 1.0f);
    if (rank == 0) {
      std::thread other([&] { group.communicator().abort("enough"); });
      other.join();
    }
    group.communicator().all_reduce_sum(data.data(), 100000, DRT_F32);
  });
  CHECK(errors[0] == "enough");
  CHECK(errors[1] != "");
}
