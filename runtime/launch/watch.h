//===- watch.h - A task's connection to the rendezvous -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Says every interval that this task lives and where it is, and hears at once
// when another one does not. Its thread only ever waits on this connection, so a
// task that is busy or blocked is still watched.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_WATCH_H
#define DRT_LAUNCH_WATCH_H

#include "collectives/key_value_store.h"
#include "collectives/progress.h"
#include "launch/clock_alignment.h"
#include "launch/group.h"
#include "launch/rendezvous.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

namespace drt {

class Watch final : public KeyValueStore {
public:
  /// Connects and returns when every task has come. `options` and `progress`
  /// outlive it. Throws Error.
  Watch(const GroupOptions &options, const Progress &progress);
  ~Watch() override;

  void set(const std::string &key, const std::string &value) override;
  std::string get(const std::string &key) override;

  /// Called once when a task has failed: from the watching thread, or from here
  /// where one has already.
  void on_failure(std::function<void(const std::string &)> callback);

  /// Waits up to `patience` for the failure's cause; "" where none comes.
  std::string wait_for_failure(Clock::duration patience);

  void fail(const std::string &reason) noexcept;
  void leave();

  /// Asks for the rendezvous' time some times. `is_shared` as ClockComparison's. Not from the watching thread.
  void compare_clocks();
  ClockAlignment clock(bool is_shared) const;

  /// In task 0: asks for the next part that a task hands over, which comes to the rendezvous.
  void fetch(int of) { send({MessageKind::Fetch, {std::to_string(of)}}); }
  /// Waits until task 0 asks, and sends the part. False where it does not ask any more: it is gone, or the run has
  /// failed and it has had `patience` since.
  bool hand_over(const std::string &part, Clock::duration patience);
  /// Whether the run has failed so long ago.
  bool failed_before(Clock::duration patience) const;

  /// Ranks of the tasks that the group has, in their order.
  std::vector<int> members() const;

  /// This machine's address on the way to the others.
  const std::string &address() const { return own_address; }

private:
  Wire meet();
  Clock::time_point next_deadline() const;
  std::vector<int> read_ranks(const std::string &text) const;
  void start_tls(Wire &connection);
  ssize_t receive(Wire &from, char *buffer, size_t size) const;
  bool say_hello(Wire &connection, const std::string &challenge, const std::string &own_challenge) const;
  std::optional<Message> next_answer();
  [[noreturn]] void refuse_rendezvous() const;
  void run();
  void watch();
  void ask_for_time();
  void handle(const Message &message, int64_t received_ns);
  void failed(const std::string &message);
  void lost(const std::string &message);
  void note_lost() const;
  std::string told(const Message &lost, const std::string &where) const;
  bool send(const Message &message) noexcept;
  std::string first_task() const;
  std::string in_step() const;

  const GroupOptions &options;
  const Progress &progress;
  const Heartbeat heartbeat;
  Clock::time_point deadline; // for every task to come
  std::vector<int> ranks;     // of an elastic run's group
  Wire wire;
  Socket stop_read, stop_write;
  MessageReader reader;
  std::string own_address;

  std::mutex sending;
  mutable std::mutex mutex; // guards what follows
  std::condition_variable changed;
  std::map<std::string, std::string> values;
  std::string failure;
  std::function<void(const std::string &)> callback;
  bool all_gone = false;
  Clock::time_point failed_at;
  bool connected = true;
  ClockComparison comparison;
  int64_t exchanges = 0;
  bool fetched = false; // task 0 has asked for the next part
  std::thread thread;
};

} // namespace drt

#endif // DRT_LAUNCH_WATCH_H
