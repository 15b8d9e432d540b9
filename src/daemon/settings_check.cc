#include "daemon/settings_check.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "daemon/nfs_front_end.h"
#include "platform/file_error.h"
#include "platform/path.h"
#include "platform/posix_disk.h"
#include "platform/sector_cipher.h"

namespace millrace {
namespace {

Status check_cache(const std::string& path) {
  // Not all that looks writable is, as in /proc: so it is made, and what was made is taken away.
  std::vector<std::string> absent;
  for (std::string above = path; ::access(above.c_str(), F_OK) != 0 && errno == ENOENT;
       above = std::string(parent_path(above))) {
    absent.push_back(above);
  }
  PosixDisk disk;
  Status status = disk.make_directories(path);
  if (status.ok() && ::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) != 0) {
    status = file_error(errno, "write into", path);
  }
  for (const std::string& made : absent)
    static_cast<void>(::rmdir(made.c_str()));
  return status;
}

Status status_of(const Result<std::shared_ptr<ObjectStore>>& store) {
  return store ? Status() : store.error();
}

}  // namespace

Status check_settings(Application& application, MissingRoot missing) {
  const Settings& settings = application.settings();
  MR_RETURN_IF_ERROR(status_of(application.store(settings.store, missing)).with_context("store"));
  MR_RETURN_IF_ERROR(check_cache(settings.cache).with_context("cache"));
  if (!settings.cache_key_file.empty()) {
    const Result<SecretKey> key = SecretKey::load(settings.cache_key_file);
    if (!key) return key.error().with_context("cache_key_file");
  }
  for (const BucketSetting& bucket : settings.buckets) {
    MR_RETURN_IF_ERROR(status_of(application.store(bucket.url, MissingRoot::kRefuse))
                           .with_context(fmt::format("buckets: '{}'", bucket.name)));
  }
  return check_nfs_settings(settings);
}

}  // namespace millrace
