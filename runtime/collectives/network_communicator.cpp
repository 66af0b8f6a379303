//===- network_communicator.cpp - Collectives that are an exchange --------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "collectives/network_communicator.h"

#include <algorithm>

namespace drt {
namespace {

// Pieces of `bytes` bytes, one behind the other. Those that are sent are only read.
std::vector<Piece> piecesOf(const void *data, const std::vector<int64_t> &bytes) {
  char *at = const_cast<char *>(static_cast<const char *>(data));
  std::vector<Piece> pieces;
  for (const int64_t each : bytes) {
    pieces.push_back({at, each});
    at += each;
  }
  return pieces;
}

} // namespace

void NetworkCommunicator::all_gather(const void *data, int64_t bytes, void *gathered) {
  std::copy_n(static_cast<const char *>(data), bytes, static_cast<char *>(gathered) + rank() * bytes);
  all_gather(gathered, std::vector<int64_t>(static_cast<size_t>(size()), bytes));
}

void NetworkCommunicator::all_gather(void *gathered, const std::vector<int64_t> &bytes) {
  const std::vector<Piece> pieces = piecesOf(gathered, bytes);
  exchange(std::vector<Piece>(pieces.size(), pieces[static_cast<size_t>(rank())]), pieces);
}

void NetworkCommunicator::all_to_all(const void *data, int64_t bytes, void *received) {
  const std::vector<int64_t> each(static_cast<size_t>(size()), bytes);
  all_to_all(data, each, received, each);
}

void NetworkCommunicator::all_to_all(const void *data, const std::vector<int64_t> &bytes_to, void *received,
                                     const std::vector<int64_t> &bytes_from) {
  const std::vector<Piece> to = piecesOf(data, bytes_to), from = piecesOf(received, bytes_from);
  const auto self = static_cast<size_t>(rank());
  std::copy_n(to[self].data, to[self].bytes, from[self].data);
  exchange(to, from);
}

} // namespace drt
