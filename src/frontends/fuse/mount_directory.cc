#include "frontends/fuse/mount_directory.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/utf8.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

// As the kernel has it.
constexpr int kSymlinksMax = 40;

Result<std::string> resolved(const fs::path& path) {
  std::error_code error;
  const fs::path found = fs::canonical(path, error);
  if (error) return failure(StatusCode::kNotFound, error.message());
  return found.string();
}

}  // namespace

Result<std::string> mount_directory(const std::string& given) {
  std::error_code error;
  fs::path path = fs::absolute(given, error);
  if (error) return failure(StatusCode::kNotFound, error.message());
  for (int n = 0; n < kSymlinksMax; ++n) {
    if (!path.has_filename()) path = path.parent_path();  // "mnt/"
    if (path.filename() == "." || path.filename() == ".." || path == path.root_path()) {
      return resolved(path);
    }
    const fs::path target = fs::read_symlink(path, error);
    if (error) {
      MR_ASSIGN_OR_RETURN(const std::string parent, resolved(path.parent_path()));
      return (fs::path(parent) / path.filename()).string();
    }
    path = path.parent_path() / target;
  }
  return failure(StatusCode::kNotFound, "too many symlinks");
}

Status check_mount_text(const std::string& directory) {
  if (is_utf8(directory)) return {};
  return {StatusCode::kInvalidArgument,
          fmt::format("cannot mount on '{}': its path is not UTF-8; mount on a directory of "
                      "another name",
                      directory)};
}

}  // namespace millrace
