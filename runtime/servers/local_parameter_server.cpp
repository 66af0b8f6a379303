//===- local_parameter_server.cpp - A server in its replicas' process -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "servers/local_parameter_server.h"
#include "collectives/aggregation.h"
#include "core/dtype.h"
#include "core/memory.h"
#include "core/table_rows.h"
#include "core/timeline.h"

#include <algorithm>
#include <cstring>

namespace drt {
namespace {

constexpr int64_t alignment = 64;

// Each replica's first step needs no token. An update of more gradients than replicas takes the others from these.
int64_t initialTokens(const drt_servers &servers, int32_t replicas) {
  return std::max(servers.required - replicas, 0) + servers.staleness * replicas;
}

} // namespace

LocalParameterServer::LocalParameterServer(LocalServerConfig config)
    : config_(std::move(config)), clocks_(static_cast<size_t>(config_.replicas)),
      lateness_(static_cast<size_t>(config_.replicas)), heard_(static_cast<size_t>(config_.listeners)),
      said_(static_cast<size_t>(config_.updateReportBytes)) {
  const drt_servers &servers = *config_.servers;
  for (int32_t i = 0; i < servers.num_gradients; ++i) {
    offsets_.push_back(bytes_);
    bytes_ += roundUp(servers.gradients[i].count * dtypeSize(servers.gradients[i].dtype), alignment);
  }
  tokens_ = initialTokens(servers, config_.replicas);
}

template <class Condition>
bool LocalParameterServer::wait(std::unique_lock<std::mutex> &lock, const char *operation, int spins,
                                Condition condition) {
  while (!stopped_.load() && !condition()) {
    const uint32_t next = changes_.value() + 1;
    lock.unlock();
    changes_.wait(next, {stopped_, spins, config_.watch, operation});
    lock.lock();
  }
  return !stopped_.load();
}

bool LocalParameterServer::readVariables(const std::function<void(int64_t)> &read) {
  std::shared_lock<std::shared_mutex> lock(values_);
  if (stopped_.load())
    return false;
  read(version_);
  return true;
}

std::optional<int64_t> LocalParameterServer::pull(int32_t, void *const *values, void *const *indices) {
  const drt_servers &servers = *config_.servers;
  std::optional<int64_t> seen;
  readVariables([&](int64_t version) {
    for (size_t i = 0; i < config_.variables.size(); ++i)
      std::memcpy(values[i], config_.variables[i].data, static_cast<size_t>(config_.variables[i].bytes));
    void *const *rows = values + config_.variables.size();
    for (size_t t = 0; t < config_.tables.size(); ++t) {
      const drt_pulled_rows &table = servers.tables[t];
      takeRows({table.index_dtype, indices[t], table.count}, table.rows, table.row_bytes, rows[t],
               [&](int64_t row) { return config_.tables[t] + row * table.row_bytes; });
    }
    seen = version;
  });
  return seen;
}

std::shared_ptr<const LocalParameterServer::Snapshot>
LocalParameterServer::snapshot(const std::function<void()> &beside) {
  std::shared_ptr<const Snapshot> found;
  readVariables([&](int64_t version) {
    if (beside)
      beside();
    std::lock_guard<std::mutex> lock(copying_);
    if (!snapshot_ || snapshot_->version != version) {
      snapshot_.reset(); // free, where nobody reads it
      std::unique_ptr<Snapshot> fresh;
      {
        std::lock_guard<std::mutex> lock(free_);
        if (!freeSnapshots_.empty()) {
          fresh = std::move(freeSnapshots_.back());
          freeSnapshots_.pop_back();
        }
      }
      if (!fresh) {
        fresh = std::make_unique<Snapshot>();
        for (const LocalServerConfig::Variable &variable : config_.variables)
          fresh->values.emplace_back(std::max<int64_t>(variable.bytes, 1));
      }
      for (size_t i = 0; i < config_.variables.size(); ++i)
        std::memcpy(fresh->values[i].data(), config_.variables[i].data,
                    static_cast<size_t>(config_.variables[i].bytes));
      fresh->version = version;
      snapshot_ = std::shared_ptr<Snapshot>(fresh.release(), [this](Snapshot *unread) {
        std::lock_guard<std::mutex> lock(free_);
        freeSnapshots_.emplace_back(unread);
      });
    }
    found = snapshot_;
  });
  return found;
}

// Where a gradient of the replica's step `clock` goes. Those that are only counted go to the next update that is not
// complete; with a bound each update takes the gradients of one clock.
LocalParameterServer::Update &LocalParameterServer::openUpdate(int64_t clock) {
  const bool bounded = config_.servers->policy == DRT_SERVE_BOUNDED;
  const auto index = static_cast<size_t>(bounded ? clock - begun_ : complete_);
  while (updates_.size() <= index)
    updates_.emplace_back();
  return updates_[index];
}

bool LocalParameterServer::isComplete(const Update &update) const {
  return static_cast<int32_t>(update.size()) == config_.servers->required;
}

Memory LocalParameterServer::newGradients() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!spare_.empty()) {
      Memory gradients = std::move(spare_.back());
      spare_.pop_back();
      return gradients;
    }
  }
  return Memory(std::max<int64_t>(bytes_, 1));
}

bool LocalParameterServer::push(int32_t replica, int64_t version, const void *const *gradients, const void *report) {
  return push(replica, version, copyOf(gradients), report);
}

Memory LocalParameterServer::copyOf(const void *const *gradients) {
  const drt_servers &servers = *config_.servers;
  Memory copies = newGradients();
  for (int32_t i = 0; i < servers.num_gradients; ++i)
    std::memcpy(gradient(copies, i), gradients[i],
                static_cast<size_t>(servers.gradients[i].count * dtypeSize(servers.gradients[i].dtype)));
  return copies;
}

bool LocalParameterServer::push(int32_t replica, int64_t version, Memory gradients, const void *report) {
  const drt_servers &servers = *config_.servers;
  std::unique_lock<std::mutex> lock(mutex_);
  if (stopped_.load())
    return false;
  const int64_t clock = clocks_[static_cast<size_t>(replica)]++;
  // Behind all that are complete already.
  if (servers.policy == DRT_SERVE_COUNTED && version + servers.staleness < begun_ + complete_) {
    ++counts_.dropped;
    ++lateness_[static_cast<size_t>(replica)].dropped;
    spare_.push_back(std::move(gradients));
    return true;
  }
  Contribution contribution{replica, clock, std::move(gradients), {}, nowNs()};
  const char *said = static_cast<const char *>(report);
  contribution.report.assign(said, said + config_.reportBytes);
  ++counts_.accepted;
  Update &update = openUpdate(clock);
  update.push_back(std::move(contribution));
  if (!isComplete(update))
    return true;
  noteLast(update);
  const int64_t number = begun_ + complete_++;
  // Each in its turn, by the replica that completed it.
  return wait(lock, "its turn to update", config_.spins, [&] { return applied_ == number && number < allowed_; }) &&
         applyOldest(lock);
}

// The last gradient is late by what it came behind the one before.
void LocalParameterServer::noteLast(const Update &update) {
  const Contribution &last = update.back();
  const int64_t took = last.pushedNs - std::exchange(completedNs_, last.pushedNs);
  if (update.size() < 2)
    return;
  const int64_t late = last.pushedNs - update[update.size() - 2].pushedNs;
  Lateness &of = lateness_[static_cast<size_t>(last.replica)];
  of.ns += late;
  of.updates += late * 10 >= took;
}

bool LocalParameterServer::applyOldest(std::unique_lock<std::mutex> &lock) {
  Update update = std::move(updates_.front());
  updates_.pop_front();
  std::sort(update.begin(), update.end(), [](const Contribution &x, const Contribution &y) {
    return std::pair(x.replica, x.clock) < std::pair(y.replica, y.clock);
  });
  // What is pushed meanwhile is for later updates.
  --complete_;
  ++begun_;
  lock.unlock();
  bool good = false;
  {
    std::unique_lock<std::shared_mutex> values(values_);
    current_ = &update;
    good = config_.update();
    current_ = nullptr;
    ++version_;
  }
  lock.lock();
  if (!good) {
    stop();
    return false;
  }
  std::vector<std::vector<char>> reports;
  for (Contribution &contribution : update) {
    reports.push_back(std::move(contribution.report));
    spare_.push_back(std::move(contribution.gradients));
  }
  if (config_.updateReportBytes > 0)
    reports.push_back(said_);
  reports_.push_back(std::move(reports));
  ++applied_;
  if (config_.servers->policy == DRT_SERVE_COUNTED)
    tokens_ += std::max(config_.servers->required, config_.replicas);
  changes_.add(1);
  return true;
}

void LocalParameterServer::take(void *const *results) {
  const drt_servers &servers = *config_.servers;
  std::vector<const char *> parts(current_->size());
  for (int32_t i = 0; i < servers.num_gradients; ++i) {
    const drt_gradient &gradient = servers.gradients[i];
    for (size_t p = 0; p < parts.size(); ++p)
      parts[p] = this->gradient((*current_)[p].gradients, i);
    if (gradient.reduction == DRT_REDUCE_JOIN) {
      const auto bytes = static_cast<size_t>(gradient.count * dtypeSize(gradient.dtype));
      for (size_t p = 0; p < parts.size(); ++p)
        std::memcpy(static_cast<char *>(results[i]) + p * bytes, parts[p], bytes);
      continue;
    }
    if (gradient.exchange) {
      aggregate(gradient, parts, results[i]);
      continue;
    }
    reduce(static_cast<drt_dtype>(gradient.dtype), results[i], parts.data(), static_cast<int32_t>(parts.size()),
           gradient.count, gradient.reduction == DRT_REDUCE_MEAN ? static_cast<int64_t>(parts.size()) : 1);
  }
}

// Distances are over one variable's gradients; those of an update lie one behind the other for it.
void LocalParameterServer::aggregate(const drt_gradient &gradient, const std::vector<const char *> &parts, void *out) {
  const int64_t bytes = gradient.count * dtypeSize(gradient.dtype), stride = roundUp(bytes, alignment);
  const auto count = static_cast<int32_t>(parts.size());
  if (const int64_t room = std::max<int64_t>(stride * count, 1); side_.bytes() < room)
    side_ = Memory(room);
  for (int32_t p = 0; p < count; ++p)
    std::memcpy(side_.data() + p * stride, parts[static_cast<size_t>(p)], static_cast<size_t>(bytes));
  drt_member member{};
  member.count = gradient.count;
  drt_bucket bucket{};
  bucket.dtype = gradient.dtype;
  bucket.reduction = gradient.reduction;
  bucket.num_members = 1;
  bucket.members = &member;
  bucket.exchange = gradient.exchange;
  const std::unique_ptr<Aggregation> rule = Aggregation::make(bucket, count, 1);
  const Contributions contributions{side_.data(), stride, count};
  for (int32_t pass = 0; pass < rule->passes(); ++pass) {
    rule->measure(pass, 0, 1, contributions);
    rule->weigh(pass, 0);
  }
  rule->combine(0, out, contributions, gradient.count);
}

void LocalParameterServer::say(const void *report) {
  const char *said = static_cast<const char *>(report);
  said_.assign(said, said + config_.updateReportBytes);
}

bool LocalParameterServer::isTokenThere(int32_t replica) const {
  switch (config_.servers->policy) {
  case DRT_SERVE_COUNTED:
    return tokens_ > 0;
  case DRT_SERVE_BOUNDED:
    // The next step would be ahead of the updates by so many.
    return clocks_[static_cast<size_t>(replica)] - applied_ <= config_.servers->staleness;
  default:
    return true;
  }
}

bool LocalParameterServer::hasToken(int32_t replica) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return isTokenThere(replica);
}

bool LocalParameterServer::takeToken(int32_t replica) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!wait(lock, "a token", config_.spins, [&] { return isTokenThere(replica); }))
    return false;
  if (config_.servers->policy == DRT_SERVE_COUNTED)
    --tokens_;
  return true;
}

GradientCounts LocalParameterServer::counts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

std::vector<Lateness> LocalParameterServer::lateness() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return lateness_;
}

void LocalParameterServer::allowUpdate() {
  std::lock_guard<std::mutex> lock(mutex_);
  ++allowed_;
  changes_.add(1);
}

bool LocalParameterServer::waitForUpdate(int32_t listener, std::vector<std::vector<char>> &reports) {
  std::unique_lock<std::mutex> lock(mutex_);
  int64_t &heard = heard_[static_cast<size_t>(listener)];
  // Whoever hears late is told of what was done before the end, too.
  // The trainer, which leaves the core to a replica.
  wait(lock, "an update", 0, [&] { return applied_ > heard; });
  if (applied_ == heard)
    return false;
  reports = reports_[static_cast<size_t>(heard - oldestReport_)];
  ++heard;
  while (oldestReport_ < *std::min_element(heard_.begin(), heard_.end())) {
    reports_.pop_front();
    ++oldestReport_;
  }
  return true;
}

void LocalParameterServer::stop() {
  stopped_.store(true);
  changes_.add(1);
}

} // namespace drt
