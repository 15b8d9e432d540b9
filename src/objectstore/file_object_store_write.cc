// The writing half of FileObjectStore: put, upload, copy, remove, and the one way into place.

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <set>

#include <fmt/format.h>

#include "base/checksum.h"
#include "objectstore/file_object_store.h"
#include "objectstore/file_object_store_keys.h"
#include "objectstore/file_object_store_lock.h"
#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace {

using file_object_store::KeyLock;
using file_object_store::path_of_key;
using file_object_store::TemporaryFile;

namespace {

// Races with whoever removes emptied directories; each lost one is a full round of theirs.
constexpr int kPublishAttemptsMax = 1000;

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

bool is_directory(const File& directory, const std::string& name) {
  struct stat facts{};
  return ::fstatat(directory.descriptor(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(facts.st_mode);
}

// 0 or errno.
int move_without_replacing(int from, const std::string& from_name, int to,
                           const std::string& to_name) {
  if (::renameat2(from, from_name.c_str(), to, to_name.c_str(), RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A file system that does not know the flag: a hard link does not replace either.
  if (::linkat(from, from_name.c_str(), to, to_name.c_str(), 0) != 0) return errno;
  ::unlinkat(from, from_name.c_str(), 0);
  return 0;
}

}  // namespace

// Writes as it goes, into a file that nobody sees before finish().
class FileObjectStore::FileUpload final : public Upload {
 public:
  FileUpload(const FileObjectStore& store, TemporaryFile temporary, ObjectKey key,
             PutOptions options)
      : store_(store),
        temporary_(std::move(temporary)),
        key_(std::move(key)),
        options_(std::move(options)) {}

  Status write(const RequestContext& context, Slice data) override {
    MR_RETURN_IF_ERROR(check_open());
    MR_RETURN_IF_ERROR(context.check(*store_.options_.clock));
    Status status = temporary_.file().write_at(size_, data.bytes());
    if (!status.ok()) {
      failed_ = true;
      return status;
    }
    crc32c_ = crc32c(data.bytes(), crc32c_);
    size_ += data.size();
    return {};
  }

  Result<ObjectInfo> finish(const RequestContext& context) override {
    MR_RETURN_IF_ERROR(check_open());
    MR_RETURN_IF_ERROR(context.check(*store_.options_.clock));
    failed_ = true;  // A sync that failed may have lost pages: there is no second try.
    MR_ASSIGN_OR_RETURN(ObjectInfo info,
                        temporary_.seal(*store_.options_.clock, crc32c_, options_.metadata));
    MR_RETURN_IF_ERROR(store_.publish(context, temporary_, key_, options_.condition));
    info.key = key_;
    return info;
  }

  Status abort(const RequestContext&) override { return temporary_.remove(); }

 private:
  Status check_open() const {
    if (!temporary_.file().is_open()) {
      return {StatusCode::kInvalidArgument, "the upload is already finished or aborted"};
    }
    if (!failed_) return {};
    return {StatusCode::kInvalidArgument, "the upload has failed and can only be aborted"};
  }

  const FileObjectStore& store_;
  TemporaryFile temporary_;
  const ObjectKey key_;
  const PutOptions options_;
  std::uint64_t size_ = 0;
  std::uint32_t crc32c_ = 0;
  bool failed_ = false;
};

Result<TemporaryFile> FileObjectStore::start_write(const RequestContext& context,
                                                   const ObjectKey& key,
                                                   const ObjectMetadata& metadata) const {
  MR_RETURN_IF_ERROR(validate_key(key));
  MR_RETURN_IF_ERROR(validate_metadata(metadata));
  MR_RETURN_IF_ERROR(context.check(*options_.clock));
  if (Result<std::string> path = path_of_key(key); !path) return failure(path.error());
  return TemporaryFile::create(tree_, *options_.random);
}

Result<ObjectInfo> FileObjectStore::put(const RequestContext& context, const ObjectKey& key,
                                        Slice data, const PutOptions& options) {
  MR_ASSIGN_OR_RETURN(TemporaryFile temporary, start_write(context, key, options.metadata));
  MR_RETURN_IF_ERROR(temporary.file().write_at(0, data.bytes()));
  MR_ASSIGN_OR_RETURN(ObjectInfo info,
                      temporary.seal(*options_.clock, crc32c(data.bytes()), options.metadata));
  MR_RETURN_IF_ERROR(publish(context, temporary, key, options.condition));
  info.key = key;
  return info;
}

Result<std::unique_ptr<Upload>> FileObjectStore::start_upload(const RequestContext& context,
                                                              const ObjectKey& key,
                                                              const PutOptions& options) {
  MR_ASSIGN_OR_RETURN(TemporaryFile temporary, start_write(context, key, options.metadata));
  return std::make_unique<FileUpload>(*this, std::move(temporary), key, options);
}

Status FileObjectStore::publish(const RequestContext& context, TemporaryFile& temporary,
                                const ObjectKey& key, const WriteCondition& condition) const {
  MR_ASSIGN_OR_RETURN(const std::string path, path_of_key(key));
  const std::string directory_path = directory_of(path);
  const std::string name(base_name(path));
  const bool replace = condition.kind != WriteCondition::Kind::kIfAbsent;
  for (int attempt = 0; attempt < kPublishAttemptsMax; ++attempt) {
    MR_ASSIGN_OR_RETURN(const File directory, tree_.make_directories(directory_path, key));
    Status moved;
    {
      MR_ASSIGN_OR_RETURN(const KeyLock lock,
                          KeyLock::acquire(context, *options_.clock, tree_, key));
      moved = check_identity(key, condition);
      if (moved.ok()) moved = rename_into(temporary, directory, name, key, replace);
    }
    if (moved.ok()) {
      temporary.release();
      return tree_.sync_upwards(directory_path);
    }
    if (moved.code() == StatusCode::kConflict) continue;
    // The directories were made for this object alone, perhaps: leave none without one. What this
    // removal has to say is of no use to a caller whose write has failed for another reason.
    (void)tree_.remove_empty_directories(directory_path);
    return moved;
  }
  return {StatusCode::kConflict,
          fmt::format("others keep removing the directory of '{}' in {}", key.value(), describe())};
}

Status FileObjectStore::check_identity(const ObjectKey& key,
                                       const WriteCondition& condition) const {
  if (condition.kind != WriteCondition::Kind::kIfIdentity) return {};
  const Result<OpenObject> object = open_object(key);
  if (!object && object.error().code() != StatusCode::kNotFound) return object.error();
  if (object && object->info.identity == condition.identity) return {};
  return {
      StatusCode::kPreconditionFailed,
      fmt::format("'{}' in {} is {}, not {}", key.value(), describe(),
                  object ? object->info.identity.value() : "absent", condition.identity.value())};
}

Status FileObjectStore::rename_into(const TemporaryFile& temporary, const File& directory,
                                    const std::string& name, const ObjectKey& key,
                                    bool replace) const {
  int error = 0;
  if (!replace) {
    error = move_without_replacing(temporary.directory(), temporary.name(), directory.descriptor(),
                                   name);
  } else if (::renameat(temporary.directory(), temporary.name().c_str(), directory.descriptor(),
                        name.c_str()) != 0) {
    error = errno;
  }
  if (error == 0) return {};
  if (is_directory(directory, name)) {
    // One that lost its last object is about to go, or was left by a crash.
    if (::unlinkat(directory.descriptor(), name.c_str(), AT_REMOVEDIR) == 0) {
      return {StatusCode::kConflict, "an empty directory was in the way"};
    }
    return {
        StatusCode::kInvalidArgument,
        fmt::format("'{}' cannot be stored: in a file:// store a key cannot be the beginning of "
                    "another object's key before a '/', and '{}' has objects below it",
                    key.value(), join_path(directory.path(), name))};
  }
  if (error == EEXIST) {
    return {StatusCode::kPreconditionFailed,
            fmt::format("'{}' exists already in {}", key.value(), describe())};
  }
  struct stat facts{};
  const bool temporary_exists =
      ::fstatat(temporary.directory(), temporary.name().c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0;
  if (temporary_exists && (error == ENOENT || error == EISDIR)) {
    return {StatusCode::kConflict, "the directory went away"};
  }
  return file_error(error, "move into place", join_path(directory.path(), name));
}

Result<ObjectInfo> FileObjectStore::copy(const RequestContext& context, const ObjectInfo& source,
                                         const ObjectKey& target) {
  MR_RETURN_IF_ERROR(validate_key(source.key));
  MR_RETURN_IF_ERROR(validate_key(target));
  MR_RETURN_IF_ERROR(context.check(*options_.clock));
  MR_ASSIGN_OR_RETURN(const OpenObject from, open_object(source.key));
  if (!source.identity.value().empty() && source.identity != from.info.identity) {
    return failure(changed(
        source.key,
        fmt::format("it is now {}, not {}", from.info.identity.value(), source.identity.value())));
  }
  const ObjectMetadata metadata = from.attributes ? from.attributes->metadata : ObjectMetadata();
  MR_ASSIGN_OR_RETURN(TemporaryFile temporary, start_write(context, target, metadata));
  MR_RETURN_IF_ERROR(copy_bytes(context, from, temporary.file()));
  MR_ASSIGN_OR_RETURN(const struct stat now, from.file.stat());
  if (now.st_size != from.facts.st_size ||
      file_object_store::modified_ns(now) != file_object_store::modified_ns(from.facts)) {
    return failure(changed(source.key, "somebody wrote into the file while it was copied"));
  }
  const auto checksum = from.attributes ? from.attributes->crc32c : std::nullopt;
  MR_ASSIGN_OR_RETURN(ObjectInfo info, temporary.seal(*options_.clock, checksum, metadata));
  MR_RETURN_IF_ERROR(publish(context, temporary, target, WriteCondition::none()));
  info.key = target;
  return info;
}

Status FileObjectStore::copy_bytes(const RequestContext& context, const OpenObject& from,
                                   const File& to) const {
  // File systems that share blocks (xfs, btrfs) copy any size at once.
  if (::ioctl(to.descriptor(), FICLONE, from.file.descriptor()) == 0) return {};
  // Small enough that deadline and cancellation are heard in time.
  constexpr std::uint64_t kStepBytes = 16 * kMiB;
  std::uint64_t done = 0;
  while (done < from.info.size) {
    MR_RETURN_IF_ERROR(context.check(*options_.clock));
    const auto step = static_cast<std::size_t>(std::min(kStepBytes, from.info.size - done));
    auto from_offset = static_cast<off_t>(done);
    auto to_offset = static_cast<off_t>(done);
    const ssize_t count = ::copy_file_range(from.file.descriptor(), &from_offset, to.descriptor(),
                                            &to_offset, step, 0);
    if (count > 0) {
      done += static_cast<std::uint64_t>(count);
      continue;
    }
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && file_error_code(errno) == StatusCode::kResourceExhausted) {
      return file_error(errno, "write", to.path());
    }
    // Older kernels and some file systems cannot: through memory then.
    Buffer buffer = Buffer::allocate(std::min<std::size_t>(step, kMiB));
    MR_ASSIGN_OR_RETURN(const std::size_t read, from.file.read_at(done, buffer.bytes()));
    if (read == 0) return changed(from.info.key, "it became shorter while it was copied");
    MR_RETURN_IF_ERROR(to.write_at(done, buffer.bytes().first(read)));
    done += read;
  }
  return {};
}

Result<bool> FileObjectStore::unlink_object(const RequestContext& context, const ObjectKey& key,
                                            const std::string& path) const {
  Result<File> directory = tree_.open_directory(directory_of(path));
  if (!directory && directory.error().code() == StatusCode::kNotFound) return false;
  if (!directory) return failure(directory.error());
  const std::string name(base_name(path));
  MR_ASSIGN_OR_RETURN(const KeyLock lock, KeyLock::acquire(context, *options_.clock, tree_, key));
  struct stat facts{};
  if (::fstatat(directory->descriptor(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return failure(file_error(errno, "stat", join_path(directory->path(), name)));
  }
  if (!S_ISREG(facts.st_mode)) return false;  // Not an object, so not ours to remove.
  if (::unlinkat(directory->descriptor(), name.c_str(), 0) == 0) return true;
  if (errno == ENOENT) return false;
  return failure(file_error(errno, "remove", join_path(directory->path(), name)));
}

Status FileObjectStore::remove(const RequestContext& context, std::span<const ObjectKey> keys) {
  for (const ObjectKey& key : keys)
    MR_RETURN_IF_ERROR(validate_key(key));
  // Deepest first, because a directory can go only after those below it. One sync for each, however
  // many objects it lost. The absent ones' too: who removed them may not have synced yet.
  std::set<std::string, std::greater<>> directories;
  Status status;
  for (const ObjectKey& key : keys) {
    status = context.check(*options_.clock);
    if (!status.ok()) break;
    const Result<std::string> path = path_of_key(key);
    if (!path) continue;  // A key that cannot be stored is absent.
    Result<bool> removed = unlink_object(context, key, *path);
    if (!removed) {
      status = removed.error().with_context(fmt::format("'{}' could not be removed", key.value()));
      break;
    }
    directories.insert(directory_of(*path));
  }
  for (const std::string& directory : directories) {
    Status synced = tree_.remove_empty_directories(directory);
    if (status.ok()) status = std::move(synced);
  }
  return status;
}

}  // namespace millrace
