// A throw-away certificate authority, so that tests can speak TLS on the loopback.
#pragma once

#include <string>
#include <vector>

namespace millrace::testing {

// A certificate and its key, both PEM.
struct TlsIdentity {
  std::string certificate_pem;
  std::string key_pem;
};

struct TestTlsOptions {
  // What the server certificate is valid for, in OpenSSL's notation.
  std::vector<std::string> names = {"IP:127.0.0.1", "DNS:localhost", "DNS:*.localhost"};
  bool expired = false;  // The server certificate ended yesterday.
};

// Makes a CA, and a server's and a client's certificate signed by it, in memory, with P-256 keys.
// Immutable after construction. Throws std::runtime_error when OpenSSL refuses.
class TestTls {
 public:
  explicit TestTls(const TestTlsOptions& options = {});

  const TlsIdentity& server() const { return server_; }
  const TlsIdentity& client() const { return client_; }
  const std::string& ca_pem() const { return ca_pem_; }
  // Writes the CA certificate where a client can be pointed at it (CURLOPT_CAINFO).
  void write_ca_bundle(const std::string& path) const;

 private:
  std::string ca_pem_;
  TlsIdentity server_;
  TlsIdentity client_;
};

}  // namespace millrace::testing
