#include "dataset/manifest_builder.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/little_endian.h"
#include "platform/path.h"

namespace millrace {
namespace {

constexpr std::uint16_t kImpliedMode = 0755;
// What the sorter carries for an entry: mtime, size, mode, kind of hash, length of the target;
// then hash, target and extents, where they are.
constexpr std::size_t kPayloadHeadBytes = 24;
constexpr std::uint16_t kPayloadNoMode = 0xffff;

void pack_entry(const NewEntry& entry, std::vector<std::byte>& out) {
  const bool hashed = entry.hash.kind != HashKind::kNone;
  out.resize(kPayloadHeadBytes + (hashed ? entry.hash.bytes.size() : 0) +
             entry.symlink_target.size() + entry.extents.size() * kExtentBytes);
  std::byte* to = out.data();
  store_little_endian(to, static_cast<std::uint64_t>(entry.mtime_ns));
  store_little_endian(to + 8, entry.size);
  store_little_endian(to + 16, entry.mode.value_or(kPayloadNoMode));
  store_little_endian(to + 18, static_cast<std::uint16_t>(entry.hash.kind));
  store_little_endian(to + 20, static_cast<std::uint32_t>(entry.symlink_target.size()));
  to += kPayloadHeadBytes;
  if (hashed) to = std::ranges::copy(entry.hash.bytes, to).out;
  to = std::ranges::copy(as_bytes(entry.symlink_target), to).out;
  for (const Extent& extent : entry.extents) {
    encode_extent(extent, to);
    to += kExtentBytes;
  }
}

// The payload is our own and never left this process's hands.
Status unpack_entry(const SortedEntry& sorted, NewEntry& entry) {
  entry.path = sorted.path;
  entry.kind = sorted.kind;
  entry.hash = {};
  entry.extents.clear();
  if (sorted.implied) {
    entry.mode = kImpliedMode;
    entry.mtime_ns = 0;
    entry.size = 0;
    entry.symlink_target.clear();
    return {};
  }
  const std::byte* const from = sorted.payload.data();
  entry.mtime_ns = static_cast<std::int64_t>(load_little_endian<std::uint64_t>(from));
  entry.size = load_little_endian<std::uint64_t>(from + 8);
  const auto mode = load_little_endian<std::uint16_t>(from + 16);
  entry.mode = mode == kPayloadNoMode ? std::nullopt : std::optional(mode);
  entry.hash.kind = static_cast<HashKind>(load_little_endian<std::uint16_t>(from + 18));
  const auto target_bytes = load_little_endian<std::uint32_t>(from + 20);
  ByteView rest = sorted.payload.subspan(kPayloadHeadBytes);
  if (entry.hash.kind != HashKind::kNone) {
    std::ranges::copy(rest.first(entry.hash.bytes.size()), entry.hash.bytes.begin());
    rest = rest.subspan(entry.hash.bytes.size());
  }
  entry.symlink_target = as_text(rest.first(target_bytes));
  for (rest = rest.subspan(target_bytes); !rest.empty(); rest = rest.subspan(kExtentBytes)) {
    MR_ASSIGN_OR_RETURN(const Extent extent, decode_extent(rest.first(kExtentBytes)));
    entry.extents.push_back(extent);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<ManifestBuilder>> ManifestBuilder::create(ManifestBuilderOptions options) {
  if (options.scratch.empty()) options.scratch = parent_path(options.path);
  std::unique_ptr<ManifestBuilder> builder(new ManifestBuilder);
  MR_ASSIGN_OR_RETURN(builder->writer_,
                      ManifestWriter::create(options.path, options.scratch,
                                             std::move(options.prefix), options.prefix_store));
  if (options.arrival == EntryArrival::kAnyOrder) {
    builder->sorter_.emplace(EntrySorterOptions{.directory = std::move(options.scratch),
                                                .run_bytes = options.run_bytes,
                                                .report = std::move(options.report)});
  }
  return builder;
}

Status ManifestBuilder::add(const NewEntry& entry) {
  if (!sorter_) return writer_->add(entry);
  // What has a bad path is reported by the sorter, all else is the caller's mistake.
  if (!entry_path_fault(entry.path)) MR_RETURN_IF_ERROR(check_new_entry(entry));
  std::vector<std::byte> payload;
  pack_entry(entry, payload);
  return sorter_->add(entry.path, entry.kind, payload);
}

Result<ManifestSummary> ManifestBuilder::finish() {
  if (sorter_) {
    MR_RETURN_IF_ERROR(sorter_->seal());
    NewEntry entry;
    while (true) {
      MR_ASSIGN_OR_RETURN(const std::optional<SortedEntry> sorted, sorter_->next());
      if (!sorted) break;
      MR_RETURN_IF_ERROR(unpack_entry(*sorted, entry));
      MR_RETURN_IF_ERROR(writer_->add(entry));
    }
  }
  return writer_->finish();
}

}  // namespace millrace
