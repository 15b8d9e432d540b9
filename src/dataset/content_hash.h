#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "objectstore/object.h"
#include "platform/digest.h"

namespace millrace {

// What the 32 bytes of a ContentHash are. The numbers are those of the manifest.
enum class HashKind : std::uint8_t {
  // Nothing is known about the content (directories, symlinks, empty hashes).
  kNone = 0,
  // SHA-256 of the content.
  kSha256 = 1,
  // The usual ETag of a registered object in binary: it can be turned back into the identity.
  // 16 bytes of MD5, the number of parts (4), a byte that says whether it stood in quotes, zeros.
  kEtag = 2,
  // SHA-256 of an identity of any other form, whose text the object record holds.
  kIdentity = 3,
};

// What tells one content of a file from another. Equal hashes of one kind mean equal content;
// hashes of different kinds say nothing about each other. Copyable, a plain value.
struct ContentHash {
  HashKind kind = HashKind::kNone;
  std::array<std::byte, 32> bytes{};

  static ContentHash of_content(const Sha256Digest& digest);
  // kEtag where the identity is 32 lower-case hexadecimal digits with an optional "-N" and optional
  // quotes around them, else kIdentity.
  static ContentHash of_identity(const ObjectIdentity& identity);

  // The identity again, exactly as it was; nothing unless the kind is kEtag.
  std::optional<ObjectIdentity> identity() const;
  // "sha256:ab12...", "etag:ab12...-7", "identity:ab12..." or "none".
  std::string to_text() const;

  bool operator==(const ContentHash&) const = default;
};

}  // namespace millrace
