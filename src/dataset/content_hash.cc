#include "dataset/content_hash.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/little_endian.h"

namespace millrace {
namespace {

constexpr std::size_t kEtagDigestBytes = 16;
constexpr std::size_t kEtagPartsAt = 16;
constexpr std::size_t kEtagQuotedAt = 20;

std::string etag_text(const ContentHash& hash) {
  std::string text = to_hex(ByteView(hash.bytes).first(kEtagDigestBytes));
  const auto parts = load_little_endian<std::uint32_t>(hash.bytes.data() + kEtagPartsAt);
  if (parts > 0) text += fmt::format("-{}", parts);
  return text;
}

}  // namespace

ContentHash ContentHash::of_content(const Sha256Digest& digest) {
  return {.kind = HashKind::kSha256, .bytes = digest};
}

ContentHash ContentHash::of_identity(const ObjectIdentity& identity) {
  const ContentHash other{.kind = HashKind::kIdentity, .bytes = sha256(as_bytes(identity.value()))};
  std::string_view text = identity.value();
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  if (quoted) text = text.substr(1, text.size() - 2);
  if (text.size() < 2 * kEtagDigestBytes) return other;
  const auto digest = from_hex(text.substr(0, 2 * kEtagDigestBytes));
  if (!digest) return other;
  std::uint32_t parts = 0;
  if (const std::string_view rest = text.substr(2 * kEtagDigestBytes); !rest.empty()) {
    if (rest.front() != '-') return other;
    (void)std::from_chars(rest.data() + 1, rest.data() + rest.size(), parts);
  }
  ContentHash hash{.kind = HashKind::kEtag, .bytes = {}};
  std::ranges::copy(*digest, hash.bytes.begin());
  store_little_endian(hash.bytes.data() + kEtagPartsAt, parts);
  hash.bytes[kEtagQuotedAt] = std::byte{quoted};
  // Upper case, leading zeros, a part number too large: whatever would not come back the same.
  return hash.identity() == identity ? hash : other;
}

std::optional<ObjectIdentity> ContentHash::identity() const {
  if (kind != HashKind::kEtag) return std::nullopt;
  const std::string text = etag_text(*this);
  return ObjectIdentity(bytes[kEtagQuotedAt] == std::byte{0} ? text : '"' + text + '"');
}

std::string ContentHash::to_text() const {
  switch (kind) {
    case HashKind::kNone:
      break;
    case HashKind::kSha256:
      return "sha256:" + to_hex(bytes);
    case HashKind::kEtag:
      return "etag:" + etag_text(*this);
    case HashKind::kIdentity:
      return "identity:" + to_hex(bytes);
  }
  return "none";
}

}  // namespace millrace
