#include "cache/lease_size.h"

#include <algorithm>
#include <utility>

#include "cache/unit.h"

namespace millrace {

std::uint64_t LeaseSize::Part::taken_bytes() const {
  return promised_bytes + added_bytes - std::min(shared_bytes, promised_bytes + added_bytes);
}

LeaseSize::LeaseSize(CacheDirectories& directories, LeaseId id, LeaseKind kind)
    : directories_(directories), id_(std::move(id)), kind_(kind) {
  for (const auto& directory : directories_.all()) {
    // Others may have filled the disk since something was last written.
    directory->refresh_limit();
    directory->leases().expire();
    parts_[directory.get()] = {.limit_bytes = directory->space().limit_bytes(),
                               .promised_bytes = directory->leases().promised_besides(id_)};
  }
}

bool LeaseSize::is_shared(CacheDirectory& directory, const BlockName& block) const {
  return parts_.at(&directory).promised_bytes > 0 &&
         directory.leases().is_promised_besides(id_, block.digest, block.block);
}

bool LeaseSize::add_block(const BlockName& block, std::uint32_t bytes, bool if_it_fits) {
  // Of what is only held, ranges that share a block have parts of their own in it.
  if (kind_ == LeaseKind::kPromise && last_ == block) return true;
  CacheDirectory& directory = directories_.of(block.digest);
  Part& part = parts_.at(&directory);
  const std::uint64_t shared = is_shared(directory, block) ? bytes : 0;
  if (if_it_fits && !part.has_room(bytes - shared)) return false;
  part.added_bytes += bytes;
  part.shared_bytes += shared;
  last_ = block;
  return true;
}

void LeaseSize::add(const LeasedBlocks& blocks) {
  for (std::uint32_t block = blocks.first; block < blocks.end(); ++block)
    add_block({blocks.digest, block}, blocks.block_bytes, false);
}

void LeaseSize::add(const LeasedRange& range) {
  for (const LeasedBlocks& blocks : blocks_of(range, kind_))
    add(blocks);
}

std::uint64_t LeaseSize::add_what_fits(const LeasedRange& range) {
  for (const LeasedBlocks& blocks : blocks_of(range, kind_)) {
    for (std::uint32_t block = blocks.first; block < blocks.end(); ++block) {
      if (add_block({blocks.digest, block}, blocks.block_bytes, true)) continue;
      const std::uint64_t begin = block * kBlockBytes;
      return begin - std::min(begin, range.range.offset);
    }
  }
  return range.range.length;
}

std::uint64_t LeaseSize::bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [directory, part] : parts_)
    bytes += part.added_bytes;
  return bytes;
}

std::uint64_t LeaseSize::limit_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [directory, part] : parts_)
    bytes += part.limit_bytes;
  return bytes;
}

std::uint64_t LeaseSize::leased_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [directory, part] : parts_)
    bytes += part.taken_bytes() - std::min(part.taken_bytes(), part.added_bytes);
  return bytes;
}

std::uint64_t LeaseSize::short_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [directory, part] : parts_)
    bytes += part.taken_bytes() - std::min(part.taken_bytes(), part.limit_bytes);
  return bytes;
}

}  // namespace millrace
