//===- communicator.cpp - A rank of the emulated NCCL ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/communicator.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

using namespace drt::cuda::emulated;

static uint64_t hostHash() {
  const char *name = std::getenv("NCCL_HOSTID");
  return std::hash<std::string>()(name ? name : "");
}

void Communicator::start(const std::string &hub) {
  hub_ = hub;
  std::thread([self = shared_from_this(), hub] { self->talk(hub); }).detach();
}

void Communicator::waitJoined(Lock &lock) {
  changed_.wait(lock, [this] { return error_ != ncclInProgress || aborted_; });
}

void Communicator::fail(ncclResult_t status, std::string message) {
  error_ = status;
  message_ = std::move(message);
  changed_.notify_all();
  Machine::get().engine.wake();
}

void Communicator::abort() {
  aborted_ = true;
  if (channel_.descriptor() >= 0)
    channel_.breakOff();
  changed_.notify_all();
  Machine::get().engine.wake();
}

void Communicator::close() {
  closing_ = true;
  changed_.notify_all();
}

void Communicator::waitForGraphs(Lock &lock) {
  while (captured_.use_count() > 1)
    changed_.wait_for(lock, std::chrono::milliseconds(1));
}

// The thread's. The channel is opened and closed under the lock, used without.
void Communicator::talk(const std::string &hub) {
  Lock lock(Machine::get().mutex);
  channel_ = connectToHub(hub);
  if (channel_.descriptor() < 0)
    return fail(ncclSystemError, "nobody waits where the unique id says");
  lock.unlock();
  Reply reply;
  std::vector<char> data;
  bool come = channel_.send(Hello{rank_, ranks_, device_, hostHash()}) && await(reply, data);
  lock.lock();
  if (!come || reply.status != ncclSuccess)
    return fail(come ? reply.status : ncclRemoteError,
                come ? std::string(data.begin(), data.end()) : "a rank has gone");
  error_ = ncclSuccess;
  changed_.notify_all();
  while (!aborted_ && error_ == ncclSuccess) {
    changed_.wait(lock, [this] { return aborted_ || closing_ || !posted_.empty() || error_ != ncclSuccess; });
    if (posted_.empty())
      break;
    std::shared_ptr<Exchange> next = posted_.front();
    posted_.pop_front();
    lock.unlock();
    come = channel_.send(next->request) && channel_.send(next->data.data(), next->data.size()) && await(reply, data);
    lock.lock();
    if (!come || reply.status != ncclSuccess)
      return fail(come ? reply.status : ncclRemoteError,
                  come ? std::string(data.begin(), data.end()) : "a rank has gone");
    next->data = std::move(data);
    next->finished = true;
    Machine::get().engine.wake();
  }
  if (aborted_ || error_ != ncclSuccess)
    return;
  lock.unlock();
  if (channel_.send(Request{Collective::Bye, 0, 0, 0, 0}))
    await(reply, data);
}

bool Communicator::await(Reply &reply, std::vector<char> &data) {
  if (!channel_.receive(reply))
    return false;
  data.resize(reply.bytes);
  return channel_.receive(data.data(), data.size());
}

Progress Communicator::advance(uint64_t turn, const std::shared_ptr<Exchange> &exchange, const void *send,
                               void *receive) {
  Machine &machine = Machine::get();
  Lock lock(machine.mutex);
  if (aborted_)
    return Progress::Done;
  if (error_ != ncclSuccess || turn != turn_)
    return Progress::Pending;
  const size_t size = sizeOf(static_cast<ncclDataType_t>(exchange->request.type));
  const size_t received = receivedCount(exchange->request, ranks_) * size;
  if (!exchange->posted) {
    const size_t given = givenCount(exchange->request, rank_, ranks_) * size;
    const char *data = machine.memory.resolve<char>(device_, send, given);
    machine.memory.resolve<char>(device_, receive, received);
    exchange->data.assign(data, data + given);
    exchange->posted = true;
    posted_.push_back(exchange);
    changed_.notify_all();
  }
  if (!exchange->finished)
    return Progress::Pending;
  std::memcpy(machine.memory.resolve<char>(device_, receive, received), exchange->data.data(), received);
  ++turn_;
  machine.engine.wake();
  return Progress::Done;
}

void Communicator::enqueue(Stream &stream, Request request, const void *send, void *receive) {
  require(stream.device == device_, CUDA_ERROR_INVALID_HANDLE, "the stream is another device's than the communicator");
  // Ranks connect at the first collective of a kind: memory is allocated and exchanged.
  if (!stream.capture)
    connected_.insert(request.kind);
  if (!connected_.count(request.kind)) {
    stream.capture->invalid = true;
    throw Failure(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
                  std::string("ranks connect at the first ") + nameOf(request.kind) + ", during a capture");
  }
  auto make = [self = shared_from_this(), held = captured_, request, send, receive]() -> Run {
    auto exchange = std::make_shared<Exchange>();
    exchange->request = request;
    return [self, exchange, turn = self->issued_++, send, receive] {
      return self->advance(turn, exchange, send, receive);
    };
  };
  Machine::get().enqueue(stream, {nameOf(request.kind), std::move(make), nullptr});
}
