//===- channel.h - A connection of two tasks, beside the collectives ------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Point to point: what collectives are not for, since only two know when. Each end is used by one thread at a time, at
// the same time as the communicator's collectives and other channels.
//
// Errors: when the communicator is aborted, or a task is lost, both calls throw drt::Error as collectives do.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_COLLECTIVES_CHANNEL_H
#define DRT_COLLECTIVES_CHANNEL_H

#include <cstdint>
#include <vector>

namespace drt {

/// Some bytes of a task's memory.
struct Piece {
  char *data;
  int64_t bytes;
};
int64_t bytes_of(const std::vector<Piece> &pieces);

class Channel {
public:
  virtual ~Channel();

  /// The bytes of all pieces, one piece behind the other, which are only read. They may change when it returns.
  virtual void send(const std::vector<Piece> &pieces) = 0;

  /// What the other end sends next: as many bytes, in pieces of any sizes.
  virtual void receive(const std::vector<Piece> &pieces) = 0;

  /// Whether large pieces in shared memory are read where they lie: then sending them ends when the other end has
  /// received them, at the speed of memory. Else it may take as long as a network does.
  virtual bool reads_in_place() const = 0;
};

} // namespace drt

#endif // DRT_COLLECTIVES_CHANNEL_H
