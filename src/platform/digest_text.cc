#include "platform/digest_text.h"

#include <algorithm>

#include "base/hex.h"

namespace millrace {

std::optional<Sha256Digest> parse_sha256(std::string_view text) {
  const auto bytes = from_hex(text);
  Sha256Digest digest{};
  if (!bytes || bytes->size() != digest.size()) return std::nullopt;
  std::ranges::copy(*bytes, digest.begin());
  return digest;
}

}  // namespace millrace
