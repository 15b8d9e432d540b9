#include "dataset/manifest_pages.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/at_hand.h"
#include "base/checksum.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

class LocalManifestPages final : public ManifestPages {
 public:
  explicit LocalManifestPages(File file) : ManifestPages(std::move(file)) {}

  Status start() {
    MR_ASSIGN_OR_RETURN(const std::uint64_t bytes, file().size());
    if (bytes < kManifestPageBytes || bytes % kManifestPageBytes != 0) {
      return about_file({StatusCode::kCorruption, fmt::format("{} bytes are no manifest", bytes)});
    }
    MR_RETURN_IF_ERROR(map(bytes));
    return adopt_header();
  }

 private:
  Status load(std::uint64_t first, std::uint64_t last) const override {
    for (std::uint64_t page = first; page <= last; ++page) {
      if (!is_sound(page) && !check_page(page)) return damaged(page);
    }
    return {};
  }
};

}  // namespace

ManifestPages::ManifestPages(File file) : file_(std::move(file)) {}

ManifestPages::~ManifestPages() {
  // munmap wants a pointer to what may change.
  if (base_ != nullptr) ::munmap(const_cast<std::byte*>(base_), mapped_bytes_);
}

Status ManifestPages::map(std::uint64_t bytes) {
  void* const address = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_.descriptor(), 0);
  if (address == MAP_FAILED) return file_error(errno, "map", path());
  base_ = static_cast<const std::byte*>(address);
  mapped_bytes_ = bytes;
  return {};
}

Status ManifestPages::adopt_header() {
  auto header = decode_manifest_header({base_, kManifestPageBytes}, mapped_bytes_);
  if (!header) return about_file(header.error());
  const std::uint64_t table_offset = header->offset(ManifestSection::kPageTable);
  const ByteView table(base_ + table_offset, mapped_bytes_ - table_offset);
  if (crc32c(table) != header->page_table_checksum) {
    return about_file({StatusCode::kCorruption, "its page table fails its checksum"});
  }
  header_ = *std::move(header);
  page_table_.resize(header_.bytes(ManifestSection::kPageTable) / kPageChecksumBytes);
  std::memcpy(page_table_.data(), table.data(), page_table_.size() * kPageChecksumBytes);
  sound_ = std::vector<std::atomic<std::uint64_t>>((header_.pages + 63) / 64);
  // Header and table have just been checked.
  const auto set_sound = [this](std::uint64_t page) {
    sound_[page / 64].fetch_or(std::uint64_t{1} << page % 64, std::memory_order_release);
  };
  set_sound(0);
  for (std::uint64_t page = table_offset / kManifestPageBytes; page < header_.pages; ++page)
    set_sound(page);
  return {};
}

std::uint32_t ManifestPages::page_checksum(std::uint64_t page) const { return page_table_[page]; }

bool ManifestPages::check_page(std::uint64_t page) const {
  const ByteView bytes(base_ + page * kManifestPageBytes, kManifestPageBytes);
  if (crc32c(bytes) != page_table_[page]) return false;
  sound_[page / 64].fetch_or(std::uint64_t{1} << page % 64, std::memory_order_acq_rel);
  return true;
}

Result<ByteView> ManifestPages::page(std::uint64_t number) const {
  if (number >= header_.pages) {
    return failure(StatusCode::kInternal, fmt::format("'{}' has no page {}", path(), number));
  }
  if (!is_sound(number)) {
    MR_RETURN_IF_ERROR(AtHandOnly::may_wait_for_disk());
    MR_RETURN_IF_ERROR(load(number, number));
  }
  return ByteView(base_ + number * kManifestPageBytes, kManifestPageBytes);
}

Status ManifestPages::make_sound(std::uint64_t begin, std::uint64_t length) const {
  MR_RETURN_IF_ERROR(AtHandOnly::may_wait_for_disk());
  return load(begin / kManifestPageBytes, (begin + length - 1) / kManifestPageBytes);
}

Status ManifestPages::damaged(std::uint64_t page) const {
  return about_file({StatusCode::kCorruption, fmt::format("page {} fails its checksum", page)});
}

Status ManifestPages::beyond(ManifestSection section, std::uint64_t offset,
                             std::uint64_t length) const {
  return about_file(
      {StatusCode::kCorruption, fmt::format("{} bytes at {} lie beyond the {} of section {}",
                                            length, offset, header_.bytes(section), int(section))});
}

Status ManifestPages::about_file(const Status& status) const {
  return status.with_context(fmt::format("manifest '{}'", path()));
}

Result<std::unique_ptr<ManifestPages>> open_manifest_file(const std::string& path) {
  MR_ASSIGN_OR_RETURN(File file, File::open(path, O_RDONLY));
  auto pages = std::make_unique<LocalManifestPages>(std::move(file));
  MR_RETURN_IF_ERROR(pages->start());
  return pages;
}

}  // namespace millrace
