#include "dataset/manifest_page_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/random.h"
#include "dataset/manifest_format.h"
#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace {
namespace {

constexpr std::size_t kPageFileBufferBytes = 16 * kManifestPageBytes;

}  // namespace

Result<std::unique_ptr<ManifestPageFile>> ManifestPageFile::create(std::string path) {
  std::string temporary =
      join_path(parent_path(path), fmt::format(".{}.{}", base_name(path), system_random().token()));
  MR_ASSIGN_OR_RETURN(File file, File::open(temporary, O_RDWR | O_CREAT | O_EXCL, 0644));
  return std::unique_ptr<ManifestPageFile>(
      new ManifestPageFile(std::move(path), std::move(temporary), std::move(file)));
}

ManifestPageFile::ManifestPageFile(std::string path, std::string temporary, File file)
    : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {
  buffer_.reserve(kPageFileBufferBytes);
}

ManifestPageFile::~ManifestPageFile() {
  if (!committed_) ::unlink(temporary_.c_str());
}

Status ManifestPageFile::append(ByteView bytes) {
  while (!bytes.empty()) {
    const std::size_t part = std::min(bytes.size(), kPageFileBufferBytes - buffer_.size());
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (buffer_.size() == kPageFileBufferBytes) MR_RETURN_IF_ERROR(write_pages());
  }
  return {};
}

Status ManifestPageFile::append(const ManifestSpool& spool) {
  std::vector<std::byte> part(kPageFileBufferBytes);
  for (std::uint64_t at = 0; at < spool.size(); at += part.size()) {
    const MutableByteView into =
        MutableByteView(part).first(std::min<std::uint64_t>(part.size(), spool.size() - at));
    MR_RETURN_IF_ERROR(spool.read_at(at, into));
    MR_RETURN_IF_ERROR(append(into));
  }
  return {};
}

Status ManifestPageFile::end_section() {
  buffer_.resize((buffer_.size() + kManifestPageBytes - 1) / kManifestPageBytes *
                 kManifestPageBytes);
  return write_pages();
}

Status ManifestPageFile::write_pages() {
  MR_RETURN_IF_ERROR(file_.write_at(checksums_.size() * kManifestPageBytes, buffer_));
  for (std::size_t at = 0; at < buffer_.size(); at += kManifestPageBytes)
    checksums_.push_back(crc32c(ByteView(buffer_).subspan(at, kManifestPageBytes)));
  buffer_.clear();
  return {};
}

Result<Sha256Digest> ManifestPageFile::commit(ByteView header_page) {
  MR_RETURN_IF_ERROR(file_.write_at(0, header_page));
  MR_RETURN_IF_ERROR(file_.sync());
  MR_ASSIGN_OR_RETURN(const Sha256Digest whole, digest());
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return failure(file_error(errno, "replace", path_));
  }
  committed_ = true;
  MR_RETURN_IF_ERROR(sync_directory(std::string(parent_path(path_))));
  return whole;
}

Result<Sha256Digest> ManifestPageFile::digest() const {
  Sha256 sha;
  std::vector<std::byte> part(kPageFileBufferBytes);
  const std::uint64_t size = checksums_.size() * kManifestPageBytes;
  for (std::uint64_t at = 0; at < size; at += part.size()) {
    const MutableByteView into =
        MutableByteView(part).first(std::min<std::uint64_t>(part.size(), size - at));
    MR_ASSIGN_OR_RETURN(const std::size_t count, file_.read_at(at, into));
    if (count < into.size()) {
      return failure(StatusCode::kIoError, fmt::format("'{}' became shorter", temporary_));
    }
    sha.add(into);
  }
  return sha.finish();
}

}  // namespace millrace
