#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/manifest_format.h"
#include "platform/file.h"

namespace millrace {

// A manifest's file in memory, page by page as they are touched. The seam under Manifest: the file
// is complete on the local disk, or comes from a store as it is needed.
//
// 1. The file is mapped from its first to its last page, so any range of it is one view.
// 2. A bit of sound_ is set when its page was held against its checksum, and is never cleared. The
//    bytes of such a page do not change any more.
//
// Safe from any thread. Views live as long as this object.
class ManifestPages {
 public:
  virtual ~ManifestPages();
  ManifestPages(const ManifestPages&) = delete;
  ManifestPages& operator=(const ManifestPages&) = delete;

  const ManifestHeader& header() const { return header_; }
  // For messages.
  const std::string& path() const { return file_.path(); }

  // The bytes of a section, checked. kCorruption when the section does not have them, or when they
  // fail their checksums. Takes no lock when all pages were touched before.
  Result<ByteView> view(ManifestSection section, std::uint64_t offset, std::uint64_t length) const {
    if (offset > header_.bytes(section) || length > header_.bytes(section) - offset) [[unlikely]] {
      return failure(beyond(section, offset, length));
    }
    const std::uint64_t begin = header_.offset(section) + offset;
    if (length > 0 && !sound(begin, length)) [[unlikely]] {
      MR_RETURN_IF_ERROR(make_sound(begin, length));
    }
    return ByteView(base_ + begin, length);
  }

  // Starts to bring the line at `offset` into the processor's caches, if its page was touched
  // before. A load whose value nobody waits for: prefetch instructions do nothing for addresses
  // that the processor has to translate first, which in a large file is nearly every one.
  void preload(ManifestSection section, std::uint64_t offset) const {
    const std::uint64_t at = header_.offset(section) + offset;
    if (offset < header_.bytes(section) && is_sound(at / kManifestPageBytes)) {
      (void)*static_cast<const volatile std::byte*>(base_ + at);
    }
  }

  // Any whole page, that of the header included, checked as view() does.
  Result<ByteView> page(std::uint64_t number) const;

 protected:
  // `file` stays open; it must have its full length.
  explicit ManifestPages(File file);

  // Maps the file, `bytes` long.
  Status map(std::uint64_t bytes);
  // Takes over header and page table, which must be in the file. To be called once, before view().
  Status adopt_header();

  bool has_header() const { return !page_table_.empty(); }
  const std::byte* base() const { return base_; }
  File& file() { return file_; }
  const File& file() const { return file_; }
  std::uint32_t page_checksum(std::uint64_t page) const;
  bool is_sound(std::uint64_t page) const {
    return (sound_[page / 64].load(std::memory_order_acquire) >> page % 64 & 1) != 0;
  }
  // Holds the mapped page against its checksum.
  bool check_page(std::uint64_t page) const;
  Status damaged(std::uint64_t page) const;
  Status about_file(const Status& status) const;

 private:
  // Brings pages in and checks them: [first, last], some of which are not sound.
  virtual Status load(std::uint64_t first, std::uint64_t last) const = 0;

  bool sound(std::uint64_t begin, std::uint64_t length) const {
    std::uint64_t page = begin / kManifestPageBytes;
    const std::uint64_t last = (begin + length - 1) / kManifestPageBytes;
    while (is_sound(page)) {
      if (page++ == last) return true;
    }
    return false;
  }
  Status make_sound(std::uint64_t begin, std::uint64_t length) const;
  Status beyond(ManifestSection section, std::uint64_t offset, std::uint64_t length) const;

  File file_;
  const std::byte* base_ = nullptr;
  std::uint64_t mapped_bytes_ = 0;
  ManifestHeader header_;
  std::vector<std::uint32_t> page_table_;
  mutable std::vector<std::atomic<std::uint64_t>> sound_;
};

// A complete file on the local disk. kCorruption when it is cut or damaged, kUnsupported when it
// has another format. Opening reads header and page table only.
Result<std::unique_ptr<ManifestPages>> open_manifest_file(const std::string& path);

}  // namespace millrace
