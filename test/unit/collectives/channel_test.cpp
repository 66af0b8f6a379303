//===- channel_test.cpp - Connections of two tasks ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cluster.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>

using namespace drt;
using namespace drt::test;

namespace {

/// The bytes that message `number` of a channel has, in any pieces.
std::vector<char> message(uint32_t channel, uint32_t number, bool to_root) {
  std::minstd_rand random(1 + channel * 1000 + number * 2 + to_root);
  const size_t sizes[] = {0, 1, 16, 4096, 5000, 70'000, 300'000};
  std::vector<char> bytes(sizes[random() % 7]);
  for (char &byte : bytes)
    byte = static_cast<char>(random());
  return bytes;
}

/// `bytes`, in memory of the block, cut at random.
std::vector<Piece> cut(char *block, size_t bytes, std::minstd_rand &random) {
  std::vector<Piece> pieces;
  for (size_t at = 0; at < bytes;) {
    const size_t length = std::min(bytes - at, random() % 3 ? random() % 9 + 1 : random() % bytes + 1);
    pieces.push_back({block + at, static_cast<int64_t>(length)});
    at += length;
  }
  return pieces;
}

/// One end: sends its messages and receives the other's, in turns, from and to memory that is shared or is not.
void talk(Channel &channel, uint32_t number, bool is_root, char *shared) {
  std::minstd_rand random(number + is_root);
  std::vector<char> own(300'000);
  for (uint32_t i = 0; i < 40; ++i)
    for (const bool to_root : {true, false}) {
      const std::vector<char> expected = message(number, i, to_root);
      char *block = shared && random() % 2 ? shared : own.data();
      if (to_root != is_root) {
        std::copy(expected.begin(), expected.end(), block);
        channel.send(cut(block, expected.size(), random));
        std::fill_n(block, expected.size(), char{0}); // it may change when send returns
      } else {
        channel.receive(cut(block, expected.size(), random));
        if (!std::equal(expected.begin(), expected.end(), block))
          throw Error("message " + std::to_string(i) + " is another");
      }
    }
}

} // namespace

TEST_CASE("what one end of a channel sends, the other receives") {
  const Hosts hosts = GENERATE(Hosts::One, Hosts::Network, Hosts::Encrypted, Hosts::Several, Hosts::Alternate);
  const int size = 4, root = GENERATE(0, 2);
  const std::vector<int> counts = {1, 2, 1, 3};
  std::atomic<int> wrong = 0;
  const auto errors = run_tasks(local_cluster(size, hosts), [&](Group &group, int rank) {
    Communicator &communicator = group.communicator();
    char *shared = communicator.shared_memory(8 * 300'000);
    std::vector<std::unique_ptr<Channel>> channels = communicator.open_channels(root, counts);
    std::vector<std::thread> threads;
    size_t next = 0;
    for (int task = 0; task < size; ++task)
      for (int i = 0; task != root && (rank == root || rank == task) && i < counts[static_cast<size_t>(task)]; ++i) {
        Channel &channel = *channels[next];
        wrong += hosts == Hosts::Several && channel.reads_in_place() != (task / 2 == root / 2);
        char *block = shared ? shared + next * 300'000 : nullptr;
        ++next;
        threads.emplace_back([&, task, i, block] {
          try {
            talk(channel, static_cast<uint32_t>(10 * task + i), rank == root, block);
          } catch (const std::exception &) {
            ++wrong;
          }
        });
      }
    wrong += next != channels.size();
    communicator.barrier(); // collectives go on beside them
    for (std::thread &thread : threads)
      thread.join();
    channels.clear();
    group.leave();
  });
  CHECK(errors == std::vector<std::string>(size));
  CHECK(wrong == 0);
}

TEST_CASE("a message of many large pieces and small ones is received in these and in others") {
  const Hosts hosts = GENERATE(Hosts::One, Hosts::Network, Hosts::Encrypted);
  const auto pieces_of = [](std::vector<char> &data, size_t large, size_t small) {
    std::vector<Piece> pieces;
    for (size_t at = 0; at < data.size(); at += static_cast<size_t>(pieces.back().bytes))
      pieces.push_back(
          {data.data() + at, static_cast<int64_t>(std::min(data.size() - at, pieces.size() % 2 ? small : large))});
    return pieces;
  };
  std::vector<char> data(20 * 100'003);
  std::minstd_rand random(1);
  std::generate(data.begin(), data.end(), [&] { return static_cast<char>(random()); });
  const auto errors = run_tasks(local_cluster(2, hosts), [&](Group &group, int rank) {
    std::vector<std::unique_ptr<Channel>> channels = group.communicator().open_channels(0, {0, 1});
    for (const auto &[large, small] : {std::pair(100'000, 3), std::pair(30'000, 100'000), std::pair(1'000'000, 7)})
      if (rank == 1) {
        channels[0]->send(pieces_of(data, 100'000, 3));
      } else {
        std::vector<char> received(data.size());
        channels[0]->receive(pieces_of(received, static_cast<size_t>(large), static_cast<size_t>(small)));
        if (received != data)
          throw Error("other bytes in pieces of " + std::to_string(large));
      }
    group.communicator().barrier();
    channels.clear();
    group.leave();
  });
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE("who waits at a channel hears why there is nothing to wait for") {
  const Hosts hosts = GENERATE(Hosts::One, Hosts::Network, Hosts::Encrypted);
  const auto errors = run_tasks(local_cluster(2, hosts), [&](Group &group, int rank) {
    std::vector<std::unique_ptr<Channel>> channels = group.communicator().open_channels(0, {0, 1});
    if (rank == 1) {
      group.fail("no more data");
      throw Error("no more data");
    }
    char byte;
    channels[0]->receive({{&byte, 1}});
  });
  CHECK(errors[0] == "worker:1 (127.0.0.1) failed before the first step: no more data");
}
