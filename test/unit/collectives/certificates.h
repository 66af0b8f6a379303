//===- certificates.h - Certificates for tasks of a test ------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#ifndef DISTC_TEST_UNIT_COLLECTIVES_CERTIFICATES_H
#define DISTC_TEST_UNIT_COLLECTIVES_CERTIFICATES_H

#include "tls/tls.h"

#include <cstdio>
#include <filesystem>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

namespace drt::test {

/// A certificate that is its own authority, in a folder of this process's.
inline std::shared_ptr<const Tls> make_tls() {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("distc-test-" + std::to_string(getpid()) + "-tls");
  std::filesystem::create_directories(folder);
  const TlsFiles files = {folder / "task.pem", folder / "task.key", folder / "task.pem"};
  EVP_PKEY *key = EVP_EC_gen("P-256");
  X509 *certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME *name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char *>("test"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  bool good = X509_sign(certificate, key, EVP_sha256()) > 0;
  if (std::FILE *file = std::fopen(files.certificate.c_str(), "w")) {
    good &= PEM_write_X509(file, certificate) == 1;
    std::fclose(file);
  }
  if (std::FILE *file = std::fopen(files.key.c_str(), "w")) {
    good &= PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) == 1;
    std::fclose(file);
  }
  X509_free(certificate);
  EVP_PKEY_free(key);
  if (!good)
    throw std::runtime_error("no certificate could be made");
  std::shared_ptr<const Tls> tls = openTls(files);
  std::filesystem::remove_all(folder);
  return tls;
}

} // namespace drt::test

#endif // DISTC_TEST_UNIT_COLLECTIVES_CERTIFICATES_H
