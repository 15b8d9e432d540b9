#include "platform/faulty_disk.h"

#include <cerrno>
#include <random>

#include "platform/file_error.h"

namespace millrace {
namespace {

std::string_view action_of(DiskOperation operation) {
  switch (operation) {
    case DiskOperation::kOpen:
      return "open";
    case DiskOperation::kRename:
      return "rename to";
    case DiskOperation::kRemove:
      return "remove";
    case DiskOperation::kList:
      return "list";
    case DiskOperation::kMakeDirectories:
      return "make directory";
    case DiskOperation::kSyncDirectory:
    case DiskOperation::kSync:
      return "sync";
    case DiskOperation::kStat:
    case DiskOperation::kSize:
      return "stat";
    case DiskOperation::kSpace:
      return "ask for the free space of";
    case DiskOperation::kRead:
      return "read";
    case DiskOperation::kWrite:
      return "write";
    case DiskOperation::kLock:
      return "lock";
    case DiskOperation::kPunch:
      return "free space of";
    case DiskOperation::kTruncate:
      return "truncate";
  }
  return "use";
}

}  // namespace

DiskFault fail_nth_call(std::uint64_t n, int error, bool for_ever) {
  auto seen = std::make_shared<std::atomic<std::uint64_t>>(0);
  return [=](const DiskCall&) {
    const std::uint64_t index = seen->fetch_add(1);
    return index == n || (for_ever && index > n) ? error : 0;
  };
}

DiskFault fail_randomly(double probability, std::uint64_t seed, int error) {
  struct Draw {
    Mutex mutex;
    std::mt19937_64 random MR_GUARDED_BY(mutex);
  };
  auto draw = std::make_shared<Draw>();
  {
    MutexLock lock(draw->mutex);
    draw->random.seed(seed);
  }
  return [=](const DiskCall&) {
    MutexLock lock(draw->mutex);
    return std::bernoulli_distribution(probability)(draw->random) ? error : 0;
  };
}

DiskFault read_only_disk() {
  return [](const DiskCall& call) {
    switch (call.operation) {
      case DiskOperation::kOpen:
      case DiskOperation::kList:
      case DiskOperation::kStat:
      case DiskOperation::kSpace:
      case DiskOperation::kRead:
      case DiskOperation::kSize:
        return 0;
      default:
        return EROFS;
    }
  };
}

class FaultyDisk::FaultyFile final : public DiskFile {
 public:
  FaultyFile(FaultyDisk& disk, std::unique_ptr<DiskFile> inner)
      : disk_(disk), inner_(std::move(inner)) {}

  Result<std::size_t> read_at(std::uint64_t offset, MutableByteView into) override {
    MR_RETURN_IF_ERROR(disk_.check(DiskOperation::kRead, path()));
    return inner_->read_at(offset, into);
  }
  Status write_at(std::uint64_t offset, ByteView from) override {
    MR_RETURN_IF_ERROR(check_write(offset, from));
    return inner_->write_at(offset, from);
  }
  Status write_past_cache(std::uint64_t offset, ByteView from) override {
    MR_RETURN_IF_ERROR(check_write(offset, from));
    return inner_->write_past_cache(offset, from);
  }
  Result<bool> read_now(std::uint64_t offset, MutableByteView into) override {
    MR_RETURN_IF_ERROR(disk_.check(DiskOperation::kRead, path()));
    return inner_->read_now(offset, into);
  }
  Status punch(std::uint64_t offset, std::uint64_t length) override {
    MR_RETURN_IF_ERROR(disk_.check(DiskOperation::kPunch, path()));
    return inner_->punch(offset, length);
  }
  Status sync() override {
    MR_RETURN_IF_ERROR(disk_.check(DiskOperation::kSync, path()));
    return inner_->sync();
  }
  Status truncate(std::uint64_t size) override {
    MR_RETURN_IF_ERROR(disk_.check(DiskOperation::kTruncate, path()));
    return inner_->truncate(size);
  }
  Result<std::uint64_t> size() override {
    MR_RETURN_IF_ERROR(disk_.check(DiskOperation::kSize, path()));
    return inner_->size();
  }
  std::optional<int> descriptor() const override { return std::nullopt; }
  const std::string& path() const override { return inner_->path(); }

 private:
  Status check_write(std::uint64_t offset, ByteView from) {
    Status status = disk_.check(DiskOperation::kWrite, path());
    // Whether this half succeeds is all the same: the caller knows only that the write failed.
    if (!status.ok()) (void)inner_->write_at(offset, from.first(from.size() / 2));
    return status;
  }

  FaultyDisk& disk_;
  const std::unique_ptr<DiskFile> inner_;
};

void FaultyDisk::set_fault(DiskFault fault) {
  MutexLock lock(mutex_);
  fault_ = fault ? std::make_shared<const DiskFault>(std::move(fault)) : nullptr;
}

Status FaultyDisk::check(DiskOperation operation, std::string_view path) {
  const DiskCall call{operation, path, calls_.fetch_add(1)};
  std::shared_ptr<const DiskFault> fault;
  {
    MutexLock lock(mutex_);
    fault = fault_;
  }
  const int error = fault ? (*fault)(call) : 0;
  if (error == 0) return {};
  faults_.fetch_add(1);
  return file_error(error, action_of(operation), path);
}

Result<std::unique_ptr<DiskFile>> FaultyDisk::open(const std::string& path, OpenMode mode) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kOpen, path));
  MR_ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> file, inner_.open(path, mode));
  return std::make_unique<FaultyFile>(*this, std::move(file));
}

Status FaultyDisk::rename(const std::string& from, const std::string& to, Replace replace) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kRename, to));
  return inner_.rename(from, to, replace);
}

Status FaultyDisk::remove(const std::string& path) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kRemove, path));
  return inner_.remove(path);
}

Result<std::vector<DirectoryEntry>> FaultyDisk::list(const std::string& path) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kList, path));
  return inner_.list(path);
}

Status FaultyDisk::make_directories(const std::string& path) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kMakeDirectories, path));
  return inner_.make_directories(path);
}

Status FaultyDisk::make_directory(const std::string& path) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kMakeDirectories, path));
  return inner_.make_directory(path);
}

Status FaultyDisk::sync_directory(const std::string& path) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kSyncDirectory, path));
  return inner_.sync_directory(path);
}

Result<FileFacts> FaultyDisk::stat(const std::string& path) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kStat, path));
  return inner_.stat(path);
}

Result<DiskSpace> FaultyDisk::space(const std::string& path) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kSpace, path));
  return inner_.space(path);
}

Result<std::unique_ptr<DiskLock>> FaultyDisk::lock(const std::string& path,
                                                   std::string_view owner) {
  MR_RETURN_IF_ERROR(check(DiskOperation::kLock, path));
  return inner_.lock(path, owner);
}

}  // namespace millrace
