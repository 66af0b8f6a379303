//===- same_host.cpp - Tasks that can share memory -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/same_host.h"

#include "collectives/shared_memory_communicator.h"
#include "core/error.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace drt {

namespace {

std::string random_word() {
  unsigned char bytes[16];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
    throw Error(std::string("the system gives no random bytes: ") + std::strerror(errno));
  std::string word;
  for (unsigned char byte : bytes)
    word.append({"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]});
  return word;
}

/// An address without a file (unix(7), abstract).
std::pair<sockaddr_un, socklen_t> abstract_address(const std::string &name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

bool is_ready(const Socket &socket, short events, Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd event{socket.fd(), events, 0};
  return poll(&event, 1, static_cast<int>(std::max<int64_t>(left, 0))) == 1;
}

/// Another user's process has no business here, whatever it knows.
bool is_same_user(const Socket &socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(socket.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

[[noreturn]] void fail(const std::string &what) { throw Error(what + ": " + std::strerror(errno)); }

void send_file(const Socket &socket, int file) {
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr *head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(head), &file, sizeof file);
  if (sendmsg(socket.fd(), &message, MSG_NOSIGNAL) != 1)
    fail("cannot hand the shared memory over");
}

Socket receive_file(const Socket &socket) {
  char byte;
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (recvmsg(socket.fd(), &message, MSG_CMSG_CLOEXEC) != 1)
    fail("the shared memory was not handed over");
  const cmsghdr *head = CMSG_FIRSTHDR(&message);
  if (!head || head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
    throw Error("the shared memory was not handed over");
  int file;
  std::memcpy(&file, CMSG_DATA(head), sizeof file);
  return Socket(file);
}

/// Makes the file and gives it to whoever knows the word, until `others` have it.
Socket hand_over(KeyValueStore &store, const std::string &key, size_t others, Clock::time_point deadline) {
  Socket file;
  Socket listening;
  const std::string name = "distc-" + random_word(), word = random_word();
  try {
    file = Socket(make_shared_file(static_cast<int>(others) + 1));
    listening = Socket(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const auto [address, size] = abstract_address(name);
    if (!listening || bind(listening.fd(), reinterpret_cast<const sockaddr *>(&address), size) != 0 ||
        listen(listening.fd(), 1024) != 0)
      fail("cannot open a socket for the tasks of this host");
  } catch (const Error &) {
    store.set(key, ""); // they need not wait
    throw;
  }
  store.set(key, name + word);
  // Each speaks in a packet of its own, so that one that is silent keeps nobody waiting.
  std::vector<Socket> callers;
  for (size_t given = 0; given < others;) {
    if (Clock::now() >= deadline)
      throw Error("a task of this host did not ask for the shared memory");
    std::vector<pollfd> events{{listening.fd(), POLLIN, 0}};
    for (const Socket &caller : callers)
      events.push_back({caller.fd(), POLLIN, 0});
    poll(events.data(), events.size(), 100);
    for (size_t i = 1; i < events.size(); ++i) {
      if (!events[i].revents)
        continue;
      char said[64];
      const ssize_t n = recv(callers[i - 1].fd(), said, sizeof said, MSG_DONTWAIT);
      if (n == static_cast<ssize_t>(word.size()) && std::memcmp(said, word.data(), word.size()) == 0) {
        send_file(callers[i - 1], file.fd());
        ++given;
      }
      callers[i - 1].close();
    }
    std::erase_if(callers, [](const Socket &caller) { return !caller; });
    if (events[0].revents) {
      Socket caller(accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (caller && is_same_user(caller))
        callers.push_back(std::move(caller));
    }
  }
  return file;
}

Socket ask_for_file(const std::string &answer, Clock::time_point deadline) {
  if (answer.empty())
    throw Error("the first task of this host has none");
  const std::string name = answer.substr(0, answer.size() - 32), word = answer.substr(answer.size() - 32);
  Socket socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  const auto [address, size] = abstract_address(name);
  if (!socket || connect(socket.fd(), reinterpret_cast<const sockaddr *>(&address), size) != 0)
    fail("cannot reach the first task of this host");
  if (!is_same_user(socket))
    throw Error("the first task of this host runs as another user");
  if (send(socket.fd(), word.data(), word.size(), MSG_NOSIGNAL) < 0 || !is_ready(socket, POLLIN, deadline))
    throw Error("the first task of this host does not answer");
  return receive_file(socket);
}

std::string boot_identity() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  return boot;
}

/// Of this process; "" where there is none, or /proc does not say.
std::string namespace_identity(const char *kind) {
  struct stat found;
  if (stat((std::string("/proc/self/ns/") + kind).c_str(), &found) != 0)
    return "";
  return std::to_string(found.st_dev) + " " + std::to_string(found.st_ino);
}

} // namespace

std::string host_identity() {
  const std::string boot = boot_identity(), network = namespace_identity("net");
  return boot.empty() || network.empty() ? "" : boot + " " + network;
}

// A kernel without time namespaces has no file for them, and one clock.
std::string clock_identity() {
  const std::string boot = boot_identity();
  return boot.empty() ? "" : boot + " " + namespace_identity("time");
}

std::vector<std::vector<int>> find_hosts(KeyValueStore &store, int rank, int size, const std::string &identity) {
  store.set("host/" + std::to_string(rank), identity.empty() ? "task " + std::to_string(rank) : identity);
  std::vector<std::pair<std::string, std::vector<int>>> hosts;
  for (int task = 0; task < size; ++task) {
    const std::string of = store.get("host/" + std::to_string(task));
    auto found = std::find_if(hosts.begin(), hosts.end(), [&](const auto &host) { return host.first == of; });
    if (found == hosts.end())
      found = hosts.insert(hosts.end(), {of, {}});
    found->second.push_back(task);
  }
  std::vector<std::vector<int>> ranks;
  for (auto &host : hosts)
    ranks.push_back(std::move(host.second));
  return ranks;
}

Socket share_file(KeyValueStore &store, const std::vector<int> &ranks, int rank, Clock::duration patience,
                  std::string &why) {
  const std::string key = "memory/" + std::to_string(ranks.front());
  const Clock::time_point deadline = Clock::now() + patience;
  Socket file;
  std::string failure;
  try {
    file = rank == ranks.front() ? hand_over(store, key, ranks.size() - 1, deadline)
                                 : ask_for_file(store.get(key), deadline);
  } catch (const Error &error) {
    failure = error.what();
  }
  store.set("has " + key + "/" + std::to_string(rank), failure);
  for (int task : ranks)
    if (std::string theirs = store.get("has " + key + "/" + std::to_string(task)); !theirs.empty() && why.empty())
      why = theirs;
  return why.empty() ? std::move(file) : Socket();
}

} // namespace drt
