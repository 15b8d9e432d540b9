#include "cli/serve_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>

#include "platform/file.h"
#include "platform/path.h"

namespace millrace::cli {

std::string serve_log_path(const EnvironmentLookup& environment) {
  return join_path(user_directories(environment).data, "serve.log");
}

Status bound_serve_log(const std::string& path, std::uint64_t bytes_max) {
  const Result<File> log = File::open(path, O_RDWR);
  if (!log) return log.error().code() == StatusCode::kNotFound ? Status() : log.error();
  MR_ASSIGN_OR_RETURN(const std::uint64_t size, log->size());
  if (size <= bytes_max) return {};
  std::string end(bytes_max, '\0');
  MR_ASSIGN_OR_RETURN(
      const std::size_t length,
      log->read_at(size - bytes_max, std::as_writable_bytes(std::span(end.data(), end.size()))));
  end.resize(length);
  Status kept =
      write_file_atomically(path + ".1", std::as_bytes(std::span(end.data(), end.size())), 0600);
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
