#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/strong_type.h"
#include "cache/object_version.h"

namespace millrace {

// Names a lease: letters, digits, '-', '_' and '.', at most 64 of them. Whoever asks for it
// chooses, so that a job that asks again after a crash finds its own lease.
using LeaseId = StrongType<std::string, struct LeaseIdTag>;

// A part of an object that must stay once it is cached. Small, since a lease may have a million.
struct LeasedRange {
  LeasedRange(const ObjectVersion& object, ByteRange part)
      : digest(object.digest()), object_size(object.size()), range(part) {}

  ObjectDigest digest;
  std::uint64_t object_size;
  ByteRange range;
};

struct LeaseRequest {
  LeaseId id;
  std::string holder;  // For operators: a job, a user, a host.
  Duration lifetime{};
  std::vector<LeasedRange> ranges;
};

struct LeaseInfo {
  LeaseId id;
  std::string holder;
  WallTime expires{};
  std::uint64_t bytes = 0;  // Of the leased blocks, cached or not.
};

}  // namespace millrace
