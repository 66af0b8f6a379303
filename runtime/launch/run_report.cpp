//===- run_report.cpp - What the time of a run went to --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/run_report.h"

#include "checkpoint/output_file.h"
#include "core/dtype.h"
#include "core/growing_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>
#include <string_view>

namespace drt {
namespace {

constexpr double second = 1e9;
// Less is what clocks and wake-ups differ by.
constexpr double leastLate = 0.1; // of a step; of a run's steps, or of its time
// Where all are late in turn, nobody is the late one.
constexpr double moreThanOthers = 2;

constexpr int64_t rewriteNs = 10'000'000'000;

// What --report adds to the sum of the loss is no gradient's transfer.
constexpr std::string_view lossName = "the loss";

std::string numberText(double value) {
  if (!std::isfinite(value))
    return "null";
  char text[40];
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::general, 6).ptr};
}

/// "{\"a\":1,…}" of names and values that are JSON already.
std::string object(std::initializer_list<std::pair<const char *, std::string>> members) {
  std::string text = "{";
  for (const auto &[name, value] : members)
    text.append(text.size() > 1 ? ", " : "").append(jsonString(name)).append(": ").append(value);
  return text + "}";
}

std::string list(const std::vector<std::string> &items, const char *separator) {
  std::string text = "[";
  for (const std::string &item : items)
    text.append(text.size() > 1 ? "," : "").append(separator).append(item);
  return text + "]";
}

int64_t lengthOf(const std::vector<TimeSpan> &spans) {
  return std::accumulate(spans.begin(), spans.end(), int64_t(0),
                         [](int64_t sum, const TimeSpan &span) { return sum + span.length(); });
}

// What is in both lists, each in order and without overlaps of its own.
int64_t overlap(const std::vector<TimeSpan> &x, const std::vector<TimeSpan> &y) {
  int64_t sum = 0;
  for (size_t i = 0, j = 0; i < x.size() && j < y.size();) {
    sum += std::max<int64_t>(0, std::min(x[i].endNs, y[j].endNs) - std::max(x[i].beginNs, y[j].beginNs));
    x[i].endNs < y[j].endNs ? ++i : ++j;
  }
  return sum;
}

int64_t largestBucket(const drt_program &program) {
  int64_t bytes = 0;
  for (int32_t i = 0; i < program.num_entries; ++i)
    for (int32_t b = 0; b < program.entries[i].num_buckets; ++b)
      bytes = std::max(bytes, program.entries[i].buckets[b].count * dtypeSize(program.entries[i].buckets[b].dtype));
  return bytes;
}

/// The one that others have waited for, and for how long each of them has on the average.
std::pair<size_t, double> lastOf(const std::vector<double> &waited) {
  const auto least = std::min_element(waited.begin(), waited.end());
  const double sum = std::accumulate(waited.begin(), waited.end(), 0.0);
  const auto others = static_cast<double>(waited.size() - 1);
  return {static_cast<size_t>(least - waited.begin()), waited.size() < 2 ? 0 : (sum - *least) / others - *least};
}

} // namespace

RunReport::RunReport(std::string path, const drt_program &program, std::vector<Task> tasks, int rank,
                     Communicator *communicator)
    : path_(std::move(path)), program_(program), tasks_(std::move(tasks)), rank_(rank), clocks_(tasks_.size()),
      beginNs_(nowNs()), writtenNs_(beginNs_), own_(static_cast<size_t>(program.num_replicas)), replicas_(own_.size()),
      totals_(tasks_.size()), late_(tasks_.size()) {
  if (!communicator)
    return;
  constexpr int64_t most = 16 << 20, least = 4 << 10;
  metered_.emplace(*communicator);
  compareClocks();
  ownTotals_.of[Bandwidth] = metered_->measureBandwidth(std::clamp(largestBucket(program), least, most));
}

void RunReport::compareClocks() {
  constexpr int rounds = 16;
  metered_->describe(0, "the comparison of clocks");
  for (int i = 0; i < rounds; ++i)
    metered_->barrier();
  std::vector<double> own;
  for (const MeteredCollective &barrier : metered_->take())
    own.insert(own.end(), {static_cast<double>(barrier.beginNs), static_cast<double>(barrier.endNs)});
  std::vector<double> all(own.size() * tasks_.size()), came(tasks_.size()), went(tasks_.size());
  metered_->all_gather(own.data(), static_cast<int64_t>(own.size() * sizeof(double)), all.data());
  for (size_t i = 0; i < own.size(); i += 2) {
    for (size_t task = 0; task < tasks_.size(); ++task) {
      came[task] = all[task * own.size() + i];
      went[task] = all[task * own.size() + i + 1];
    }
    clocks_.joined(came, went);
  }
}

// ---- Of a step -------------------------------------------------------------------

void RunReport::discard() {
  now_ = {};
  if (metered_)
    metered_->take();
}

void RunReport::fed(int64_t beginNs) { now_.inputNs += nowNs() - beginNs; }

void RunReport::waited(int64_t beginNs) { now_.waits.push_back({beginNs, nowNs()}); }

void RunReport::ran(int64_t beginNs, const TaskRuntime &task) {
  now_.run = {beginNs, nowNs()};
  now_.uses.clear();
  for (size_t i = 0; i < localReplicas(); ++i)
    if (const ReplicaUse *use = task.replicaUse(static_cast<int32_t>(i)))
      now_.uses.push_back(*use);
}

void RunReport::stepDone(int64_t nanoseconds, const TaskRuntime &task) {
  times_.add(nanoseconds);
  now_.wallNs = nanoseconds;
  if (metered_)
    now_.collectives = metered_->take();
  summed_ = std::exchange(now_, {});
  if (program_.servers)
    accountServed(task);
  if (!metered_) {
    account(*summed_, {});
    summed_.reset();
    replicas_ = own_;
  }
}

// When the task came to each of the step's collectives, and when it went; then the tasks' sums so far; each task writes
// where the others leave zeros.
int64_t RunReport::numbers() const {
  return static_cast<int64_t>(tasks_.size() * (2 * (summed_ ? summed_->collectives.size() : 0) + TaskNumbers) +
                              own_.size() * Accounts);
}

void RunReport::put(double *numbers) const {
  std::fill_n(numbers, this->numbers(), 0);
  const size_t collectives = summed_ ? summed_->collectives.size() : 0;
  double *own = numbers + static_cast<size_t>(rank_) * 2 * collectives;
  for (size_t i = 0; i < collectives; ++i) {
    *own++ = static_cast<double>(summed_->collectives[i].beginNs);
    *own++ = static_cast<double>(summed_->collectives[i].endNs);
  }
  numbers += tasks_.size() * 2 * collectives;
  for (const Replica &replica : own_)
    numbers = std::copy_n(replica.of, size_t(Accounts), numbers);
  std::copy_n(ownTotals_.of, size_t(TaskNumbers), numbers + static_cast<size_t>(rank_) * TaskNumbers);
}

void RunReport::take(const double *sums) {
  const size_t collectives = summed_ ? summed_->collectives.size() : 0;
  std::vector<TimeSpan> transfers;
  std::vector<double> waitedFor(tasks_.size()), came(tasks_.size()), went(tasks_.size());
  for (size_t i = 0; i < collectives; ++i) {
    const MeteredCollective &collective = summed_->collectives[i];
    for (size_t task = 0; task < tasks_.size(); ++task) {
      came[task] = sums[(task * collectives + i) * 2];
      went[task] = sums[(task * collectives + i) * 2 + 1];
    }
    if (collective.joins)
      clocks_.joined(came, went);
    for (size_t task = 0; task < tasks_.size(); ++task) {
      came[task] -= clocks_.ahead(task);
      went[task] -= clocks_.ahead(task);
    }
    const size_t last = collective.root >= 0
                            ? static_cast<size_t>(collective.root)
                            : static_cast<size_t>(std::max_element(came.begin(), came.end()) - came.begin());
    double waiting = 0;
    for (const double at : came)
      waiting += std::max(0.0, came[last] - at) / static_cast<double>(tasks_.size() - 1);
    waitedFor[last] += waiting;
    // The one that was quickest from then on: the others may have been kept from running.
    double moving = std::numeric_limits<double>::infinity();
    for (const double at : went)
      moving = std::min(moving, std::max(0.0, at - came[last]));
    // On this task's clock.
    const auto begin = std::clamp(static_cast<int64_t>(came[last] + clocks_.ahead(static_cast<size_t>(rank_))),
                                  collective.beginNs, collective.endNs);
    const auto transfer = std::min(static_cast<int64_t>(moving), collective.endNs - begin);
    transfers.push_back({begin, begin + transfer});
    if (collective.name == lossName)
      continue;
    ownTotals_.of[Bytes] += static_cast<double>(collective.bytes);
    ownTotals_.of[TransferNs] += static_cast<double>(transfer);
    OfName &name = names_[collective.name];
    ++name.count;
    name.bytes += collective.bytes;
    name.transferNs += static_cast<double>(transfer);
    name.waitingNs += waiting;
  }
  if (summed_) {
    const auto late = std::max_element(waitedFor.begin(), waitedFor.end());
    for (size_t task = 0; task < tasks_.size(); ++task)
      late_[task].ns += waitedFor[task];
    if (*late >= leastLate * static_cast<double>(summed_->wallNs))
      ++late_[static_cast<size_t>(late - waitedFor.begin())].steps;
    account(*summed_, transfers);
    summed_.reset();
  }
  sums += tasks_.size() * 2 * collectives;
  for (Replica &replica : replicas_) {
    std::copy_n(sums, size_t(Accounts), replica.of);
    sums += Accounts;
  }
  for (TaskTotals &task : totals_) {
    std::copy_n(sums, size_t(TaskNumbers), task.of);
    sums += TaskNumbers;
  }
}

void RunReport::account(const Step &step, const std::vector<TimeSpan> &transfers) {
  if (program_.servers)
    return; // accountServed
  std::vector<double> waited;
  for (size_t i = 0; i < step.uses.size(); ++i) {
    const ReplicaUse &use = step.uses[i];
    std::vector<TimeSpan> waits = use.waits;
    // Replicas begin and end together.
    waits.insert(waits.begin(), {step.run.beginNs, use.run.beginNs});
    waits.push_back({use.run.endNs, step.run.endNs});
    waited.push_back(static_cast<double>(lengthOf(waits)));
    const auto all = static_cast<double>(lengthOf(waits) + lengthOf(step.waits));
    const auto moved = static_cast<double>(overlap(waits, transfers) + overlap(step.waits, transfers));
    Replica &replica = own_[firstReplica() + i];
    ++replica.of[Steps];
    replica.of[Wall] += static_cast<double>(step.wallNs);
    replica.of[Input] += static_cast<double>(step.inputNs);
    replica.of[Transfer] += moved;
    replica.of[Waiting] += all - moved;
    replica.of[Between] += static_cast<double>(
        std::max<int64_t>(0, step.wallNs - step.inputNs - step.run.length() - lengthOf(step.waits)));
  }
  if (waited.size() < 2)
    return;
  const auto [last, waiting] = lastOf(waited);
  Replica &replica = own_[firstReplica() + last];
  replica.of[LateNs] += waiting;
  replica.of[LateSteps] += waiting >= leastLate * static_cast<double>(step.wallNs);
}

void RunReport::accountServed(const TaskRuntime &task) {
  for (size_t i = 0; i < localReplicas(); ++i)
    if (const ServedUse *use = task.servedUse(static_cast<int32_t>(i))) {
      Replica &replica = own_[firstReplica() + i];
      replica.of[Steps] = static_cast<double>(use->steps);
      replica.of[Wall] = static_cast<double>(use->wallNs);
      replica.of[Input] = static_cast<double>(use->inputNs);
      replica.of[Transfer] = static_cast<double>(use->transferNs);
      replica.of[Waiting] = static_cast<double>(use->waitingNs);
    }
  ownTotals_.of[Bytes] = ownTotals_.of[TransferNs] = 0;
  for (size_t i = 0; i < localReplicas(); ++i)
    if (const ServedUse *use = task.servedUse(static_cast<int32_t>(i)); use && use->bytes > 0) {
      ownTotals_.of[Bytes] += static_cast<double>(use->bytes);
      ownTotals_.of[TransferNs] += static_cast<double>(use->transferNs);
    }
  const std::vector<Lateness> lateness = task.lateness();
  for (size_t i = 0; i < lateness.size(); ++i) {
    own_[i].of[LateNs] = static_cast<double>(lateness[i].ns);
    own_[i].of[LateSteps] = static_cast<double>(lateness[i].updates);
    own_[i].of[Dropped] = static_cast<double>(lateness[i].dropped);
  }
}

void RunReport::finish() {
  if (metered_) {
    std::vector<double> sums(static_cast<size_t>(numbers()));
    put(sums.data());
    metered_->describe(0, "the report");
    metered_->all_reduce_sum(sums.data(), numbers(), DRT_F64, DRT_ALL_REDUCE_AUTO);
    take(sums.data());
  }
  if (rank_ == 0)
    write(true);
}

// ---- In task 0 ---------------------------------------------------------------------

/// Of the replicas' time: computing, waiting, transfer, input, between steps. They add up to 1.
std::vector<double> RunReport::sharesOf(size_t first, size_t count) const {
  double sums[Accounts] = {};
  for (size_t i = first; i < first + count; ++i)
    for (size_t account = 0; account < Accounts; ++account)
      sums[account] += replicas_[i].of[account];
  const double known = sums[Waiting] + sums[Transfer] + sums[Input] + sums[Between];
  const double all = std::max(sums[Wall], known);
  if (all <= 0)
    return {};
  return {(all - known) / all, sums[Waiting] / all, sums[Transfer] / all, sums[Input] / all, sums[Between] / all};
}

double RunReport::steps() const { return static_cast<double>(std::max<int64_t>(times_.count(), 1)); }

RunReport::Late RunReport::lateTask(size_t task) const {
  Late late = {tasks_[task].name(), static_cast<double>(late_[task].steps), late_[task].ns / second, 0};
  if (program_.servers) {
    late.steps = late.seconds = 0;
    for (int32_t i = 0; i < tasks_[task].num_replicas; ++i) {
      const Late replica = lateReplica(static_cast<size_t>(tasks_[task].first_replica + i));
      late.steps += replica.steps;
      late.seconds += replica.seconds;
      late.dropped += replica.dropped;
    }
  }
  return late;
}

RunReport::Late RunReport::lateReplica(size_t replica) const {
  const double *of = replicas_[replica].of;
  return {"replica " + std::to_string(replica), of[LateSteps], of[LateNs] / second, of[Dropped]};
}

/// The worst first. A replica is named where its task has others.
std::vector<RunReport::Late> RunReport::stragglers() const {
  std::vector<Late> late, peers;
  const double run = times_.mean() * steps() / second;
  // Of those that wait for each other.
  const auto name = [&] {
    const double all = std::accumulate(peers.begin(), peers.end(), 0.0,
                                       [](double sum, const Late &each) { return sum + each.seconds; });
    for (const Late &each : peers) {
      const double others = (all - each.seconds) / static_cast<double>(std::max<size_t>(peers.size() - 1, 1));
      const bool often = each.steps + each.dropped >= leastLate * steps() || each.seconds >= leastLate * run;
      if (peers.size() > 1 && often && each.seconds > moreThanOthers * others)
        late.push_back(each);
    }
    peers.clear();
  };
  for (size_t task = 0; task < tasks_.size(); ++task)
    peers.push_back(lateTask(task));
  name();
  for (size_t task = 0; task < tasks_.size(); ++task) {
    for (int32_t i = 0; i < tasks_[task].num_replicas; ++i)
      peers.push_back(lateReplica(static_cast<size_t>(tasks_[task].first_replica + i)));
    if (!program_.servers)
      name();
  }
  // A replica that is alone in its task is named as that.
  if (replicas_.size() > tasks_.size())
    name();
  std::stable_sort(late.begin(), late.end(), [](const Late &x, const Late &y) { return x.seconds > y.seconds; });
  return late;
}

std::string RunReport::lateText(const Late &late) const {
  return object({{"steps", numberText(late.steps)},
                 {"share", numberText(late.steps / steps())},
                 {"seconds", numberText(late.seconds)},
                 {"dropped", numberText(late.dropped)}});
}

std::string RunReport::sharesText(size_t first, size_t count) const {
  const std::vector<double> shares = sharesOf(first, count);
  if (shares.empty())
    return "null";
  return object({{"compute", numberText(shares[0])},
                 {"waiting", numberText(shares[1])},
                 {"transfer", numberText(shares[2])},
                 {"input", numberText(shares[3])},
                 {"between_steps", numberText(shares[4])}});
}

std::string RunReport::transferText(const TaskTotals &total) const {
  if (!metered_)
    return "null";
  const double rate = total.of[TransferNs] > 0 ? total.of[Bytes] / (total.of[TransferNs] / second) : 0;
  return object({{"bytes_per_step", numberText(total.of[Bytes] / steps())},
                 {"ms_per_step", numberText(total.of[TransferNs] / steps() * 1e-6)},
                 {"bytes_per_s", numberText(rate)},
                 {"measured_bytes_per_s", numberText(total.of[Bandwidth])},
                 {"of_measured", numberText(total.of[Bandwidth] > 0 ? rate / total.of[Bandwidth] : 0)}});
}

void RunReport::writeIfDue() {
  if (rank_ != 0 || nowNs() - writtenNs_ < rewriteNs)
    return;
  write(false);
}

void RunReport::write(bool done) {
  writtenNs_ = nowNs();
  std::vector<std::string> tasks, replicas, collectives, late;
  for (size_t task = 0; task < tasks_.size(); ++task) {
    const auto first = static_cast<size_t>(tasks_[task].first_replica);
    const auto count = static_cast<size_t>(tasks_[task].num_replicas);
    tasks.push_back(object({{"task", jsonString(tasks_[task].name())},
                            {"host", jsonString(tasks_[task].host)},
                            {"shares", sharesText(first, count)},
                            {"transfer", transferText(totals_[task])},
                            {"late", lateText(lateTask(task))}}));
    for (size_t i = first; i < first + count; ++i)
      replicas.push_back(object({{"replica", std::to_string(i)},
                                 {"task", jsonString(tasks_[task].name())},
                                 {"steps", numberText(replicas_[i].of[Steps])},
                                 {"shares", sharesText(i, 1)},
                                 {"late", lateText(lateReplica(i))}}));
  }
  for (const auto &[name, of] : names_) {
    const auto count = static_cast<double>(of.count);
    collectives.push_back(object(
        {{"name", jsonString(name)},
         {"count", std::to_string(of.count)},
         {"bytes", numberText(static_cast<double>(of.bytes) / count)},
         {"transfer_ms", numberText(of.transferNs / count * 1e-6)},
         {"waiting_ms", numberText(of.waitingNs / count * 1e-6)},
         {"bytes_per_s", numberText(of.transferNs > 0 ? static_cast<double>(of.bytes) / of.transferNs * second : 0)}}));
  }
  for (const Late &each : stragglers())
    late.push_back(object({{"who", jsonString(each.who)},
                           {"steps", numberText(each.steps)},
                           {"share", numberText(each.steps / steps())},
                           {"seconds", numberText(each.seconds)},
                           {"dropped", numberText(each.dropped)}}));
  const auto milliseconds = [](double ns) { return numberText(ns * 1e-6); };
  const auto percentile = [&](double part) { return milliseconds(static_cast<double>(times_.percentile(part))); };
  const std::string text =
      "{\n\"done\": " + std::string(done ? "true" : "false") + ",\n\"strategy\": " + jsonString(program_.strategy) +
      ",\n\"graph\": " + jsonString(program_.graph) + ",\n\"steps\": " + std::to_string(times_.count()) +
      ",\n\"seconds\": " + numberText(static_cast<double>(nowNs() - beginNs_) / second) + ",\n\"step_ms\": " +
      object({{"mean", milliseconds(times_.mean())},
              {"min", milliseconds(static_cast<double>(times_.least()))},
              {"p50", percentile(0.5)},
              {"p90", percentile(0.9)},
              {"p95", percentile(0.95)},
              {"p99", percentile(0.99)},
              {"max", milliseconds(static_cast<double>(times_.most()))}}) +
      ",\n\"tasks\": " + list(tasks, "\n  ") + ",\n\"replicas\": " + list(replicas, "\n  ") +
      ",\n\"collectives\": " + list(collectives, "\n  ") + ",\n\"stragglers\": " + list(late, "\n  ") + "\n}\n";
  OutputFile file(path_);
  file.write(text.data(), text.size());
  file.publish();
}

void RunReport::print() const {
  const auto milliseconds = [&](double part) { return static_cast<double>(times_.percentile(part)) * 1e-6; };
  std::printf("report: a step takes %.4g ms, %.4g ms in 99 of 100 steps\n", milliseconds(0.5), milliseconds(0.99));
  std::printf("  %-14s %8s %8s %9s %7s %13s   %s\n", "task", "compute", "waiting", "transfer", "input", "between steps",
              "MB/s (measured alone)");
  for (size_t task = 0; task < tasks_.size(); ++task) {
    const std::vector<double> shares =
        sharesOf(static_cast<size_t>(tasks_[task].first_replica), static_cast<size_t>(tasks_[task].num_replicas));
    if (shares.empty())
      continue;
    std::printf("  %-14s %7.1f%% %7.1f%% %8.1f%% %6.1f%% %12.1f%%", tasks_[task].name().c_str(), 100 * shares[0],
                100 * shares[1], 100 * shares[2], 100 * shares[3], 100 * shares[4]);
    const double *total = totals_[task].of;
    if (total[TransferNs] > 0)
      std::printf("   %.0f (%.0f)", total[Bytes] / total[TransferNs] * 1e3, total[Bandwidth] * 1e-6);
    std::printf("\n");
  }
  for (const Late &late : stragglers())
    std::printf("  %s is late: in %.0f of %.0f steps, and the others waited %.3g s for it\n", late.who.c_str(),
                late.steps, steps(), late.seconds);
  std::fflush(stdout);
}

} // namespace drt
