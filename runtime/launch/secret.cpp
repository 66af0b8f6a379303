//===- secret.cpp - What proves that a connection belongs -----===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "launch/secret.h"

#include "core/error.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sodium.h>

namespace drt {

namespace {

constexpr size_t nonce_bytes = 32, least_secret = 16;

unsigned char *bytes_of(std::string &text) { return reinterpret_cast<unsigned char *>(text.data()); }
const unsigned char *bytes_of(const std::string &text) { return reinterpret_cast<const unsigned char *>(text.data()); }

} // namespace

std::string find_secret(const std::string &file) {
  std::string secret, source = "the environment's " + std::string(secret_variable);
  if (!file.empty()) {
    source = "--secret-file " + file;
    std::ifstream in(file, std::ios::binary);
    if (in)
      secret.assign(std::istreambuf_iterator<char>(in), {});
    if (!in)
      throw Error(source + ": " + std::strerror(errno), 2);
    while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r'))
      secret.pop_back();
  } else if (const char *text = std::getenv(secret_variable)) {
    secret = text;
    if (secret.empty())
      return "";
  } else {
    return "";
  }
  if (secret.size() < least_secret)
    throw Error(source + " has " + std::to_string(secret.size()) + " characters, and a secret of fewer than " +
                    std::to_string(least_secret) + " can be guessed: make one with 'openssl rand -hex 32'",
                2);
  return secret;
}

std::string make_nonce() {
  std::string nonce(nonce_bytes, '\0');
  if (sodium_init() < 0)
    throw Error("the system gives no random bytes");
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

std::string make_secret() {
  const std::string random = make_nonce();
  std::string text(2 * random.size() + 1, '\0');
  sodium_bin2hex(text.data(), text.size(), bytes_of(random), random.size());
  text.pop_back();
  return text;
}

std::string prove(const std::string &secret, const std::vector<std::string> &statement) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, bytes_of(secret), secret.size());
  for (const std::string &word : statement) {
    // Its length first, so that no two lists are the same bytes.
    const uint64_t length = word.size();
    crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char *>(&length), sizeof length);
    crypto_auth_hmacsha256_update(&state, bytes_of(word), word.size());
  }
  std::string proof(crypto_auth_hmacsha256_BYTES, '\0');
  crypto_auth_hmacsha256_final(&state, bytes_of(proof));
  return proof;
}

bool is_proof(const std::string &secret, const std::vector<std::string> &statement, const std::string &proof) {
  const std::string right = prove(secret, statement);
  return proof.size() == right.size() && sodium_memcmp(proof.data(), right.data(), right.size()) == 0;
}

} // namespace drt
