#include "loader/mds_source.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "base/little_endian.h"
#include "loader/decompression.h"
#include "loader/file_hashes.h"
#include "loader/mds_sample.h"
#include "loader/read_answers.h"

namespace millrace {

namespace {

constexpr std::uint64_t kMdsIndexBytesMax = 2 * kGiB;
// Shards of which all tables are fetched with the index, and what may lie beside them. Of a larger
// set the first batch needs only a part of the tables, and only the index tells which.
constexpr std::uint32_t kFewShards = 64;
constexpr std::uint32_t kFewFiles = 2 * kFewShards;
constexpr std::uint64_t kTableHeadBytes = 64 * kKiB;

std::string path_in(const std::string& directory, std::string_view name) {
  return directory.empty() ? std::string(name) : fmt::format("{}/{}", directory, name);
}

std::unexpected<Status> bad_shard(std::string_view name, std::string_view why) {
  return failure(StatusCode::kCorruption, fmt::format("{}: {}", name, why));
}

std::size_t tables_kept(const MdsIndex& index) {
  std::uint64_t samples = 0;
  for (const MdsShard& shard : index.shards)
    samples += shard.samples;
  const std::uint64_t table_bytes =
      sizeof(std::uint32_t) * (samples / std::max<std::size_t>(index.shards.size(), 1) + 1);
  return std::max<std::size_t>(MdsSource::kTableBytesKept / table_bytes, MdsSource::kShardsKept);
}

// `bytes` are the head of a shard: the number of samples, and their offsets.
Result<std::vector<std::uint32_t>> parse_offsets(ByteView bytes, const MdsShard& shard) {
  assert(bytes.size() == 4 * (shard.samples + 2));
  if (load_little_endian<std::uint32_t>(bytes.data()) != shard.samples) {
    return bad_shard(shard.raw.name, "another number of samples than the index has");
  }
  std::vector<std::uint32_t> offsets;
  offsets.reserve(shard.samples + 1);
  std::uint64_t before = bytes.size();
  for (std::size_t at = 4; at < bytes.size(); at += 4) {
    const auto offset = load_little_endian<std::uint32_t>(bytes.data() + at);
    if (offset < before || offset > shard.raw.bytes) {
      return bad_shard(shard.raw.name,
                       fmt::format("sample {} begins where it cannot", offsets.size()));
    }
    offsets.push_back(offset);
    before = offset;
  }
  return offsets;
}

// Nothing comes of it where the manifest cannot be read: whoever has to will say so.
Status expect_tables(const RequestContext& context, SampleFiles& files,
                     const ManifestEntry& index) {
  const Manifest& manifest = files.manifest();
  MR_ASSIGN_OR_RETURN(const ManifestEntry directory, manifest.entry(index.parent()));
  MR_ASSIGN_OR_RETURN(const ChildRange children, manifest.children(directory));
  if (children.count() > kFewFiles) return {};
  std::vector<ManifestEntry> shards;
  for (EntryIndex child = children.first; child < children.end; ++child) {
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(child));
    MR_ASSIGN_OR_RETURN(const std::string_view name, manifest.name(entry));
    if (entry.kind() == EntryKind::kFile && name.ends_with(".mds")) shards.push_back(entry);
  }
  if (shards.size() > kFewShards) return {};
  for (const ManifestEntry& shard : shards)
    files.expect(context, shard.index(), {0, std::min(kTableHeadBytes, shard.size())});
  return {};
}

}  // namespace

MdsSource::MdsSource(SampleFiles& files, MdsIndex index, const ReaderOptions& options)
    : files_(files), options_(options), index_(std::move(index)), tables_(tables_kept(index_)) {}

Result<std::unique_ptr<MdsSource>> MdsSource::open(const RequestContext& context,
                                                   SampleFiles& files, const std::string& directory,
                                                   const ReaderOptions& options) {
  const Manifest& manifest = files.manifest();
  const std::string path = path_in(directory, kIndexName);
  MR_ASSIGN_OR_RETURN(const std::optional<EntryIndex> found, manifest.resolve(path));
  if (!found) {
    return failure(StatusCode::kNotFound, fmt::format("the version has no '{}'", path));
  }
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(*found));
  if (entry.kind() != EntryKind::kFile || entry.size() > kMdsIndexBytesMax) {
    return bad_shard(path, "no file that an index could be");
  }
  MR_ASSIGN_OR_RETURN(const Slice text, read_index(context, files, entry, entry.size()));
  MR_ASSIGN_OR_RETURN(MdsIndex index, parse_mds_index(text.text(), options.allow_pickle));
  std::unique_ptr<MdsSource> source(new MdsSource(files, std::move(index), options));
  MR_RETURN_IF_ERROR(source->find_files(directory));
  if (source->samples() > 0) return source;
  return failure(StatusCode::kInvalidArgument, fmt::format("{}: it has no samples", path));
}

Result<Slice> MdsSource::read_index(const RequestContext& context, SampleFiles& files,
                                    const ManifestEntry& index, std::uint64_t bytes_max) {
  Waiter<Slice> text;
  files.start_read(context, index.index(), {0, std::min(index.size(), bytes_max)},
                   text.completion());
  (void)expect_tables(context, files, index);
  return text.wait();
}

Status MdsSource::find_files(const std::string& directory) {
  const Manifest& manifest = files_.manifest();
  for (const MdsShard& shard : index_.shards) {
    MR_ASSIGN_OR_RETURN(std::optional<EntryIndex> found,
                        manifest.resolve(path_in(directory, shard.raw.name)));
    const bool compressed = !found && shard.compressed.has_value();
    const MdsFile& file = compressed ? *shard.compressed : shard.raw;
    if (compressed) {
      MR_ASSIGN_OR_RETURN(found, manifest.resolve(path_in(directory, file.name)));
    }
    if (!found) return bad_shard(file.name, "the index names it, and it is not there").error();
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry, manifest.entry(*found));
    if (entry.kind() != EntryKind::kFile || entry.size() != file.bytes) {
      return bad_shard(file.name, fmt::format("the index says that it has {} bytes", file.bytes))
          .error();
    }
    if (shard.raw.bytes < 4 * (shard.samples + 2)) {
      return bad_shard(file.name, "too small for its samples").error();
    }
    entries_.push_back(*found);
    compressed_.push_back(compressed);
    first_samples_.push_back(first_samples_.back() + shard.samples);
    stretches_.push_back({.samples = shard.samples, .bytes = file.bytes});
  }
  return {};
}

std::size_t MdsSource::shard_of(std::uint64_t sample) const {
  const auto after = std::ranges::upper_bound(first_samples_, sample);
  return static_cast<std::size_t>(after - first_samples_.begin()) - 1;
}

Result<MdsSource::ShardPtr> MdsSource::open_shard(const RequestContext& context,
                                                  std::size_t number) {
  if (ShardPtr open = kept(number).find(number)) return open;
  MR_ASSIGN_OR_RETURN(OpenShard loaded, load_shard(context, number));
  return kept(number).add(number, std::move(loaded));
}

ByteRange MdsSource::table_range(std::size_t number) const {
  return {.offset = 0, .length = 4 * (index_.shards[number].samples + 2)};
}

void MdsSource::look_up(const RequestContext& context, std::span<const std::uint64_t> samples) {
  if (options_.verify_hashes) return;  // Nothing is taken from a shard before it was checked.
  std::vector<std::size_t> missing;
  for (const std::uint64_t sample : samples)
    missing.push_back(shard_of(sample));
  std::ranges::sort(missing);
  const auto repeated = std::ranges::unique(missing);
  missing.erase(repeated.begin(), repeated.end());
  // Those that are compressed are large, and few are kept.
  std::erase_if(missing, [&](std::size_t number) {
    return compressed_[number] || tables_.find(number) != nullptr;
  });
  const auto answers = std::make_shared<ReadAnswers>(missing.size());
  for (std::size_t n = 0; n < missing.size(); ++n) {
    files_.start_read(context, entries_[missing[n]], table_range(missing[n]),
                      ReadAnswers::completion(answers, n));
  }
  answers->wait();
  for (std::size_t n = 0; n < missing.size(); ++n) {
    if (!answers->at(n)) continue;
    auto offsets = parse_offsets(answers->at(n)->bytes(), index_.shards[missing[n]]);
    if (offsets) tables_.add(missing[n], {.offsets = *std::move(offsets)});
  }
}

Result<MdsSource::OpenShard> MdsSource::load_shard(const RequestContext& context,
                                                   std::size_t number) {
  const MdsShard& shard = index_.shards[number];
  OpenShard opened;
  if (compressed_[number]) {
    MR_ASSIGN_OR_RETURN(opened.raw, load_compressed(context, number));
    MR_ASSIGN_OR_RETURN(opened.offsets,
                        parse_offsets(opened.raw.bytes().first(table_range(number).length), shard));
    return opened;
  }
  if (options_.verify_hashes) MR_RETURN_IF_ERROR(verify_shard(context, number));
  MR_ASSIGN_OR_RETURN(const Slice head,
                      files_.read(context, entries_[number], table_range(number)));
  MR_ASSIGN_OR_RETURN(opened.offsets, parse_offsets(head.bytes(), shard));
  return opened;
}

Result<Slice> MdsSource::load_compressed(const RequestContext& context, std::size_t number) {
  const MdsShard& shard = index_.shards[number];
  const MdsFile& file = *shard.compressed;
  MR_ASSIGN_OR_RETURN(const Slice bytes,
                      files_.read(context, entries_[number], {.offset = 0, .length = file.bytes}));
  MR_RETURN_IF_ERROR(check_hashes(bytes.bytes(), file.hashes, file.name));
  auto raw = decompress(shard.compression, bytes.bytes(), shard.raw.bytes);
  if (!raw) return failure(raw.error().with_context(file.name));
  MR_RETURN_IF_ERROR(check_hashes(raw->bytes(), shard.raw.hashes, file.name));
  return raw;
}

Status MdsSource::verify_shard(const RequestContext& context, std::size_t shard) {
  {
    MutexLock lock(mutex_);
    verified_.resize(shards());
    if (verified_[shard]) return {};
  }
  MR_RETURN_IF_ERROR(check_shard(context, shard));
  MutexLock lock(mutex_);
  verified_[shard] = true;
  return {};
}

Status MdsSource::check_shard(const RequestContext& context, std::size_t shard) {
  assert(shard < shards());
  if (compressed_[shard]) {
    const auto raw = load_compressed(context, shard);
    return raw ? Status() : raw.error();
  }
  const MdsFile& file = index_.shards[shard].raw;
  MR_ASSIGN_OR_RETURN(const Slice bytes,
                      files_.read(context, entries_[shard], {.offset = 0, .length = file.bytes}));
  return check_hashes(bytes.bytes(), file.hashes, file.name);
}

Result<SampleLocation> MdsSource::locate(const RequestContext& context, std::uint64_t sample) {
  assert(sample < samples());
  const std::size_t number = shard_of(sample);
  const std::uint64_t at = sample - first_samples_[number];
  MR_ASSIGN_OR_RETURN(const ShardPtr shard, open_shard(context, number));
  const ByteRange range{.offset = shard->offsets[at],
                        .length = shard->offsets[at + 1] - shard->offsets[at]};
  SampleLocation location{.sample = sample,
                          .key = fmt::format("{}:{}", index_.shards[number].raw.name, at)};
  if (compressed_[number]) {
    location.ready = shard->raw.part(range.offset, range.length);
  } else {
    location.parts.push_back({.field = "sample", .file = entries_[number], .range = range});
  }
  return location;
}

Result<std::vector<SampleValue>> MdsSource::decode(const SampleLocation& location,
                                                   const std::vector<Slice>& parts) {
  assert(parts.size() == location.parts.size());
  const MdsShard& shard = index_.shards[shard_of(location.sample)];
  auto values =
      decode_mds_sample(index_.columns[shard.columns], parts.empty() ? location.ready : parts[0]);
  if (!values) return failure(values.error().with_context(location.key));
  return values;
}

}  // namespace millrace
