#include "dataset/entry_sorter.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::size_t kImpliedMax = 16384;
constexpr std::uint64_t kMergeBytes = 64 * kMiB;
constexpr std::uint64_t kMergeBufferBytesMin = 16 * kKiB;
constexpr std::uint64_t kMergeBufferBytesMax = kMiB;

}  // namespace

Status refuse_entry(std::string_view path, std::string_view why) {
  return {StatusCode::kInvalidArgument, fmt::format("'{}' cannot be in a version: {}", path, why)};
}

EntrySorter::EntrySorter(EntrySorterOptions options)
    : options_(std::move(options)), spool_(options_.directory) {}

Status EntrySorter::add(std::string_view path, EntryKind kind, ByteView payload) {
  if (const auto fault = entry_path_fault(path)) return options_.report(path, *fault);
  if (path.empty() && kind != EntryKind::kDirectory) {
    return options_.report(path, "the root is a directory");
  }
  if (payload.size() > kPayloadBytesMax) {
    return {StatusCode::kResourceExhausted,
            fmt::format("what there is to say of '{}' takes {} bytes, at most {} are possible",
                        path, payload.size(), kPayloadBytesMax)};
  }
  MR_RETURN_IF_ERROR(add_parents(path));
  return append(path, kind, false, payload);
}

Status EntrySorter::add_parents(std::string_view path) {
  if (path.empty()) return {};
  std::string_view parent = entry_parent(path);
  // Neighbours mostly come one after the other.
  if (count_ > 0 && parent == last_parent_) return {};
  last_parent_ = parent;
  if (implied_.size() > kImpliedMax) implied_.clear();
  while (implied_.emplace(parent).second) {
    MR_RETURN_IF_ERROR(append(parent, EntryKind::kDirectory, true, {}));
    if (parent.empty()) break;
    parent = entry_parent(parent);
  }
  return {};
}

Status EntrySorter::append(std::string_view path, EntryKind kind, bool implied, ByteView payload) {
  const std::size_t bytes = SortRecord::kHeadBytes + path.size() + payload.size();
  if (!arena_.empty() && arena_.size() + bytes > options_.run_bytes) MR_RETURN_IF_ERROR(spill());
  if (arena_.capacity() == 0) {
    // Memory that is not touched costs nothing, and growing would need twice the bytes.
    arena_.reserve(std::max(options_.run_bytes, bytes));
  }
  order_.push_back(static_cast<std::uint32_t>(arena_.size()));
  SortRecord::append_to(arena_, path, kind, implied, count_++, payload);
  return {};
}

void EntrySorter::sort_arena() {
  const auto before = [this](std::uint32_t a, std::uint32_t b) {
    return SortRecord(arena_.data() + a) < SortRecord(arena_.data() + b);
  };
  if (!std::ranges::is_sorted(order_, before)) std::ranges::sort(order_, before);
}

Status EntrySorter::spill() {
  sort_arena();
  for (const std::uint32_t at : order_) {
    const SortRecord record(arena_.data() + at);
    MR_RETURN_IF_ERROR(spool_.append({arena_.data() + at, record.bytes()}));
  }
  run_ends_.push_back(spool_.size());
  arena_.clear();
  order_.clear();
  return {};
}

Status EntrySorter::seal() {
  implied_ = {};
  if (count_ == 0) MR_RETURN_IF_ERROR(append("", EntryKind::kDirectory, true, {}));
  if (run_ends_.empty()) {
    sort_arena();
    runs_.push_back(std::make_unique<SortRun>(arena_, order_));
  } else {
    MR_RETURN_IF_ERROR(spill());
    arena_ = {};
    order_ = {};
    const std::uint64_t buffer_bytes =
        std::clamp(kMergeBytes / run_ends_.size(), kMergeBufferBytesMin, kMergeBufferBytesMax);
    std::uint64_t begin = 0;
    for (const std::uint64_t end : run_ends_) {
      runs_.push_back(
          std::make_unique<SortRun>(ManifestSpoolReader(spool_, buffer_bytes, begin, end)));
      begin = end;
    }
  }
  for (const auto& run : runs_) {
    MR_ASSIGN_OR_RETURN([[maybe_unused]] const bool any, run->advance());
  }
  const auto after = [](const auto& a, const auto& b) { return b->record() < a->record(); };
  std::ranges::make_heap(runs_, after);
  return {};
}

// Restores the heap after its first run moved on.
void EntrySorter::sift_down() {
  std::size_t at = 0;
  while (true) {
    std::size_t least = 2 * at + 1;
    if (least >= runs_.size()) return;
    if (least + 1 < runs_.size() && runs_[least + 1]->record() < runs_[least]->record()) ++least;
    if (!(runs_[least]->record() < runs_[at]->record())) return;
    std::swap(runs_[least], runs_[at]);
    at = least;
  }
}

Result<std::optional<SortRecord>> EntrySorter::pop() {
  if (std::exchange(given_, true) && !runs_.empty()) {
    MR_ASSIGN_OR_RETURN(const bool more, runs_.front()->advance());
    if (!more) {
      std::swap(runs_.front(), runs_.back());
      runs_.pop_back();
    }
    sift_down();
  }
  if (runs_.empty()) return std::nullopt;
  return runs_.front()->record();
}

Status EntrySorter::report_again(const SortRecord& record) {
  if (record.rank() == SortRecord::Rank::kImplied) return {};
  if (kind_ != record.kind() && kind_ == EntryKind::kDirectory) {
    return options_.report(
        path_, fmt::format("it is a directory and also a {}", entry_kind_name(record.kind())));
  }
  return options_.report(path_, "it is there twice");
}

Result<std::optional<SortedEntry>> EntrySorter::next() {
  while (true) {
    MR_ASSIGN_OR_RETURN(const std::optional<SortRecord> record, pop());
    if (!record) return std::nullopt;
    const bool again = any_given_ && std::ranges::equal(record->key(), path_, {}, {},
                                                        [](char c) { return c == '/' ? '\0' : c; });
    if (again) {
      MR_RETURN_IF_ERROR(report_again(*record));
      continue;
    }
    any_given_ = true;
    path_ = record->key();
    std::ranges::replace(path_, '\0', '/');
    kind_ = record->kind();
    return SortedEntry{.path = path_,
                       .kind = kind_,
                       .implied = record->rank() == SortRecord::Rank::kImplied,
                       .payload = record->payload()};
  }
}

}  // namespace millrace
