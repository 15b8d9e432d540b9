#include "app/setting_texts.h"

#include <filesystem>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/settings.h"

namespace millrace {
namespace {

constexpr std::string_view kNone = "none";

std::string path_text(const std::string& path) {
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, error);
  // It cannot be looked at: then it is taken as it was given.
  if (error) return path;
  // "cache/" is "cache".
  return canonical.has_filename() ? canonical.string() : canonical.parent_path().string();
}

std::string file_text(const std::string& path) {
  return path.empty() ? std::string(kNone) : path_text(path);
}

std::string url_text(StoreUrl url) {
  if (url.scheme == StoreUrl::Scheme::kFile) url.root = path_text(url.root);
  return url.to_string();
}

std::string list_text(const std::vector<std::string>& parts, std::string_view separator) {
  return parts.empty() ? std::string(kNone) : fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace

std::string store_text(const Settings& settings) { return url_text(settings.store); }

std::string cache_text(const Settings& settings) { return path_text(settings.cache); }

std::string cache_size_text(const Settings& settings) {
  if (const auto* const bytes = std::get_if<std::uint64_t>(&settings.cache_size)) {
    return fmt::format("{}B", *bytes);
  }
  return fmt::format("{}%", std::get<Percentage>(settings.cache_size).percent);
}

std::string cache_free_min_text(const Settings& settings) {
  return fmt::format("{}%", settings.cache_free_min.percent);
}

std::string cache_key_file_text(const Settings& settings) {
  return file_text(settings.cache_key_file);
}

std::string buckets_text(const Settings& settings) {
  std::vector<std::string> parts;
  for (const BucketSetting& bucket : settings.buckets)
    parts.push_back(fmt::format("{}={}", bucket.name, url_text(bucket.url)));
  return list_text(parts, ",");
}

std::string require_version_text(const Settings& settings) {
  return settings.require_version ? "true" : "false";
}

std::string nfs_text(const Settings& settings) {
  return settings.nfs ? settings.nfs->to_string() : std::string(kNone);
}

std::string exports_text(const Settings& settings) {
  std::vector<std::string> parts;
  for (const NfsExport& exported : settings.exports)
    parts.push_back(exported.to_string());
  return list_text(parts, ";");
}

std::string nfs_lease_text(const Settings& settings) { return format_duration(settings.nfs_lease); }

std::string nfs_key_file_text(const Settings& settings) { return file_text(settings.nfs_key_file); }

std::string nfs_tls_certificate_text(const Settings& settings) {
  return file_text(settings.nfs_tls_certificate);
}

std::string nfs_tls_key_text(const Settings& settings) { return file_text(settings.nfs_tls_key); }

std::string nfs_tls_client_ca_text(const Settings& settings) {
  return file_text(settings.nfs_tls_client_ca);
}

}  // namespace millrace
