//===- Compressors.h - What of a gradient is sent -----------------*- C++ -*-===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_STRATEGIES_COMPRESSORS_H
#define DISTC_STRATEGIES_COMPRESSORS_H

#include "strategies/strategy.pb.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace distc::strategies {

using autodist::proto::AllReduceSynchronizer;

/// The names of compressors: the schema's, and a short one for each ("fp16" is HorovodCompressor).
std::vector<llvm::StringRef> getCompressorNames();

/// The compressor of one of these names.
AllReduceSynchronizer::Compressor getCompressor(llvm::StringRef name);

/// The short name: "none", "fp16_ef", "power_sgd".
std::string printCompressor(AllReduceSynchronizer::Compressor compressor);

/// Says what is wrong with compressor, rank and ratio, or nothing.
std::string checkCompressor(const AllReduceSynchronizer &synchronizer);

} // namespace distc::strategies

#endif // DISTC_STRATEGIES_COMPRESSORS_H
