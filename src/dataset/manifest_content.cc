#include "dataset/manifest_content.h"

#include <algorithm>
#include <array>

#include "base/little_endian.h"

namespace millrace {
namespace {

constexpr std::string_view kContentDigestMagic = "millrace-content 1\n";
constexpr std::uint16_t kNoMode = 0xffff;

}  // namespace

void begin_content_digest(Sha256& sha) { sha.add(as_bytes(kContentDigestMagic)); }

void add_content_digest(Sha256& sha, const EntryContent& entry) {
  std::array<std::byte, 20> head{};
  store_little_endian(head.data(), static_cast<std::uint32_t>(entry.path.size()));
  store_little_endian(head.data() + 4, static_cast<std::uint32_t>(entry.symlink_target.size()));
  store_little_endian(head.data() + 8, entry.size);
  store_little_endian(head.data() + 16, entry.mode.value_or(kNoMode));
  head[18] = std::byte(entry.kind);
  head[19] = std::byte(entry.hash.kind);
  sha.add(head);
  sha.add(entry.hash.bytes);
  sha.add(as_bytes(entry.path));
  sha.add(as_bytes(entry.symlink_target));
}

}  // namespace millrace
