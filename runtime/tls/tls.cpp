//===- tls.cpp - Connections that only tasks of the run can read ----------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "tls/tls.h"

#include "core/error.h"

namespace drt {

std::unique_ptr<Tls> openTls(const TlsFiles &files) {
  if (!drt_open_tls)
    throw Error("this executable has no TLS, for --tls-cert, --tls-key and --tls-ca: compile it again with --tls", 2);
  return std::unique_ptr<Tls>(drt_open_tls(&files));
}

} // namespace drt
