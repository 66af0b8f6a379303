//===- rendezvous.cpp - What a task, or a stranger, says to the rendezvous ===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A run of two tasks, of which the first is there already. The first byte says how well the fuzzer knows the run: 0 as
// a stranger, 1 as one who knows the secret and says a Hello of its own, else as the second task. What it sends must
// never end the server's thread.
//
//===----------------------------------------------------------------------===//
#include "fuzz_target.h"

#include "launch/rendezvous.h"
#include "launch/secret.h"

#include <poll.h>
#include <sys/socket.h>

using namespace drt;

namespace {

const std::string kSecret = "the secret of this run";

constexpr int patience = 60000; // milliseconds: a machine may be busy

/// Waits for as long as a server that lives needs. False: it closed the connection, or says nothing.
bool hear(Wire &from, MessageReader &reader, int patience) {
  pollfd event{from.fd(), POLLIN, 0};
  if (poll(&event, 1, patience) <= 0)
    return false;
  char buffer[4096];
  const ssize_t n = from.receive(buffer, sizeof buffer);
  if (n <= 0)
    return false;
  reader.append(buffer, static_cast<size_t>(n));
  return true;
}

/// A connection whose challenge has come.
struct Caller {
  explicit Caller(int port) {
    std::string error;
    wire = Wire(connect_to({"127.0.0.1", port}, Clock::now() + std::chrono::milliseconds(patience), error));
    if (!wire)
      __builtin_trap();
    challenge = expect(MessageKind::Challenge).fields[0];
  }

  Message expect(MessageKind kind) {
    for (;;) {
      while (auto message = reader.next())
        if (message->kind == kind)
          return *message;
      if (!hear(wire, reader, patience))
        __builtin_trap(); // the server is gone, or does not answer a sound task
    }
  }
  void send(const std::string &bytes) { (void)wire.send(bytes.data(), bytes.size()); }

  void sayHello(std::vector<std::string> fields) {
    std::vector<std::string> statement = {"task", challenge};
    statement.insert(statement.end(), fields.begin(), fields.end());
    fields.push_back(prove(kSecret, statement));
    send(Message{MessageKind::Hello, std::move(fields)}.encode());
  }

  Wire wire;
  MessageReader reader;
  std::string challenge;
};

std::vector<std::string> helloOf(int rank) { return {std::to_string(rank), "2", "program", "127.0.0.1", "nonce"}; }

} // namespace

std::vector<std::string> seeds() {
  const std::string talk =
      Message{MessageKind::Set, {"key", "value"}}.encode() + Message{MessageKind::Get, {"key"}}.encode() +
      Message{MessageKind::Heartbeat, {"3", "12", "1", "all_reduce 0", "0.5"}}.encode() +
      Message{MessageKind::Time, {"123456789"}}.encode() + Message{MessageKind::Part, {"a part"}}.encode();
  return {std::string("\0", 1) + Message{MessageKind::Hello, {"1", "2", "program", "127.0.0.1", "nonce", "?"}}.encode(),
          "\x01"
          "1 2 program 127.0.0.1 nonce",
          "\x02" + talk + Message{MessageKind::Goodbye, {}}.encode(),
          "\x02" + Message{MessageKind::Fetch, {"1"}}.encode(), // which is task 0's to say
          "\x02" + talk + Message{MessageKind::Failed, {"why", "0"}}.encode()};
}

void readBytes(std::string_view bytes) {
  if (bytes.empty())
    return;
  RendezvousOptions options;
  options.tasks = {{"worker", 0, "localhost", 0, 1}, {"worker", 1, "localhost", 1, 1}};
  options.address = "127.0.0.1:0";
  options.fingerprint = "program";
  options.secret = kSecret;
  options.arrival_timeout = options.failure_timeout = options.stall_warning = 600;
  options.log = options.note = [](const std::string &) {};
  Socket listening = listen_at({"127.0.0.1", 0});
  const int port = bound_port(listening);
  RendezvousServer server(std::move(options), std::move(listening));

  Caller first(port);
  first.sayHello(helloOf(0));
  first.expect(MessageKind::Welcome);
  Caller fuzzer(port);
  const int known = static_cast<uint8_t>(bytes[0]);
  std::string_view said = bytes.substr(1);
  if (known == 1) {
    std::vector<std::string> fields(5);
    for (std::string &field : fields) {
      field = said.substr(0, said.find(' '));
      said.remove_prefix(std::min(said.size(), field.size() + 1));
    }
    fuzzer.sayHello(std::move(fields));
  } else if (known > 1) {
    fuzzer.sayHello(helloOf(1));
    fuzzer.expect(MessageKind::Ready);
  }
  fuzzer.send(std::string(said));
  shutdown(fuzzer.wire.fd(), SHUT_WR);
  while (hear(fuzzer.wire, fuzzer.reader, patience)) {
  }
  // Whatever it was, the server answers who comes now.
  [[maybe_unused]] const Caller last(port);
}
