#include <array>
#include <charconv>

#include <fmt/format.h>

#include "app/setting_texts.h"
#include "app/settings.h"
#include "base/units.h"

namespace millrace {
namespace {

Status set_directory(std::string& member, const std::string& text) {
  if (text.empty()) return {StatusCode::kInvalidArgument, "is empty: expected a path"};
  member = text;
  return {};
}

Status set_count(std::uint32_t& member, const std::string& text, std::uint32_t min,
                 std::uint32_t max) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min || value > max) {
    return {
        StatusCode::kInvalidArgument,
        fmt::format("'{}' is not accepted: expected a whole number from {} to {}", text, min, max)};
  }
  member = value;
  return {};
}

Status set_store(Settings& settings, const std::string& text) {
  MR_ASSIGN_OR_RETURN(settings.store, parse_store_url(text));
  return {};
}

Status set_cache(Settings& settings, const std::string& text) {
  if (!text.starts_with('/')) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' is not absolute: it would be another directory wherever a daemon is "
                        "started from; expected a path as /nvme/millrace",
                        text)};
  }
  return set_directory(settings.cache, text);
}

Status set_cache_size(Settings& settings, const std::string& text) {
  MR_ASSIGN_OR_RETURN(settings.cache_size, parse_size_or_percentage(text));
  const auto* const bytes = std::get_if<std::uint64_t>(&settings.cache_size);
  const auto* const share = std::get_if<Percentage>(&settings.cache_size);
  constexpr std::uint64_t kMin = 64 * kMiB;  // One segment of small objects, and some room.
  if ((bytes != nullptr && *bytes < kMin) || (share != nullptr && share->percent <= 0)) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' is too little: expected at least 64 MiB", text)};
  }
  return {};
}

Status set_cache_free_min(Settings& settings, const std::string& text) {
  MR_ASSIGN_OR_RETURN(settings.cache_free_min, parse_percentage(text));
  return {};
}

Status set_key_file(std::string& member, const std::string& text) {
  if (text == "none") {
    member.clear();
    return {};
  }
  return set_directory(member, text);
}

Status set_cache_key_file(Settings& settings, const std::string& text) {
  return set_key_file(settings.cache_key_file, text);
}

Status set_socket(Settings& settings, const std::string& text) {
  // sun_path of a Unix socket is 108 bytes, its terminator included.
  constexpr std::size_t kSocketPathBytesMax = 107;
  if (text.size() > kSocketPathBytesMax) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' is {} bytes long: the kernel takes socket paths up to {}", text,
                        text.size(), kSocketPathBytesMax)};
  }
  return set_directory(settings.socket, text);
}

Status set_log_level(Settings& settings, const std::string& text) {
  constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warn", "error", "off"};
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (text == kNames[i]) settings.log_level = static_cast<LogLevel>(i);
  }
  return {};  // The loader has checked the text against the choices.
}

Status set_log_format(Settings& settings, const std::string& text) {
  settings.log_format = text == "json" ? LogFormat::kJson : LogFormat::kText;
  return {};
}

Status set_timeout(Settings& settings, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const Duration timeout, parse_duration(text));
  if (timeout < std::chrono::milliseconds(10) || timeout > std::chrono::hours(24)) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' is not accepted: expected from 10ms to 24h", text)};
  }
  settings.timeout = timeout;
  return {};
}

Status set_attempts(Settings& s, const std::string& text) {
  return set_count(s.attempts_max, text, 1, 100);
}

Status set_memory(Settings& settings, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const std::uint64_t bytes, parse_size(text));
  constexpr std::uint64_t kMin = 64 * kMiB;  // Eight ranges of 8 MiB in flight.
  if (bytes < kMin) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' is too little: expected at least 64 MiB", text)};
  }
  settings.memory_max_bytes = bytes;
  return {};
}

Status set_connections(Settings& s, const std::string& text) {
  return set_count(s.connections_max, text, 1, 4096);
}

Status set_disk_threads(Settings& s, const std::string& text) {
  return set_count(s.disk_threads, text, 1, 256);
}

Status set_buckets(Settings& settings, const std::string& text) {
  MR_ASSIGN_OR_RETURN(settings.buckets, parse_bucket_settings(text));
  return {};
}

Status set_require_version(Settings& settings, const std::string& text) {
  settings.require_version = text == "true";  // One of the choices.
  return {};
}

Status set_nfs(Settings& settings, const std::string& text) {
  MR_ASSIGN_OR_RETURN(settings.nfs, parse_nfs_setting(text));
  return {};
}

Status set_exports(Settings& settings, const std::string& text) {
  MR_ASSIGN_OR_RETURN(settings.exports, parse_nfs_exports(text));
  return {};
}

Status set_nfs_lease(Settings& settings, const std::string& text) {
  MR_ASSIGN_OR_RETURN(settings.nfs_lease, parse_duration(text));
  if (settings.nfs_lease < std::chrono::seconds(10) ||
      settings.nfs_lease > std::chrono::hours(24)) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' is not accepted: expected from 10s to 24h", text)};
  }
  return {};
}

Status set_nfs_key_file(Settings& settings, const std::string& text) {
  return set_key_file(settings.nfs_key_file, text);
}

Status set_nfs_tls_certificate(Settings& settings, const std::string& text) {
  return set_key_file(settings.nfs_tls_certificate, text);
}

Status set_nfs_tls_key(Settings& settings, const std::string& text) {
  return set_key_file(settings.nfs_tls_key, text);
}

Status set_nfs_tls_client_ca(Settings& settings, const std::string& text) {
  return set_key_file(settings.nfs_tls_client_ca, text);
}

const auto kSettings = std::to_array<SettingSpec>({
    {"store",
     "MILLRACE_STORE",
     "--store",
     "URL",
     "file://<data>/store",
     "The object store: s3://bucket/prefix, file:///directory, ./directory or memory://name",
     {},
     set_store,
     store_text},
    {"cache",
     "MILLRACE_CACHE",
     "--cache",
     "DIR",
     "<data>/cache",
     "Directory of the local cache; put it on NVMe",
     {},
     set_cache,
     cache_text},
    {"cache_size",
     "MILLRACE_CACHE_SIZE",
     "--cache-size",
     "SIZE",
     "80%",
     "How much the cache may hold: 500GiB, or a part of its disk",
     {},
     set_cache_size,
     cache_size_text},
    {"cache_free_min",
     "MILLRACE_CACHE_FREE_MIN",
     "--cache-free-min",
     "PERCENT",
     "5%",
     "What the cache leaves free of its disk, whatever its size may be",
     {},
     set_cache_free_min,
     cache_free_min_text},
    {"cache_key_file",
     "MILLRACE_CACHE_KEY_FILE",
     "--cache-key-file",
     "FILE",
     "none",
     "Encrypts the cache with the key in this file: 64 hexadecimal digits",
     {},
     set_cache_key_file,
     cache_key_file_text},
    {"socket",
     "MILLRACE_SOCKET",
     "--socket",
     "PATH",
     "<data>/millrace.sock",
     "Unix socket of the daemon on this machine",
     {},
     set_socket},
    {"log_level",
     "MILLRACE_LOG_LEVEL",
     "--log-level",
     "LEVEL",
     "error",
     "What is logged to standard error",
     {"debug", "info", "warn", "error", "off"},
     set_log_level},
    {"log_format",
     "MILLRACE_LOG_FORMAT",
     "--log-format",
     "FORMAT",
     "text",
     "How log lines look",
     {"text", "json"},
     set_log_format},
    {"timeout",
     "MILLRACE_TIMEOUT",
     "--timeout",
     "DURATION",
     "2m",
     "How long one request to the store may take, its retries included",
     {},
     set_timeout},
    {"attempts_max",
     "MILLRACE_ATTEMPTS_MAX",
     "--attempts-max",
     "COUNT",
     "6",
     "How often a request is tried before it fails",
     {},
     set_attempts},
    {"memory_max",
     "MILLRACE_MEMORY_MAX",
     "--memory-max",
     "SIZE",
     "512MiB",
     "Ceiling of the memory for data on its way",
     {},
     set_memory},
    {"connections_max",
     "MILLRACE_CONNECTIONS_MAX",
     "--connections-max",
     "COUNT",
     "128",
     "Connections to the store at one time",
     {},
     set_connections},
    {"disk_threads",
     "MILLRACE_DISK_THREADS",
     "--disk-threads",
     "COUNT",
     "8",
     "Threads that read local disks",
     {},
     set_disk_threads},
    {"buckets",
     "MILLRACE_BUCKETS",
     "--buckets",
     "NAME=URL,...",
     "none",
     "Stores that are shown as they are, below /buckets: "
     "train=s3://bucket/prefix,other=file:///dir",
     {},
     set_buckets,
     buckets_text},
    {"require_version",
     "MILLRACE_REQUIRE_VERSION",
     "--require-version",
     "BOOL",
     "false",
     "Serve registered versions only: /buckets is not there, and other paths are refused",
     {"true", "false"},
     set_require_version,
     require_version_text},
    {"nfs",
     "MILLRACE_NFS",
     "--nfs",
     "ADDR[:PORT]",
     "none",
     "Where NFS is served: 0.0.0.0, 10.0.0.1:2049 or [::]:2049",
     {},
     set_nfs,
     nfs_text},
    {"exports",
     "MILLRACE_EXPORTS",
     "--exports",
     "PATH[=SOURCE],...",
     "/datasets",
     "What NFS clients may mount: "
     "/datasets;/v2=/datasets/imagenet/v2,clients=10.0.0.0/8,squash=all",
     {},
     set_exports,
     exports_text},
    {"nfs_lease",
     "MILLRACE_NFS_LEASE",
     "--nfs-lease",
     "DURATION",
     "1h",
     "How long NFS clients keep files that they do not use without asking again",
     {},
     set_nfs_lease,
     nfs_lease_text},
    {"nfs_key_file",
     "MILLRACE_NFS_KEY_FILE",
     "--nfs-key-file",
     "FILE",
     "none",
     "Secret of NFS file handles, the same on all gateways that clients may change between; none "
     "is "
     "one of this machine's own",
     {},
     set_nfs_key_file,
     nfs_key_file_text},
    {"nfs_tls_certificate",
     "MILLRACE_NFS_TLS_CERTIFICATE",
     "--nfs-tls-certificate",
     "FILE",
     "none",
     "Certificate (PEM) for NFS clients that mount with xprtsec=tls; none is no TLS",
     {},
     set_nfs_tls_certificate,
     nfs_tls_certificate_text},
    {"nfs_tls_key",
     "MILLRACE_NFS_TLS_KEY",
     "--nfs-tls-key",
     "FILE",
     "none",
     "Key (PEM, without a passphrase) of nfs_tls_certificate",
     {},
     set_nfs_tls_key,
     nfs_tls_key_text},
    {"nfs_tls_client_ca",
     "MILLRACE_NFS_TLS_CLIENT_CA",
     "--nfs-tls-client-ca",
     "FILE",
     "none",
     "Certificates (PEM) of those who sign for NFS clients that mount with xprtsec=mtls",
     {},
     set_nfs_tls_client_ca,
     nfs_tls_client_ca_text},
});

}  // namespace

std::span<const SettingSpec> all_settings() { return kSettings; }

std::string default_text(const SettingSpec& spec, const EnvironmentLookup& environment) {
  const UserDirectories directories = user_directories(environment);
  std::string text(spec.default_text);
  const auto fill = [&](std::string_view mark, std::string directory) {
    const auto at = text.find(mark);
    if (at != std::string::npos) text.replace(at, mark.size(), directory);
  };
  if (text.starts_with("file://")) {
    // Through the URL type, so that a home directory with a blank in its name is encoded.
    const StoreUrl url{StoreUrl::Scheme::kFile, directories.data + "/store", "", {}};
    return url.to_string();
  }
  fill("<data>", directories.data);
  return text;
}

}  // namespace millrace
