#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/random.h"
#include "base/siphash.h"
#include "base/status.h"
#include "vfs/node.h"

namespace millrace {

// What a file handle names: a node under an export, or a directory above the exports.
struct NfsHandle {
  // 0: a directory above the exports, and the node is the hash of its path.
  std::uint32_t export_id = 0;
  NodeNumber node;
  std::uint32_t tree_check = 0;  // FileSystem::tree_check(), 24 bits.

  bool operator==(const NfsHandle&) const = default;
};

// Makes handles and knows its own again, also after a restart and on every gateway with the same
// key: nothing is remembered for them. On the wire (docs/formats/nfs.md), 24 bytes, big-endian:
//
//   2 | check u24 | export u32 | node u64 | keyed hash of all before u64
//
// Constant after construction, so safe from any thread.
class NfsHandles {
 public:
  static constexpr std::size_t kHandleBytes = 24;
  using Bytes = std::array<std::byte, kHandleBytes>;

  explicit NfsHandles(const SipHashKey& key) : key_(key) {}
  // With the secret at `path`, 32 hexadecimal digits that only the owner may read: made when it is
  // absent. kInvalidArgument when it is something else. Blocks.
  static Result<NfsHandles> open(const std::string& path, Random& random);

  Bytes encode(const NfsHandle& handle) const;
  // Nothing when we did not make it.
  std::optional<NfsHandle> decode(ByteView bytes) const;

 private:
  const SipHashKey key_;
};

}  // namespace millrace
