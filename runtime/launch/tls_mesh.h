//===- tls_mesh.h - Encrypted streams between tasks -----------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_TLS_MESH_H
#define DRT_LAUNCH_TLS_MESH_H

#include "collectives/key_value_store.h"
#include "collectives/stream_communicator.h"
#include "launch/socket.h"
#include "tls/tls.h"

namespace drt {

struct TlsMeshOptions {
  int rank = 0, size = 1;
  std::string group;   // before its keys in the store: one for each set of tasks
  std::string address; // of the interface that leads to the other tasks; the mesh listens there alone
  double timeout = 10; // seconds, for all connections of a call
  const Tls *tls = nullptr;
};

/// The task of lower rank accepts. Who connects shows a certificate first, and then says what only tasks of this run
/// can read in the store; others are closed, and nobody waits for them. The store and `tls` outlive it.
std::unique_ptr<StreamMesh> make_tls_mesh(TlsMeshOptions options, KeyValueStore &store);

} // namespace drt

#endif // DRT_LAUNCH_TLS_MESH_H
