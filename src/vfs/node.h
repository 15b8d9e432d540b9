#pragma once

#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "base/strong_type.h"

namespace millrace {

// A node of the tree that clients see. The number means the same node after a restart, so that a
// front end may hand it to its clients and take it back later.
using NodeNumber = StrongType<std::uint64_t, struct NodeNumberTag>;

enum class NodeKind : std::uint8_t { kFile, kDirectory, kSymlink };

// How long what was said about a node stays true, and how long its name leads to it.
enum class NodeLifetime : std::uint8_t {
  kForever,  // Inside a version nothing ever changes.
  kShort,    // Lists of datasets, versions and aliases, and live buckets.
};
// Nothing shown is older than this: the tree keeps what the store said for the first part of it,
// and clients keep what the tree said for the rest.
inline constexpr Duration kShortLifetime = std::chrono::seconds(5);
inline constexpr Duration kNameLifetime = std::chrono::seconds(1);
inline constexpr Duration kAnswerLifetime = kShortLifetime - kNameLifetime;

struct NodeAttributes {
  NodeNumber number;
  NodeKind kind = NodeKind::kFile;
  std::uint16_t permissions = 0;  // The lower 12 bits of a mode.
  // Of a symlink: the length of its target. Of a directory: 0.
  std::uint64_t size = 0;
  WallTime modified{};
  NodeLifetime lifetime = NodeLifetime::kForever;

  bool operator==(const NodeAttributes&) const = default;
};

// A child of a directory. The name lives as long as the call that shows it.
struct NodeEntry {
  std::string_view name;
  NodeAttributes attributes;
  // Where the listing goes on after this one.
  std::uint64_t cookie = 0;
  // False where only number and kind are known: a listing does not wait for the rest. Whoever wants
  // it looks the name up.
  bool has_attributes = true;
};

}  // namespace millrace
