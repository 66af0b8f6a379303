//===- division.h - Integer divisions by zero -----------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_CPU_DIVISION_H
#define DRT_CPU_DIVISION_H

namespace drt {

class Replica;

/// Integers have no result for a division by zero, and x86 raises a signal for it. From here on it ends the process
/// with status 1 and a message that names the scope of the replica whose thread divides. Any thread, any number of
/// times.
void reportDivisionsByZero();

/// The replica that the calling thread runs; null where it runs none. Returns the one before.
const Replica *setDividingReplica(const Replica *replica);

} // namespace drt

#endif // DRT_CPU_DIVISION_H
