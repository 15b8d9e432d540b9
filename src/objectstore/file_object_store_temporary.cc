#include "objectstore/file_object_store_temporary.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "base/log.h"
#include "objectstore/file_object_store_keys.h"
#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace::file_object_store {
namespace {

const std::string kDirectoryName(kTemporaryDirectory);

timespec timespec_of(WallTime time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  return {.tv_sec = seconds.count(), .tv_nsec = (since - seconds).count()};
}

}  // namespace

Result<TemporaryFile> TemporaryFile::create(const Tree& tree, Random& random) {
  if (::mkdirat(tree.root(), kDirectoryName.c_str(), 0777) != 0 && errno != EEXIST) {
    return failure(
        file_error(errno, "make directory", join_path(tree.root_path(), kDirectoryName)));
  }
  MR_ASSIGN_OR_RETURN(File directory, tree.open_directory(kDirectoryName));
  std::string name = random.token();
  const int descriptor = ::openat(directory.descriptor(), name.c_str(),
                                  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  std::string path = join_path(directory.path(), name);
  if (descriptor < 0) return failure(file_error(errno, "create", path));
  TemporaryFile temporary(std::move(directory), File::adopt(descriptor, std::move(path)),
                          std::move(name));
  // Without locks on this file system an upload that pauses for a day could be taken for dead;
  // all else works, so this is no reason to refuse.
  ::flock(temporary.file_.descriptor(), LOCK_EX | LOCK_NB);
  return temporary;
}

TemporaryFile::~TemporaryFile() {
  if (Status status = remove(); !status.ok()) {
    log_warn("a temporary file stays behind", {{"reason", status.message()}});
  }
}

Status TemporaryFile::remove() {
  if (!file_.is_open()) return {};
  const bool removed = ::unlinkat(directory_.descriptor(), name_.c_str(), 0) == 0;
  const int error = errno;
  Status status = removed || error == ENOENT ? Status() : file_error(error, "remove", file_.path());
  file_.close();
  return status;
}

Result<ObjectInfo> TemporaryFile::seal(const Clock& clock, std::optional<std::uint32_t> crc32c,
                                       const ObjectMetadata& metadata) {
  // The kernel stamps writes with a clock that moves every few milliseconds; a finer stamp tells
  // two quick writes apart also where there is no attribute for a token.
  const timespec now = timespec_of(clock.wall_now());
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, now};
  if (::futimens(file_.descriptor(), times) != 0) {
    return failure(file_error(errno, "set the time of", file_.path()));
  }
  MR_ASSIGN_OR_RETURN(const struct stat facts, file_.stat());
  std::optional<Attributes> attributes =
      Attributes{.token = name_,  // As random as a token has to be, and never used again.
                 .size = static_cast<std::uint64_t>(facts.st_size),
                 .modified_ns = modified_ns(facts),
                 .crc32c = crc32c,
                 .metadata = metadata};
  if (Status status = write_attributes(file_, *attributes); !status.ok()) {
    if (status.code() != StatusCode::kUnsupported) return failure(std::move(status));
    if (!metadata.empty()) return failure(status.with_context("metadata cannot be stored"));
    attributes.reset();
  }
  MR_RETURN_IF_ERROR(file_.sync());
  ObjectInfo info;
  info.size = static_cast<std::uint64_t>(facts.st_size);
  info.identity = identity_of(facts, attributes);
  info.modified = modified_time(facts);
  return info;
}

void remove_abandoned_files(const Tree& tree, const Clock& clock, Duration age) {
  Result<File> directory = tree.open_directory(kDirectoryName);
  if (!directory) return;
  const int scan = ::fcntl(directory->descriptor(), F_DUPFD_CLOEXEC, 0);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(scan < 0 ? nullptr : ::fdopendir(scan),
                                                    ::closedir);
  if (entries == nullptr) return;
  const WallTime oldest_kept = clock.wall_now() - age;
  while (const dirent* entry = ::readdir(entries.get())) {
    const int descriptor = ::openat(directory->descriptor(), entry->d_name,
                                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    const File file = File::adopt(descriptor, join_path(directory->path(), entry->d_name));
    const Result<struct stat> facts = file.stat();
    if (!facts || !S_ISREG(facts->st_mode) || modified_time(*facts) > oldest_kept) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) continue;  // Its writer lives.
    if (::unlinkat(directory->descriptor(), entry->d_name, 0) == 0) {
      log_info("removed an abandoned upload", {{"path", file.path()}});
    }
  }
}

}  // namespace millrace::file_object_store
