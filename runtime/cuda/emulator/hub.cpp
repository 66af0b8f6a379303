//===- hub.cpp - Where the ranks of the emulated NCCL meet ----------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A thread of the process that made the unique id, which names a socket of the machine: ranks are threads of one
// process or of several. It takes each rank's part of a collective, insists that all mean the same one, and gives the
// result to all. Sums are in the order of ranks.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/wire.h"

#include "cuda/emulator/failure.h"

#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <thread>

using namespace drt::cuda::emulated;

namespace {
// In the abstract namespace: a zero, then the name; nothing is left in a folder.
socklen_t addressOf(const std::string &name, sockaddr_un &address) {
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

struct Problem {
  ncclResult_t status;
  std::string words;
};

std::string words(const Request &request) {
  std::ostringstream text;
  text << nameOf(request.kind) << " of " << request.count << " elements of type " << request.type << ", operation "
       << request.op << ", root " << request.root;
  return text.str();
}

template <class T> void combine(ncclRedOp_t op, T *result, const T *part, size_t count) {
  for (size_t i = 0; i < count; ++i)
    result[i] = op == ncclMax   ? std::max(result[i], part[i])
                : op == ncclMin ? std::min(result[i], part[i])
                                : static_cast<T>(result[i] + part[i]);
}

template <class T> void reduce(const Request &request, std::vector<std::vector<char>> &parts) {
  auto op = static_cast<ncclRedOp_t>(request.op);
  T *result = reinterpret_cast<T *>(parts[0].data());
  const size_t count = parts[0].size() / sizeof(T);
  for (size_t rank = 1; rank < parts.size(); ++rank)
    combine(op, result, reinterpret_cast<const T *>(parts[rank].data()), count);
  if (op == ncclAvg)
    for (size_t i = 0; i < count; ++i)
      result[i] = static_cast<T>(result[i] / static_cast<T>(parts.size()));
}

void reduceAny(const Request &request, std::vector<std::vector<char>> &parts) {
  switch (static_cast<ncclDataType_t>(request.type)) {
  case ncclFloat32:
    return reduce<float>(request, parts);
  case ncclFloat64:
    return reduce<double>(request, parts);
  case ncclInt32:
    return reduce<int32_t>(request, parts);
  case ncclInt64:
    return reduce<int64_t>(request, parts);
  case ncclUint8:
    return reduce<uint8_t>(request, parts);
  default: // communicators take no others
    return;
  }
}

class Hub {
public:
  explicit Hub(Channel listener) : listener_(std::move(listener)) {}

  void run() {
    std::optional<Problem> problem = gather();
    answer(problem, {}, Whole);
    while (!problem && !ended_) {
      std::vector<char> result;
      Sent sent = Whole;
      problem = collect(result, sent);
      answer(problem, result, sent);
    }
  }

private:
  enum Sent { Whole, Shares }; // to each rank

  std::optional<Problem> gather() {
    std::set<std::pair<uint64_t, int32_t>> devices;
    size_t come = 0;
    do {
      Channel channel(::accept(listener_.descriptor(), nullptr, nullptr));
      Hello hello;
      if (channel.descriptor() < 0 || !channel.receive(hello))
        return Problem{ncclRemoteError, "a rank went while it joined"};
      ranks_.resize(static_cast<size_t>(hello.ranks));
      if (!devices.insert({hello.host, hello.device}).second)
        duplicate_ = "two ranks on device " + std::to_string(hello.device);
      if (hello.rank < 0 || hello.rank >= hello.ranks || ranks_[static_cast<size_t>(hello.rank)].descriptor() >= 0)
        duplicate_ = "rank " + std::to_string(hello.rank) + " twice";
      ranks_[static_cast<size_t>(hello.rank)] = std::move(channel);
    } while (++come < ranks_.size());
    if (!duplicate_.empty())
      return Problem{ncclInvalidUsage, duplicate_};
    return std::nullopt;
  }

  // One collective of all ranks. `sent`: what of the result each is given.
  std::optional<Problem> collect(std::vector<char> &result, Sent &sent) {
    std::vector<Request> requests(ranks_.size());
    std::vector<std::vector<char>> parts(ranks_.size());
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      if (!receive(rank, requests[rank], parts[rank]))
        return Problem{ncclRemoteError, "rank " + std::to_string(rank) + " has gone"};
    for (size_t rank = 1; rank < ranks_.size(); ++rank)
      if (requests[rank] != requests[0])
        return Problem{ncclInvalidUsage, "rank 0: " + words(requests[0]) + "; rank " + std::to_string(rank) + ": " +
                                             words(requests[rank])};
    const Request &request = requests[0];
    if (request.kind == Collective::AllReduce || request.kind == Collective::ReduceScatter)
      reduceAny(request, parts);
    if (request.kind == Collective::AllGather)
      for (size_t rank = 1; rank < parts.size(); ++rank)
        parts[0].insert(parts[0].end(), parts[rank].begin(), parts[rank].end());
    result = std::move(parts[request.kind == Collective::Broadcast ? static_cast<size_t>(request.root) : 0]);
    sent = request.kind == Collective::ReduceScatter ? Shares : Whole;
    ended_ = request.kind == Collective::Bye;
    return std::nullopt;
  }

  bool receive(size_t rank, Request &request, std::vector<char> &part) {
    if (!ranks_[rank].receive(request))
      return false;
    part.resize(givenCount(request, static_cast<int>(rank), static_cast<int>(ranks_.size())) *
                sizeOf(static_cast<ncclDataType_t>(request.type)));
    return ranks_[rank].receive(part.data(), part.size());
  }

  void answer(const std::optional<Problem> &problem, const std::vector<char> &result, Sent sent) {
    const char *data = problem ? problem->words.data() : result.data();
    const bool inShares = !problem && sent == Shares;
    const size_t bytes = problem ? problem->words.size() : result.size() / (inShares ? ranks_.size() : 1);
    Reply reply = {problem ? problem->status : ncclSuccess, bytes};
    for (size_t rank = 0; rank < ranks_.size(); ++rank)
      if (ranks_[rank].descriptor() >= 0 && ranks_[rank].send(reply))
        ranks_[rank].send(data + (inShares ? rank * bytes : 0), bytes);
  }

  Channel listener_;
  std::vector<Channel> ranks_;
  std::string duplicate_;
  bool ended_ = false;
};
} // namespace

const char *drt::cuda::emulated::nameOf(Collective kind) {
  switch (kind) {
  case Collective::AllReduce:
    return "ncclAllReduce";
  case Collective::Broadcast:
    return "ncclBroadcast";
  case Collective::ReduceScatter:
    return "ncclReduceScatter";
  case Collective::AllGather:
    return "ncclAllGather";
  case Collective::Bye:
    break;
  }
  return "the end";
}

size_t drt::cuda::emulated::sizeOf(ncclDataType_t type) {
  switch (type) {
  case ncclInt8:
  case ncclUint8:
    return 1;
  case ncclFloat16:
  case ncclBfloat16:
    return 2;
  case ncclInt32:
  case ncclUint32:
  case ncclFloat32:
    return 4;
  case ncclInt64:
  case ncclUint64:
  case ncclFloat64:
    return 8;
  default:
    return 0;
  }
}

std::string drt::cuda::emulated::openHub() {
  std::random_device random;
  std::ostringstream name;
  name << "drt-emulated-nccl-" << std::hex << random() << random();
  Channel listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  socklen_t length = addressOf(name.str(), address);
  require(listener.descriptor() >= 0 &&
              ::bind(listener.descriptor(), reinterpret_cast<sockaddr *>(&address), length) == 0 &&
              ::listen(listener.descriptor(), SOMAXCONN) == 0,
          CUDA_ERROR_OPERATING_SYSTEM, "no socket for the ranks to meet");
  std::thread([hub = std::make_shared<Hub>(std::move(listener))] { hub->run(); }).detach();
  return name.str();
}

Channel drt::cuda::emulated::connectToHub(const std::string &name) {
  Channel channel(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address;
  socklen_t length = addressOf(name, address);
  if (channel.descriptor() < 0 || ::connect(channel.descriptor(), reinterpret_cast<sockaddr *>(&address), length) != 0)
    return Channel();
  return channel;
}
