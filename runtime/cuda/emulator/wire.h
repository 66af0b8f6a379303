//===- wire.h - What the ranks of the emulated NCCL say to each other -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CUDA_EMULATOR_WIRE_H
#define DRT_CUDA_EMULATOR_WIRE_H

#include <nccl.h>

#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace drt::cuda::emulated {

/// The first message of a rank.
struct Hello {
  int32_t rank, ranks, device;
  uint64_t host; // NCCL_HOSTID's hash: ranks of two hosts may have one device
};

enum class Collective : int32_t { AllReduce, Broadcast, ReduceScatter, AllGather, Bye };

/// A rank's part in a collective. The data that it gives follows.
struct Request {
  Collective kind;
  int32_t type, op, root;
  uint64_t count; // elements: of a share, where ranks have shares

  bool operator==(const Request &) const = default;
};

/// Elements that rank `rank` of `ranks` gives, and that each is given.
inline uint64_t givenCount(const Request &request, int rank, int ranks) {
  switch (request.kind) {
  case Collective::Broadcast:
    return request.root == rank ? request.count : 0;
  case Collective::ReduceScatter:
    return request.count * static_cast<uint64_t>(ranks);
  case Collective::Bye:
    return 0;
  default:
    return request.count;
  }
}
inline uint64_t receivedCount(const Request &request, int ranks) {
  return request.kind == Collective::AllGather ? request.count * static_cast<uint64_t>(ranks) : request.count;
}

/// What came of joining, or of a collective: its data, or an error and words. The same for all ranks.
struct Reply {
  ncclResult_t status;
  uint64_t bytes;
};

/// A stream of bytes to another thread or process of this machine.
class Channel {
public:
  explicit Channel(int descriptor = -1) : descriptor_(descriptor) {}
  Channel(Channel &&other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Channel &operator=(Channel &&other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Channel() {
    if (descriptor_ >= 0)
      ::close(descriptor_);
  }

  int descriptor() const { return descriptor_; }
  /// Whoever reads or writes stops. Any thread.
  void breakOff() { ::shutdown(descriptor_, SHUT_RDWR); }

  /// False: the other side is gone.
  bool send(const void *data, size_t bytes) {
    for (auto *next = static_cast<const char *>(data); bytes > 0;) {
      ssize_t sent = ::send(descriptor_, next, bytes, MSG_NOSIGNAL);
      if (sent <= 0)
        return false;
      next += sent, bytes -= static_cast<size_t>(sent);
    }
    return true;
  }
  bool receive(void *data, size_t bytes) {
    for (auto *next = static_cast<char *>(data); bytes > 0;) {
      ssize_t received = ::recv(descriptor_, next, bytes, 0);
      if (received <= 0)
        return false;
      next += received, bytes -= static_cast<size_t>(received);
    }
    return true;
  }
  template <class Message> bool send(const Message &message) { return send(&message, sizeof(message)); }
  template <class Message> bool receive(Message &message) { return receive(&message, sizeof(message)); }

private:
  int descriptor_;
};

/// Opens the place where ranks meet, in a thread of this process, and names it.
std::string openHub();
/// Goes there. A channel without descriptor: nobody is there.
Channel connectToHub(const std::string &name);

/// NCCL's function.
const char *nameOf(Collective kind);

/// Bytes of an element; 0: a type that the emulator does not reduce.
size_t sizeOf(ncclDataType_t type);

} // namespace drt::cuda::emulated

#endif // DRT_CUDA_EMULATOR_WIRE_H
