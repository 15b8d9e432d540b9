#include "cache/leased_blocks.h"

#include <algorithm>
#include <utility>

#include "cache/cache_directory.h"
#include "cache/unit.h"

namespace millrace {

LeasedRange::LeasedRange(const ObjectVersion& object, ByteRange part)
    : digest(object.digest()),
      object_room(CacheDirectory::room_for(object, {0, unit_count(object.size())})),
      range(part) {
  // A small object comes and goes whole.
  if (object.size() <= kSmallObjectBytesMax && !part.empty()) range = {0, object_room};
}

std::vector<LeasedBlocks> blocks_of(const LeasedRange& leased, LeaseKind kind) {
  const std::uint64_t room = leased.object_room;
  std::uint64_t begin = std::min(leased.range.offset, room);
  std::uint64_t end = begin + std::min(leased.range.length, room - begin);
  if (begin == end) return {};
  const std::uint64_t grain = kind == LeaseKind::kPromise ? kBlockBytes : kUnitBytes;
  begin -= begin % grain;
  end = std::min((end + grain - 1) / grain * grain, room);
  std::vector<LeasedBlocks> blocks;
  while (begin < end) {
    const auto first = static_cast<std::uint32_t>(begin / kBlockBytes);
    const bool starts_block = begin % kBlockBytes == 0;
    const std::uint64_t whole = starts_block ? (end - begin) / kBlockBytes : 0;
    const std::uint64_t bytes =
        whole > 0 ? kBlockBytes : std::min(end, (first + 1) * kBlockBytes) - begin;
    const auto count = static_cast<std::uint32_t>(std::max<std::uint64_t>(whole, 1));
    blocks.push_back({leased.digest, first, count, static_cast<std::uint32_t>(bytes)});
    begin += count * bytes;
  }
  return blocks;
}

void merge_blocks(std::vector<LeasedBlocks>& blocks) {
  std::ranges::sort(blocks, {},
                    [](const LeasedBlocks& run) { return std::pair(run.digest, run.first); });
  std::vector<LeasedBlocks> merged;
  for (LeasedBlocks run : blocks) {
    if (merged.empty() || merged.back().digest != run.digest) {
      merged.push_back(run);
      continue;
    }
    LeasedBlocks& last = merged.back();
    const std::uint32_t known =
        last.end() > run.first ? std::min(last.end() - run.first, run.count) : 0;
    run.first += known;
    run.count -= known;
    if (run.count == 0) continue;
    if (run.first == last.end() && run.block_bytes == last.block_bytes) {
      last.count += run.count;
    } else {
      merged.push_back(run);
    }
  }
  blocks = std::move(merged);
}

bool contains_block(const std::vector<LeasedBlocks>& merged, const ObjectDigest& digest,
                    std::uint32_t block) {
  const auto after = std::ranges::upper_bound(
      merged, std::pair(digest, block), {},
      [](const LeasedBlocks& run) { return std::pair(run.digest, run.first); });
  if (after == merged.begin()) return false;
  const LeasedBlocks& run = *std::prev(after);
  return run.digest == digest && block < run.end();
}

}  // namespace millrace
