#include "cache/small_object_file.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace millrace {

SmallObjectFile::SmallObjectFile(std::shared_ptr<SegmentStore> segments, ObjectVersion version,
                                 std::optional<SmallObject> found)
    : segments_(std::move(segments)), version_(std::move(version)) {
  if (found) place_ = *std::move(found);
}

Status SmallObjectFile::read_checksums(UnitRange units, std::span<std::uint32_t> into) {
  const std::span<const std::uint32_t> checksums = place_.unit_checksums();
  assert(units.end() <= checksums.size() && into.size() == units.count);
  std::ranges::copy(checksums.subspan(units.first, units.count), into.begin());
  return {};
}

Status SmallObjectFile::write(UnitRange units, ByteView bytes,
                              std::span<const std::uint32_t> checksums, WrittenPages /*pages*/) {
  assert(units.first == 0 && bytes.size() == version_.size());
  // A record that is there all the same could not be loaded before: nobody has checked it.
  if (Status status = segments_->remove(version_.digest());
      !status.ok() && status.code() != StatusCode::kNotFound) {
    return status;
  }
  MR_RETURN_IF_ERROR(segments_->put(version_, bytes, checksums));
  MR_ASSIGN_OR_RETURN(place_, segments_->load(version_));
  return {};
}

Status SmallObjectFile::forget(UnitRange units) {
  assert(units.first == 0);
  Status status = segments_->remove(version_.digest());
  return status.code() == StatusCode::kNotFound ? Status() : status;
}

Status SmallObjectFile::distrust(UnitRange /*units*/) {
  return forget({0, unit_count(version_.size())});
}

Status SmallObjectFile::mark_handed_out() {
  return {StatusCode::kUnsupported, "a small object has no file of its own"};
}

}  // namespace millrace
