// What a start does: read the indexes, take back what crashes left behind.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cache/segment_loader.h"
#include "cache/segment_store.h"
#include "platform/path.h"

namespace millrace {
namespace {

// The segments of a directory, which is made when absent, in ascending order.
Result<std::vector<FoundSegment>> list_segments(Disk& disk, const std::string& directory) {
  const auto entries = disk.list(directory);
  if (!entries) {
    if (entries.error().code() != StatusCode::kNotFound) return failure(entries.error());
    MR_RETURN_IF_ERROR(disk.make_directories(directory));
    return std::vector<FoundSegment>();
  }
  std::map<std::uint32_t, FoundSegment> found;
  for (const DirectoryEntry& entry : *entries) {
    const auto name = parse_segment_name(entry.name);
    if (!name || entry.kind != FileKind::kFile) continue;
    FoundSegment& segment = found[name->segment];
    segment.segment = name->segment;
    (name->is_index ? segment.has_index : segment.has_data) = true;
  }
  std::vector<FoundSegment> segments;
  for (const auto& [number, segment] : found)
    segments.push_back(segment);
  return segments;
}

}  // namespace

class SegmentStore::Start {
 public:
  explicit Start(SegmentStore& store)
      : store_(store),
        report_([&store](const SegmentDamage& damage) { store.note_damage(damage); }) {}

  Status run(const std::string& directory) {
    MR_ASSIGN_OR_RETURN(const auto found, list_segments(store_.disk_, directory));
    for (SegmentLoader loader(store_.disk_, store_.files_, found); loader.has_next();) {
      MR_RETURN_IF_ERROR(enter(loader.next()));
    }
    // Nothing is changed before all indexes are known to be ours.
    for (const auto& [segment, index] : damaged_) {
      // What cannot be repaired is reported again at the next start.
      (void)repair_segment_index(store_.disk_, store_.files_.index_path(segment), segment, index);
    }
    for (const SegmentPlace& place : superseded_) {
      if (store_.bury(place).ok()) store_.free_space(place);
    }
    for (const LeakySegment& leaky : leaky_)
      free_gaps(leaky);
    for (const FoundSegment& segment : found)
      store_.unlink_if_empty(segment.segment);
    MutexLock growing(store_.growth_mutex_);
    store_.next_segment_ = found.empty() ? 0 : std::uint64_t{found.back().segment} + 1;
    return {};
  }

 private:
  struct LeakySegment {
    std::uint32_t segment = 0;
    std::vector<ByteRange> gaps;
  };

  Status enter(LoadedSegment loaded) {
    for (const SegmentDamage& damage : loaded.damage)
      report_(damage);
    if (!loaded.status.ok()) {
      // A later format ends the start. Anything else concerns this segment only, and may pass.
      if (loaded.status == StatusCode::kUnsupported) return loaded.status;
      report_({loaded.path, std::string(loaded.status.message())});
      return {};
    }
    add(loaded.segment, loaded.index.places);
    if (!loaded.leaked.empty()) leaky_.push_back({loaded.segment, std::move(loaded.leaked)});
    if (loaded.index.header_damaged || !loaded.index.damaged_slots.empty()) {
      loaded.index.places = {};
      damaged_.emplace_back(loaded.segment, std::move(loaded.index));
    }
    return {};
  }

  void add(std::uint32_t segment, const std::vector<SegmentPlace>& places) {
    store_.files_.add(segment);
    MutexLock lock(store_.mutex_);
    store_.segments_[segment].records = places.size();
    for (const SegmentPlace& place : places)
      store_.bytes_ += place.bytes();
    std::vector<SegmentPlace> older;
    store_.table_.insert_or_replace(
        places, [&older](const SegmentPlace& place) { older.push_back(place); });
    // A power loss can bring a removed record back beside its successor.
    for (const SegmentPlace& place : older) {
      --store_.segments_.at(place.segment).records;
      store_.bytes_ -= place.bytes();
    }
    superseded_.insert(superseded_.end(), older.begin(), older.end());
  }

  void free_gaps(const LeakySegment& leaky) {
    const auto data =
        store_.disk_.open(store_.files_.data_path(leaky.segment), OpenMode::kReadWrite);
    if (!data) return;
    for (const ByteRange& gap : leaky.gaps) {
      // What the disk refuses for one gap it refuses for all.
      if (!(*data)->punch(gap.offset, gap.length).ok()) return;
    }
  }

  SegmentStore& store_;
  const SegmentDamageReport report_;
  std::vector<std::pair<std::uint32_t, SegmentIndex>> damaged_;
  std::vector<SegmentPlace> superseded_;
  std::vector<LeakySegment> leaky_;
};

Result<std::unique_ptr<SegmentStore>> SegmentStore::open(Disk& disk, const std::string& directory,
                                                         SegmentOptions options,
                                                         SegmentDamageReport report) {
  std::unique_ptr<SegmentStore> store(
      new SegmentStore(disk, directory, options, std::move(report)));
  MR_RETURN_IF_ERROR(Start(*store).run(join_path(directory, "segments")));
  return store;
}

}  // namespace millrace
