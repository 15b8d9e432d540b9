#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "dataset/content_hash.h"
#include "dataset/entry_order.h"
#include "platform/digest.h"

namespace millrace {

// What of an entry counts for the identity of its version: not where its bytes lie, nor its time.
struct EntryContent {
  std::string_view path;
  EntryKind kind = EntryKind::kFile;
  std::optional<std::uint16_t> mode = {};
  std::uint64_t size = 0;
  ContentHash hash = {};
  std::string_view symlink_target = {};
};

// The content digest of a version is begun once, then takes all its entries in their order
// (docs/formats/manifest.md says how they are written).
void begin_content_digest(Sha256& sha);
void add_content_digest(Sha256& sha, const EntryContent& entry);

}  // namespace millrace
