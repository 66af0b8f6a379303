//===- socket.h - TCP sockets and the messages of the control connection -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_SOCKET_H
#define DRT_LAUNCH_SOCKET_H

#include "tls/tls.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

namespace drt {

using Clock = std::chrono::steady_clock;

inline Clock::duration seconds(double s) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}
inline double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }
/// "60", "2.5": as short as it goes, for messages.
std::string format_seconds(double s);

/// Owns a file descriptor.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : fd_(descriptor) {}
  ~Socket() { close(); }
  Socket(Socket &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }
  void close();

private:
  int fd_ = -1;
};

struct HostPort {
  std::string host;
  int port = 0;
};

/// "host:port" or "[v6 address]:port"; throws Error that shows the text.
HostPort parse_host_port(const std::string &text);

/// Listens where `where.host` leads on this machine, or on every interface where
/// that is not one of its addresses. Port 0 takes a free one (see bound_port). A port
/// that is taken is tried for a moment: the process that had it may be about to end.
Socket listen_at(const HostPort &where);
int bound_port(const Socket &socket);

/// Tries until the deadline. On failure, no socket and the last error's text.
Socket connect_to(const HostPort &where, Clock::time_point deadline, std::string &error);

/// Numeric addresses of the two ends.
std::string local_address(int socket);
std::string peer_address(int socket);

/// A connected socket, encrypted or not. Throws Error for what is wrong with TLS. Two threads may use it, one to
/// receive, one to send.
class Wire {
public:
  Wire() = default;
  explicit Wire(Socket socket) : socket_(std::move(socket)) {}

  /// The socket goes over to TLS; `handshake` until it says that that is done.
  void start(const Tls &tls, Tls::Side side);
  bool handshake() { return !tls_ || (shaken_ = shaken_ || tls_->handshake()); }
  bool encrypted() const { return tls_ != nullptr; }
  bool wantsWrite() const { return tls_ && tls_->wantsWrite(); }

  /// As recv and send: what there is, or goes; 0 the end; below 0 with errno, EAGAIN where it is nothing now.
  ssize_t receive(char *data, size_t bytes);
  ssize_t send(const char *data, size_t bytes);

  int fd() const { return tls_ ? tls_->descriptor() : socket_.fd(); }
  explicit operator bool() const { return fd() >= 0; }

private:
  Socket socket_;
  std::unique_ptr<TlsStream> tls_;
  bool shaken_ = false;
};

/// What the control connection carries.
enum class MessageKind : uint8_t {
  Hello = 1, // to the server: rank, number of tasks, fingerprint, address it was reached at, challenge, proof
  Ready,   // all tasks are here: address of task 0 as the others see it; in an elastic run also the ranks of the group
  Refused, // "1" if connecting again makes sense, "2" if others have not come, else "0"; why
  Set,     // key, value
  Get,     // key; answered when it is set
  Value,   // key, value
  Heartbeat, // to the server: step, collectives begun, "1" inside one, its name, seconds in it. From it: nothing
  Failed,    // to the server: why this task ends; "1" if it is started again, else "0"
  Lost,      // from the server: who; "1" if it was lost, "0" if it failed, "2" if it is started again; how. Every task
             // says so before it ends
  Goodbye,   // to the server: this task's part is done
  AllGone,   // from the server: every task's is
  Challenge, // from the server, first of all: what Hello's proof is of
  Welcome,   // from the server: its own proof, of what Hello asked. What comes before it may be a stranger's
  StartTls,  // from the server, instead of Challenge, where the run is encrypted; Challenge then comes over TLS
  Spare,     // from the server: the group is formed without this task, which may be in the next one
  Time,      // to the server: this task's clock. From it: the same, its own when it came, and when it answers
  Fetch,     // from task 0 to the server: of which task; from it, to that task: the next part is asked for
  Part,      // to the server: the part, for task 0
};

struct Message {
  MessageKind kind = MessageKind::Heartbeat;
  std::vector<std::string> fields;

  std::string encode() const;
};

/// Throws Error where the kind is none of the above, or has another number of fields than it must have.
void check(const Message &message);

/// Cuts what a stream delivers into messages.
class MessageReader {
public:
  /// Bytes of a message: far above any address or reason.
  static constexpr uint32_t most = 1 << 20;
  explicit MessageReader(uint32_t largest = most) : largest_(largest) {}

  void append(const char *data, size_t size) { buffer_.append(data, size); }
  void allow(uint32_t largest) { largest_ = largest; }
  /// Takes the next whole message. Throws Error where the bytes are no message, or check does.
  std::optional<Message> next();

private:
  uint32_t largest_;
  std::string buffer_;
};

} // namespace drt

#endif // DRT_LAUNCH_SOCKET_H
