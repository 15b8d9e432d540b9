#include "service/preload_plan.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/current_request.h"
#include "dataset/manifest_cursor.h"

namespace millrace {
namespace {

// How often a long walk looks whether it should go on.
constexpr std::uint32_t kEntriesPerCheck = 4096;

Status check_now_and_then(const RequestContext& context, const Clock& clock, std::uint32_t count) {
  return count % kEntriesPerCheck == 0 ? context.check(clock) : Status();
}

}  // namespace

Result<PreloadPlan> PreloadPlan::make(const RequestContext& context, const Clock& clock,
                                      std::shared_ptr<const VersionObjects> objects,
                                      const std::vector<PathGlob>& paths) {
  const CurrentRequest current(context);
  PreloadPlan plan(std::move(objects));
  if (paths.empty()) {
    MR_RETURN_IF_ERROR(plan.take_all(context, clock));
  } else {
    MR_RETURN_IF_ERROR(plan.take_matching(context, clock, paths));
  }
  return plan;
}

Status PreloadPlan::take_all(const RequestContext& context, const Clock& clock) {
  const Manifest& manifest = objects_->manifest();
  whole_objects_ = true;
  files_ = manifest.totals().files;
  std::uint64_t numbered_bytes = 0;
  for (std::uint32_t number = 0; number < manifest.objects(); ++number) {
    MR_RETURN_IF_ERROR(check_now_and_then(context, clock, number));
    MR_ASSIGN_OR_RETURN(const ManifestObject object, manifest.object(number));
    numbered_bytes += object.size;
  }
  // The rest are objects of single entries, which only a walk finds.
  if (numbered_bytes == manifest.totals().stored_bytes) return {};
  for (std::uint32_t index = 0; index < manifest.entries(); ++index) {
    MR_RETURN_IF_ERROR(check_now_and_then(context, clock, index));
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(index));
    if (entry.kind() != EntryKind::kFile) continue;
    MR_ASSIGN_OR_RETURN(const std::vector<Extent> extents, manifest.extents(entry));
    if (extents.size() == 1 && extents.front().object == kOwnObject) want_own(index);
  }
  return {};
}

Status PreloadPlan::take_matching(const RequestContext& context, const Clock& clock,
                                  const std::vector<PathGlob>& paths) {
  std::vector<bool> used(paths.size(), false);
  ManifestCursor cursor(objects_->manifest());
  for (std::uint32_t count = 0;; ++count) {
    MR_RETURN_IF_ERROR(check_now_and_then(context, clock, count));
    MR_ASSIGN_OR_RETURN(const std::optional<ManifestCursor::Item> item, cursor.next());
    if (!item) break;
    if (item->entry.kind() != EntryKind::kFile) continue;
    bool chosen = false;
    for (std::size_t i = 0; i < paths.size(); ++i) {
      // One that has matched before decides nothing about a file that is chosen already.
      if ((chosen && used[i]) || !paths[i].matches(item->path)) continue;
      chosen = true;
      used[i] = true;
    }
    if (!chosen) continue;
    ++files_;
    MR_RETURN_IF_ERROR(take(item->entry));
  }
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (used[i]) continue;
    return {StatusCode::kNotFound,
            fmt::format("no file of the version matches '{}'", paths[i].text())};
  }
  return {};
}

Status PreloadPlan::take(const ManifestEntry& file) {
  MR_ASSIGN_OR_RETURN(const std::vector<Extent> extents, objects_->manifest().extents(file));
  for (const Extent& extent : extents) {
    if (extent.object == kOwnObject) {
      want_own(file.index());
    } else {
      MR_RETURN_IF_ERROR(want(extent.object, {extent.offset, extent.stored_bytes}));
    }
  }
  return {};
}

void PreloadPlan::want_own(EntryIndex entry) {
  if (own_.empty()) own_.resize(objects_->manifest().entries());
  own_[entry] = true;
}

Status PreloadPlan::want(std::uint32_t object, ByteRange bytes) {
  auto found = wanted_.find(object);
  if (found == wanted_.end()) {
    MR_ASSIGN_OR_RETURN(const ObjectVersion version, objects_->object(object));
    found = wanted_.try_emplace(object, version.size()).first;
  }
  WantedObject& wanted = found->second;
  // A small object comes and goes whole.
  if (wanted.size <= kSmallObjectBytesMax) bytes = {0, wanted.size};
  wanted.units.set(units_of(bytes));
  return {};
}

Status PreloadPlan::visit(const Visitor& visitor) const {
  MR_RETURN_IF_ERROR(visit_numbered(visitor));
  return visit_own(visitor);
}

Status PreloadPlan::visit_numbered(const Visitor& visitor) const {
  if (whole_objects_) {
    for (std::uint32_t number = 0; number < objects_->manifest().objects(); ++number) {
      MR_ASSIGN_OR_RETURN(const ObjectVersion object, objects_->object(number));
      if (object.size() > 0) MR_RETURN_IF_ERROR(visitor(object, {0, object.size()}));
    }
    return {};
  }
  for (const auto& [number, wanted] : wanted_) {
    MR_ASSIGN_OR_RETURN(const ObjectVersion object, objects_->object(number));
    const std::uint32_t units = unit_count(wanted.size);
    for (std::uint32_t first = 0; first < units; ++first) {
      if (!wanted.units.test(first)) continue;
      std::uint32_t end = first + 1;
      while (end < units && wanted.units.test(end))
        ++end;
      MR_RETURN_IF_ERROR(visitor(object, bytes_of({first, end - first}, wanted.size)));
      first = end;
    }
  }
  return {};
}

Status PreloadPlan::visit_own(const Visitor& visitor) const {
  for (std::size_t index = 0; index < own_.size(); ++index) {
    if (!own_[index]) continue;
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry,
                        objects_->manifest().entry(static_cast<EntryIndex>(index)));
    MR_ASSIGN_OR_RETURN(const std::vector<FilePart> parts, objects_->parts(entry));
    for (const FilePart& part : parts)
      MR_RETURN_IF_ERROR(visitor(part.object, part.bytes));
  }
  return {};
}

}  // namespace millrace
