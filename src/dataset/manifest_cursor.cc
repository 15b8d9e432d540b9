#include "dataset/manifest_cursor.h"

namespace millrace {

Result<std::optional<ChildCursor::Child>> ChildCursor::next() {
  if (next_ >= end_) return std::nullopt;
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest_->entry(next_));
  MR_ASSIGN_OR_RETURN(const std::string_view name, manifest_->name(entry));
  ++next_;
  return Child{.entry = entry, .name = name};
}

Result<std::optional<ManifestCursor::Item>> ManifestCursor::next() {
  if (next_ >= manifest_->entries()) return std::nullopt;
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest_->entry(next_));
  MR_ASSIGN_OR_RETURN(const std::string_view name, manifest_->name(entry));
  if (parent_ != entry.parent()) {
    MR_ASSIGN_OR_RETURN(path_, manifest_->path_of(entry.parent()));
    if (!path_.empty()) path_ += '/';
    directory_bytes_ = path_.size();
    parent_ = entry.parent();
  }
  path_.resize(directory_bytes_);
  path_ += name;
  ++next_;
  return Item{.entry = entry, .path = path_};
}

}  // namespace millrace
