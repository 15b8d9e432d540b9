#include "dataset/sample_index_builder.h"

#include <zstd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/task_group.h"
#include "cache/unit.h"
#include "dataset/sample_name.h"

namespace millrace {
namespace {

// A request takes about as long as reading this much: what lies closer is read and thrown away.
constexpr std::uint64_t kNearBytes = kMiB;
constexpr std::uint64_t kFarBytes = kUnitBytes;
constexpr int kSampleBlockLevel = 3;

// Reads an archive forward, in large steps while headers lie close to each other, and only a unit
// where a large member was skipped. Needs one thread at a time.
class ShardHeaders {
 public:
  ShardHeaders(const VersionReader& near, const VersionReader& far, const ManifestEntry& entry)
      : near_(near), far_(far), entry_(entry) {}

  Result<std::size_t> read_at(const RequestContext& context, std::uint64_t offset,
                              MutableByteView into) {
    if (offset >= reached_ + kNearBytes) {
      far_end_ = offset / kUnitBytes * kUnitBytes + kFarBytes;
    }
    const bool is_far = offset + into.size() <= far_end_;
    reached_ = offset + into.size();
    return (is_far ? far_ : near_).read_at(context, entry_, offset, into);
  }

 private:
  VersionWindow near_;
  VersionWindow far_;
  const ManifestEntry& entry_;
  std::uint64_t reached_ = 0;
  std::uint64_t far_end_ = 0;  // Of what the far window holds.
};

Result<std::vector<std::byte>> compress_block(ByteView raw) {
  std::vector<std::byte> stored(ZSTD_compressBound(raw.size()));
  const std::size_t bytes =
      ZSTD_compress(stored.data(), stored.size(), raw.data(), raw.size(), kSampleBlockLevel);
  if (ZSTD_isError(bytes) != 0) {
    return failure(StatusCode::kInternal,
                   fmt::format("cannot compress: {}", ZSTD_getErrorName(bytes)));
  }
  stored.resize(bytes);
  return stored;
}

// Puts the members of an archive together to samples.
class SampleGrouping {
 public:
  using Flush = std::function<Status(const SampleBlock& block)>;
  explicit SampleGrouping(Flush flush) : flush_(std::move(flush)) {}

  Status add(const TarReadMember& found) {
    if (found.member.kind != TarKind::kFile) return {};
    const auto name = sample_name(found.member.path);
    if (!name) return {};
    // One above the limit is refused with the sample.
    if (name->base != key_ || members_.size() > kSampleMembersMax) {
      MR_RETURN_IF_ERROR(end_sample());
      key_ = name->base;
    }
    fields_.emplace_back(name->extension);
    members_.push_back({.header_offset = found.header_offset,
                        .offset = found.content_offset,
                        .size = found.member.size});
    return {};
  }
  Status finish() {
    MR_RETURN_IF_ERROR(end_sample());
    return writer_.empty() ? Status() : flush_(writer_.take());
  }

 private:
  Status end_sample() {
    if (members_.empty()) return {};
    MR_RETURN_IF_ERROR(writer_.add(key_, fields_, members_));
    fields_.clear();
    members_.clear();
    return writer_.is_full() ? flush_(writer_.take()) : Status();
  }

  const Flush flush_;
  SampleBlockWriter writer_;
  std::string key_;
  SampleBlock::Shape fields_;
  std::vector<SampleBlock::Member> members_;
};

}  // namespace

Status SampleShards::read(const std::string& path, const TarReader::ReadAt& read_at,
                          std::uint64_t bytes) {
  Blocks blocks;
  const Status listed = list_members(read_at, bytes, blocks);
  if (!listed.ok()) {
    return listed.with_context(fmt::format("{}: shard '{}'", name_, path));
  }
  MutexLock lock(mutex_);
  shards_[path] = std::move(blocks);
  return {};
}

Status SampleShards::list_members(const TarReader::ReadAt& read_at, std::uint64_t bytes,
                                  Blocks& blocks) {
  TarReader archive(read_at, bytes);
  SampleGrouping samples([&](const SampleBlock& block) -> Status {
    MR_ASSIGN_OR_RETURN(const SpooledBlock spooled, spool(block));
    blocks.push_back(spooled);
    return {};
  });
  for (;;) {
    MR_ASSIGN_OR_RETURN(const std::optional<TarReadMember> member, archive.next());
    if (!member) return samples.finish();
    MR_RETURN_IF_ERROR(samples.add(*member));
  }
}

Result<SampleShards::SpooledBlock> SampleShards::spool(const SampleBlock& block) {
  const std::vector<std::byte> raw = encode_sample_block(block);
  MR_ASSIGN_OR_RETURN(const std::vector<std::byte> stored, compress_block(raw));
  SpooledBlock spooled{.place = {.stored_bytes = static_cast<std::uint32_t>(stored.size()),
                                 .raw_bytes = static_cast<std::uint32_t>(raw.size()),
                                 .samples = static_cast<std::uint32_t>(block.samples.size()),
                                 .checksum = crc32c(stored)}};
  MutexLock lock(mutex_);
  spooled.offset = built_->spool_.size();
  MR_RETURN_IF_ERROR(built_->spool_.append(stored));
  return spooled;
}

Status SampleShards::add_shard(const ManifestCursor::Item& item) {
  const auto found = shards_.find(item.path);
  if (found == shards_.end() && item.entry.size() > 0) {
    return {StatusCode::kInternal, fmt::format("the shard '{}' was not read", item.path)};
  }
  const Blocks blocks = found != shards_.end() ? std::move(found->second) : Blocks();
  SampleShard record{.entry = item.entry.index(),
                     .blocks = static_cast<std::uint32_t>(blocks.size())};
  for (const SpooledBlock& block : blocks) {
    record.samples += block.place.samples;
    built_->table_.blocks.push_back(block.place);
    built_->spool_offsets_.push_back(block.offset);
  }
  built_->table_.shards.push_back(record);
  return {};
}

Result<std::unique_ptr<BuiltSampleIndex>> SampleShards::finish(const Manifest& manifest) {
  MutexLock lock(mutex_);
  SampleIndexTable& table = built_->table_;
  table.content_digest = manifest.content_digest();
  ManifestCursor cursor(manifest);
  for (;;) {
    MR_ASSIGN_OR_RETURN(const std::optional<ManifestCursor::Item> item, cursor.next());
    if (!item) break;
    if (item->entry.kind() != EntryKind::kFile || !is_sample_shard(item->path)) continue;
    MR_RETURN_IF_ERROR(add_shard(*item));
  }
  if (table.shards.empty()) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} has no file whose name ends in '.tar', so there is nothing to "
                               "index; archives that are compressed have no places that can be "
                               "read one by one",
                               name_));
  }
  if (table.blocks.size() > kSampleTableMax || table.shards.size() > kSampleTableMax) {
    return failure(StatusCode::kResourceExhausted,
                   fmt::format("an index has at most {} shards and blocks", kSampleTableMax));
  }
  return std::move(built_);
}

Result<std::vector<std::byte>> BuiltSampleIndex::block(std::size_t number) const {
  std::vector<std::byte> stored(table_.blocks[number].stored_bytes);
  MR_RETURN_IF_ERROR(spool_.read_at(spool_offsets_[number], stored));
  return stored;
}

bool is_sample_shard(std::string_view path) { return path.ends_with(".tar"); }

Result<std::unique_ptr<BuiltSampleIndex>> build_sample_index(const RequestContext& context,
                                                             const VersionReader& reader,
                                                             const SampleIndexOptions& options) {
  const VersionReader near = reader.with_window(kNearBytes);
  const VersionReader far = reader.with_window(kFarBytes);
  SampleShards shards(reader.ref().text(), options.scratch);
  TaskGroup reading(context, options.parallel);
  ManifestCursor cursor(reader.manifest());
  for (;;) {
    MR_ASSIGN_OR_RETURN(const std::optional<ManifestCursor::Item> item, cursor.next());
    if (!item) break;
    if (item->entry.kind() != EntryKind::kFile || !is_sample_shard(item->path)) continue;
    MR_RETURN_IF_ERROR(reading.add(
        [&, entry = item->entry, path = std::string(item->path)](const RequestContext& part) {
          ShardHeaders headers(near, far, entry);
          const auto read_at = [&](std::uint64_t offset, MutableByteView into) {
            return headers.read_at(part, offset, into);
          };
          const Status listed = shards.read(path, read_at, entry.size());
          if (listed.ok()) options.indexed(1);
          return listed;
        }));
  }
  MR_RETURN_IF_ERROR(reading.wait());
  return shards.finish(reader.manifest());
}

}  // namespace millrace
