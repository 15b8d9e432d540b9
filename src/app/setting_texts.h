#pragma once

#include <string>

namespace millrace {

struct Settings;

// What a daemon serves with, setting by setting, as text: the same text for the same meaning,
// however it was given. Paths are absolute, with symlinks followed.
std::string store_text(const Settings& settings);
std::string cache_text(const Settings& settings);
std::string cache_size_text(const Settings& settings);
std::string cache_free_min_text(const Settings& settings);
std::string cache_key_file_text(const Settings& settings);
std::string buckets_text(const Settings& settings);
std::string require_version_text(const Settings& settings);
std::string nfs_text(const Settings& settings);
std::string exports_text(const Settings& settings);
std::string nfs_lease_text(const Settings& settings);
std::string nfs_key_file_text(const Settings& settings);
std::string nfs_tls_certificate_text(const Settings& settings);
std::string nfs_tls_key_text(const Settings& settings);
std::string nfs_tls_client_ca_text(const Settings& settings);

}  // namespace millrace
