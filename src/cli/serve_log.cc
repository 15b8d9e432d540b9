#include "cli/serve_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <vector>

#include "platform/file.h"
#include "platform/path.h"

namespace millrace::cli {
namespace {

constexpr std::size_t kLogPieceBytes = kMiB;

// What is behind `begin` in the log and not in `kept` yet, to the end, wherever that is by then:
// more may be written all the while. `kept` grows to `bytes_max` at most, should that be faster
// than this is.
Status copy_end(const File& log, std::uint64_t begin, std::uint64_t bytes_max, const File& kept) {
  std::vector<std::byte> piece(kLogPieceBytes);
  MR_ASSIGN_OR_RETURN(std::uint64_t copied, kept.size());
  while (copied < bytes_max) {
    MR_ASSIGN_OR_RETURN(const std::size_t length, log.read_at(begin + copied, piece));
    if (length == 0) break;
    MR_RETURN_IF_ERROR(kept.write_at(copied, ByteView(piece).first(length)));
    copied += length;
  }
  return {};
}

Status keep_end(const File& log, std::uint64_t begin, std::uint64_t bytes_max) {
  const std::string kept = log.path() + ".1";
  const std::string temporary = kept + ".new";
  MR_ASSIGN_OR_RETURN(const File file, File::open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  Status status = copy_end(log, begin, bytes_max, file);
  std::error_code error;
  if (status.ok()) {
    std::filesystem::rename(temporary, kept, error);
    // That took a while, in which more was written.
    if (!error) return copy_end(log, begin, bytes_max, file);
    status = {StatusCode::kIoError, kept + ": " + error.message()};
  }
  std::filesystem::remove(temporary, error);
  return status;
}

}  // namespace

std::string serve_log_path(const EnvironmentLookup& environment) {
  return join_path(user_directories(environment).data, "serve.log");
}

Status bound_serve_log(const std::string& path, std::uint64_t bytes_max) {
  const Result<File> log = File::open(path, O_RDWR);
  if (!log) return log.error().code() == StatusCode::kNotFound ? Status() : log.error();
  // Two daemons of one user may share it, and a command may start one just now. Where there are no
  // locks, as on some network file systems, there is no telling.
  if (::flock(log->descriptor(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return {};
  MR_ASSIGN_OR_RETURN(const std::uint64_t size, log->size());
  if (size <= bytes_max) return {};
  Status kept = keep_end(*log, size - bytes_max, 2 * bytes_max);
  // Also when a full disk keeps nothing: this is what makes room.
  MR_RETURN_IF_ERROR(log->truncate(0));
  return kept;
}

Status bound_own_serve_log(const std::string& path) {
  struct stat own{};
  struct stat log{};
  if (::fstat(STDERR_FILENO, &own) != 0 || ::stat(path.c_str(), &log) != 0) return {};
  if (own.st_dev != log.st_dev || own.st_ino != log.st_ino) return {};
  // Who does not append goes on at his old offset: the file would be as large again, and a hole.
  if ((::fcntl(STDERR_FILENO, F_GETFL) & O_APPEND) == 0) return {};
  return bound_serve_log(path);
}

}  // namespace millrace::cli
