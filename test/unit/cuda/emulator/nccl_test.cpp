// The emulated NCCL: ranks in threads and in processes, mismatches, aborts.
#include "test/unit/cuda/emulator/device.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

using namespace drt::cuda;
using namespace drt::cuda::test;

namespace {
// A rank on a device of its own. No assertions outside the test's thread: what a rank finds wrong it says in `failed`.
struct Rank {
  int rank;
  Device device;
  ncclComm_t communicator = nullptr;
  ncclResult_t joined;

  Rank(int rank, int ranks, ncclUniqueId id) : rank(rank), device(rank) {
    joined = nccl().ncclCommInitRank(&communicator, ranks, id, rank);
  }
  ncclResult_t allReduce(const Array<float> &data, size_t count, ncclRedOp_t op = ncclSum) const {
    return nccl().ncclAllReduce(data.data(), data.data(), count, ncclFloat32, op, communicator,
                                reinterpret_cast<cudaStream_t>(device.stream));
  }
  ncclResult_t error() const {
    ncclResult_t status = ncclSuccess;
    nccl().ncclCommGetAsyncError(communicator, &status);
    return status;
  }
  // Polls as the runtime does: a rank that waits for a lost one would wait for ever.
  bool ends(double seconds = 20) const {
    auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (driver().cuStreamQuery(device.stream) == CUDA_ERROR_NOT_READY) {
      if (error() != ncclSuccess || std::chrono::steady_clock::now() > until)
        return false;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
  }
};

ncclUniqueId uniqueId() {
  ncclUniqueId id;
  REQUIRE(nccl().ncclGetUniqueId(&id) == ncclSuccess);
  return id;
}

// Each rank in a thread; results by rank.
template <class Result> std::vector<Result> inRanks(int ranks, const std::function<Result(Rank &)> &work) {
  ncclUniqueId id = uniqueId();
  std::vector<Result> results(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      Rank self(rank, ranks, id);
      results[static_cast<size_t>(rank)] = work(self);
    });
  for (std::thread &thread : threads)
    thread.join();
  return results;
}
} // namespace

TEST_CASE("ranks in threads reduce and broadcast") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    emulated::seed(seed);
    auto results = inRanks<std::vector<float>>(4, [](Rank &self) {
      auto own = static_cast<float>(self.rank + 1);
      Array<float> sum(self.device, {own, 10 * own}), mean(self.device, {own}), largest(self.device, {own}),
          copy(self.device, {own});
      self.allReduce(sum, 2);
      self.allReduce(mean, 1, ncclAvg);
      self.allReduce(largest, 1, ncclMax);
      nccl().ncclBroadcast(copy.data(), copy.data(), 1, ncclFloat32, 2, self.communicator,
                           reinterpret_cast<cudaStream_t>(self.device.stream));
      if (!self.ends())
        return std::vector<float>();
      std::vector<float> sums = sum.read();
      std::vector<float> result = {sums[0], sums[1], mean.read()[0], largest.read()[0], copy.read()[0]};
      nccl().ncclCommDestroy(self.communicator);
      return result;
    });
    for (auto &result : results)
      REQUIRE(result == std::vector<float>{10, 100, 2.5f, 4, 3});
  }
}

TEST_CASE("ranks scatter what they reduce, and gather shares, in place") {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    emulated::seed(seed);
    auto results = inRanks<std::vector<float>>(3, [](Rank &self) {
      const auto rank = static_cast<size_t>(self.rank), share = size_t(2);
      std::vector<float> own(3 * share), shares(3 * share, -1);
      for (size_t i = 0; i < own.size(); ++i)
        own[i] = static_cast<float>((rank + 1) * (i + 1));
      shares[rank * share] = shares[rank * share + 1] = static_cast<float>(rank);
      Array<float> sums(self.device, own), gathered(self.device, shares);
      auto stream = reinterpret_cast<cudaStream_t>(self.device.stream);
      nccl().ncclGroupStart();
      nccl().ncclReduceScatter(sums.data(), static_cast<float *>(sums.data()) + rank * share, share, ncclFloat32,
                               ncclSum, self.communicator, stream);
      nccl().ncclAllGather(static_cast<float *>(gathered.data()) + rank * share, gathered.data(), share, ncclFloat32,
                           self.communicator, stream);
      nccl().ncclGroupEnd();
      if (!self.ends())
        return std::vector<float>();
      std::vector<float> result = gathered.read(), all = sums.read();
      result.insert(result.end(), all.begin() + rank * share, all.begin() + (rank + 1) * share);
      nccl().ncclCommDestroy(self.communicator);
      return result;
    });
    for (size_t rank = 0; rank < results.size(); ++rank)
      REQUIRE(results[rank] == std::vector<float>{0, 0, 1, 1, 2, 2, static_cast<float>(6 * (2 * rank + 1)),
                                                  static_cast<float>(6 * (2 * rank + 2))});
  }
}

TEST_CASE("collectives are captured, and keep their order over streams") {
  auto results = inRanks<float>(2, [](Rank &self) {
    Array<float> x(self.device, {static_cast<float>(self.rank)}), y(self.device, {1});
    CUstream other = Device::newStream();
    Array<float> first(self.device, {0});
    self.allReduce(first, 1); // connects the ranks
    driver().cuStreamBeginCapture(self.device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    Device::order(self.device.stream, other);
    nccl().ncclAllReduce(y.data(), y.data(), 1, ncclFloat32, ncclSum, self.communicator,
                         reinterpret_cast<cudaStream_t>(other));
    self.allReduce(x, 1);
    Device::order(other, self.device.stream);
    CUgraph graph;
    CUgraphExec exec;
    driver().cuStreamEndCapture(self.device.stream, &graph);
    driver().cuGraphInstantiate(&exec, graph, 0);
    for (int i = 0; i < 3; ++i)
      driver().cuGraphLaunch(exec, self.device.stream);
    if (!self.ends())
      return -1.0f;
    float result = x.read()[0] + y.read()[0];
    driver().cuGraphExecDestroy(exec);
    driver().cuGraphDestroy(graph);
    nccl().ncclCommDestroy(self.communicator); // waits until no graph holds it
    driver().cuStreamDestroy(other);
    return result;
  });
  REQUIRE(results == std::vector<float>{4 + 8, 4 + 8});
}

TEST_CASE("ranks do not connect during a capture") {
  auto results = inRanks<std::pair<ncclResult_t, CUresult>>(2, [](Rank &self) {
    Array<float> x(self.device, {1, 2});
    auto stream = reinterpret_cast<cudaStream_t>(self.device.stream);
    self.allReduce(x, 1); // for this collective, and for no other
    self.ends();
    driver().cuStreamBeginCapture(self.device.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    ncclResult_t status = nccl().ncclAllGather(static_cast<float *>(x.data()) + self.rank, x.data(), 1, ncclFloat32,
                                               self.communicator, stream);
    CUgraph graph = nullptr;
    CUresult captured = driver().cuStreamEndCapture(self.device.stream, &graph);
    nccl().ncclCommAbort(self.communicator);
    return std::pair(status, captured);
  });
  for (auto &[status, captured] : results) {
    REQUIRE(status == ncclUnhandledCudaError);
    REQUIRE(captured == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
}

TEST_CASE("ranks that mean different collectives learn of it, and go on after an abort") {
  auto results = inRanks<std::pair<ncclResult_t, bool>>(2, [](Rank &self) {
    Array<float> x(self.device, {1, 2, 3});
    self.allReduce(x, self.rank == 0 ? 2 : 3);
    bool ended = self.ends();
    ncclResult_t error = self.error();
    nccl().ncclCommAbort(self.communicator);
    return std::pair(error, !ended && driver().cuStreamSynchronize(self.device.stream) == CUDA_SUCCESS);
  });
  for (auto &[error, hung] : results) {
    REQUIRE(error == ncclInvalidUsage);
    REQUIRE(hung);
  }
}

TEST_CASE("a rank that goes is an error of the others") {
  auto results = inRanks<ncclResult_t>(3, [](Rank &self) {
    Array<float> x(self.device, {1});
    if (self.rank == 1) {
      nccl().ncclCommAbort(self.communicator);
      return ncclSuccess;
    }
    self.allReduce(x, 1);
    self.ends();
    ncclResult_t error = self.error();
    nccl().ncclCommAbort(self.communicator);
    return error;
  });
  REQUIRE(results == std::vector<ncclResult_t>{ncclRemoteError, ncclSuccess, ncclRemoteError});
}

TEST_CASE("two ranks on one device cannot join") {
  ncclUniqueId id = uniqueId();
  std::vector<ncclResult_t> joined(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Device device(0);
      ncclComm_t communicator;
      joined[static_cast<size_t>(rank)] = nccl().ncclCommInitRank(&communicator, 2, id, rank);
      nccl().ncclCommAbort(communicator);
    });
  for (std::thread &thread : threads)
    thread.join();
  REQUIRE(joined == std::vector<ncclResult_t>{ncclInvalidUsage, ncclInvalidUsage});
}

TEST_CASE("a test makes a communicator fail") {
  auto results = inRanks<ncclResult_t>(2, [](Rank &self) {
    Array<float> x(self.device, {1});
    if (self.rank == 0)
      emulated::failCommunicator(self.communicator, ncclSystemError);
    self.allReduce(x, 1);
    if (self.rank == 0)
      self.ends();
    ncclResult_t error = self.error();
    nccl().ncclCommAbort(self.communicator);
    return error;
  });
  REQUIRE(results[0] == ncclSystemError);
}

TEST_CASE("one thread drives several ranks in groups") {
  ncclUniqueId id = uniqueId();
  Device first(0), second(1);
  ncclComm_t communicators[2];
  auto current = [](int device) {
    CUcontext context;
    ok(driver().cuDevicePrimaryCtxRetain(&context, device));
    ok(driver().cuCtxSetCurrent(context));
    ok(driver().cuDevicePrimaryCtxRelease(device));
  };
  nccl().ncclGroupStart();
  for (int rank = 0; rank < 2; ++rank) {
    current(rank);
    nccl().ncclCommInitRank(&communicators[rank], 2, id, rank);
  }
  REQUIRE(nccl().ncclGroupEnd() == ncclSuccess);
  current(0);
  Array<float> x(first, {1});
  current(1);
  Array<float> y(second, {2});
  nccl().ncclGroupStart();
  nccl().ncclAllReduce(x.data(), x.data(), 1, ncclFloat32, ncclSum, communicators[0],
                       reinterpret_cast<cudaStream_t>(first.stream));
  nccl().ncclAllReduce(y.data(), y.data(), 1, ncclFloat32, ncclSum, communicators[1],
                       reinterpret_cast<cudaStream_t>(second.stream));
  REQUIRE(nccl().ncclGroupEnd() == ncclSuccess);
  REQUIRE(y.read()[0] == 3);
  current(0);
  REQUIRE(x.read()[0] == 3);
  for (ncclComm_t communicator : communicators)
    nccl().ncclCommDestroy(communicator);
}
