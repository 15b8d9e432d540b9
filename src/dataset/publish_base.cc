#include "dataset/publish_base.h"

#include <algorithm>

#include "base/little_endian.h"

namespace millrace {
namespace {

bool has_content(const ManifestEntry& entry, std::uint64_t size, const Sha256Digest& hash) {
  return entry.kind() == EntryKind::kFile && entry.size() == size &&
         entry.hash() == ContentHash::of_content(hash);
}

}  // namespace

Result<std::unique_ptr<PublishBase>> PublishBase::open(const Manifest& base) {
  std::unique_ptr<PublishBase> opened(new PublishBase(base));
  MR_RETURN_IF_ERROR(opened->build_index());
  return opened;
}

Status PublishBase::build_index() {
  for (EntryIndex index = 0; index < base_.entries() && index_.size() < kIndexedFilesMax; ++index) {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, base_.entry(index));
    if (entry.kind() != EntryKind::kFile || entry.size() < kShareBytesMin ||
        entry.hash().kind != HashKind::kSha256) {
      continue;
    }
    index_.push_back({.size = entry.size(),
                      .hash_begin = load_little_endian<std::uint64_t>(entry.hash().bytes.data()),
                      .entry = index});
  }
  std::ranges::sort(index_);
  return {};
}

Status PublishBase::next() {
  MR_ASSIGN_OR_RETURN(const std::optional<ManifestCursor::Item> item, cursor_.next());
  entry_.reset();
  if (item) {
    entry_ = item->entry;
    path_ = item->path;
  }
  return {};
}

Result<std::optional<ManifestEntry>> PublishBase::same_path(std::string_view path) {
  if (!started_) {
    started_ = true;
    MR_RETURN_IF_ERROR(next());
  }
  while (entry_ && compare_entries(path_, path) < 0)
    MR_RETURN_IF_ERROR(next());
  if (!entry_ || path_ != path || entry_->kind() != EntryKind::kFile) return std::nullopt;
  return entry_;
}

bool PublishBase::may_have(const std::optional<ManifestEntry>& same_path,
                           std::uint64_t size) const {
  if (same_path && same_path->size() == size && same_path->hash().kind == HashKind::kSha256) {
    return true;
  }
  const auto first = std::ranges::lower_bound(index_, size, {}, &Indexed::size);
  return first != index_.end() && first->size == size;
}

Result<std::optional<EntryIndex>> PublishBase::find(const std::optional<ManifestEntry>& same_path,
                                                    std::uint64_t size,
                                                    const Sha256Digest& hash) const {
  if (same_path && has_content(*same_path, size, hash)) return same_path->index();
  const Indexed wanted{
      .size = size, .hash_begin = load_little_endian<std::uint64_t>(hash.data()), .entry = 0};
  for (auto at = std::ranges::lower_bound(index_, wanted);
       at != index_.end() && at->size == size && at->hash_begin == wanted.hash_begin; ++at) {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, base_.entry(at->entry));
    if (has_content(entry, size, hash)) return at->entry;
  }
  return std::nullopt;
}

}  // namespace millrace
