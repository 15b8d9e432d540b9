#include "platform/curl_http_client.h"

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include <curl/curl.h>

#include "base/version.h"
#include "platform/http_loop.h"

namespace millrace {
namespace {

// Where distributions keep the certificates. A relocated binary carries an OpenSSL whose
// compiled-in path may not exist on this machine.
std::string default_ca_bundle() {
  for (const char* variable : {"AWS_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != 0) return value;
  }
  for (const char* path : {
           "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch, Alpine
           "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, older RHEL
           "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // RHEL
           "/etc/ssl/ca-bundle.pem",                             // SUSE
       }) {
    if (::access(path, R_OK) == 0) return path;
  }
  return "/etc/ssl/certs/ca-certificates.crt";
}

std::string default_no_proxy() {
  std::string hosts = "localhost,127.0.0.0/8,::1,169.254.0.0/16,fd00:ec2::254";
  for (const char* variable : {"no_proxy", "NO_PROXY"}) {
    const char* value = std::getenv(variable);
    if (value == nullptr || *value == 0) continue;
    // Alone it means "no proxy at all"; as part of a list it would be a host's name.
    return std::string_view(value) == "*" ? "*" : hosts + "," + value;
  }
  return hosts;
}

void initialise_curl_once() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (code != CURLE_OK) throw std::runtime_error("libcurl cannot be initialised");
}

}  // namespace

CurlHttpClient::CurlHttpClient(CurlHttpClientOptions options)
    : options_(std::move(options)),
      in_flight_("http_requests_in_flight", Limiter::Unit::kCount,
                 options_.requests_in_flight_max) {
  initialise_curl_once();
  if (options_.ca_bundle.empty()) options_.ca_bundle = default_ca_bundle();
  if (options_.no_proxy.empty()) options_.no_proxy = default_no_proxy();
  if (options_.user_agent.empty()) options_.user_agent = "millrace/" + std::string(version());
  const std::size_t loops = std::max<std::size_t>(1, options_.loops);
  const std::size_t connections = std::max<std::size_t>(1, options_.connections_max / loops);
  for (std::size_t i = 0; i < loops; ++i) {
    loops_.push_back(
        std::make_unique<HttpLoop>("http-" + std::to_string(i), options_, connections));
  }
}

CurlHttpClient::~CurlHttpClient() = default;

void CurlHttpClient::send(const RequestContext& context, HttpRequest request,
                          Completion<HttpResponse> done) {
  Result<Limiter::Reservation> slot = in_flight_.try_reserve(1);
  if (!slot) {
    done.complete(failure(std::move(slot).error()));
    return;
  }
  const std::uint64_t turn = next_loop_.fetch_add(1, std::memory_order_relaxed);
  loops_[turn % loops_.size()]->start(std::make_unique<HttpExchange>(
      context, std::move(request), std::move(done), std::move(*slot)));
}

std::uint64_t CurlHttpClient::connections_opened() const {
  std::uint64_t opened = 0;
  for (const auto& loop : loops_)
    opened += loop->connections_opened();
  return opened;
}

}  // namespace millrace
