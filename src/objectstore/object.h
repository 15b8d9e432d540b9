#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/strong_type.h"

namespace millrace {

// The name of an object inside its store: 1 to 1024 bytes of UTF-8 without NUL. '/' has no meaning
// to a store but as the usual delimiter of list().
using ObjectKey = StrongType<std::string, struct ObjectKeyTag>;

// What tells one content of a key from the next: an ETag, a generation, a content hash. Opaque, and
// exactly as the store gives it.
using ObjectIdentity = StrongType<std::string, struct ObjectIdentityTag>;

// Small facts that a user attaches to an object. Names are lower-case letters, digits and '-';
// names and values together stay below 2 KiB, the limit of most stores. Values are printable ASCII.
using ObjectMetadata = std::map<std::string, std::string>;
inline constexpr std::size_t kMetadataBytesMax = 2048;
inline constexpr std::size_t kKeyBytesMax = 1024;

struct ObjectInfo {
  ObjectKey key = {};
  std::uint64_t size = 0;
  ObjectIdentity identity = {};
  WallTime modified{};
  // Filled by head() only: listings do not carry it.
  ObjectMetadata metadata = {};
};

}  // namespace millrace
