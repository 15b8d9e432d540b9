#include "dataset/manifest_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "platform/path.h"

namespace millrace {
namespace {

// O_TMPFILE would do the same in one step, but not every file system has it.
Result<File> open_unnamed(const std::string& directory) {
  const std::string path = join_path(directory, ".spool." + system_random().token());
  MR_ASSIGN_OR_RETURN(File file, File::open(path, O_RDWR | O_CREAT | O_EXCL, 0600));
  ::unlink(path.c_str());
  return file;
}

}  // namespace

ManifestSpool::ManifestSpool(std::string directory, std::size_t buffer_bytes)
    : directory_(std::move(directory)), buffer_bytes_(buffer_bytes) {}

Status ManifestSpool::append(ByteView bytes) {
  if (buffer_.size() + bytes.size() > buffer_bytes_) MR_RETURN_IF_ERROR(flush());
  if (bytes.size() > buffer_bytes_) {
    MR_RETURN_IF_ERROR(file_.write_at(written_, bytes));
    written_ += bytes.size();
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
  return {};
}

Status ManifestSpool::flush() {
  if (!file_.is_open()) {
    MR_ASSIGN_OR_RETURN(file_, open_unnamed(directory_));
  }
  MR_RETURN_IF_ERROR(file_.write_at(written_, buffer_));
  written_ += buffer_.size();
  buffer_.clear();
  return {};
}

Status ManifestSpool::read_at(std::uint64_t offset, MutableByteView into) const {
  if (offset > size() || into.size() > size() - offset) {
    return {StatusCode::kInternal, "read beyond the end of a temporary file"};
  }
  const std::uint64_t from_file =
      offset < written_ ? std::min<std::uint64_t>(into.size(), written_ - offset) : 0;
  if (from_file > 0) {
    MR_ASSIGN_OR_RETURN(const std::size_t count, file_.read_at(offset, into.first(from_file)));
    if (count < from_file) return {StatusCode::kIoError, "a temporary file became shorter"};
  }
  const MutableByteView rest = into.subspan(from_file);
  if (rest.empty()) return {};
  const std::uint64_t start = offset + from_file - written_;
  std::ranges::copy(ByteView(buffer_).subspan(start, rest.size()), rest.begin());
  return {};
}

ManifestSpoolReader::ManifestSpoolReader(const ManifestSpool& spool, std::size_t buffer_bytes,
                                         std::uint64_t begin, std::uint64_t end)
    : spool_(&spool), buffer_bytes_(buffer_bytes), position_(begin), end_(end) {}

bool ManifestSpoolReader::at_end() const {
  return used_ == buffer_.size() && position_ >= std::min(end_, spool_->size());
}

Result<ByteView> ManifestSpoolReader::peek(std::size_t count) {
  const std::size_t held = buffer_.size() - used_;
  if (held < count) {
    const std::uint64_t left = std::min(end_, spool_->size()) - position_;
    if (left < count - held) {
      return failure(StatusCode::kInternal, "a record in a temporary file is cut off");
    }
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ = 0;
    const std::uint64_t more =
        std::min<std::uint64_t>(left, std::max<std::size_t>(count - held, buffer_bytes_));
    buffer_.resize(held + more);
    MR_RETURN_IF_ERROR(spool_->read_at(position_, MutableByteView(buffer_).subspan(held)));
    position_ += more;
  }
  return ByteView(buffer_).subspan(used_, count);
}

Result<ByteView> ManifestSpoolReader::read(std::size_t count) {
  MR_ASSIGN_OR_RETURN(const ByteView bytes, peek(count));
  used_ += count;
  return bytes;
}

}  // namespace millrace
