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

enum class LeaseKind : std::uint8_t {
  // Promises whole blocks until it expires, also over restarts. What is promised to one is not
  // promised to another.
  kPromise,
  // Keeps blocks while somebody fills them, and ends with him or the process. It takes no room from
  // promises, and goes before them where the disk is full.
  kHold,
};

// A part of an object that must stay once it is cached. Small, since a lease may have a million.
struct LeasedRange {
  LeasedRange(const ObjectVersion& object, ByteRange part);

  ObjectDigest digest;
  std::uint64_t object_room;  // What all of the object takes on the disk.
  ByteRange range;
};

struct LeaseRequest {
  LeaseId id;
  std::string holder;  // For operators: a job, a user, a host.
  Duration lifetime{};
  std::vector<LeasedRange> ranges;
  LeaseKind kind = LeaseKind::kPromise;
};

struct LeaseInfo {
  LeaseId id;
  std::string holder;
  WallTime expires{};
  std::uint64_t bytes = 0;  // Of the leased blocks on the disk, once they are cached.
};

}  // namespace millrace
