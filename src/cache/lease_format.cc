#include "cache/lease_format.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/little_endian.h"

namespace millrace {
namespace {

constexpr std::string_view kLeaseMagic = "MRLEASE\n";
constexpr std::uint32_t kLeaseFormat = 2;
// Its entries do not say how long the blocks are.
constexpr std::uint32_t kLeaseFormatOfOld = 1;
constexpr std::size_t kLeaseHeaderBytes = 48;
constexpr std::size_t kLeaseBlocksBytes = 28;
constexpr std::size_t kLeaseBlocksBytesOfOld = 24;
constexpr std::size_t kLeaseIdBytesMax = 64;

std::unexpected<Status> damaged_lease(std::string_view why) {
  return failure(StatusCode::kCorruption, fmt::format("the lease {}", why));
}

// What a lease of old says of all its blocks is divided among them.
void estimate_block_bytes(StoredLease& lease) {
  std::uint64_t count = 0;
  for (const LeasedBlocks& run : lease.blocks)
    count += run.count;
  for (LeasedBlocks& run : lease.blocks)
    run.block_bytes =
        static_cast<std::uint32_t>(lease.info.bytes / std::max<std::uint64_t>(count, 1));
  merge_blocks(lease.blocks);
}

}  // namespace

// magic 8, format 4, crc32c of all that follows 4, expires 8 (ns since 1970), bytes 8, id length 4,
// holder length 4, entries 8; then id, holder, entries.
std::string encode_lease(const StoredLease& lease) {
  const std::string_view id = lease.info.id.value();
  std::string out(kLeaseHeaderBytes, '\0');
  out += id;
  out += lease.info.holder;
  for (const LeasedBlocks& blocks : lease.blocks) {
    std::array<std::byte, kLeaseBlocksBytes> entry;
    std::ranges::copy(blocks.digest.bytes, entry.begin());
    store_little_endian(entry.data() + 16, blocks.first);
    store_little_endian(entry.data() + 20, blocks.count);
    store_little_endian(entry.data() + 24, blocks.block_bytes);
    out += as_text(entry);
  }
  auto* const head = reinterpret_cast<std::byte*>(out.data());
  std::memcpy(head, kLeaseMagic.data(), kLeaseMagic.size());
  store_little_endian(head + 8, kLeaseFormat);
  const auto expires = lease.info.expires.time_since_epoch().count();
  store_little_endian(head + 16, static_cast<std::uint64_t>(expires));
  store_little_endian(head + 24, lease.info.bytes);
  store_little_endian(head + 32, static_cast<std::uint32_t>(id.size()));
  store_little_endian(head + 36, static_cast<std::uint32_t>(lease.info.holder.size()));
  store_little_endian(head + 40, static_cast<std::uint64_t>(lease.blocks.size()));
  store_little_endian(head + 12, crc32c(as_bytes(out).subspan(16)));
  return out;
}

Result<StoredLease> decode_lease(ByteView bytes) {
  if (bytes.size() < kLeaseHeaderBytes) return damaged_lease("is cut short");
  if (!as_text(bytes).starts_with(kLeaseMagic)) return damaged_lease("does not start as one");
  const auto number32 = [&](std::size_t at) {
    return load_little_endian<std::uint32_t>(&bytes[at]);
  };
  const auto number64 = [&](std::size_t at) {
    return load_little_endian<std::uint64_t>(&bytes[at]);
  };
  if (crc32c(bytes.subspan(16)) != number32(12)) return damaged_lease("does not fit its checksum");
  const bool is_of_old = number32(8) == kLeaseFormatOfOld;
  if (number32(8) != kLeaseFormat && !is_of_old) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("the lease has format {}, and this Millrace knows format {}",
                               number32(8), kLeaseFormat));
  }
  const std::uint64_t id_bytes = number32(32);
  const std::uint64_t holder_bytes = number32(36);
  const std::uint64_t entries = number64(40);
  const std::uint64_t texts_end = kLeaseHeaderBytes + id_bytes + holder_bytes;
  const std::size_t entry_bytes = is_of_old ? kLeaseBlocksBytesOfOld : kLeaseBlocksBytes;
  if (texts_end > bytes.size() || (bytes.size() - texts_end) / entry_bytes != entries ||
      (bytes.size() - texts_end) % entry_bytes != 0) {
    return damaged_lease("has another length than it says");
  }
  StoredLease lease;
  lease.info.expires = WallTime(Duration(static_cast<Duration::rep>(number64(16))));
  lease.info.bytes = number64(24);
  const std::string_view texts = as_text(bytes.subspan(kLeaseHeaderBytes));
  lease.info.id = LeaseId(std::string(texts.substr(0, id_bytes)));
  lease.info.holder = texts.substr(id_bytes, holder_bytes);
  lease.blocks.resize(entries);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::byte* const entry = bytes.data() + texts_end + i * entry_bytes;
    std::copy_n(entry, 16, lease.blocks[i].digest.bytes.begin());
    lease.blocks[i].first = load_little_endian<std::uint32_t>(entry + 16);
    lease.blocks[i].count = load_little_endian<std::uint32_t>(entry + 20);
    if (!is_of_old) lease.blocks[i].block_bytes = load_little_endian<std::uint32_t>(entry + 24);
  }
  if (is_of_old) estimate_block_bytes(lease);
  return lease;
}

Status validate_lease_id(const LeaseId& id) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  const std::string& text = id.value();
  if (text.empty() || text.size() > kLeaseIdBytesMax || text.front() == '.' ||
      !std::ranges::all_of(text, allowed)) {
    return {
        StatusCode::kInvalidArgument,
        fmt::format("'{}' is no name of a lease: use 1 to {} letters, digits, '-', '_' and '.', "
                    "not starting with '.'",
                    text, kLeaseIdBytesMax)};
  }
  return {};
}

}  // namespace millrace
