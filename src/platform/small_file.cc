#include "platform/small_file.h"

#include <fmt/format.h>

#include "base/bytes.h"

namespace millrace {

Result<std::string> read_small_file(Disk& disk, const std::string& path, std::uint64_t bytes_max) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> file, disk.open(path, OpenMode::kRead));
  MR_ASSIGN_OR_RETURN(const std::uint64_t size, file->size());
  if (size > bytes_max) {
    return failure(StatusCode::kCorruption,
                   fmt::format("{} has {} bytes, and may have {}", path, size, bytes_max));
  }
  std::string content(size, '\0');
  MR_ASSIGN_OR_RETURN(const std::size_t read,
                      file->read_at(0, std::as_writable_bytes(std::span(content))));
  content.resize(read);
  return content;
}

Status replace_small_file(Disk& disk, const std::string& path, std::string_view content) {
  const std::string unfinished = path + std::string(kUnfinishedSuffix);
  {
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> file,
                        disk.open(unfinished, OpenMode::kCreate));
    MR_RETURN_IF_ERROR(file->truncate(0));
    MR_RETURN_IF_ERROR(file->write_at(0, as_bytes(content)));
    MR_RETURN_IF_ERROR(file->sync());
  }
  MR_RETURN_IF_ERROR(disk.rename(unfinished, path, Replace::kAllowed));
  return disk.sync_directory(path.substr(0, path.rfind('/')));
}

}  // namespace millrace
