//===- group.cpp - The tasks of a plan, connected -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/group.h"

#include "core/error.h"

namespace drt {

Group::~Group() = default;

namespace {

class SoleGroup final : public Group {
public:
  Communicator &communicator() override { return *collectives; }
  std::vector<int> members() const override { return {0}; }
  void fail(const std::string &reason) noexcept override {}
  std::string cause(double seconds) override { return ""; }
  ClockAlignment clock() override { return ClockAlignment::shared(); }
  std::optional<std::string> fetch(int rank) override { return std::nullopt; }
  bool hand_over(const std::string &part) override { return false; }
  void leave() override {}

private:
  std::unique_ptr<Communicator> collectives = make_sole_communicator();
};

} // namespace

std::unique_ptr<Group> Group::join(GroupOptions options) {
  if (options.tasks.size() <= 1)
    return std::make_unique<SoleGroup>();
  if (!drt_connect_tasks)
    throw Error("the program has several tasks, but was linked for one; compile it again", 70);
  return std::unique_ptr<Group>(drt_connect_tasks(&options));
}

} // namespace drt
