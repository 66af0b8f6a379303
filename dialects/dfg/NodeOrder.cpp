//===- NodeOrder.cpp - Nodes in an order that satisfies all edges ---------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "dialects/dfg/NodeOrder.h"
#include <functional>
#include <queue>
#include <vector>

namespace distc::dfg {

llvm::SmallVector<int> sortNodes(const Predecessors &edges, const llvm::BitVector &writes) {
  int count = static_cast<int>(writes.size());
  // Successors, in one array as the predecessors are.
  llvm::SmallVector<int> waiting(count, 0), begin(count + 1, 0);
  for (int node = 0; node < count; ++node)
    for (int edge = edges.begin[node]; edge < edges.begin[node + 1]; ++edge)
      if (int predecessor = edges.predecessors[edge]; predecessor >= 0) {
        ++waiting[node];
        ++begin[predecessor + 1];
      }
  for (int node = 0; node < count; ++node)
    begin[node + 1] += begin[node];
  llvm::SmallVector<int> successors(begin[count]), next(begin.begin(), begin.end() - 1);
  for (int node = 0; node < count; ++node)
    for (int edge = edges.begin[node]; edge < edges.begin[node + 1]; ++edge)
      if (int predecessor = edges.predecessors[edge]; predecessor >= 0)
        successors[next[predecessor]++] = node;

  using Queue = std::priority_queue<int, std::vector<int>, std::greater<int>>;
  Queue readers, writers;
  auto push = [&](int node) { (writes[node] ? writers : readers).push(node); };
  for (int node = 0; node < count; ++node)
    if (waiting[node] == 0)
      push(node);
  llvm::SmallVector<int> order;
  order.reserve(count);
  while (!readers.empty() || !writers.empty()) {
    Queue &queue = readers.empty() ? writers : readers;
    int node = queue.top();
    queue.pop();
    order.push_back(node);
    for (int successor = begin[node]; successor < begin[node + 1]; ++successor)
      if (--waiting[successors[successor]] == 0)
        push(successors[successor]);
  }
  return order;
}

} // namespace distc::dfg
