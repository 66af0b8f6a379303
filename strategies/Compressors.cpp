//===- Compressors.cpp - What of a gradient is sent ------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//

#include "strategies/Compressors.h"

namespace distc::strategies {
namespace {

struct CompressorName {
  llvm::StringRef schemaName, shortName;
  AllReduceSynchronizer::Compressor compressor;
};

constexpr CompressorName kCompressors[] = {
    {"NoneCompressor", "none", AllReduceSynchronizer::NoneCompressor},
    {"HorovodCompressor", "fp16", AllReduceSynchronizer::HorovodCompressor},
    {"HorovodCompressorEF", "fp16_ef", AllReduceSynchronizer::HorovodCompressorEF},
    {"BF16Compressor", "bf16", AllReduceSynchronizer::BF16Compressor},
    {"BF16CompressorEF", "bf16_ef", AllReduceSynchronizer::BF16CompressorEF},
    {"PowerSGDCompressor", "power_sgd", AllReduceSynchronizer::PowerSGDCompressor},
    {"TopKCompressor", "top_k", AllReduceSynchronizer::TopKCompressor}};

} // namespace

std::vector<llvm::StringRef> getCompressorNames() {
  std::vector<llvm::StringRef> names;
  for (const CompressorName &entry : kCompressors)
    names.push_back(entry.schemaName);
  for (const CompressorName &entry : kCompressors)
    names.push_back(entry.shortName);
  return names;
}

AllReduceSynchronizer::Compressor getCompressor(llvm::StringRef name) {
  for (const CompressorName &entry : kCompressors)
    if (name == entry.schemaName || name == entry.shortName)
      return entry.compressor;
  return AllReduceSynchronizer::NoneCompressor;
}

std::string printCompressor(AllReduceSynchronizer::Compressor compressor) {
  for (const CompressorName &entry : kCompressors)
    if (entry.compressor == compressor)
      return entry.shortName.str();
  return std::to_string(compressor);
}

std::string checkCompressor(const AllReduceSynchronizer &synchronizer) {
  if (!AllReduceSynchronizer::Compressor_IsValid(synchronizer.compressor()))
    return "has compressor " + std::to_string(synchronizer.compressor()) + ", which does not exist";
  int32_t rank = synchronizer.power_sgd_rank();
  float ratio = synchronizer.top_k_ratio();
  if (rank < 0)
    return "has power_sgd_rank " + std::to_string(rank) + "; give at least 1, or leave it out";
  if (rank && synchronizer.compressor() != AllReduceSynchronizer::PowerSGDCompressor)
    return "has a power_sgd_rank without compressor: PowerSGDCompressor";
  if (!(ratio >= 0 && ratio <= 1))
    return "has top_k_ratio " + std::to_string(ratio) + ", which is not between 0 and 1";
  if (ratio > 0 && synchronizer.compressor() != AllReduceSynchronizer::TopKCompressor)
    return "has a top_k_ratio without compressor: TopKCompressor";
  return "";
}

} // namespace distc::strategies
