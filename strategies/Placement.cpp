//===- Placement.cpp - Which server a shard goes to ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Placement.h"
#include "strategies/Partition.h"
#include "llvm/Support/xxhash.h"
#include <queue>

namespace distc::strategies {
namespace {

class SinglePlacement : public Placement {
  llvm::SmallVector<int> place(llvm::StringRef, llvm::ArrayRef<int64_t> bytes) override {
    return llvm::SmallVector<int>(bytes.size(), 0);
  }
};

class GreedyPlacement : public Placement {
public:
  explicit GreedyPlacement(int servers) {
    for (int server = 0; server < servers; ++server)
      byLoad.emplace(0, server);
  }

private:
  llvm::SmallVector<int> place(llvm::StringRef, llvm::ArrayRef<int64_t> bytes) override {
    size_t used = std::min(bytes.size(), byLoad.size());
    llvm::SmallVector<std::pair<int64_t, int>> chosen;
    for (size_t i = 0; i < used; ++i) {
      chosen.push_back(byLoad.top());
      byLoad.pop();
    }
    llvm::SmallVector<int> servers;
    for (size_t i = 0; i < bytes.size(); ++i) {
      servers.push_back(chosen[i % used].second);
      chosen[i % used].first += bytes[i];
    }
    for (const auto &server : chosen)
      byLoad.push(server);
    return servers;
  }

  std::priority_queue<std::pair<int64_t, int>, std::vector<std::pair<int64_t, int>>, std::greater<>> byLoad;
};

class RoundRobinPlacement : public Placement {
public:
  explicit RoundRobinPlacement(int servers) : count(servers) {}

private:
  llvm::SmallVector<int> place(llvm::StringRef, llvm::ArrayRef<int64_t> bytes) override {
    llvm::SmallVector<int> servers;
    for (size_t i = 0; i < bytes.size(); ++i, next = (next + 1) % count)
      servers.push_back(next);
    return servers;
  }

  int count, next = 0;
};

class HashPlacement : public Placement {
public:
  explicit HashPlacement(int servers) : count(servers) {}

private:
  llvm::SmallVector<int> place(llvm::StringRef variable, llvm::ArrayRef<int64_t> bytes) override {
    llvm::SmallVector<int> servers;
    for (size_t i = 0; i < bytes.size(); ++i)
      servers.push_back(llvm::xxh3_64bits(bytes.size() > 1 ? getShardName(variable, i) : variable.str()) % count);
    return servers;
  }

  int count;
};

} // namespace

std::unique_ptr<Placement> makeSinglePlacement() { return std::make_unique<SinglePlacement>(); }
std::unique_ptr<Placement> makeGreedyPlacement(int servers) { return std::make_unique<GreedyPlacement>(servers); }
std::unique_ptr<Placement> makeRoundRobinPlacement(int servers) {
  return std::make_unique<RoundRobinPlacement>(servers);
}
std::unique_ptr<Placement> makeHashPlacement(int servers) { return std::make_unique<HashPlacement>(servers); }

} // namespace distc::strategies
