//===- NativeCheck.cpp - What native code can be made of ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Aggregators.h"
#include "strategies/Compressors.h"
#include "strategies/StrategyCheck.h"

namespace distc::strategies {

llvm::Error checkNative(const Strategy &strategy) {
  auto refuse = [](const llvm::Twine &what, const llvm::Twine &wayOut) {
    return llvm::createStringError(what + ", which is not supported yet by executables; " + wayOut);
  };
  if (strategy.accumulate_steps() > 1)
    return refuse("the strategy accumulates " + llvm::Twine(strategy.accumulate_steps()) + " steps",
                  "leave accumulate_steps out");
  if (strategy.replicas_to_aggregate())
    return refuse("the strategy has replicas_to_aggregate", "leave it out");
  if (strategy.variable_averages_decay() > 0)
    return refuse("the strategy keeps moving averages of variables", "leave variable_averages_decay out");
  for (const Strategy::Node &node : strategy.node_config()) {
    std::string entry = "the strategy's entry of variable '" + node.var_name() + "'";
    if (node.has_pssynchronizer())
      return refuse(entry + " asks for a PSSynchronizer", "use AllReduceSynchronizer");
    const AllReduceSynchronizer &synchronizer = node.allreducesynchronizer();
    if (synchronizer.compressor() != AllReduceSynchronizer::NoneCompressor)
      return refuse(entry + " asks for compressor " + AllReduceSynchronizer::Compressor_Name(synchronizer.compressor()),
                    "use NoneCompressor");
    if (synchronizer.aggregator().kind() != Aggregator::AUTO)
      return refuse(entry + " asks for aggregator " + printAggregator(synchronizer.aggregator()), "leave it out");
    if (synchronizer.sharded_stage())
      return refuse(entry + " asks for sharded_stage " + llvm::Twine(synchronizer.sharded_stage()), "leave it out");
  }
  return llvm::Error::success();
}

} // namespace distc::strategies
