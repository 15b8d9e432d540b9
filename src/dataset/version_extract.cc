#include "dataset/version_extract.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "dataset/version_batches.h"
#include "objectstore/file_object_store_tree.h"
#include "platform/file.h"
#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace {
namespace {

constexpr std::size_t kExtractPieceBytes = kMiB;
// Setuid and setgid.
constexpr mode_t kOwnerRunBits = 06000;

Result<File> open_target(const std::string& path) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal();
  if (!error) std::filesystem::create_directories(absolute, error);
  if (error) return failure(file_error(error.value(), "make directory", path));
  MR_ASSIGN_OR_RETURN(File root, File::open(absolute, O_RDONLY | O_DIRECTORY));
  const bool empty = std::filesystem::is_empty(absolute, error);
  if (error) return failure(file_error(error.value(), "read", absolute));
  if (!empty) {
    return failure(StatusCode::kConflict,
                   fmt::format("'{}' is not empty: name a new directory", absolute));
  }
  return root;
}

void fill_times(const ManifestEntry& entry, timespec (&times)[2]) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = entry.mtime_ns() / kSecond;
  std::int64_t rest = entry.mtime_ns() % kSecond;
  if (rest < 0) {
    --seconds;
    rest += kSecond;
  }
  times[0] = {.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  times[1] = {.tv_sec = seconds, .tv_nsec = rest};
}

// One directory of the target, for the children that come one after the other. Needs one thread at
// a time.
class ParentDirectory {
 public:
  explicit ParentDirectory(const File& root) : root_(root) {}

  // Its descriptor, valid until the next call.
  Result<int> open(std::string_view child) {
    const std::string_view path = entry_parent(child);
    if (directory_.is_open() && path == path_) return directory_.descriptor();
    const std::string full = join_path(root_.path(), path);
    const int descriptor = file_object_store::open_beneath(root_.descriptor(), std::string(path),
                                                           O_RDONLY | O_DIRECTORY);
    if (descriptor < 0) return failure(file_error(-descriptor, "open", full));
    directory_ = File::adopt(descriptor, full);
    path_ = path;
    return descriptor;
  }

 private:
  const File& root_;
  File directory_;
  std::string path_;
};

// One extraction. The methods for items are safe from any thread.
class Extraction {
 public:
  Extraction(const VersionReader& reader, const File& root, const ExtractOptions& options)
      : reader_(reader), root_(root), options_(options) {}

  Status make_directories();
  Status write_item(const RequestContext& context, VersionWindow& window, const VersionItem& item);
  // From the leaves up, because what is written into a directory changes its time, and a mode may
  // forbid to write at all.
  Status finish_directories();
  ExtractTotals totals() const {
    return {.files = files_, .directories = directories_, .symlinks = symlinks_, .bytes = bytes_};
  }

 private:
  Status write_file(const RequestContext& context, VersionWindow& window, const VersionItem& item,
                    const File& file);
  std::string full_path(std::string_view path) const { return join_path(root_.path(), path); }

  const VersionReader& reader_;
  const File& root_;
  const ExtractOptions& options_;
  std::atomic<std::uint64_t> files_ = 0;
  std::atomic<std::uint64_t> directories_ = 0;
  std::atomic<std::uint64_t> symlinks_ = 0;
  std::atomic<std::uint64_t> bytes_ = 0;
};

Status Extraction::make_directories() {
  ParentDirectory parent(root_);
  ManifestCursor cursor(reader_.manifest());
  for (;;) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) return {};
    if (item->entry.kind() != EntryKind::kDirectory || item->path.empty()) continue;
    MR_ASSIGN_OR_RETURN(const int at, parent.open(item->path));
    const std::string name(entry_base(item->path));
    // Closed to others until it gets its own mode.
    if (::mkdirat(at, name.c_str(), item->entry.mode() ? 0700 : 0777) != 0)
      return file_error(errno, "make directory", full_path(item->path));
    ++directories_;
  }
}

Status Extraction::write_file(const RequestContext& context, VersionWindow& window,
                              const VersionItem& item, const File& file) {
  thread_local std::vector<std::byte> buffer(kExtractPieceBytes);
  Sha256 hash;
  MR_RETURN_IF_ERROR(read_version_file(context, window, item.entry, buffer,
                                       [&](std::uint64_t offset, ByteView piece) -> Status {
                                         hash.add(piece);
                                         bytes_ += piece.size();
                                         options_.written(piece.size());
                                         return file.write_at(offset, piece);
                                       }));
  const bool known = item.entry.hash().kind == HashKind::kSha256;
  if (known && item.entry.hash() != ContentHash::of_content(hash.finish())) {
    return {StatusCode::kCorruption, fmt::format("{}: '{}' is damaged: it has another SHA-256",
                                                 reader_.ref().text(), item.path)};
  }
  if (item.entry.mode() && ::fchmod(file.descriptor(), *item.entry.mode() & ~kOwnerRunBits) != 0) {
    return file_error(errno, "set the mode of", file.path());
  }
  timespec times[2];
  fill_times(item.entry, times);
  if (::futimens(file.descriptor(), times) != 0)
    return file_error(errno, "set the time of", file.path());
  ++files_;
  return {};
}

Status Extraction::write_item(const RequestContext& context, VersionWindow& window,
                              const VersionItem& item) {
  ParentDirectory parent(root_);
  MR_ASSIGN_OR_RETURN(const int at, parent.open(item.path));
  const std::string name(entry_base(item.path));
  const std::string full = full_path(item.path);
  if (item.entry.kind() == EntryKind::kFile) {
    const int descriptor =
        ::openat(at, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                 item.entry.mode() ? 0600 : 0666);
    if (descriptor < 0) return file_error(errno, "create", full);
    return write_file(context, window, item, File::adopt(descriptor, full));
  }
  MR_ASSIGN_OR_RETURN(const std::string_view target, reader_.manifest().symlink_target(item.entry));
  if (::symlinkat(std::string(target).c_str(), at, name.c_str()) != 0)
    return file_error(errno, "create", full);
  timespec times[2];
  fill_times(item.entry, times);
  if (::utimensat(at, name.c_str(), times, AT_SYMLINK_NOFOLLOW) != 0)
    return file_error(errno, "set the time of", full);
  ++symlinks_;
  return {};
}

Status Extraction::finish_directories() {
  for (EntryIndex index = reader_.manifest().entries(); index-- > 0;) {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, reader_.manifest().entry(index));
    if (entry.kind() != EntryKind::kDirectory) continue;
    MR_ASSIGN_OR_RETURN(const std::string path, reader_.manifest().path_of(index));
    // The root is the user's own directory, and keeps its mode where the version has none.
    if (path.empty() && !entry.mode()) continue;
    const int descriptor =
        file_object_store::open_beneath(root_.descriptor(), path, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0) return file_error(-descriptor, "open", full_path(path));
    const File directory = File::adopt(descriptor, full_path(path));
    timespec times[2];
    fill_times(entry, times);
    if (::futimens(descriptor, times) != 0)
      return file_error(errno, "set the time of", directory.path());
    if (entry.mode() && ::fchmod(descriptor, *entry.mode()) != 0)
      return file_error(errno, "set the mode of", directory.path());
  }
  return {};
}

}  // namespace

Result<ExtractTotals> extract_version(const RequestContext& context, const VersionReader& reader,
                                      const std::string& directory, const ExtractOptions& options) {
  MR_ASSIGN_OR_RETURN(const File root, open_target(directory));
  Extraction extraction(reader, root, options);
  MR_RETURN_IF_ERROR(extraction.make_directories());
  VersionBatches batches(reader.manifest());
  MR_RETURN_IF_ERROR(for_each_version_item(
      context, reader, options.parallel, batches,
      [&](const RequestContext& part, VersionWindow& window, const VersionItem& item) {
        return extraction.write_item(part, window, item);
      }));
  MR_RETURN_IF_ERROR(extraction.finish_directories());
  return extraction.totals();
}

}  // namespace millrace
