//===- Places.cpp - Which task holds what ------------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "passes/distribute/strategy/Places.h"

using namespace mlir;

namespace distc {

bool isServerName(llvm::StringRef destination) {
  return destination.consume_front("ps:") && !destination.empty() &&
         llvm::all_of(destination, [](char c) { return c >= '0' && c <= '9'; });
}

llvm::StringRef getDeviceHost(llvm::StringRef device) { return device.rsplit(':').first.rsplit(':').first; }

void forEachDestination(const strategies::Strategy &strategy, llvm::function_ref<void(llvm::StringRef)> visit) {
  for (const strategies::Strategy::Node &node : strategy.node_config()) {
    for (const strategies::Strategy::Node &part : node.part_config())
      if (part.has_pssynchronizer())
        visit(part.pssynchronizer().reduction_destination());
    if (!node.part_config_size() && node.has_pssynchronizer())
      visit(node.pssynchronizer().reduction_destination());
  }
}

Places::Places(dist::TopologyOp topology) {
  for (auto task : topology.getTasks().getAsRange<dist::TaskAttr>()) {
    if (task.getJob() != "ps")
      continue;
    auto place = dist::PlaceAttr::get(topology.getContext(), task.getJob(), task.getIndex());
    servers["ps:" + std::to_string(task.getIndex())] = place;
    hosts.try_emplace(task.getHost().getValue(), place);
  }
}

FailureOr<dist::PlaceAttr> Places::find(Operation *op, const strategies::Strategy::Node &node) const {
  llvm::StringRef destination = node.pssynchronizer().reduction_destination();
  bool isServer = isServerName(destination);
  const llvm::StringMap<dist::PlaceAttr> &table = isServer ? servers : hosts;
  if (auto place = table.find(isServer ? destination : getDeviceHost(destination)); place != table.end())
    return place->second;
  if (destination.empty())
    return op->emitError() << "the strategy's entry of variable '" << node.var_name()
                           << "' has no reduction_destination; name a device or a server, \"ps:0\"";
  return op->emitError() << "the strategy's entry of variable '" << node.var_name() << "' places it on '" << destination
                         << "', which is no task of the topology; --ps says how many servers there are";
}

} // namespace distc
