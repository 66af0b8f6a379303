//===- rendezvous.h - Where the tasks meet, and who is still there -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// A server in task 0. Every task, task 0 too, keeps one connection to it (watch.h)
// for as long as it lives. It keeps a small key-value store, tells all when all
// have come, and tells the others when one has failed, is lost, or is late.
// It has a thread of its own. It asks whoever connects for a proof that it knows the
// run's secret (secret.h), and gives one itself. Others are strangers: they are closed
// when they say something else, when their Hello does not come in time, or when there
// are many, and the first of them is noted.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_RENDEZVOUS_H
#define DRT_LAUNCH_RENDEZVOUS_H

#include "launch/socket.h"
#include "launch/tasks.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace drt {

/// How often a task shows that it lives, and how long silence is borne, such that
/// both ends notice within the failure timeout.
struct Heartbeat {
  explicit Heartbeat(double failure_timeout)
      : interval(seconds(std::min(1.0, failure_timeout / 8))), patience(seconds(failure_timeout * 0.6)) {}
  Clock::duration interval, patience;
};

struct RendezvousOptions {
  std::vector<Task> tasks;
  std::string address; // host:port as the user knows it, for messages
  std::string fingerprint;
  std::string secret;
  double arrival_timeout = 60;
  double failure_timeout = 10;
  double stall_warning = 60;
  std::function<void(const std::string &)> log;  // stall warnings
  std::function<void(const std::string &)> note; // who is awaited
  std::shared_ptr<const Tls> tls;                // null: connections are not encrypted
  // Of an elastic run: the numbers of tasks that a group can have, smallest first; empty: all. How long further ones
  // are awaited where there are enough for the smallest.
  std::vector<int> sizes = {};
  double last_call = 0;
  // The run has ended, and its server is gone with the task that had it: whoever comes hears that it is over.
  bool over = false;
  // The next part that `rank` hands over to task 0, which has asked for it; none where that task is gone. Called from
  // the server's thread.
  std::function<void(int rank, std::optional<std::string> part)> on_part = {};
};

class RendezvousServer {
public:
  /// Serves on a listening socket until destroyed.
  RendezvousServer(RendezvousOptions options, Socket listening);
  ~RendezvousServer();
  RendezvousServer(const RendezvousServer &) = delete;
  RendezvousServer &operator=(const RendezvousServer &) = delete;

  /// Of an elastic run: whether tasks wait with which a larger group can be formed. Any thread.
  bool can_grow() const { return grows; }

  /// The group ends to be formed again: tasks that wait for it go on waiting. Before this task's goodbye.
  void form_again() { forms_again = true; }

  /// Of a run that is over: for `patience` seconds tasks that come hear it. Returns sooner where all have heard it, or
  /// a signal came.
  void tell_late_tasks(double patience);

private:
  // What strangers can take: memory and descriptors.
  static constexpr uint32_t largest_hello = 1 << 16;
  static constexpr size_t most_strangers = 64, most_unsent = 8 << 20;

  struct Connection {
    Wire wire;
    MessageReader reader{largest_hello};
    std::string unsent;
    int rank = -1; // until Hello
    bool goodbye = false;
    bool waits = false; // it came when the group was formed: for the next one, or for the end
    bool closed = false;
    bool refused = false; // nothing that it says counts any more
    std::string challenge;
    Clock::time_point accepted = Clock::now(), last_heard = accepted;
    int64_t received_ns = 0;                    // when the last bytes came
    std::optional<Clock::time_point> contested; // since when another says that it is this task
    // From its last heartbeat.
    int64_t step = -1, begun = 0;
    bool inside = false;
    std::string collective;
    double seconds_inside = 0;
  };

  void serve();
  void wait_for_events();
  void accept_one();
  void challenge(Connection &stranger);
  void receive(Connection &from);
  void handle(Connection &from, const Message &message);
  void ask_for_part(int rank);
  void give_part(int rank, std::optional<std::string> part);
  void greet(Connection &from, const Message &hello);
  void check_arrivals();
  void check_silence();
  void close_oldest_stranger();
  void check_stall();
  void lose(Connection &lost, const std::string &how);
  /// Whether the connection that a task has may be dead, now that another says that it is this task.
  static bool may_be_dead(Connection &there);
  void note_stranger(const Connection &stranger, const std::string &what);
  void end_all(const Message &message);
  void for_task_0_last(const std::function<void(Connection &)> &what);
  void say(Connection &to, const Message &message);
  void say_all(const Message &message);
  void tell_over(Connection &late);
  void flush(Connection &to);

  std::string describe(int rank) const;
  /// Tasks that have not come yet: how many, and "worker:1 (host), worker:2 (host)".
  std::pair<size_t, std::string> missingTasks() const;
  static std::string place(const Connection &task);
  size_t arrived() const;
  bool elastic() const { return !options.sizes.empty(); }
  bool is_member(int rank) const { return std::find(members.begin(), members.end(), rank) != members.end(); }
  /// The largest group that `tasks` can form; 0: none.
  size_t largest_group(size_t tasks) const;
  /// How many begin now; 0: others are awaited.
  size_t due_group();
  void form(size_t size);

  const RendezvousOptions options;
  const Heartbeat heartbeat;
  const Clock::time_point started = Clock::now();
  Socket listening;
  Socket stop_read, stop_write; // a pipe that wakes the thread for the end
  std::vector<std::unique_ptr<Connection>> connections;
  std::map<std::string, std::string> values;
  std::map<std::string, std::vector<int>> awaited; // key -> ranks that asked for it
  std::string address_of_first;                    // task 0's, as another task reached it
  std::string sent_away;      // the last task that came with another program or other flags; "" for none
  std::vector<int> members;   // of the group, once it is ready
  std::optional<int> fetched; // whose next part task 0 waits for
  std::set<int> done;         // those that have said goodbye, also where they have gone since
  std::optional<Clock::time_point> enough_since; // an elastic run has the fewest tasks that it needs
  std::atomic<bool> grows = false, forms_again = false;
  std::atomic<size_t> late_tasks = 0; // without which the run has ended, and who have not heard of it
  bool ready = false, over = false, ended = false, refused = false, noted_stranger = false;
  Clock::time_point next_heartbeat = Clock::now(), next_warning = Clock::now(),
                    next_note = Clock::now() + std::chrono::seconds(1);
  std::thread thread;
};

} // namespace drt

#endif // DRT_LAUNCH_RENDEZVOUS_H
