#include "cache/segment_files.h"

#include <utility>

#include <fmt/format.h>

#include "cache/segment_format.h"
#include "platform/path.h"

namespace millrace {

SegmentFiles::SegmentFiles(Disk& disk, std::string directory, std::size_t open_files_max)
    : disk_(disk), directory_(std::move(directory)), open_files_max_(open_files_max) {}

std::string SegmentFiles::data_path(std::uint32_t segment) const {
  return join_path(directory_, segment_data_name(segment));
}
std::string SegmentFiles::index_path(std::uint32_t segment) const {
  return join_path(directory_, segment_index_name(segment));
}

void SegmentFiles::add(std::uint32_t segment, std::shared_ptr<DiskFile> file) {
  std::shared_ptr<DiskFile> idle;  // Outlives the lock.
  MutexLock lock(mutex_);
  if (file) ++open_count_;
  files_[segment] = {std::move(file), ++uses_};
  idle = take_idle();
}

void SegmentFiles::forget(std::uint32_t segment) {
  std::shared_ptr<DiskFile> closed;  // Outlives the lock.
  MutexLock lock(mutex_);
  const auto known = files_.find(segment);
  if (known == files_.end()) return;
  closed = std::move(known->second.file);
  if (closed) --open_count_;
  files_.erase(known);
}

Result<std::shared_ptr<DiskFile>> SegmentFiles::open(std::uint32_t segment) {
  {
    MutexLock lock(mutex_);
    const auto known = files_.find(segment);
    if (known == files_.end()) {
      return failure(StatusCode::kNotFound, fmt::format("there is no segment {:08x}", segment));
    }
    known->second.last_use = ++uses_;
    if (known->second.file) return known->second.file;
  }
  MR_ASSIGN_OR_RETURN(std::shared_ptr<DiskFile> file,
                      disk_.open(data_path(segment), OpenMode::kRead));
  std::shared_ptr<DiskFile> idle;  // Outlives the lock.
  MutexLock lock(mutex_);
  const auto known = files_.find(segment);
  // Forgotten meanwhile: keeping the file would keep the space of what was unlinked.
  if (known == files_.end()) return file;
  // Another thread may have opened it meanwhile.
  if (!known->second.file) {
    known->second.file = file;
    ++open_count_;
  }
  idle = take_idle();
  return file;
}

std::shared_ptr<DiskFile> SegmentFiles::take_idle() {
  if (open_count_ <= open_files_max_) return nullptr;
  auto oldest = files_.end();
  for (auto known = files_.begin(); known != files_.end(); ++known) {
    if (!known->second.file) continue;
    if (oldest == files_.end() || known->second.last_use < oldest->second.last_use) oldest = known;
  }
  --open_count_;
  return std::move(oldest->second.file);
}

}  // namespace millrace
