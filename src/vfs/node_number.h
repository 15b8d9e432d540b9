#pragma once

#include <cstdint>
#include <string_view>

#include "base/strong_type.h"
#include "vfs/node.h"

namespace millrace {

// How node numbers are made. They fit in 64 bits, since that is what FUSE and NFS have for them:
//
//   1, 2, 3                        the root, /datasets, /buckets
//   tree << 32 | entry             an entry of a version; trees have numbers from 1 (TreeNumbers)
//   1 << 63 | kind << 62 | hash    a node that only its path names
//
// Hashes are 62 bits of a SHA-256: among a million paths two collide with a chance of 1 in 10
// million. Whoever keeps such nodes finds a collision, and refuses the second path.
using TreeNumber = StrongType<std::uint32_t, struct TreeNumberTag>;

inline constexpr std::uint32_t kTreeNumberMax = (std::uint32_t{1} << 31) - 1;

inline NodeNumber root_node() { return NodeNumber(1); }
inline NodeNumber datasets_node() { return NodeNumber(2); }
inline NodeNumber buckets_node() { return NodeNumber(3); }

inline NodeNumber version_node(TreeNumber tree, std::uint32_t entry) {
  return NodeNumber((std::uint64_t{tree.value()} << 32) | entry);
}

enum class NamedNodes : std::uint8_t { kDatasets, kBuckets };
NodeNumber named_node(NamedNodes kind, std::string_view path);
// The hash in such a number, which fits the signed offsets that directories are read by; and back.
std::uint64_t hash_of(NodeNumber named);
NodeNumber named_node(NamedNodes kind, std::uint64_t hash);

// What a number says of itself.
enum class NodePlace : std::uint8_t { kRoot, kDatasets, kBuckets, kVersion, kNowhere };
NodePlace place_of(NodeNumber number);
// Of a node in a version.
inline TreeNumber tree_of(NodeNumber number) {
  return TreeNumber(static_cast<std::uint32_t>(number.value() >> 32));
}
inline std::uint32_t entry_of(NodeNumber number) {
  return static_cast<std::uint32_t>(number.value());
}

}  // namespace millrace
