#include "dataset/sample_index_builder.h"

#include <zstd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/mutex.h"
#include "base/task_group.h"
#include "cache/unit.h"
#include "dataset/manifest_cursor.h"
#include "dataset/sample_name.h"
#include "dataset/tar_reader.h"

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

// One index in the making. Shards come in any order; their blocks are put in order at the end.
class SampleIndexBuilder {
 public:
  SampleIndexBuilder(const VersionReader& reader, const SampleIndexOptions& options)
      : reader_(reader),
        near_(reader.with_window(kNearBytes)),
        far_(reader.with_window(kFarBytes)),
        options_(options),
        built_(std::make_unique<BuiltSampleIndex>(options.scratch)) {}

  Result<std::unique_ptr<BuiltSampleIndex>> run(const RequestContext& context) {
    MR_RETURN_IF_ERROR(read_shards(context));
    MutexLock lock(mutex_);
    if (shards_.empty()) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("{} has no file whose name ends in '.tar', so there is nothing to "
                                 "index; archives that are compressed have no places that can be "
                                 "read one by one",
                                 reader_.ref().text()));
    }
    built_->table_.content_digest = reader_.manifest().content_digest();
    for (const ReadShard& shard : shards_) {
      SampleShard record{.entry = shard.entry,
                         .blocks = static_cast<std::uint32_t>(shard.blocks.size())};
      for (const SpooledBlock& block : shard.blocks) {
        record.samples += block.place.samples;
        built_->table_.blocks.push_back(block.place);
        built_->spool_offsets_.push_back(block.offset);
      }
      built_->table_.shards.push_back(record);
    }
    if (built_->table_.blocks.size() > kSampleTableMax || shards_.size() > kSampleTableMax) {
      return failure(StatusCode::kResourceExhausted,
                     fmt::format("an index has at most {} shards and blocks", kSampleTableMax));
    }
    return std::move(built_);
  }

 private:
  struct SpooledBlock {
    SampleBlockPlace place;
    std::uint64_t offset = 0;
  };
  struct ReadShard {
    EntryIndex entry = 0;
    std::vector<SpooledBlock> blocks = {};
  };

  Status read_shards(const RequestContext& context) {
    TaskGroup reading(context, options_.parallel);
    ManifestCursor cursor(reader_.manifest());
    for (;;) {
      MR_ASSIGN_OR_RETURN(const std::optional<ManifestCursor::Item> item, cursor.next());
      if (!item) return reading.wait();
      if (item->entry.kind() != EntryKind::kFile || !is_sample_shard(item->path)) continue;
      const std::size_t number = add_shard(item->entry.index());
      MR_RETURN_IF_ERROR(reading.add([this, number, entry = item->entry,
                                      path = std::string(item->path)](const RequestContext& part) {
        return read_shard(part, number, entry)
            .with_context(fmt::format("{}: shard '{}'", reader_.ref().text(), path));
      }));
    }
  }

  std::size_t add_shard(EntryIndex entry) {
    MutexLock lock(mutex_);
    shards_.push_back({.entry = entry});
    return shards_.size() - 1;
  }

  Status read_shard(const RequestContext& context, std::size_t number, const ManifestEntry& entry) {
    ShardHeaders headers(near_, far_, entry);
    TarReader archive([&](std::uint64_t offset,
                          MutableByteView into) { return headers.read_at(context, offset, into); },
                      entry.size());
    SampleGrouping samples([&](const SampleBlock& block) { return add_block(number, block); });
    for (;;) {
      MR_ASSIGN_OR_RETURN(const std::optional<TarReadMember> member, archive.next());
      if (!member) break;
      MR_RETURN_IF_ERROR(samples.add(*member));
    }
    MR_RETURN_IF_ERROR(samples.finish());
    options_.indexed(1);
    return {};
  }

  Status add_block(std::size_t number, const SampleBlock& block) {
    const std::vector<std::byte> raw = encode_sample_block(block);
    MR_ASSIGN_OR_RETURN(const std::vector<std::byte> stored, compress_block(raw));
    const SampleBlockPlace place{.stored_bytes = static_cast<std::uint32_t>(stored.size()),
                                 .raw_bytes = static_cast<std::uint32_t>(raw.size()),
                                 .samples = static_cast<std::uint32_t>(block.samples.size()),
                                 .checksum = crc32c(stored)};
    MutexLock lock(mutex_);
    shards_[number].blocks.push_back({.place = place, .offset = built_->spool_.size()});
    return built_->spool_.append(stored);
  }

  const VersionReader& reader_;
  const VersionReader near_;
  const VersionReader far_;
  const SampleIndexOptions& options_;
  Mutex mutex_;
  std::vector<ReadShard> shards_ MR_GUARDED_BY(mutex_);
  std::unique_ptr<BuiltSampleIndex> built_ MR_GUARDED_BY(mutex_);
};

Result<std::vector<std::byte>> BuiltSampleIndex::block(std::size_t number) const {
  std::vector<std::byte> stored(table_.blocks[number].stored_bytes);
  MR_RETURN_IF_ERROR(spool_.read_at(spool_offsets_[number], stored));
  return stored;
}

bool is_sample_shard(std::string_view path) { return path.ends_with(".tar"); }

Result<std::unique_ptr<BuiltSampleIndex>> build_sample_index(const RequestContext& context,
                                                             const VersionReader& reader,
                                                             const SampleIndexOptions& options) {
  return SampleIndexBuilder(reader, options).run(context);
}

}  // namespace millrace
