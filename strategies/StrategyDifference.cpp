//===- StrategyDifference.cpp - What differs between two strategies -------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/StrategyText.h"
#include "strategies/TextTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include <google/protobuf/util/message_differencer.h>

namespace distc::strategies {
namespace {

using google::protobuf::util::MessageDifferencer;

std::string describe(const Strategy::Node *node) {
  if (!node)
    return "no entry";
  std::string text = describeSynchronizer(*node) + ", " + describePlace(*node);
  return node->partitioner().empty() ? text : text + ", partitioner " + node->partitioner();
}

/// A row for the variable, or one for each shard that differs where both have the same shards.
void addRows(const Strategy::Node *a, const Strategy::Node *b, TextTable &table) {
  const std::string &name = (a ? a : b)->var_name();
  bool sameShards = a && b && a->part_config_size() && a->partitioner() == b->partitioner() &&
                    a->part_config_size() == b->part_config_size();
  if (!sameShards)
    return table.add({name, describe(a), describe(b)});
  for (const auto &[partA, partB] : llvm::zip(a->part_config(), b->part_config()))
    if (!MessageDifferencer::Equals(partA, partB))
      table.add({partA.var_name(), describe(&partA), describe(&partB)});
}

} // namespace

bool printDifferences(const Strategy &a, const Strategy &b, llvm::raw_ostream &os) {
  TextTable table({"", "A", "B"}, {false, false, false});
  bool differ = false;
  auto compare = [&](const char *what, const std::string &textA, const std::string &textB) {
    if (textA == textB)
      return;
    differ = true;
    table.add({what, textA, textB});
  };
  compare("replicas", llvm::join(a.graph_config().replicas(), ", "), llvm::join(b.graph_config().replicas(), ", "));
  compare("steps", llvm::join(describeSteps(a), ", "), llvm::join(describeSteps(b), ", "));

  llvm::StringMap<const Strategy::Node *> ofB;
  for (const Strategy::Node &node : b.node_config())
    ofB[node.var_name()] = &node;
  size_t variables = a.node_config_size(), differing = 0;
  auto compareNodes = [&](const Strategy::Node *nodeA, const Strategy::Node *nodeB) {
    if (nodeA && nodeB && MessageDifferencer::Equals(*nodeA, *nodeB))
      return;
    ++differing;
    addRows(nodeA, nodeB, table);
  };
  for (const Strategy::Node &node : a.node_config()) {
    compareNodes(&node, ofB.lookup(node.var_name()));
    ofB.erase(node.var_name());
  }
  for (const Strategy::Node &node : b.node_config())
    if (ofB.contains(node.var_name())) {
      compareNodes(nullptr, &node);
      ++variables;
    }
  if (!differ && !differing)
    return false;
  table.print(os);
  os << differing << " of " << variables << " variables differ\n";
  return true;
}

} // namespace distc::strategies
