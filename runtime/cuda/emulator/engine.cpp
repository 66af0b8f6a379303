//===- engine.cpp - Work that runs when somebody waits --------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "cuda/emulator/engine.h"

#include <unordered_set>

using namespace drt::cuda::emulated;

WorkPtr Engine::add(std::string label, int device, Run run, const std::vector<WorkPtr> &dependencies) {
  auto work = std::make_shared<Work>();
  work->label = std::move(label);
  work->device = device;
  work->run = std::move(run);
  for (const WorkPtr &dependency : dependencies)
    if (dependency && !dependency->done) {
      work->dependencies.push_back(dependency);
      dependency->followers.push_back(work);
    }
  work->waitsFor = static_cast<int>(work->dependencies.size());
  if (work->waitsFor == 0) {
    ready_.push_back(work);
    changed_.notify_all();
  }
  return work;
}

// A random one of those that are ready; with `target` of those that it depends on, itself included. Null: none.
WorkPtr Engine::pick(const Work *target) {
  std::unordered_set<const Work *> wanted;
  if (target) {
    std::vector<const Work *> next = {target};
    while (!next.empty()) {
      const Work *work = next.back();
      next.pop_back();
      if (wanted.insert(work).second)
        for (const WorkPtr &dependency : work->dependencies)
          next.push_back(dependency.get());
    }
  }
  std::vector<size_t> candidates;
  for (size_t i = 0; i < ready_.size(); ++i)
    if (ready_[i]->triedAt != generation_ && (!target || wanted.contains(ready_[i].get())))
      candidates.push_back(i);
  if (candidates.empty())
    return nullptr;
  size_t chosen = candidates[random_() % candidates.size()];
  WorkPtr work = std::move(ready_[chosen]);
  ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(chosen));
  return work;
}

void Engine::run(Lock &lock, const WorkPtr &work) {
  Progress progress = Progress::Done;
  uint64_t generation = generation_;
  if (work->run && !errors_.failed(work->device)) {
    lock.unlock();
    std::exception_ptr thrown;
    try {
      progress = work->run();
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (thrown)
      errors_.fail(*work, thrown);
  }
  if (progress == Progress::Done)
    return finish(*work);
  work->triedAt = generation;
  ready_.push_back(work);
  if (generation != generation_)
    changed_.notify_all();
}

void Engine::finish(Work &work) {
  work.done = true;
  work.end = std::chrono::steady_clock::now();
  work.run = nullptr;
  work.dependencies.clear();
  for (const WorkPtr &follower : work.followers)
    if (--follower->waitsFor == 0)
      ready_.push_back(follower);
  work.followers.clear();
  changed_.notify_all();
}

void Engine::wait(Lock &lock, const WorkPtr &work) {
  if (!work)
    return;
  bool onlyWanted = (random_() & 1) != 0;
  while (!work->done) {
    WorkPtr next = onlyWanted ? pick(work.get()) : nullptr;
    if (!next) // also where the works that it waits for wait for another device's
      next = pick(nullptr);
    if (next)
      run(lock, next);
    else
      changed_.wait(lock);
  }
}

void Engine::poll(Lock &lock) {
  for (uint64_t rest = random_() % 64; rest > 0; --rest)
    if (WorkPtr next = pick(nullptr))
      run(lock, next);
    else
      return;
}

void Engine::wake() {
  ++generation_;
  changed_.notify_all();
}
