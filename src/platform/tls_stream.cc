#include "platform/tls_stream.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace millrace {
namespace {

constexpr int kBioBytesMax = 1 << 30;

// The first thing that OpenSSL complained about; its list is empty afterwards.
std::string tls_complaint() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  // OpenSSL has no words for what the system refused, as a file that is not there.
  if (ERR_SYSTEM_ERROR(code)) return std::generic_category().message(ERR_GET_REASON(code));
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "no reason is known" : reason;
}

Status refuse_file(std::string_view what, const std::string& file) {
  return {StatusCode::kInvalidArgument,
          fmt::format("'{}' cannot be used as {}: {}", file, what, tls_complaint())};
}

// Of an offer such as "\6sunrpc\2h2".
int select_protocol(SSL* /*ssl*/, const unsigned char** chosen, unsigned char* chosen_size,
                    const unsigned char* offered, unsigned int offered_size, void* wanted) {
  const std::string& protocol = *static_cast<const std::string*>(wanted);
  std::span<const unsigned char> left(offered, offered_size);
  while (!left.empty() && left.front() < left.size()) {
    const auto name = left.subspan(1, left.front());
    if (std::ranges::equal(name, protocol)) {
      *chosen = name.data();
      *chosen_size = left.front();
      return SSL_TLSEXT_ERR_OK;
    }
    left = left.subspan(1 + name.size());
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Nobody is there to type one.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*unused*/) { return 0; }

}  // namespace

// ---- The server

Result<std::unique_ptr<const TlsServer>> TlsServer::open(const TlsServerFiles& files,
                                                         std::string_view protocol) {
  ERR_clear_error();
  SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return failure(StatusCode::kInternal, "OpenSSL does not start");
  std::unique_ptr<TlsServer> server(
      new TlsServer(context, protocol, !files.client_authority.empty()));
  MR_RETURN_IF_ERROR(server->use(files));
  return server;
}

TlsServer::~TlsServer() { SSL_CTX_free(context_); }

Status TlsServer::use(const TlsServerFiles& files) {
  SSL_CTX_set_min_proto_version(context_, TLS1_3_VERSION);
  // Connections live for days: nothing is gained by resuming one, and a client that is asked for
  // its certificate shows it each time.
  SSL_CTX_set_session_cache_mode(context_, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context_, 0);
  SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(context_, no_passphrase);
  SSL_CTX_set_alpn_select_cb(context_, select_protocol, const_cast<std::string*>(&protocol_));
  if (SSL_CTX_use_certificate_chain_file(context_, files.certificate.c_str()) != 1)
    return refuse_file("a certificate", files.certificate);
  if (SSL_CTX_use_PrivateKey_file(context_, files.key.c_str(), SSL_FILETYPE_PEM) != 1)
    return refuse_file("the key of the certificate", files.key);
  if (!asks_peers_) return {};
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(files.client_authority.c_str());
  if (names == nullptr || SSL_CTX_load_verify_file(context_, files.client_authority.c_str()) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return refuse_file("the authority of clients", files.client_authority);
  }
  SSL_CTX_set_client_CA_list(context_, names);
  // Asked, and checked when it is shown: who needs one is not for TLS to say.
  SSL_CTX_set_verify(context_, SSL_VERIFY_PEER, nullptr);
  return {};
}

Result<std::unique_ptr<TlsStream>> TlsServer::accept() const {
  SSL* const ssl = SSL_new(context_);
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  if (ssl == nullptr || in == nullptr || out == nullptr) {
    SSL_free(ssl);
    BIO_free(in);
    BIO_free(out);
    return failure(StatusCode::kInternal, "OpenSSL has no memory for a connection");
  }
  SSL_set_bio(ssl, in, out);
  SSL_set_accept_state(ssl);
  return std::unique_ptr<TlsStream>(new TlsStream(ssl));
}

// ---- A connection

TlsStream::~TlsStream() { SSL_free(ssl_); }

Status TlsStream::receive(ByteView bytes) {
  assert(bytes.size() < kBioBytesMax);
  ERR_clear_error();
  // A BIO in memory takes everything.
  if (BIO_write(SSL_get_rbio(ssl_), bytes.data(), static_cast<int>(bytes.size())) !=
      static_cast<int>(bytes.size())) {
    return {StatusCode::kInternal, "OpenSSL has no memory for a connection"};
  }
  if (is_ready()) return {};
  const int outcome = SSL_do_handshake(ssl_);
  if (outcome == 1 || SSL_get_error(ssl_, outcome) == SSL_ERROR_WANT_READ) return {};
  const bool refused = SSL_get_verify_result(ssl_) != X509_V_OK;
  return {refused ? StatusCode::kPermissionDenied : StatusCode::kInvalidArgument,
          "TLS was not agreed on: " + tls_complaint()};
}

Result<std::size_t> TlsStream::read(MutableByteView into) {
  if (!is_ready()) return std::size_t{0};
  ERR_clear_error();
  std::size_t size = 0;
  const int outcome = SSL_read_ex(ssl_, into.data(), into.size(), &size);
  if (outcome == 1) return size;
  switch (SSL_get_error(ssl_, outcome)) {
    case SSL_ERROR_WANT_READ:
      return std::size_t{0};
    case SSL_ERROR_ZERO_RETURN:
      return failure(StatusCode::kUnavailable, "the other side ended TLS");
    default:
      return failure(StatusCode::kInvalidArgument, "what arrived is no TLS: " + tls_complaint());
  }
}

Status TlsStream::write(ByteView bytes) {
  assert(is_ready());
  if (bytes.empty()) return {};
  ERR_clear_error();
  std::size_t size = 0;
  if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &size) == 1) return {};
  return {StatusCode::kInternal, "TLS cannot send: " + tls_complaint()};
}

void TlsStream::end() {
  if (!is_ready()) return;
  (void)SSL_shutdown(ssl_);
  ERR_clear_error();
}

Slice TlsStream::output() {
  BIO* const out = SSL_get_wbio(ssl_);
  const std::size_t size = BIO_ctrl_pending(out);
  if (size == 0) return {};
  Buffer buffer = Buffer::allocate(size);
  std::size_t taken = 0;
  (void)BIO_read_ex(out, buffer.data(), size, &taken);
  assert(taken == size);
  return std::move(buffer).freeze();
}

bool TlsStream::is_ready() const { return SSL_is_init_finished(ssl_) == 1; }

bool TlsStream::knows_peer() const {
  // Of a peer that showed nothing the result is as good.
  return SSL_get0_peer_certificate(ssl_) != nullptr && SSL_get_verify_result(ssl_) == X509_V_OK;
}

}  // namespace millrace
