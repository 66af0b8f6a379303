//===- tls.h - Connections that only tasks of the run can read ------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Mutual TLS 1.3: both ends show a certificate, and each believes the other where the run's authority has signed it.
// The authority is the run's, or the cluster's, own: whoever has a certificate of it belongs, whatever name is in it.
//
// By OpenSSL, which only executables have that were compiled with --tls.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_TLS_TLS_H
#define DRT_TLS_TLS_H

#include "collectives/stream.h"

#include <memory>
#include <string>

namespace drt {

/// PEM files: --tls-cert, with what leads from it to the authority if that did not sign it itself; --tls-key; --tls-ca.
/// --tls-name: a host name or an address that the certificates of all tasks have; empty where the authority's word is
/// enough.
struct TlsFiles {
  std::string certificate, key, authority, name;

  bool any() const { return !certificate.empty() || !key.empty() || !authority.empty() || !name.empty(); }
  bool all() const { return !certificate.empty() && !key.empty() && !authority.empty(); }
};

/// Nothing is read or written before the handshake is done.
class TlsStream : public Stream {
public:
  /// Goes on with it. False: the descriptor must first be ready for reading, or for writing where `wantsWrite`. Throws
  /// Error that says what is wrong with the other end's certificate.
  virtual bool handshake() = 0;
  virtual bool wantsWrite() const = 0;
};

class Tls {
public:
  virtual ~Tls() = default;
  enum class Side { Connected, Accepted };
  /// Over a connected socket, which is made non-blocking, and is the stream's from then on. Any thread.
  virtual std::unique_ptr<TlsStream> open(int socket, Side side) const = 0;
};

/// Reads the files. Throws Error, with exit status 2: for a file that cannot be read, a key of another certificate, a
/// certificate that has expired or that the authority has not signed; and where the executable has no TLS.
std::unique_ptr<Tls> openTls(const TlsFiles &files);

} // namespace drt

/// Weak: an executable without TLS does without OpenSSL.
extern "C" __attribute__((weak)) drt::Tls *drt_open_tls(const drt::TlsFiles *files);

#endif // DRT_TLS_TLS_H
