#include "loader/webdataset_source.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "base/ascii.h"

namespace millrace {

Result<std::unique_ptr<WebDatasetSource>> WebDatasetSource::open(
    const Manifest& manifest, std::unique_ptr<SampleIndex> index) {
  std::unique_ptr<WebDatasetSource> source(new WebDatasetSource(std::move(index)));
  for (const SampleShard& shard : source->index_->table().shards) {
    const auto entry = manifest.entry(shard.entry);
    if (!entry && entry.error().code() != StatusCode::kNotFound) return failure(entry.error());
    if (!entry || entry->kind() != EntryKind::kFile) {
      return failure(StatusCode::kCorruption,
                     fmt::format("the sample index names entry {} as a shard, which the version "
                                 "does not have as a file",
                                 shard.entry));
    }
    source->stretches_.push_back({.samples = shard.samples, .bytes = entry->size()});
    source->shard_bytes_.push_back(entry->size());
  }
  return source;
}

Result<WebDatasetSource::BlockPtr> WebDatasetSource::block(const RequestContext& context,
                                                           std::uint32_t number) {
  if (BlockPtr kept = kept_.find(number)) return kept;
  MR_ASSIGN_OR_RETURN(SampleBlock fetched, index_->block(context, number));
  return kept_.add(number, std::move(fetched));
}

Result<SampleLocation> WebDatasetSource::locate(const RequestContext& context,
                                                std::uint64_t sample) {
  assert(sample < samples());
  const SamplePlace place = index_->locate(sample);
  MR_ASSIGN_OR_RETURN(const BlockPtr found, block(context, place.block));
  const SampleBlock::Sample& at = found->samples[place.at];
  SampleLocation location{.sample = sample, .key = at.key};
  for (std::size_t n = 0; n < found->member_count(at); ++n) {
    const SampleBlock::Member& member = found->members[at.first_member + n];
    const std::uint64_t shard_bytes = shard_bytes_[place.shard];
    if (member.offset > shard_bytes || member.size > shard_bytes - member.offset) {
      return failure(
          StatusCode::kCorruption,
          fmt::format("the sample index has sample '{}' behind the end of its shard", at.key));
    }
    location.parts.push_back({.field = lower_case(found->shapes[at.shape][n]),
                              .file = index_->table().shards[place.shard].entry,
                              .range = {.offset = member.offset, .length = member.size}});
  }
  return location;
}

Result<std::vector<SampleValue>> WebDatasetSource::decode(const SampleLocation& location,
                                                          const std::vector<Slice>& parts) {
  assert(parts.size() == location.parts.size());
  std::vector<SampleValue> values;
  for (std::size_t n = 0; n < parts.size(); ++n) {
    values.push_back({.name = location.parts[n].field, .bytes = parts[n]});
  }
  return values;
}

}  // namespace millrace
