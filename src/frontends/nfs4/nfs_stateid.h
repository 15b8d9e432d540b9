#pragma once

#include <cstdint>
#include <optional>

#include "base/siphash.h"
#include "frontends/nfs4/nfs_types.h"
#include "vfs/node.h"

namespace millrace {

// What a stateid of ours stands for. The upper four bits of `other`; 0 and 15 are left to the
// special ones of the RFC.
enum class NfsStateKind : std::uint8_t { kOpen = 1, kLock = 2, kDelegation = 3 };

// Opens and locks: kind and life (28 bits), the client's count, a number among the client's.
// Delegations: kind and a checksum (28 bits), the node. In network order.
struct NfsStateidParts {
  NfsStateKind kind = NfsStateKind::kOpen;
  // The life of the server, or the checksum.
  std::uint32_t mark = 0;
  std::uint32_t client = 0;
  std::uint32_t number = 0;

  NodeNumber node() const { return NodeNumber(std::uint64_t{client} << 32 | number); }
};
inline constexpr std::uint32_t kStateMarkMask = 0x0fffffff;

NfsStateid make_stateid(const NfsStateidParts& parts, std::uint32_t seqid);
// Nothing when it is none of ours.
std::optional<NfsStateidParts> parse_stateid(const NfsStateid& stateid);

// Reads and writes that belong to no open; with the second, whatever others deny.
inline constexpr NfsStateid kAnonymousStateid{};
NfsStateid bypass_stateid();
// What CLOSE answers in 4.1: nobody can use it.
inline constexpr NfsStateid kInvalidStateid{.seqid = UINT32_MAX, .other = {}};

// How a stateid's seqid stands to the newest one. `zero_is_newest`: 4.1.
NfsStatus compare_seqid(std::uint32_t given, std::uint32_t newest, bool zero_is_newest);
// Over 0, which is no seqid.
std::uint32_t next_seqid(std::uint32_t seqid);

// Read delegations, none of which is remembered: immutable files are never recalled, so it is
// enough to know a delegation's stateid again. Valid for its client, and as long as this object.
class NfsDelegations {
 public:
  explicit NfsDelegations(const SipHashKey& key) : key_(key) {}

  NfsStateid stateid(NfsClientId client, NodeNumber node) const;
  // kOk, or kBadStateid.
  NfsStatus check(NfsClientId client, const NfsStateid& stateid) const;

 private:
  std::uint32_t checksum(NfsClientId client, NodeNumber node) const;

  const SipHashKey key_;
};

}  // namespace millrace
