//===- communicator.cpp - The communicator of a plan with one task -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/communicator.h"

#include <cstring>

namespace drt {

Communicator::~Communicator() = default;

namespace {
class SoleCommunicator final : public Communicator {
public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void describe(int64_t step, const char *name) override {}
  void all_reduce_sum(void *data, int64_t count, drt_dtype dtype) override {}
  void broadcast(void *data, int64_t bytes, int root) override {}
  void all_gather(const void *data, int64_t bytes, void *gathered) override {
    if (bytes > 0)
      std::memcpy(gathered, data, static_cast<size_t>(bytes));
  }
  void all_to_all(const void *data, int64_t bytes, void *received) override { all_gather(data, bytes, received); }
  void all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                  const std::vector<int64_t> &) override {
    all_gather(data, bytes_to.front(), received);
  }
  void all_gather(void *, const std::vector<int64_t> &) override {}
  void barrier() override {}
  void abort(const std::string &reason) noexcept override {}
};
} // namespace

std::unique_ptr<Communicator> make_sole_communicator() { return std::make_unique<SoleCommunicator>(); }

} // namespace drt
