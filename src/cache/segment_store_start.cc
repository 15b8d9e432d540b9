// What a start does: read the indexes, take back what crashes left behind.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "cache/segment_store.h"
#include "platform/path.h"

namespace millrace {
namespace {

// A file may take a little more than its records, for what the file system keeps about it.
constexpr std::uint64_t kSegmentSlackBytes = 64 * kKiB;

struct FoundSegment {
  bool has_data = false;
  bool has_index = false;
};

// The segments of a directory, which is made when absent.
Result<std::map<std::uint32_t, FoundSegment>> list_segments(Disk& disk,
                                                            const std::string& directory) {
  std::map<std::uint32_t, FoundSegment> found;
  const auto entries = disk.list(directory);
  if (!entries) {
    if (entries.error().code() != StatusCode::kNotFound) return failure(entries.error());
    MR_RETURN_IF_ERROR(disk.make_directories(directory));
    return found;
  }
  for (const DirectoryEntry& entry : *entries) {
    const auto name = parse_segment_name(entry.name);
    if (!name || entry.kind != FileKind::kFile) continue;
    (name->is_index ? found[name->segment].has_index : found[name->segment].has_data) = true;
  }
  return found;
}

}  // namespace

class SegmentStore::Start {
 public:
  explicit Start(SegmentStore& store)
      : store_(store),
        report_([&store](const SegmentDamage& damage) { store.note_damage(damage); }) {}

  Status run(const std::string& directory) {
    MR_ASSIGN_OR_RETURN(const auto found, list_segments(store_.disk_, directory));
    for (const auto& [segment, files] : found) {
      MR_RETURN_IF_ERROR(load(segment, files));
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
    for (const auto& [segment, files] : found)
      store_.unlink_if_empty(segment);
    MutexLock growing(store_.growth_mutex_);
    store_.next_segment_ = found.empty() ? 0 : std::uint64_t{found.rbegin()->first} + 1;
    return {};
  }

 private:
  struct LeakySegment {
    std::uint32_t segment = 0;
    std::vector<ByteRange> gaps;
  };

  Status load(std::uint32_t segment, const FoundSegment& files) {
    const std::string data_path = store_.files_.data_path(segment);
    FileFacts facts;
    if (files.has_data) {
      auto asked = store_.disk_.stat(data_path);
      if (!asked) return leave_alone(data_path, asked.error());
      facts = *asked;
    }
    if (!files.has_index) {
      if (facts.size > 0) report_({data_path, "it has no index"});
      add(segment, {});
      return {};
    }
    const std::string index_path = store_.files_.index_path(segment);
    auto index = read_segment_index(store_.disk_, index_path, segment, facts.size, report_);
    if (!index) return leave_alone(index_path, index.error());
    add(segment, index->places);
    note_gaps(segment, facts, index->places);
    if (index->header_damaged || !index->damaged_slots.empty()) {
      index->places = {};
      damaged_.emplace_back(segment, std::move(*index));
    }
    return {};
  }

  // A later format ends the start. Anything else concerns this segment only, and may pass.
  Status leave_alone(const std::string& path, const Status& why) {
    if (why == StatusCode::kUnsupported) return why;
    report_({path, why.message()});
    return {};
  }

  void add(std::uint32_t segment, const std::vector<SegmentPlace>& places) {
    store_.files_.add(segment);
    MutexLock lock(store_.mutex_);
    Segment& facts = store_.segments_[segment];
    for (const SegmentPlace& place : places) {
      // A power loss can bring a removed record back beside its successor.
      if (const SegmentPlace* older = store_.table_.find(place.digest)) {
        superseded_.push_back(*older);
        --store_.segments_.at(older->segment).records;
        store_.bytes_ -= older->bytes();
        store_.table_.erase(place.digest);
      }
      store_.table_.insert(place);
      ++facts.records;
      store_.bytes_ += place.bytes();
    }
  }

  // A kill leaves records without an entry, and dead ones whose space is not freed.
  void note_gaps(std::uint32_t segment, const FileFacts& facts, std::vector<SegmentPlace> places) {
    std::ranges::sort(places, {}, &SegmentPlace::page);
    LeakySegment leaky{.segment = segment, .gaps = {}};
    std::uint64_t live_bytes = 0;
    std::uint64_t end = 0;
    for (const SegmentPlace& place : places) {
      if (place.offset() > end) leaky.gaps.push_back({end, place.offset() - end});
      end = std::max(end, place.offset() + place.bytes());
      live_bytes += place.bytes();
    }
    if (facts.size > end) leaky.gaps.push_back({end, facts.size - end});
    // Without live records the segment goes as a whole.
    if (places.empty() || facts.allocated_bytes <= live_bytes + kSegmentSlackBytes) return;
    leaky_.push_back(std::move(leaky));
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
