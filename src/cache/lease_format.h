#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "cache/lease.h"
#include "cache/object_version.h"

namespace millrace {

// Consecutive blocks of one object.
struct LeasedBlocks {
  ObjectDigest digest;
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  bool operator==(const LeasedBlocks&) const = default;
};

// A lease as one directory keeps it: the blocks of the objects that live there.
struct StoredLease {
  LeaseInfo info;
  std::vector<LeasedBlocks> blocks;
};

// The bytes of a lease file; docs/formats/cache.md has the table.
std::string encode_lease(const StoredLease& lease);
// kCorruption, or kUnsupported for a later format.
Result<StoredLease> decode_lease(ByteView bytes);

Status validate_lease_id(const LeaseId& id);

}  // namespace millrace
