#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "dataset/manifest.h"
#include "loader/last_used.h"
#include "loader/mds_index.h"
#include "loader/sample_readers.h"
#include "loader/sample_source.h"

namespace millrace {

// Samples in MDS shards. Columns are the fields; the key is the shard's name and the number of the
// sample in it.
//
// Of a shard that is not compressed, the table of offsets and the wanted samples are read. One that
// is compressed is read whole, held against its hashes, and kept decompressed while it is among the
// last kShardsKept that were used. Tables are small, and up to kTableBytesKept of them are kept. A
// shard that is not compressed is held against its hashes only where the user asks for that, before
// its first sample: then it has to be read whole, too.
class MdsSource final : public SampleSource {
 public:
  static constexpr std::string_view kReader = "mds";
  static constexpr std::size_t kShardsKept = 8;
  static constexpr std::uint64_t kTableBytesKept = 32 * kMiB;
  static constexpr std::string_view kIndexName = "index.json";

  // `directory` of the version has the index. kNotFound when there is none, kCorruption when a file
  // that it names is not there or has another size; else as parse_mds_index() and `files`, which
  // outlives the source.
  static Result<std::unique_ptr<MdsSource>> open(const RequestContext& context, SampleFiles& files,
                                                 const std::string& directory,
                                                 const ReaderOptions& options = {});

  // The first bytes of an index, which is a file of the version. Where there are few shards, their
  // tables are on their way into the cache then: a first batch needs both, and would wait for one
  // after the other.
  static Result<Slice> read_index(const RequestContext& context, SampleFiles& files,
                                  const ManifestEntry& index, std::uint64_t bytes_max);

  std::string_view reader() const override { return kReader; }
  std::uint64_t samples() const override { return first_samples_.back(); }
  const std::vector<SampleStretch>& stretches() const override { return stretches_; }
  void look_up(const RequestContext& context, std::span<const std::uint64_t> samples) override;
  Result<SampleLocation> locate(const RequestContext& context, std::uint64_t sample) override;
  Result<std::vector<SampleValue>> decode(const SampleLocation& location,
                                          const std::vector<Slice>& parts) override;

  std::size_t shards() const { return index_.shards.size(); }
  // Reads a shard whole and compares it with its hashes. kCorruption names it.
  Status check_shard(const RequestContext& context, std::size_t shard);

 private:
  // What is kept of a shard: where its samples begin, and one more; and all of it, if it was
  // compressed.
  struct OpenShard {
    std::vector<std::uint32_t> offsets;
    Slice raw = {};
  };
  using ShardPtr = std::shared_ptr<const OpenShard>;

  MdsSource(SampleFiles& files, MdsIndex index, const ReaderOptions& options);
  Status find_files(const std::string& directory);
  Result<ShardPtr> open_shard(const RequestContext& context, std::size_t number);
  // The head of a shard that is not compressed, which has its table.
  ByteRange table_range(std::size_t number) const;
  LastUsed<OpenShard>& kept(std::size_t number) { return compressed_[number] ? shards_ : tables_; }
  Result<OpenShard> load_shard(const RequestContext& context, std::size_t number);
  Result<Slice> load_compressed(const RequestContext& context, std::size_t number);
  std::size_t shard_of(std::uint64_t sample) const;

  // check_shard(), once.
  Status verify_shard(const RequestContext& context, std::size_t shard) MR_EXCLUDES(mutex_);

  SampleFiles& files_;
  const ReaderOptions options_;
  const MdsIndex index_;
  std::vector<EntryIndex> entries_;  // Of each shard's file.
  std::vector<bool> compressed_;     // Whether that is the compressed one.
  std::vector<std::uint64_t> first_samples_ = {0};
  std::vector<SampleStretch> stretches_;
  LastUsed<OpenShard> shards_{kShardsKept};
  LastUsed<OpenShard> tables_;
  Mutex mutex_;
  std::vector<bool> verified_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
