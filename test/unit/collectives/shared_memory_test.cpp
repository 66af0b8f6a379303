//===- shared_memory_test.cpp - Collectives between tasks of one host -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Tasks are threads that map the file each for itself, as processes do.
//
//===----------------------------------------------------------------------===//
#include "collectives/shared_memory_communicator.h"
#include "core/dtype.h"
#include "core/error.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <unistd.h>

using namespace drt;

namespace {

/// Runs `body` as every task of a host, a thread each. Returns what each threw, "" for nothing.
std::vector<std::string> run_host(int size, int64_t stage_bytes, const std::function<void(Communicator &)> &body) {
  const int file = make_shared_file(size, stage_bytes);
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      Progress progress;
      SharedMemoryOptions options;
      options.rank = rank;
      options.size = size;
      options.file = file;
      options.stage_bytes = stage_bytes;
      try {
        body(*make_shared_memory_communicator(options, progress));
      } catch (const std::exception &e) {
        errors[static_cast<size_t>(rank)] = e.what();
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  close(file);
  return errors;
}

std::vector<std::string> no_errors(int size) { return std::vector<std::string>(static_cast<size_t>(size)); }

/// Numbers whose sums are rounded, the same for the same seed.
void fill(drt_dtype dtype, char *data, int64_t count, uint32_t seed) {
  std::minstd_rand random(seed + 1);
  for (int64_t i = 0; i < count; ++i) {
    const int32_t number = static_cast<int32_t>(random());
    const float real = static_cast<float>(number % 2001 - 1000) / 7.0f;
    const auto put = [&](auto value) {
      std::memcpy(data + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
    };
    switch (dtype) {
    case DRT_F32:
      put(real);
      break;
    case DRT_F64:
      put(static_cast<double>(number) / 7.0);
      break;
    case DRT_F16:
      put(static_cast<_Float16>(real));
      break;
    case DRT_BF16: {
      uint32_t bits;
      std::memcpy(&bits, &real, sizeof bits);
      put(static_cast<uint16_t>(bits >> 16));
      break;
    }
    default:
      for (int64_t byte = 0; byte < dtypeSize(dtype); ++byte)
        data[i * dtypeSize(dtype) + byte] = static_cast<char>(random());
    }
  }
}

/// One step of a random program that all tasks run: each does the same with numbers of its own, knows those of the
/// others, and so what must come out.
class Script {
public:
  Script(Communicator &c, uint32_t seed) : c(c), plan(seed), delays(seed * 31 + static_cast<uint32_t>(c.rank())) {
    shared = c.shared_memory(most_bytes);
  }

  void step(uint32_t number) {
    pause();
    switch (pick(6)) {
    case 0:
    case 1:
      return all_reduce(number);
    case 2:
      return reduce_scatter(number);
    case 3:
      return all_gather_pieces(number);
    case 4:
      return broadcast(number);
    default:
      return all_to_all(number);
    }
  }

private:
  static constexpr int64_t most_bytes = 1 << 20;

  uint32_t pick(uint32_t n) { return static_cast<uint32_t>(plan() % n); }
  int64_t pick_count() {
    constexpr int64_t some[] = {1, 2, 63, 64, 65, 1000, 1024, 2048, 2049, 5000, 20001};
    return some[pick(std::size(some))];
  }
  void pause() {
    if (delays() % 4 == 0)
      std::this_thread::sleep_for(std::chrono::microseconds(delays() % 300));
  }
  /// Where this task's data of the step lies: all tasks in shared memory, none, or only some.
  char *place(std::vector<char> &own, int64_t bytes) {
    const uint32_t way = pick(3);
    in_place = way == 0;
    if (in_place || (way == 1 && c.rank() % 2 == 0))
      return shared;
    own.resize(static_cast<size_t>(bytes));
    return own.data();
  }
  static uint32_t seed_of(uint32_t number, int rank, int32_t part) {
    return number * 1009 + static_cast<uint32_t>(rank) * 31 + static_cast<uint32_t>(part);
  }

  /// All contributions of all tasks, one behind the other, and what they give.
  std::vector<char> expected(drt_dtype dtype, int64_t count, const std::vector<int32_t> &parts, int64_t divisor,
                             uint32_t number) {
    const int64_t bytes = count * dtypeSize(dtype);
    std::vector<std::vector<char>> all;
    for (int rank = 0; rank < c.size(); ++rank)
      for (int32_t part = 0; part < parts[static_cast<size_t>(rank)]; ++part) {
        all.emplace_back(static_cast<size_t>(bytes));
        fill(dtype, all.back().data(), count, seed_of(number, rank, part));
      }
    std::vector<const char *> from;
    for (const std::vector<char> &one : all)
      from.push_back(one.data());
    std::vector<char> sum(static_cast<size_t>(bytes));
    reduce(dtype, sum.data(), from.data(), static_cast<int32_t>(from.size()), count, divisor);
    return sum;
  }

  struct Sum {
    drt_dtype dtype;
    int64_t count, divisor;
    std::vector<int32_t> parts;
    std::vector<char> own;
    Contributions contributions;
  };
  void prepare(Sum &sum, uint32_t number) {
    constexpr drt_dtype types[] = {DRT_F32, DRT_F64, DRT_I32, DRT_I64, DRT_I16, DRT_I8, DRT_U8, DRT_BF16, DRT_F16};
    sum.dtype = types[pick(std::size(types))];
    sum.count = pick_count();
    const bool several = pick(2);
    int32_t all = 0;
    for (int rank = 0; rank < c.size(); ++rank)
      all += sum.parts.emplace_back(several ? static_cast<int32_t>(1 + pick(3)) : 1);
    sum.divisor = pick(2) ? 1 : all;
    const int64_t bytes = sum.count * dtypeSize(sum.dtype), stride = (bytes + 127) / 64 * 64;
    const int32_t mine = sum.parts[static_cast<size_t>(c.rank())];
    char *data = place(sum.own, stride * mine);
    for (int32_t part = 0; part < mine; ++part)
      fill(sum.dtype, data + part * stride, sum.count, seed_of(number, c.rank(), part));
    sum.contributions = {data, stride, mine};
  }

  void all_reduce(uint32_t number) {
    Sum sum;
    prepare(sum, number);
    c.all_reduce(sum.dtype, sum.contributions, sum.count, sum.divisor);
    const std::vector<char> right = expected(sum.dtype, sum.count, sum.parts, sum.divisor, number);
    require(std::memcmp(sum.contributions.first, right.data(), right.size()) == 0,
            "all-reduce of " + std::to_string(sum.count) + " of type " + std::to_string(sum.dtype));
  }

  void reduce_scatter(uint32_t number) {
    Sum sum;
    prepare(sum, number);
    // Two pieces a task, of members that lie one behind the other.
    const int64_t size = dtypeSize(sum.dtype), half = sum.count / 2, tasks = c.size();
    char *data = const_cast<char *>(sum.contributions.first);
    Pieces pieces(static_cast<size_t>(tasks));
    const auto cut = [&](int64_t begin, int64_t count) {
      for (int64_t task = 0; task < tasks; ++task)
        if (const int64_t from = task * count / tasks, to = (task + 1) * count / tasks; to > from)
          pieces[static_cast<size_t>(task)].push_back({data + (begin + from) * size, (to - from) * size});
    };
    cut(0, half);
    cut(half, sum.count - half);
    c.reduce_scatter(sum.dtype, sum.contributions, sum.count, sum.divisor, pieces);
    const std::vector<char> right = expected(sum.dtype, sum.count, sum.parts, sum.divisor, number);
    // On the way through private memory each task's replicas are summed first, which rounds in another order.
    const bool is_float = sum.dtype == DRT_F32 || sum.dtype == DRT_F64 || sum.dtype == DRT_BF16 || sum.dtype == DRT_F16;
    if (!in_place && (is_float || sum.divisor > 1))
      return;
    for (const Piece &piece : pieces[static_cast<size_t>(c.rank())])
      require(std::memcmp(piece.data, right.data() + (piece.data - data), static_cast<size_t>(piece.bytes)) == 0,
              "reduce-scatter");
  }

  void all_gather_pieces(uint32_t number) {
    const int64_t count = pick_count(), tasks = c.size();
    std::vector<char> own;
    char *data = place(own, count * tasks);
    Pieces pieces(static_cast<size_t>(tasks));
    for (int64_t task = 0; task < tasks; ++task)
      pieces[static_cast<size_t>(task)].push_back({data + task * count, count});
    fill(DRT_U8, data + c.rank() * count, count, seed_of(number, c.rank(), 0));
    c.all_gather_pieces(pieces);
    std::vector<char> right(static_cast<size_t>(count));
    for (int task = 0; task < tasks; ++task) {
      fill(DRT_U8, right.data(), count, seed_of(number, task, 0));
      require(std::memcmp(data + task * count, right.data(), right.size()) == 0, "all-gather");
    }
  }

  void broadcast(uint32_t number) {
    const int64_t bytes = pick_count();
    const int root = static_cast<int>(pick(static_cast<uint32_t>(c.size())));
    std::vector<char> own, right(static_cast<size_t>(bytes));
    char *data = place(own, bytes);
    fill(DRT_U8, right.data(), bytes, seed_of(number, root, 0));
    if (c.rank() == root)
      std::memcpy(data, right.data(), right.size());
    c.broadcast(data, bytes, root);
    require(std::memcmp(data, right.data(), right.size()) == 0, "broadcast");
  }

  void all_to_all(uint32_t number) {
    const int64_t unit = pick_count();
    const auto bytes = [&](int from, int to) { return (from + 2 * to + static_cast<int>(number)) % 3 * unit; };
    const auto seed = [&](int from, int to) { return seed_of(number, from, to); };
    std::vector<int64_t> to, from;
    std::vector<char> sent, right;
    const auto append = [](std::vector<char> &all, int64_t count, uint32_t seed) {
      all.resize(all.size() + static_cast<size_t>(count));
      fill(DRT_U8, all.data() + all.size() - static_cast<size_t>(count), count, seed);
    };
    for (int peer = 0; peer < c.size(); ++peer) {
      append(sent, to.emplace_back(bytes(c.rank(), peer)), seed(c.rank(), peer));
      append(right, from.emplace_back(bytes(peer, c.rank())), seed(peer, c.rank()));
    }
    std::vector<char> received(right.size());
    c.all_to_all(sent.data(), to, received.data(), from);
    require(received == right, "all-to-all");
  }

  void require(bool right, const std::string &what) const {
    if (!right)
      throw Error(what + " is wrong in task " + std::to_string(c.rank()));
  }

  Communicator &c;
  std::minstd_rand plan, delays;
  char *shared = nullptr;
  bool in_place = false;
};

} // namespace

TEST_CASE("collectives of any size, type and place, out of step") {
  const int size = GENERATE(1, 2, 3, 5);
  // Small stages, so that most goes through them in pieces.
  const int64_t stage_bytes = GENERATE(int64_t(1) << 18, int64_t(1) << 17);
  const uint32_t seed = GENERATE(1u, 2u, 3u);
  CHECK(run_host(size, stage_bytes, [&](Communicator &c) {
          Script script(c, seed);
          for (uint32_t number = 0; number < 60; ++number)
            script.step(number);
        }) == no_errors(size));
}

TEST_CASE("what tasks share is summed where it lies, as one task sums its replicas") {
  const int size = GENERATE(2, 3, 4);
  constexpr int64_t count = 100003;
  std::vector<std::vector<float>> all;
  for (int rank = 0; rank < size; ++rank) {
    all.emplace_back(count);
    fill(DRT_F32, reinterpret_cast<char *>(all.back().data()), count, static_cast<uint32_t>(rank));
  }
  std::vector<const char *> parts;
  for (const std::vector<float> &one : all)
    parts.push_back(reinterpret_cast<const char *>(one.data()));
  std::vector<float> right(count);
  reduce(DRT_F32, right.data(), parts.data(), size, count, size);

  CHECK(run_host(size, SharedMemoryOptions::default_stage, [&](Communicator &c) {
          char *data = c.shared_memory(count * 4);
          for (int again = 0; again < 3; ++again) {
            std::memcpy(data, all[static_cast<size_t>(c.rank())].data(), count * 4);
            c.all_reduce(DRT_F32, {data, 0, 1}, count, size);
            if (std::memcmp(data, right.data(), count * 4) != 0)
              throw Error("wrong");
          }
        }) == no_errors(size));
}

TEST_CASE("shared memory is zeroed, of each task's own size, and apart") {
  CHECK(run_host(3, SharedMemoryOptions::default_stage, [](Communicator &c) {
          const int64_t bytes = 1000 * (c.rank() + 1);
          char *first = c.shared_memory(bytes), *second = c.shared_memory(0);
          if (!first || !second || first == second || std::any_of(first, first + bytes, [](char x) { return x != 0; }))
            throw Error("wrong");
          std::memset(first, c.rank() + 1, static_cast<size_t>(bytes));
          c.barrier();
          if (std::any_of(first, first + bytes, [&](char x) { return x != c.rank() + 1; }))
            throw Error("another task's");
        }) == no_errors(3));
}

TEST_CASE("abort ends what waits in shared memory, here and there, and everything later") {
  std::mutex mutex;
  std::set<int> failed_again;
  const auto errors = run_host(3, SharedMemoryOptions::default_stage, [&](Communicator &c) {
    if (c.rank() == 0) { // takes no part, so that nobody can complete
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      c.abort("enough");
    }
    float x = 1;
    try {
      c.all_reduce_sum(&x, 1, DRT_F32);
    } catch (const Error &) {
      try {
        c.barrier();
      } catch (const Error &) {
        std::lock_guard lock(mutex);
        failed_again.insert(c.rank());
      }
      throw;
    }
  });
  CHECK(errors == std::vector<std::string>(3, "enough"));
  CHECK(failed_again == std::set<int>{0, 1, 2});
}
