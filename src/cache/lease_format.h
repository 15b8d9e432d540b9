#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "cache/lease.h"
#include "cache/leased_blocks.h"

namespace millrace {

// A lease as one directory keeps it: the blocks of the objects that live there, merged.
struct StoredLease {
  LeaseInfo info;
  std::vector<LeasedBlocks> blocks;
  LeaseKind kind = LeaseKind::kPromise;
};

// The bytes of a lease file, which is always of a promise; docs/formats/cache.md has the table.
std::string encode_lease(const StoredLease& lease);
// kCorruption, or kUnsupported for a later format.
Result<StoredLease> decode_lease(ByteView bytes);

Status validate_lease_id(const LeaseId& id);

}  // namespace millrace
