#include "tests/servers/test_tls.h"

#include <fstream>
#include <memory>
#include <stdexcept>

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

namespace millrace::testing {
namespace {

constexpr long kDaySeconds = 24L * 3600;

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

void require(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string("test TLS: OpenSSL refuses ") + what);
}

Key make_key() {
  // Not EVP_EC_gen(): that macro casts a constant away.
  Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"), EVP_PKEY_free);
  require(key != nullptr, "to make a key");
  return key;
}

void add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  require(extension != nullptr, value.c_str());
  const int added = X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
  require(added == 1, "an extension");
}

// A certificate without extensions and signature, valid until end_seconds from now.
Certificate start_certificate(EVP_PKEY* key, const std::string& name, long end_seconds) {
  Certificate certificate(X509_new(), X509_free);
  require(certificate != nullptr, "a certificate");
  X509_set_version(certificate.get(), X509_VERSION_3);
  // Random, because clients refuse two certificates of one issuer with the same serial.
  uint64_t serial = 0;
  require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1, "a serial");
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -7 * kDaySeconds);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), end_seconds);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

template <typename Write>
std::string to_pem(Write write) {
  std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  require(bio != nullptr && write(bio.get()) == 1, "to write PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<size_t>(size));
}

struct Signer {
  X509* certificate;
  EVP_PKEY* key;
};

TlsIdentity make_identity(const Signer& ca, const std::string& name, const std::string& usage,
                          const std::string& names, long end_seconds) {
  const Key key = make_key();
  const Certificate made = start_certificate(key.get(), name, end_seconds);
  X509_set_issuer_name(made.get(), X509_get_subject_name(ca.certificate));
  add_extension(made.get(), ca.certificate, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(made.get(), ca.certificate, NID_subject_alt_name, names);
  add_extension(made.get(), ca.certificate, NID_ext_key_usage, usage);
  add_extension(made.get(), ca.certificate, NID_authority_key_identifier, "keyid");
  require(X509_sign(made.get(), ca.key, EVP_sha256()) > 0, "to sign the certificate");
  return {.certificate_pem = to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, made.get()); }),
          .key_pem = to_pem([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace

TestTls::TestTls(const TestTlsOptions& options) {
  const Key ca_key = make_key();
  const Certificate ca = start_certificate(ca_key.get(), "Millrace test CA", 7 * kDaySeconds);
  X509_set_issuer_name(ca.get(), X509_get_subject_name(ca.get()));
  add_extension(ca.get(), ca.get(), NID_basic_constraints, "critical,CA:TRUE");
  add_extension(ca.get(), ca.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(ca.get(), ca.get(), NID_subject_key_identifier, "hash");
  require(X509_sign(ca.get(), ca_key.get(), EVP_sha256()) > 0, "to sign the CA");

  const long end_seconds = options.expired ? -kDaySeconds : 7 * kDaySeconds;
  std::string names;
  for (const std::string& name : options.names) {
    names += (names.empty() ? "" : ",") + name;
  }
  ca_pem_ = to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, ca.get()); });
  server_ = make_identity({ca.get(), ca_key.get()}, "Millrace test server", "serverAuth", names,
                          end_seconds);
  client_ = make_identity({ca.get(), ca_key.get()}, "Millrace test client", "clientAuth",
                          "DNS:client", 7 * kDaySeconds);
}

void TestTls::write_ca_bundle(const std::string& path) const {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << ca_pem_;
  file.close();
  if (!file) throw std::runtime_error("test TLS: cannot write the CA bundle " + path);
}

}  // namespace millrace::testing
