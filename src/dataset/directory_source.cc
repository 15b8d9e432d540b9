#include "dataset/directory_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "dataset/source_directory_walk.h"
#include "dataset/source_work.h"
#include "objectstore/file_object_store_tree.h"
#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace {
namespace {

// How the file differs from what the scan met; nothing when it does not.
std::optional<std::string_view> difference(const struct stat& facts, const SourceEntry& scanned) {
  if (!S_ISREG(facts.st_mode)) return "it is no regular file any more";
  const SourceEntry now = source_entry_of(facts);
  if (now.size != scanned.size) return "it has another size";
  if (now.mtime_ns != scanned.mtime_ns) return "it was written to";
  if (now.token != scanned.token) return "it was replaced, or its ctime moved";
  return std::nullopt;
}

// The kernel stamps changes with a clock that moves in ticks of up to 10 ms. While it still shows
// the tick of the last change, a change during the read would leave the same times behind. Waits
// for the next tick, which only files that were written just now need. Bounded, because the time of
// a remote file is not ours.
void wait_past_tick(const struct stat& facts) {
  for (int n = 0; n < 20; ++n) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    const timespec& changed = facts.st_ctim;
    const bool past =
        now.tv_sec != changed.tv_sec ? now.tv_sec > changed.tv_sec : now.tv_nsec > changed.tv_nsec;
    if (past) return;
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

class LocalSourceFile final : public SourceFile {
 public:
  LocalSourceFile(File file, SourceEntry scanned)
      : file_(std::move(file)), scanned_(std::move(scanned)) {}

  Result<std::size_t> read_at(const RequestContext& /*context*/, std::uint64_t offset,
                              MutableByteView into) override {
    return file_.read_at(offset, into);
  }

  Result<bool> unchanged(const RequestContext& /*context*/) override {
    MR_ASSIGN_OR_RETURN(const struct stat facts, file_.stat());
    // A removal and a rename over it both move the ctime of the file that is open here.
    return facts.st_nlink > 0 && !difference(facts, scanned_);
  }

 private:
  const File file_;
  const SourceEntry scanned_;
};

bool means_gone(int error) {
  return error == ENOENT || error == ENOTDIR || error == ELOOP || error == ENXIO;
}

}  // namespace

Result<std::unique_ptr<DirectorySource>> DirectorySource::open_root(const std::string& path,
                                                                    DirectorySourceOptions options,
                                                                    Clock& clock) {
  // Absolute, so that messages stay true when somebody changes the working directory.
  std::error_code error;
  std::string absolute = std::filesystem::absolute(path, error).lexically_normal();
  if (error) return failure(file_error(error.value(), "find", path));
  MR_ASSIGN_OR_RETURN(File root, File::open(std::move(absolute), O_RDONLY | O_DIRECTORY));
  return std::unique_ptr<DirectorySource>(new DirectorySource(std::move(root), options, clock));
}

Status DirectorySource::scan(const RequestContext& context, SourceSink& sink) {
  SourceWork<std::string> work(options_.waiting_directories_max);
  work.add("");
  const Status status = work.run("scan", options_.threads, [&](const std::string& path) {
    return SourceDirectoryWalk(context, clock_, root_.descriptor(), work, sink).walk(path);
  });
  return status.with_context(describe());
}

Result<std::unique_ptr<SourceFile>> DirectorySource::open(const RequestContext& context,
                                                          const SourceEntry& entry) {
  MR_RETURN_IF_ERROR(context.check(clock_));
  std::string full_path = join_path(root_.path(), entry.path);
  // O_NONBLOCK, so that a FIFO that took the file's place does not wait for its writer.
  const int descriptor = file_object_store::open_beneath(root_.descriptor(), entry.path,
                                                         O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    if (means_gone(-descriptor)) return failure(source_changed(full_path, "it is not there"));
    return failure(file_error(-descriptor, "open", full_path));
  }
  File file = File::adopt(descriptor, full_path);
  MR_ASSIGN_OR_RETURN(const struct stat facts, file.stat());
  if (const auto how = difference(facts, entry)) return failure(source_changed(full_path, *how));
  wait_past_tick(facts);
  return std::make_unique<LocalSourceFile>(std::move(file), entry);
}

}  // namespace millrace
