#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/checksum.h"
#include "cache/object_version.h"
#include "cache/unit.h"

namespace millrace {

// Object versions of known content for the tests of what the cache stores.

inline ObjectVersion stored_version(const std::string& key, std::uint64_t size) {
  return ObjectVersion(StoreId("memory:stored"), ObjectKey(key), ObjectIdentity("etag"), size);
}

// What the version holds, for ever. No unit of it is all zeros.
inline std::string stored_content(const ObjectVersion& version) {
  std::mt19937_64 random(std::hash<std::string>{}(version.key().value()) + version.size());
  std::string content(version.size() + 8, '\0');
  for (std::size_t at = 0; at < version.size(); at += 8) {
    const std::uint64_t word = random();
    std::memcpy(content.data() + at, &word, 8);
  }
  content.resize(version.size());
  return content;
}

inline std::string_view stored_part(std::string_view content, UnitRange units) {
  const ByteRange bytes = bytes_of(units, content.size());
  return content.substr(bytes.offset, bytes.length);
}

inline std::vector<std::uint32_t> stored_checksums(std::string_view content, UnitRange units) {
  std::vector<std::uint32_t> checksums;
  for (std::uint32_t unit = units.first; unit < units.end(); ++unit)
    checksums.push_back(crc32c(as_bytes(stored_part(content, {unit, 1}))));
  return checksums;
}

}  // namespace millrace
