//===- same_host.h - Tasks that can share memory -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Which tasks run on one machine is found where they run, since a plan may name hosts
// in several ways. Tasks are on one host where they have the same kernel since its
// start and the same network namespace, and so reach each other by a socket without a
// file. Over it the first of them hands the others the file of their shared memory.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_SAME_HOST_H
#define DRT_LAUNCH_SAME_HOST_H

#include "collectives/key_value_store.h"
#include "launch/socket.h"

#include <string>
#include <vector>

namespace drt {

/// What this process and those that it can share memory with have in common; "" where /proc does not say.
std::string host_identity();

/// What processes that have the same clock (CLOCK_MONOTONIC) have in common: the kernel since its start, and the time
/// namespace. "" where /proc does not say.
std::string clock_identity();

/// The ranks of each host, in the order of their first ranks. Every task calls it, and has the same answer. A task
/// without an identity is a host of its own.
std::vector<std::vector<int>> find_hosts(KeyValueStore &store, int rank, int size, const std::string &identity);

/// The file that the tasks `ranks` of a host share, made by the first of them. Every one of them calls it. No
/// descriptor, in all of them, where one of them did not get it; `why` then says which, and what the matter was.
Socket share_file(KeyValueStore &store, const std::vector<int> &ranks, int rank, Clock::duration patience,
                  std::string &why);

} // namespace drt

#endif // DRT_LAUNCH_SAME_HOST_H
