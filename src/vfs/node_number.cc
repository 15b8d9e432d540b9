#include "vfs/node_number.h"

#include "base/bytes.h"
#include "base/little_endian.h"
#include "platform/digest.h"

namespace millrace {
namespace {

constexpr std::uint64_t kNamedBit = std::uint64_t{1} << 63;
constexpr std::uint64_t kBucketBit = std::uint64_t{1} << 62;

}  // namespace

NodeNumber named_node(NamedNodes kind, std::string_view path) {
  const Sha256Digest digest = sha256(as_bytes(path));
  return named_node(kind, load_little_endian<std::uint64_t>(digest.data()));
}

std::uint64_t hash_of(NodeNumber named) { return named.value() & (kBucketBit - 1); }

NodeNumber named_node(NamedNodes kind, std::uint64_t hash) {
  return NodeNumber(kNamedBit | (kind == NamedNodes::kBuckets ? kBucketBit : 0) |
                    (hash & (kBucketBit - 1)));
}

NodePlace place_of(NodeNumber number) {
  const std::uint64_t value = number.value();
  if ((value & kNamedBit) != 0) {
    return (value & kBucketBit) != 0 ? NodePlace::kBuckets : NodePlace::kDatasets;
  }
  if (number == root_node()) return NodePlace::kRoot;
  if (number == datasets_node()) return NodePlace::kDatasets;
  if (number == buckets_node()) return NodePlace::kBuckets;
  return tree_of(number).value() != 0 ? NodePlace::kVersion : NodePlace::kNowhere;
}

}  // namespace millrace
