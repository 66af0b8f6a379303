//===- openssl_tls.cpp - TLS by OpenSSL -----------------------------------===//
//
// Part of distc. Licensed under the Apache License, Version 2.0.
//
//===----------------------------------------------------------------------===//
#include "core/error.h"
#include "tls/tls.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

namespace drt {
namespace {

template <auto Free> struct Freed {
  template <class T> void operator()(T *object) const { Free(object); }
};
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;

/// OpenSSL's reason, of the first error that this thread has not asked for.
std::string reason() {
  const unsigned long code = ERR_peek_error();
  const char *text = code ? ERR_reason_error_string(code) : nullptr;
  ERR_clear_error();
  return text ? text : "no reason is known";
}

/// Of a file that OpenSSL has not read: what the system says of it, else what is wrong inside.
[[noreturn]] void refuseFile(const char *flag, const std::string &path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const std::string why = file < 0 ? std::strerror(errno) : "it is no such PEM file (" + reason() + ")";
  if (file >= 0)
    ::close(file);
  throw Error(std::string(flag) + " " + path + ": " + why, 2);
}

class OpenSslStream final : public TlsStream {
public:
  OpenSslStream(SSL_CTX *context, int socket, Tls::Side side) : socket_(socket), session_(SSL_new(context)) {
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
    if (!session_ || SSL_set_fd(session_.get(), socket) != 1) {
      ::close(socket);
      throw Error("TLS: " + reason());
    }
    if (side == Tls::Side::Connected)
      SSL_set_connect_state(session_.get());
    else
      SSL_set_accept_state(session_.get());
  }
  ~OpenSslStream() override { ::close(socket_); }

  bool handshake() override {
    std::lock_guard lock(mutex_);
    ERR_clear_error();
    const int result = SSL_do_handshake(session_.get());
    return result == 1 || !waits(result, "the TLS handshake failed");
  }
  bool wantsWrite() const override { return wantsWrite_; }

  int64_t read(char *data, int64_t bytes) override {
    std::lock_guard lock(mutex_);
    ERR_clear_error();
    const int result = SSL_read(session_.get(), data, static_cast<int>(std::min<int64_t>(bytes, INT_MAX)));
    return result > 0 ? result : (waits(result, "TLS"), 0);
  }
  int64_t write(const char *data, int64_t bytes) override {
    std::lock_guard lock(mutex_);
    ERR_clear_error();
    const int result = SSL_write(session_.get(), data, static_cast<int>(std::min<int64_t>(bytes, INT_MAX)));
    return result > 0 ? result : (waits(result, "TLS"), 0);
  }

  int descriptor() const override { return socket_; }
  void shut() noexcept override { ::shutdown(socket_, SHUT_RDWR); }

private:
  /// True where the call can be made again later; else throws.
  bool waits(int result, const char *what) {
    const int cause = errno;
    const int error = SSL_get_error(session_.get(), result);
    wantsWrite_ = error == SSL_ERROR_WANT_WRITE;
    if (error == SSL_ERROR_WANT_READ || wantsWrite_)
      return true;
    if (const long verified = SSL_get_verify_result(session_.get()); verified != X509_V_OK)
      throw Error(std::string("the certificate of the other end is refused: ") +
                  X509_verify_cert_error_string(verified));
    const bool ended =
        error == SSL_ERROR_ZERO_RETURN || ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING;
    if (ended || (error == SSL_ERROR_SYSCALL && (cause == 0 || cause == ECONNRESET)))
      throw Error("connection closed");
    if (error == SSL_ERROR_SYSCALL)
      throw Error(std::strerror(cause));
    throw Error(std::string(what) + ": " + reason());
  }

  const int socket_;
  const Session session_;
  std::mutex mutex_;
  bool wantsWrite_ = false;
};

class OpenSsl final : public Tls {
public:
  explicit OpenSsl(const TlsFiles &files) {
    // OpenSSL writes without MSG_NOSIGNAL; a closed connection is an error here, not a signal.
    if (std::signal(SIGPIPE, SIG_IGN) == SIG_ERR)
      throw Error("cannot ignore SIGPIPE");
    // No configuration of the machine's: what a run believes follows from its flags.
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    context_.reset(SSL_CTX_new(TLS_method()));
    SSL_CTX *context = context_.get();
    if (!context || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1)
      throw Error("TLS: " + reason());
    // A session is never taken up again, and tickets would come unasked.
    SSL_CTX_set_num_tickets(context, 0);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // A key that needs a password is refused, and nobody asked for it.
    bool needsPassword = false;
    SSL_CTX_set_default_passwd_cb(context, [](char *, int, int, void *needed) {
      if (needed)
        *static_cast<bool *>(needed) = true;
      return -1;
    });
    SSL_CTX_set_default_passwd_cb_userdata(context, &needsPassword);
    ERR_clear_error();
    if (SSL_CTX_load_verify_file(context, files.authority.c_str()) != 1)
      refuseFile("--tls-ca", files.authority);
    if (SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()) != 1)
      refuseFile("--tls-cert", files.certificate);
    if (SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
      if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
        throw Error("--tls-key " + files.key + " is not the key of --tls-cert " + files.certificate, 2);
      if (needsPassword)
        throw Error(
            "--tls-key " + files.key +
                " is encrypted, and nobody is asked for its password: give a key that has none, which its owner "
                "alone may read (openssl pkey -in KEY -out PLAIN)",
            2);
      refuseFile("--tls-key", files.key);
    }
    SSL_CTX_set_default_passwd_cb_userdata(context, nullptr);
    if (SSL_CTX_check_private_key(context) != 1)
      throw Error("--tls-key " + files.key + " is not the key of --tls-cert " + files.certificate, 2);
    checkName(SSL_CTX_get0_param(context), files.name);
    checkOwn(files);
  }

  std::unique_ptr<TlsStream> open(int socket, Side side) const override {
    return std::make_unique<OpenSslStream>(context_.get(), socket, side);
  }

private:
  /// Whoever is verified by `checks` must have that name, the address where it is one.
  static void checkName(X509_VERIFY_PARAM *checks, const std::string &name) {
    if (name.empty() || X509_VERIFY_PARAM_set1_ip_asc(checks, name.c_str()) == 1)
      return;
    X509_VERIFY_PARAM_set_hostflags(checks, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (X509_VERIFY_PARAM_set1_host(checks, name.data(), name.size()) != 1)
      throw Error("--tls-name " + name + " is no name of a host, and no address", 2);
  }

  /// What no other task would believe is said here already.
  void checkOwn(const TlsFiles &files) const {
    SSL_CTX *context = context_.get();
    STACK_OF(X509) *between = nullptr;
    SSL_CTX_get0_chain_certs(context, &between);
    for (const char *purpose : {"ssl_server", "ssl_client"}) {
      const StoreContext check(X509_STORE_CTX_new());
      if (!check || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context), SSL_CTX_get0_certificate(context),
                                        between) != 1)
        throw Error("TLS: " + reason());
      X509_STORE_CTX_set_default(check.get(), purpose);
      checkName(X509_STORE_CTX_get0_param(check.get()), files.name);
      if (X509_verify_cert(check.get()) != 1)
        throw Error("--tls-cert " + files.certificate + " would be refused by tasks with --tls-ca " + files.authority +
                        (files.name.empty() ? "" : " and --tls-name " + files.name) + ": " +
                        X509_verify_cert_error_string(X509_STORE_CTX_get_error(check.get())) +
                        "; a task's certificate is signed by that authority, for client and server",
                    2);
    }
  }

  Context context_;
};

} // namespace
} // namespace drt

drt::Tls *drt_open_tls(const drt::TlsFiles *files) { return new drt::OpenSsl(*files); }
