//===- rendezvous.cpp - Where the tasks meet, and who is still there -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/rendezvous.h"

#include "core/error.h"
#include "core/timeline.h"
#include "launch/secret.h"
#include "launch/signals.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace drt {

namespace {
// A number in a stranger's message is worth no exception here.
int64_t number(const std::string &text) { return std::strtoll(text.c_str(), nullptr, 10); }
} // namespace

RendezvousServer::RendezvousServer(RendezvousOptions what, Socket socket)
    : options(std::move(what)), heartbeat(options.failure_timeout), listening(std::move(socket)) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  stop_read = Socket(ends[0]);
  stop_write = Socket(ends[1]);
  if (options.over) {
    ready = over = true;
    late_tasks = options.tasks.size() - 1; // all but the one that this server is in
  }
  thread = std::thread([this] { serve(); });
}

RendezvousServer::~RendezvousServer() {
  stop_write.close();
  thread.join();
}

void RendezvousServer::serve() {
  for (;;) {
    wait_for_events();
    pollfd stop{stop_read.fd(), POLLIN, 0};
    if (poll(&stop, 1, 0) > 0)
      return;
    check_arrivals();
    check_silence();
    check_stall();
    std::erase_if(connections, [](const auto &c) { return c->closed; });
  }
}

void RendezvousServer::wait_for_events() {
  std::vector<pollfd> events;
  events.push_back({listening.fd(), POLLIN, 0});
  events.push_back({stop_read.fd(), POLLIN, 0});
  for (const auto &c : connections)
    events.push_back(
        {c->wire.fd(), static_cast<short>(POLLIN | (c->unsent.empty() && !c->wire.wantsWrite() ? 0 : POLLOUT)), 0});
  auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(heartbeat.interval).count();
  if (poll(events.data(), events.size(), static_cast<int>(std::max<int64_t>(wait / 2, 10))) < 0)
    return;
  for (size_t i = 2; i < events.size(); ++i) {
    Connection &c = *connections[i - 2];
    if (events[i].revents & POLLOUT)
      flush(c);
    if (events[i].revents)
      receive(c);
  }
  if (events[0].revents & POLLIN)
    accept_one();
  if (Clock::now() >= next_heartbeat) {
    next_heartbeat = Clock::now() + heartbeat.interval;
    say_all({MessageKind::Heartbeat, {}});
  }
}

void RendezvousServer::accept_one() {
  Socket socket(accept4(listening.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
      close_oldest_stranger();
    return;
  }
  int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  connections.push_back(std::make_unique<Connection>());
  Connection &guest = *connections.back();
  guest.wire = Wire(std::move(socket));
  if (options.tls) {
    // In clear, so that a task that was given no certificate can say what it lacks.
    say(guest, {MessageKind::StartTls, {}});
    guest.wire.start(*options.tls, Tls::Side::Accepted);
  } else {
    challenge(guest);
  }
  if (std::count_if(connections.begin(), connections.end(), [](const auto &c) { return c->rank < 0 && !c->closed; }) >
      static_cast<std::ptrdiff_t>(most_strangers))
    close_oldest_stranger();
}

void RendezvousServer::challenge(Connection &stranger) {
  stranger.challenge = make_nonce();
  say(stranger, {MessageKind::Challenge, {stranger.challenge}});
}

void RendezvousServer::close_oldest_stranger() {
  auto oldest =
      std::find_if(connections.begin(), connections.end(), [](const auto &c) { return c->rank < 0 && !c->closed; });
  if (oldest != connections.end())
    (*oldest)->closed = true;
}

/// One buffer at a time: one that goes on sending does not keep the others waiting.
void RendezvousServer::receive(Connection &from) {
  if (from.closed)
    return;
  try {
    if (from.challenge.empty()) {
      if (from.wire.handshake())
        challenge(from);
      return;
    }
    char buffer[16384]; // as much as TLS holds back at most
    const ssize_t n = from.wire.receive(buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
      return;
    if (n <= 0)
      return lose(from, n == 0 || errno == ECONNRESET ? "connection closed" : std::strerror(errno));
    if (from.refused)
      return;
    from.last_heard = Clock::now();
    from.received_ns = nowNs();
    from.reader.append(buffer, static_cast<size_t>(n));
    while (auto message = from.reader.next()) {
      handle(from, *message);
      if (from.refused)
        return;
    }
  } catch (const Error &e) {
    lose(from, e.what());
  }
}

void RendezvousServer::handle(Connection &from, const Message &message) {
  const std::vector<std::string> &f = message.fields;
  if (from.rank < 0) {
    if (message.kind == MessageKind::Hello)
      return greet(from, message);
    throw Error("something that is no task of this plan speaks at the rendezvous");
  }
  switch (message.kind) {
  case MessageKind::Set:
    values[f[0]] = f[1];
    for (int rank : awaited[f[0]])
      for (auto &c : connections)
        if (c->rank == rank)
          say(*c, {MessageKind::Value, f});
    awaited.erase(f[0]);
    return;
  case MessageKind::Get:
    if (auto found = values.find(f[0]); found != values.end())
      say(from, {MessageKind::Value, {f[0], found->second}});
    else
      awaited[f[0]].push_back(from.rank);
    return;
  case MessageKind::Heartbeat:
    if (f.size() != 5)
      break;
    from.step = number(f[0]);
    from.begun = number(f[1]);
    from.inside = f[2] == "1";
    from.collective = f[3];
    from.seconds_inside = std::strtod(f[4].c_str(), nullptr);
    return;
  case MessageKind::Time:
    if (f.size() != 1)
      break;
    return say(from, {MessageKind::Time, {f[0], std::to_string(from.received_ns), std::to_string(nowNs())}});
  case MessageKind::Fetch:
    if (from.rank != 0 || f.size() != 1)
      break;
    return ask_for_part(static_cast<int>(number(f[0])));
  case MessageKind::Part:
    return give_part(from.rank, f[0]);
  case MessageKind::Failed:
    from.goodbye = true;
    return end_all({MessageKind::Lost, {describe(from.rank), f[1] == "1" ? "2" : "0", ": " + f[0]}});
  case MessageKind::Goodbye:
    from.goodbye = true;
    done.insert(from.rank);
    if (done.size() == members.size()) {
      over = !forms_again;
      late_tasks = options.tasks.size() - members.size();
      for_task_0_last([&](Connection &c) {
        if (is_member(c.rank) && !c.waits)
          say(c, {MessageKind::AllGone, {}});
        else if (c.rank >= 0 && over)
          tell_over(c);
      });
    }
    return;
  default:
    break;
  }
  throw Error("it spoke out of turn at the rendezvous");
}

void RendezvousServer::ask_for_part(int rank) {
  fetched = rank;
  for (auto &c : connections)
    if (rank >= 0 && c->rank == rank && !c->closed)
      return say(*c, {MessageKind::Fetch, {}});
  give_part(rank, std::nullopt);
}

/// One that task 0 does not wait for any more is nobody's.
void RendezvousServer::give_part(int rank, std::optional<std::string> part) {
  if (fetched != rank || !options.on_part)
    return;
  fetched.reset();
  options.on_part(rank, std::move(part));
}

void RendezvousServer::greet(Connection &from, const Message &hello) {
  const std::vector<std::string> &f = hello.fields;
  if (!is_proof(options.secret, {"task", from.challenge, f[0], f[1], f[2], f[3], f[4]}, f[5])) {
    note_stranger(from, "does not know the run's secret");
    say(from, {MessageKind::Refused,
               {"0", "it does not know the secret of the run at " + options.address +
                         ": give every task the same --secret-file, or the same " + secret_variable}});
    from.refused = true;
    return;
  }
  say(from, {MessageKind::Welcome, {prove(options.secret, {"server", f[4], from.challenge})}});
  const int64_t rank = number(f[0]);
  std::string why;
  bool again = false;
  auto there = std::find_if(connections.begin(), connections.end(),
                            [&](const auto &c) { return c->rank == rank && !c->closed; });
  if (ended || refused) {
    why = "the run at " + options.address + " is ending";
    again = true; // a restarted task came before the old server has gone
  } else if (number(f[1]) != static_cast<int64_t>(options.tasks.size())) {
    why = "this program's plan has " + f[1] + " tasks, and that of the others at " + options.address + " has " +
          std::to_string(options.tasks.size()) + ". Start the same executable with the same flags everywhere";
  } else if (f[2] != options.fingerprint) {
    why = "this is not the program, or not the flags, that " + describe(0) + " runs at " + options.address +
          ". Start the same executable with the same flags everywhere";
  } else if (rank < 0 || rank >= static_cast<int64_t>(options.tasks.size())) {
    why = "the plan has no task " + f[0];
  } else if (there != connections.end()) {
    again = may_be_dead(**there);
    why = describe(static_cast<int>(rank)) + " is there already at " + options.address +
          ". Was it started twice, or does an old run use the port? Name another with --rendezvous";
  }
  if (!why.empty()) {
    // Who waits for it should not ask whether it was started.
    if (!ready && (f[2] != options.fingerprint || number(f[1]) != static_cast<int64_t>(options.tasks.size()))) {
      const std::string name =
          rank >= 0 && rank < static_cast<int64_t>(options.tasks.size()) ? describe(static_cast<int>(rank)) : "a task";
      sent_away = name + " was here with another program or other flags and was sent away: start the same executable "
                         "with the same flags everywhere";
      if (options.note)
        options.note(sent_away);
    }
    say(from, {MessageKind::Refused, {again ? "1" : "0", why}});
    from.refused = true;
    return;
  }
  from.rank = static_cast<int>(rank);
  from.reader.allow(MessageReader::most);
  if (rank != 0 && address_of_first.empty())
    address_of_first = f[3];
  if (!ready)
    return;
  from.waits = true;
  if (over)
    return tell_over(from);
  // One that has done its part, and was started again before the others have done theirs, waits for them.
  if (!elastic() && done.count(from.rank)) {
    from.goodbye = true;
    if (options.note)
      options.note(describe(from.rank) + " had done its part, was started again, and waits for the others' end");
    return;
  }
  say(from, {MessageKind::Spare, {}});
  grows = largest_group(arrived()) > members.size();
}

// The machine of a task that comes again may have gone down without a word: until the old connection has shown again
// that it lives, or has been silent for too long, the new one is to try again.
bool RendezvousServer::may_be_dead(Connection &there) {
  if (!there.contested)
    there.contested = Clock::now();
  if (there.last_heard <= *there.contested)
    return true;
  there.contested.reset();
  return false;
}

size_t RendezvousServer::arrived() const {
  return static_cast<size_t>(
      std::count_if(connections.begin(), connections.end(), [](const auto &c) { return c->rank >= 0 && !c->closed; }));
}

size_t RendezvousServer::largest_group(size_t tasks) const {
  if (!elastic())
    return tasks == options.tasks.size() ? tasks : 0;
  const auto above = std::upper_bound(options.sizes.begin(), options.sizes.end(), static_cast<int>(tasks));
  return above == options.sizes.begin() ? 0 : static_cast<size_t>(*std::prev(above));
}

size_t RendezvousServer::due_group() {
  const size_t size = largest_group(arrived());
  // It is task 0 that chooses where the run goes on.
  const bool has_first =
      std::any_of(connections.begin(), connections.end(), [](const auto &c) { return c->rank == 0 && !c->closed; });
  if (size == 0 || !has_first) {
    enough_since.reset();
    return 0;
  }
  if (!elastic() || size == static_cast<size_t>(options.sizes.back()))
    return size;
  const auto now = Clock::now();
  enough_since = enough_since.value_or(now);
  return now >= *enough_since + seconds(options.last_call) ? size : 0;
}

void RendezvousServer::form(size_t size) {
  for (const auto &c : connections)
    if (c->rank >= 0 && !c->closed)
      members.push_back(c->rank);
  std::sort(members.begin(), members.end());
  members.resize(size);
  ready = true;
  std::string ranks;
  for (const int rank : members)
    ranks.append(ranks.empty() ? "" : " ").append(std::to_string(rank));
  for (auto &c : connections)
    if (is_member(c->rank))
      say(*c, {MessageKind::Ready, elastic() ? std::vector<std::string>{address_of_first, ranks}
                                             : std::vector<std::string>{address_of_first}});
    else if (c->rank >= 0)
      say(*c, {MessageKind::Spare, {}});
}

void RendezvousServer::check_arrivals() {
  if (ready || ended || refused)
    return;
  if (const size_t size = due_group())
    return form(size);
  const auto now = Clock::now();
  if (options.note && now >= next_note && now < started + seconds(options.arrival_timeout)) {
    next_note = now + std::chrono::seconds(10);
    options.note("waiting for " + missingTasks().second + " at " + options.address + " (" + std::to_string(arrived()) +
                 " of " + std::to_string(options.tasks.size()) + " tasks are here)");
  }
  if (now < started + seconds(options.arrival_timeout))
    return;
  const auto [count, missing] = missingTasks();
  refused = true;
  std::string message = missing;
  message.append(count > 1 ? " have" : " has").append(" not arrived within ");
  message.append(format_seconds(options.arrival_timeout)).append(" s at ").append(options.address);
  message.append(count > 1 ? ": are they started, and can they" : ": is it started, and can it");
  message.append(" reach that address? (").append(std::to_string(arrived())).append(" of ");
  message.append(std::to_string(options.tasks.size())).append(" tasks are here)");
  if (!sent_away.empty())
    message.append("; ").append(sent_away);
  say_all({MessageKind::Refused, {"2", message}});
}

void RendezvousServer::check_silence() {
  for (auto &c : connections) {
    // A stranger's trickle is no Hello.
    const auto heard = c->rank < 0 ? c->accepted : c->last_heard;
    if (c->refused && Clock::now() - c->last_heard > std::chrono::seconds(1)) // time to read why
      c->closed = true;
    if (!c->closed && !c->goodbye && Clock::now() - heard > heartbeat.patience)
      lose(*c, "no sign of life for " + format_seconds(seconds(heartbeat.patience)) + " s");
  }
}

std::string RendezvousServer::place(const Connection &task) {
  if (task.step < 0)
    return "before its first step)";
  std::string text = "in step ";
  text.append(std::to_string(task.step));
  if (!task.collective.empty())
    text.append(", at '").append(task.collective).append("'");
  return text.append(")");
}

void RendezvousServer::check_stall() {
  if (!ready || ended || options.stall_warning <= 0 || Clock::now() < next_warning)
    return;
  // What the others were doing is known only up to their last heartbeat.
  const double patience = std::max(options.stall_warning, 2 * seconds(heartbeat.interval));
  int64_t furthest = 0;
  const Connection *first = nullptr;
  for (const auto &c : connections) {
    if (c->inside && c->begun >= furthest && c->seconds_inside >= patience &&
        (!first || c->begun > furthest || c->seconds_inside > first->seconds_inside)) {
      furthest = c->begun;
      first = c.get();
    }
  }
  if (!first)
    return;
  std::string here, late;
  for (int rank = 0; rank < static_cast<int>(options.tasks.size()); ++rank) {
    for (const auto &c : connections) {
      if (c->rank != rank || c->goodbye || !is_member(rank))
        continue;
      if (c->inside && c->begun >= furthest)
        here.append(here.empty() ? "" : ", ").append(options.tasks[static_cast<size_t>(rank)].name());
      else
        late.append(late.empty() ? "" : ", ").append(describe(rank)).append(" is late (last seen ").append(place(*c));
    }
  }
  next_warning = Clock::now() + seconds(options.stall_warning);
  if (options.log)
    options.log("'" + first->collective + "' in step " + std::to_string(first->step) + " has waited for " +
                format_seconds(first->seconds_inside) + " s: " + here + " arrived; " +
                (late.empty() ? "nobody is late, so the network is slow" : late));
}

void RendezvousServer::lose(Connection &lost, const std::string &how) {
  lost.closed = true;
  if (lost.rank < 0 && !lost.refused)
    note_stranger(lost, "says no Hello of this run (" + how + ")");
  give_part(lost.rank, std::nullopt);
  if (lost.rank < 0 || lost.goodbye || ended || refused)
    return;
  // An elastic run does without those that it has not begun with.
  if (elastic() && !is_member(lost.rank)) {
    grows = ready && largest_group(arrived()) > members.size();
    return;
  }
  end_all({MessageKind::Lost, {describe(lost.rank), "1", ": " + how}});
}

/// Once a run: who goes on trying fills no log.
void RendezvousServer::note_stranger(const Connection &stranger, const std::string &what) {
  if (std::exchange(noted_stranger, true) || !options.note)
    return;
  const std::string from = peer_address(stranger.wire.fd());
  options.note("a connection" + (from.empty() ? "" : " from " + from) + " to the rendezvous " + options.address +
               " was closed, as it " + what + "; others like it are closed without a word");
}

void RendezvousServer::end_all(const Message &message) {
  if (ended)
    return;
  ended = true;
  // Who has said no Hello yet believes nothing else, and would take this for no rendezvous at all: it is told to try
  // again when it says one.
  for_task_0_last([&](Connection &c) {
    if (c.rank >= 0)
      say(c, message);
  });
}

/// What ends the run: when task 0 hears of it, its process and this server end, whoever has not been told by then.
void RendezvousServer::for_task_0_last(const std::function<void(Connection &)> &what) {
  for (bool first : {false, true})
    for (auto &c : connections)
      if ((c->rank == 0) == first)
        what(*c);
}

void RendezvousServer::say_all(const Message &message) {
  for (auto &c : connections)
    if (c->rank >= 0)
      say(*c, message);
}

void RendezvousServer::tell_over(Connection &late) {
  say(late, {MessageKind::AllGone, {}});
  late.goodbye = true;
  if (late_tasks > 0 && !is_member(late.rank))
    --late_tasks;
}

void RendezvousServer::tell_late_tasks(double patience) {
  const auto until = Clock::now() + seconds(patience);
  while (late_tasks > 0 && Clock::now() < until && !caughtSignal())
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void RendezvousServer::say(Connection &to, const Message &message) {
  if (to.closed)
    return;
  to.unsent += message.encode();
  flush(to);
  if (to.unsent.size() > most_unsent)
    lose(to, "it does not read what it is sent");
}

void RendezvousServer::flush(Connection &to) {
  try {
    while (!to.unsent.empty()) {
      const ssize_t n = to.wire.send(to.unsent.data(), to.unsent.size());
      if (n <= 0)
        return; // the rest when there is room; a broken connection shows when reading
      to.unsent.erase(0, static_cast<size_t>(n));
    }
  } catch (const Error &) {
    // As well.
  }
}

std::pair<size_t, std::string> RendezvousServer::missingTasks() const {
  std::string missing;
  size_t count = 0;
  for (int rank = 0; rank < static_cast<int>(options.tasks.size()); ++rank)
    if (std::none_of(connections.begin(), connections.end(), [&](const auto &c) { return c->rank == rank; }))
      missing.append(count++ ? ", " : "").append(describe(rank));
  return {count, missing};
}

std::string RendezvousServer::describe(int rank) const {
  const Task &task = options.tasks[static_cast<size_t>(rank)];
  return task.name() + " (" + task.host + ")";
}

} // namespace drt
