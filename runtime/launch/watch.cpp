//===- watch.cpp - A task's connection to the rendezvous -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/watch.h"

#include "core/error.h"
#include "core/timeline.h"
#include "launch/secret.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <numeric>
#include <poll.h>
#include <sstream>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

namespace drt {

Watch::Watch(const GroupOptions &group, const Progress &where)
    : options(group), progress(where), heartbeat(group.failure_timeout), deadline(next_deadline()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  stop_read = Socket(ends[0]);
  stop_write = Socket(ends[1]);
  wire = meet();
  thread = std::thread([this] { run(); });
}

Watch::~Watch() {
  stop_write.close();
  thread.join();
}

// The server gives the better answer, who is missing; it is left time to.
Clock::time_point Watch::next_deadline() const { return Clock::now() + seconds(options.arrival_timeout + 5); }

std::vector<int> Watch::members() const {
  if (!ranks.empty())
    return ranks;
  std::vector<int> all(options.tasks.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::string Watch::first_task() const { return options.tasks[0].name() + " (" + options.tasks[0].host + ")"; }

/// Tasks of a synchronous run are in the same step, and this task's own is known
/// to the moment.
std::string Watch::in_step() const {
  int64_t step = progress.step.load(std::memory_order_relaxed);
  return step < 0 ? " before the first step" : " in step " + std::to_string(step);
}

void Watch::refuse_rendezvous() const {
  throw Error("what answers at " + options.rendezvous + " is not the rendezvous of " + first_task() +
              ": does something else use that port? Name another with --rendezvous, the same for every task");
}

std::optional<Message> Watch::next_answer() {
  try {
    return reader.next();
  } catch (const Error &) {
    refuse_rendezvous();
  }
}

/// Who this task is, with a proof, and what the server shall prove.
bool Watch::say_hello(Wire &connection, const std::string &challenge, const std::string &own_challenge) const {
  Message hello{MessageKind::Hello,
                {std::to_string(options.rank), std::to_string(options.tasks.size()), options.fingerprint,
                 peer_address(connection.fd()), own_challenge}};
  std::vector<std::string> statement = {"task", challenge};
  statement.insert(statement.end(), hello.fields.begin(), hello.fields.end());
  hello.fields.push_back(prove(options.secret, statement));
  const std::string bytes = hello.encode();
  return connection.send(bytes.data(), bytes.size()) >= 0;
}

/// The rendezvous has said in clear that it speaks TLS; nothing else that it says in clear is believed.
void Watch::start_tls(Wire &connection) {
  const std::string here = "the encrypted connection to the rendezvous " + options.rendezvous;
  if (!options.tls)
    throw Error(
        "the tasks at " + options.rendezvous +
            " speak TLS, and this one was given no certificate: give every task --tls-cert, --tls-key and --tls-ca",
        2);
  try {
    connection.start(*options.tls, Tls::Side::Connected);
    for (const auto until = Clock::now() + seconds(options.failure_timeout); !connection.handshake();) {
      if (Clock::now() > until)
        throw Error("no answer for " + format_seconds(options.failure_timeout) + " s");
      pollfd event{connection.fd(), static_cast<short>(connection.wantsWrite() ? POLLOUT : POLLIN), 0};
      poll(&event, 1, 50);
    }
  } catch (const Error &error) {
    throw Error(here + ": " + error.what());
  }
}

std::vector<int> Watch::read_ranks(const std::string &text) const {
  std::vector<int> read;
  std::istringstream words(text);
  for (int rank = 0; words >> rank;)
    read.push_back(rank);
  const bool in_order = std::adjacent_find(read.begin(), read.end(), std::greater_equal<>()) == read.end();
  const bool right =
      words.eof() && !read.empty() && in_order && read.front() == 0 &&
      read.back() < static_cast<int>(options.tasks.size()) &&
      std::find(read.begin(), read.end(), options.rank) != read.end() &&
      std::find(options.sizes.begin(), options.sizes.end(), static_cast<int>(read.size())) != options.sizes.end();
  if (!right)
    refuse_rendezvous();
  return read;
}

/// Connects, says hello and waits for the others, again where an old run is about
/// to make room.
Wire Watch::meet() {
  HostPort where = parse_host_port(options.rendezvous);
  std::string error = "no answer";
  while (Clock::now() < deadline) {
    const auto until = deadline - std::chrono::seconds(5);
    Socket socket = connect_to(where, std::min(until, Clock::now() + std::chrono::seconds(1)), error);
    if (!socket && Clock::now() < until) {
      if (options.note)
        options.note("waiting for " + first_task() + " at " + options.rendezvous + " (" + error + ")");
      socket = connect_to(where, until, error);
    }
    if (!socket)
      break;
    own_address = local_address(socket.fd());
    Wire connection(std::move(socket));
    const std::string own_challenge = make_nonce();
    std::string challenge; // the server's
    bool welcome = false;
    reader = MessageReader();
    auto last_heartbeat = Clock::now(), last_heard = last_heartbeat;
    bool again = false, spare = false;
    while (!again && Clock::now() < deadline) {
      if (welcome && Clock::now() - last_heartbeat > heartbeat.interval) {
        last_heartbeat = Clock::now();
        std::string beat = Message{MessageKind::Heartbeat, {"-1", "0", "0", "", "0"}}.encode();
        connection.send(beat.data(), beat.size());
      }
      // The server shows that it lives while it waits for others, so one that says nothing is none, or hangs.
      if (Clock::now() - last_heard > seconds(options.failure_timeout)) {
        note_lost();
        throw Error(first_task() + " does not answer at the rendezvous " + options.rendezvous +
                    ": no sign of life for " + format_seconds(options.failure_timeout) +
                    " s. Does it hang, or does something else use that port? Name another with --rendezvous");
      }
      pollfd event{connection.fd(), POLLIN, 0};
      if (poll(&event, 1, 50) <= 0)
        continue;
      char buffer[4096];
      const ssize_t n = receive(connection, buffer, sizeof buffer);
      if (n < 0 && (errno == EAGAIN || errno == EINTR))
        continue;
      if (n <= 0) {
        error = "connection closed";
        again = true;
        break;
      }
      if (spare) // it waits for as long as the run goes on
        deadline = next_deadline();
      last_heard = Clock::now();
      reader.append(buffer, static_cast<size_t>(n));
      while (auto message = next_answer()) {
        if (!welcome) {
          // Who has not proven to be the rendezvous can only turn this task away.
          if (message->kind == MessageKind::StartTls && !connection.encrypted() && challenge.empty()) {
            start_tls(connection);
            last_heard = Clock::now();
          } else if (options.tls && !connection.encrypted()) {
            throw Error("what answers at " + options.rendezvous + " does not speak TLS: give " + first_task() +
                            ", too, --tls-cert, --tls-key and --tls-ca",
                        2);
          } else if (message->kind == MessageKind::Challenge && challenge.empty()) {
            challenge = message->fields[0];
            if (!say_hello(connection, challenge, own_challenge))
              break;
          } else if (message->kind == MessageKind::Welcome && !challenge.empty() &&
                     is_proof(options.secret, {"server", own_challenge, challenge}, message->fields[0])) {
            welcome = true;
          } else if (message->kind == MessageKind::Refused) {
            throw Error(options.tasks[static_cast<size_t>(options.rank)].name() + " was refused by what answers at " +
                        options.rendezvous + ": " + message->fields[1]);
          } else {
            refuse_rendezvous();
          }
          continue;
        }
        if (message->kind == MessageKind::Ready) {
          // Task 0 reached itself by whatever way; the others know its real address.
          if (options.rank == 0 && !message->fields.at(0).empty())
            own_address = message->fields[0];
          if (message->fields.size() > 1)
            ranks = read_ranks(message->fields[1]);
          return connection;
        }
        if (message->kind == MessageKind::Spare && !options.sizes.empty()) {
          if (options.note && !spare)
            options.note("the run at " + options.rendezvous + " goes on, and takes " +
                         options.tasks[static_cast<size_t>(options.rank)].name() +
                         " in when its group is formed again");
          spare = true;
          deadline = next_deadline();
          continue;
        }
        if (message->kind == MessageKind::AllGone)
          throw RunIsOver("the run at " + options.rendezvous + " has ended" +
                          (options.sizes.empty() || options.finished
                               ? ": nothing is left to do"
                               : " without " + options.tasks[static_cast<size_t>(options.rank)].name()));
        if (message->kind == MessageKind::Lost && spare) {
          error = "the group is formed again";
          again = true;
          break;
        }
        if (message->kind == MessageKind::Lost)
          throw Error(told(*message, ""));
        if (message->kind != MessageKind::Refused && message->kind != MessageKind::Heartbeat)
          refuse_rendezvous();
        if (message->kind == MessageKind::Refused) {
          if (message->fields.at(0) == "2")
            note_lost();
          if (message->fields.at(0) != "1")
            throw Error(message->fields.at(1));
          error = message->fields.at(1);
          again = true;
        }
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  if (options.finished)
    throw RunIsOver("nothing is left to do: nobody is at " + options.rendezvous +
                    " any more, and this task had done its part: the run has ended");
  note_lost();
  throw Error(first_task() + " has not opened the rendezvous at " + options.rendezvous + " within " +
              format_seconds(options.arrival_timeout) +
              " s: is it started, and can this machine reach that address? (" + error + ")");
}

/// As Wire's; what TLS has to say of the connection's end is said in errno's way.
ssize_t Watch::receive(Wire &from, char *buffer, size_t size) const {
  try {
    return from.receive(buffer, size);
  } catch (const Error &error) {
    if (std::string_view(error.what()) == "connection closed")
      return 0;
    // The other end's word on this task's certificate comes when it is used first.
    throw Error("the encrypted connection to the rendezvous " + options.rendezvous + ": " + error.what() +
                ". Is this task's certificate (--tls-cert) signed by the authority of the others' --tls-ca?");
  }
}

void Watch::run() {
  watch();
  const std::lock_guard lock(mutex);
  connected = false;
  changed.notify_all();
}

void Watch::watch() {
  auto next = Clock::now();
  auto last_heard = Clock::now();
  for (;;) {
    auto now = Clock::now();
    if (now >= next) {
      next = now + heartbeat.interval;
      auto since = Clock::time_point(Clock::duration(progress.since.load(std::memory_order_relaxed)));
      bool inside = progress.inside.load(std::memory_order_acquire);
      send({MessageKind::Heartbeat,
            {std::to_string(progress.step.load(std::memory_order_relaxed)),
             std::to_string(progress.begun.load(std::memory_order_relaxed)), inside ? "1" : "0",
             progress.name.load(std::memory_order_relaxed), std::to_string(inside ? seconds(now - since) : 0.0)}});
      if (options.compares_clocks && options.rank != 0)
        ask_for_time();
    }
    pollfd events[2] = {{wire.fd(), POLLIN, 0}, {stop_read.fd(), POLLIN, 0}};
    auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(next - now).count();
    poll(events, 2, static_cast<int>(std::max<int64_t>(wait, 1)));
    if (events[1].revents)
      return;
    if (events[0].revents) {
      try {
        char buffer[16384]; // as much as TLS holds back at most
        const ssize_t n = receive(wire, buffer, sizeof buffer);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
          continue;
        if (n <= 0)
          return lost(first_task() + " was lost" + in_step() + ": " +
                      (n == 0 || errno == ECONNRESET ? "connection closed" : std::strerror(errno)));
        last_heard = Clock::now();
        const int64_t received_ns = nowNs();
        reader.append(buffer, static_cast<size_t>(n));
        while (auto message = next_answer())
          handle(*message, received_ns);
      } catch (const std::exception &e) {
        return failed(e.what());
      }
    } else if (Clock::now() - last_heard > heartbeat.patience) {
      return lost(first_task() + " was lost" + in_step() + ": no sign of life for " +
                  format_seconds(seconds(heartbeat.patience)) + " s");
    }
  }
}

void Watch::handle(const Message &message, int64_t received_ns) {
  switch (message.kind) {
  case MessageKind::Value: {
    std::lock_guard lock(mutex);
    values[message.fields.at(0)] = message.fields.at(1);
    changed.notify_all();
    return;
  }
  case MessageKind::AllGone: {
    std::lock_guard lock(mutex);
    all_gone = true;
    changed.notify_all();
    return;
  }
  case MessageKind::Lost:
    return failed(told(message, in_step()));
  case MessageKind::Time: {
    if (message.fields.size() != 3)
      return;
    const auto number = [&](size_t field) { return std::strtoll(message.fields[field].c_str(), nullptr, 10); };
    std::lock_guard lock(mutex);
    comparison.exchanged(number(0), number(1), number(2), received_ns);
    ++exchanges;
    changed.notify_all();
    return;
  }
  case MessageKind::Fetch: {
    std::lock_guard lock(mutex);
    fetched = true;
    changed.notify_all();
    return;
  }
  default:
    return;
  }
}

/// What the server says of a task that is gone.
std::string Watch::told(const Message &lost, const std::string &where) const {
  const bool failed = lost.fields.at(1) != "1";
  if (lost.fields.at(1) != "0")
    note_lost();
  return lost.fields.at(0) + (failed ? " failed" : " was lost") + where + lost.fields.at(2);
}

void Watch::note_lost() const {
  if (options.on_lost)
    options.on_lost();
}

void Watch::lost(const std::string &message) {
  {
    // Who has said why it ends goes then.
    std::lock_guard lock(mutex);
    if (!failure.empty())
      return;
  }
  note_lost();
  failed(message);
}

void Watch::failed(const std::string &message) {
  std::function<void(const std::string &)> tell;
  {
    std::lock_guard lock(mutex);
    // When all have said goodbye, the server goes as it pleases.
    if (!failure.empty() || all_gone)
      return;
    tell = callback;
    failed_at = Clock::now();
    if (!tell)
      failure = message;
  }
  // Before any other thread learns of it, so that who waits for the cause does not
  // end the process with a message of its own at the same time.
  if (tell)
    tell(message);
  std::lock_guard lock(mutex);
  failure = message;
  changed.notify_all();
}

void Watch::on_failure(std::function<void(const std::string &)> what) {
  std::string known;
  {
    std::lock_guard lock(mutex);
    callback = std::move(what);
    known = failure;
    what = callback;
  }
  if (!known.empty())
    what(known);
}

bool Watch::send(const Message &message) noexcept {
  try {
    std::string bytes = message.encode();
    std::lock_guard lock(sending);
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t n = wire.send(bytes.data() + sent, bytes.size() - sent);
      if (n < 0 && errno == EINTR)
        continue;
      if (n < 0 && errno == EAGAIN) {
        pollfd event{wire.fd(), POLLOUT, 0};
        poll(&event, 1, 100);
        continue;
      }
      if (n <= 0)
        return false; // the reading side says why
      sent += static_cast<size_t>(n);
    }
    return true;
  } catch (const std::exception &) {
    return false;
  }
}

void Watch::set(const std::string &key, const std::string &value) { send({MessageKind::Set, {key, value}}); }

std::string Watch::get(const std::string &key) {
  send({MessageKind::Get, {key}});
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return values.count(key) || !failure.empty(); });
  if (!failure.empty())
    throw Error(failure);
  return values[key];
}

std::string Watch::wait_for_failure(Clock::duration patience) {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, patience, [&] { return !failure.empty(); });
  return failure;
}

void Watch::fail(const std::string &reason) noexcept {
  if (!send({MessageKind::Failed, {reason, options.comes_again && options.comes_again() ? "1" : "0"}}))
    return;
  // The server's answer says that the others have been told; without it, task 0
  // could take the server away before.
  try {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::seconds(1), [&] { return !failure.empty(); });
  } catch (const std::exception &) {
  }
}

void Watch::ask_for_time() { send({MessageKind::Time, {std::to_string(nowNs())}}); }

void Watch::compare_clocks() {
  constexpr int rounds = 16;
  constexpr auto patience = std::chrono::milliseconds(200); // a lost answer is not awaited
  std::unique_lock lock(mutex);
  for (int i = 0; i < rounds && connected && failure.empty(); ++i) {
    const int64_t before = exchanges;
    lock.unlock();
    ask_for_time();
    lock.lock();
    changed.wait_for(lock, patience, [&] { return exchanges != before || !connected || !failure.empty(); });
  }
}

ClockAlignment Watch::clock(bool is_shared) const {
  const std::lock_guard lock(mutex);
  return comparison.alignment(is_shared);
}

bool Watch::hand_over(const std::string &part, Clock::duration patience) {
  {
    std::unique_lock lock(mutex);
    const auto is_due = [&] { return fetched || !connected; };
    // While the run goes on, task 0 comes to it when it does.
    changed.wait(lock, [&] { return is_due() || !failure.empty(); });
    if (!changed.wait_until(lock, failed_at + patience, is_due) || !fetched)
      return false;
    fetched = false;
  }
  return send({MessageKind::Part, {part}});
}

bool Watch::failed_before(Clock::duration patience) const {
  const std::lock_guard lock(mutex);
  return !connected || (!failure.empty() && Clock::now() > failed_at + patience);
}

void Watch::leave() {
  send({MessageKind::Goodbye, {}});
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return all_gone || !failure.empty(); });
  if (!all_gone)
    throw Error(failure);
}

} // namespace drt
