//===- socket.cpp - TCP sockets and the messages of the control connection -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/socket.h"

#include "core/error.h"

#include <arpa/inet.h>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace drt {

std::string format_seconds(double s) {
  char text[32];
  std::snprintf(text, sizeof text, s < 10 ? "%.3g" : "%.0f", s);
  return text;
}

void Socket::close() {
  if (fd_ >= 0)
    ::close(std::exchange(fd_, -1));
}

HostPort parse_host_port(const std::string &text) {
  HostPort result;
  size_t colon = text.rfind(':');
  if (colon != std::string::npos) {
    result.host = text.substr(0, colon);
    if (result.host.size() > 1 && result.host.front() == '[' && result.host.back() == ']')
      result.host = result.host.substr(1, result.host.size() - 2);
    const char *end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data() + colon + 1, end, result.port);
    if (error == std::errc() && rest == end && !result.host.empty() && result.port >= 0 && result.port <= 65535)
      return result;
  }
  throw Error("'" + text + "' is no address of a rendezvous: write host:port, for example 10.0.0.1:29500", 2);
}

namespace {

struct FreeAddresses {
  void operator()(addrinfo *list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

/// Null, and the resolver's words, where the name is not known.
Addresses resolve(const HostPort &where, std::string &error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo *list = nullptr;
  int status = getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &list);
  if (status != 0)
    error = "host name '" + where.host + "': " + gai_strerror(status);
  return Addresses(list);
}

bool is_loopback(const sockaddr *address) {
  if (address->sa_family == AF_INET)
    return (ntohl(reinterpret_cast<const sockaddr_in *>(address)->sin_addr.s_addr) >> 24) == 127;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6 *>(address)->sin6_addr);
}

/// A host name that leads to loopback here (Debian writes 127.0.1.1 into
/// /etc/hosts) would hide the server from the other hosts.
bool means_loopback(const std::string &host) {
  return host == "localhost" || host.rfind("127.", 0) == 0 || host == "::1";
}

std::string numeric(const sockaddr_storage &address) {
  char host[NI_MAXHOST] = "";
  socklen_t size = address.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  getnameinfo(reinterpret_cast<const sockaddr *>(&address), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  return host;
}

/// How long the port of a process that was killed may be taken while it ends.
constexpr std::chrono::seconds listen_patience(2);

Socket try_listen(const sockaddr *address, socklen_t size) {
  const auto until = Clock::now() + listen_patience;
  for (;;) {
    Socket socket(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket)
      return socket;
    // A restarted task takes the place of the one before while its connections linger.
    int on = 1;
    setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(socket.fd(), address, size) == 0 && listen(socket.fd(), 1024) == 0)
      return socket;
    const int cause = errno;
    socket.close();
    errno = cause;
    if (cause != EADDRINUSE || Clock::now() > until)
      return socket;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

/// A port that nobody listens at may be given to the very socket that connects to it (simultaneous open): it would
/// speak with itself, and keep the port from who is about to listen there.
bool is_connected_to_itself(const Socket &socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  return getsockname(socket.fd(), reinterpret_cast<sockaddr *>(&own), &own_size) == 0 &&
         getpeername(socket.fd(), reinterpret_cast<sockaddr *>(&peer), &peer_size) == 0 && own_size == peer_size &&
         std::memcmp(&own, &peer, own_size) == 0;
}

} // namespace

Socket listen_at(const HostPort &where) {
  std::string error;
  Addresses addresses = resolve(where, error);
  if (!addresses)
    throw Error("cannot open the rendezvous at " + where.host + ":" + std::to_string(where.port) + ": " + error);
  for (addrinfo *a = addresses.get(); a; a = a->ai_next) {
    if (is_loopback(a->ai_addr) && !means_loopback(where.host))
      continue;
    if (Socket socket = try_listen(a->ai_addr, a->ai_addrlen))
      return socket;
    if (errno == EADDRINUSE || errno == EACCES)
      throw Error("cannot open the rendezvous at " + where.host + ":" + std::to_string(where.port) + ": " +
                  std::strerror(errno) + ". Name another port with --rendezvous, the same for every task");
  }
  // The name is not an address of ours (forwarded, or only known outside).
  sockaddr_in any{};
  any.sin_family = AF_INET;
  any.sin_port = htons(static_cast<uint16_t>(where.port));
  if (Socket socket = try_listen(reinterpret_cast<const sockaddr *>(&any), sizeof any))
    return socket;
  throw Error("cannot open the rendezvous at port " + std::to_string(where.port) + ": " + std::strerror(errno));
}

int bound_port(const Socket &socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr *>(&address), &size) != 0)
    return 0;
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(address).sin6_port
                                             : reinterpret_cast<sockaddr_in &>(address).sin_port);
}

Socket connect_to(const HostPort &where, Clock::time_point deadline, std::string &error) {
  for (;;) {
    Addresses addresses = resolve(where, error);
    for (addrinfo *a = addresses.get(); a; a = a->ai_next) {
      Socket socket(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      if (!socket)
        continue;
      int status = connect(socket.fd(), a->ai_addr, a->ai_addrlen);
      if (status != 0 && errno == EINPROGRESS) {
        // A host that answers nothing must not use up the time for another try.
        auto patience = std::min<Clock::duration>(deadline - Clock::now(), std::chrono::seconds(5));
        pollfd ready{socket.fd(), POLLOUT, 0};
        int wait = static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(patience).count());
        status = -1;
        errno = ETIMEDOUT;
        if (poll(&ready, 1, std::max(wait, 1)) == 1) {
          int cause = 0;
          socklen_t size = sizeof cause;
          getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &cause, &size);
          status = cause == 0 ? 0 : -1;
          errno = cause;
        }
      }
      if (status == 0 && is_connected_to_itself(socket)) {
        status = -1;
        errno = ECONNREFUSED;
      }
      if (status == 0) {
        fcntl(socket.fd(), F_SETFL, fcntl(socket.fd(), F_GETFL) & ~O_NONBLOCK);
        int on = 1;
        setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return socket;
      }
      error = std::strerror(errno);
    }
    if (Clock::now() + std::chrono::milliseconds(100) >= deadline)
      return Socket();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

std::string local_address(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr *>(&address), &size);
  return numeric(address);
}

std::string peer_address(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  getpeername(socket, reinterpret_cast<sockaddr *>(&address), &size);
  return numeric(address);
}

void Wire::start(const Tls &tls, Tls::Side side) { tls_ = tls.open(socket_.release(), side); }

ssize_t Wire::receive(char *data, size_t bytes) {
  if (!tls_)
    return recv(socket_.fd(), data, bytes, MSG_DONTWAIT);
  const int64_t n = tls_->read(data, static_cast<int64_t>(bytes));
  errno = EAGAIN;
  return n > 0 ? n : -1;
}

ssize_t Wire::send(const char *data, size_t bytes) {
  if (!tls_)
    return ::send(socket_.fd(), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
  const int64_t n = tls_->write(data, static_cast<int64_t>(bytes));
  errno = EAGAIN;
  return n > 0 ? n : -1;
}

// A message is: bytes that follow (4), kind (1), then each field with its length (4).
// Little-endian, as every machine that we generate code for is.
namespace {
[[noreturn]] void refuse_stranger() { throw Error("something that is no task of this plan speaks at the rendezvous"); }

void append_number(std::string &out, uint32_t value) { out.append(reinterpret_cast<const char *>(&value), 4); }
uint32_t read_number(const char *data) {
  uint32_t value;
  std::memcpy(&value, data, 4);
  return value;
}
} // namespace

std::string Message::encode() const {
  std::string body(1, static_cast<char>(kind));
  for (const std::string &field : fields) {
    append_number(body, static_cast<uint32_t>(field.size()));
    body += field;
  }
  std::string result;
  append_number(result, static_cast<uint32_t>(body.size()));
  return result + body;
}

std::optional<Message> MessageReader::next() {
  if (buffer_.size() < 4)
    return std::nullopt;
  uint32_t size = read_number(buffer_.data());
  if (size == 0 || size > largest_)
    refuse_stranger();
  if (buffer_.size() - 4 < size)
    return std::nullopt;
  Message message;
  message.kind = static_cast<MessageKind>(buffer_[4]);
  for (size_t at = 5; at < 4 + size;) {
    if (4 + size - at < 4 || read_number(&buffer_[at]) > 4 + size - at - 4)
      refuse_stranger();
    uint32_t length = read_number(&buffer_[at]);
    message.fields.push_back(buffer_.substr(at + 4, length));
    at += 4 + length;
  }
  buffer_.erase(0, 4 + size);
  check(message);
  return message;
}

void check(const Message &message) {
  const size_t fields = message.fields.size();
  bool right = false;
  switch (message.kind) {
  case MessageKind::Hello:
    right = fields == 6;
    break;
  case MessageKind::Failed:
  case MessageKind::Refused:
  case MessageKind::Set:
  case MessageKind::Value:
    right = fields == 2;
    break;
  case MessageKind::Lost:
    right = fields == 3;
    break;
  case MessageKind::Ready:
    right = fields == 1 || fields == 2;
    break;
  case MessageKind::Challenge:
  case MessageKind::Welcome:
  case MessageKind::Get:
  case MessageKind::Part:
    right = fields == 1;
    break;
  case MessageKind::Time:
    right = fields == 1 || fields == 3;
    break;
  case MessageKind::Fetch:
    right = fields == 0 || fields == 1;
    break;
  case MessageKind::Heartbeat: // a task's says where it is
    right = fields == 5 || fields == 0;
    break;
  case MessageKind::Goodbye:
  case MessageKind::AllGone:
  case MessageKind::StartTls:
  case MessageKind::Spare:
    right = fields == 0;
    break;
  }
  if (!right)
    refuse_stranger();
}

} // namespace drt
