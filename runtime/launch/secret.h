//===- secret.h - What proves that a connection belongs -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
//
// Tasks of a run know a secret. Whoever connects is asked about a random challenge
// (a nonce), and answers with a message authentication code of it (HMAC-SHA-256,
// RFC 2104, by libsodium) that nobody makes without the secret; both ends ask, so
// neither speaks to a stranger. The secret itself never travels, and an answer that
// was overheard answers no other challenge.
//
// Only the beginning of a connection is proven: who can change what is on its way
// between machines is not kept out.
//
//===----------------------------------------------------------------------===//
#ifndef DRT_LAUNCH_SECRET_H
#define DRT_LAUNCH_SECRET_H

#include <string>
#include <vector>

namespace drt {

/// The environment variable that holds a run's secret, where no file does.
inline constexpr const char *secret_variable = "DISTC_SECRET";

/// The secret in `file`, without the newline at its end; the environment's where `file` is empty; "" where neither has
/// one. Throws Error for a file that cannot be read, and for a secret that can be guessed: below 16 characters.
std::string find_secret(const std::string &file);

/// For a run whose tasks are all started here: 32 random bytes in hexadecimal.
std::string make_secret();

/// A new challenge.
std::string make_nonce();

/// 32 bytes that say of a statement, a list of words, that who made them knows the secret.
std::string prove(const std::string &secret, const std::vector<std::string> &statement);

/// Takes as long for every wrong proof.
bool is_proof(const std::string &secret, const std::vector<std::string> &statement, const std::string &proof);

} // namespace drt

#endif // DRT_LAUNCH_SECRET_H
