#include "platform/memory_disk_node.h"

#include <algorithm>
#include <ranges>
#include <set>

namespace millrace {
namespace {

constexpr std::size_t kSectorBytes = 512;

// Brings the part of a write or punch that starts `position` bytes into it to the content.
void apply_part(MemoryContent& content, const UnsyncedChange& change, std::uint64_t position,
                std::uint64_t length) {
  if (change.kind == UnsyncedChange::Kind::kPunch) {
    content.punch(change.offset + position, length);
  } else {
    content.write(change.offset + position,
                  std::string_view(change.bytes).substr(position, length));
  }
}

// Applies a random subset of the sectors that the change touches.
void apply_torn(MemoryContent& content, const UnsyncedChange& change, std::mt19937_64& random) {
  std::uint64_t position = 0;
  while (position < change.length) {
    const std::uint64_t sector_left = kSectorBytes - (change.offset + position) % kSectorBytes;
    const std::uint64_t length = std::min(sector_left, change.length - position);
    if (random() % 2 == 0) apply_part(content, change, position, length);
    position += length;
  }
}

void apply_to(UnsyncedNames::Entry& entry, MemoryNode::Entries MemoryNode::* entries) {
  if (entry.node == nullptr) {
    ((*entry.directory).*entries).erase(entry.name);
  } else {
    ((*entry.directory).*entries)[entry.name] = entry.node;
  }
}

using NameKey = std::pair<const MemoryNode*, std::string>;

bool touches_any(const UnsyncedNames::Change& change, const std::set<NameKey>& names) {
  return std::ranges::any_of(change, [&](const auto& entry) {
    return names.contains({entry.directory.get(), entry.name});
  });
}

void add_names(const UnsyncedNames::Change& change, std::set<NameKey>& names) {
  for (const auto& entry : change)
    names.emplace(entry.directory.get(), entry.name);
}

}  // namespace

void MemoryNode::write(std::uint64_t offset, ByteView bytes) {
  content.write(offset, as_text(bytes));
  unsynced.push_back(
      {UnsyncedChange::Kind::kWrite, offset, bytes.size(), std::string(as_text(bytes))});
}

void MemoryNode::punch(std::uint64_t offset, std::uint64_t length) {
  if (offset >= content.size()) return;
  const std::uint64_t within = std::min(length, content.size() - offset);
  content.punch(offset, within);
  unsynced.push_back({UnsyncedChange::Kind::kPunch, offset, within, {}});
}

void MemoryNode::truncate(std::uint64_t size) {
  content.resize(size);
  unsynced.push_back({UnsyncedChange::Kind::kTruncate, size, 0, {}});
}

void MemoryNode::sync() {
  if (unsynced.empty()) return;
  synced_content = content;
  unsynced.clear();
}

void MemoryNode::lose_power(std::mt19937_64& random) {
  for (const UnsyncedChange& change : unsynced) {
    const std::uint64_t fate = random() % 4;
    if (change.kind == UnsyncedChange::Kind::kTruncate) {
      if (fate % 2 == 0) synced_content.resize(change.offset);
      continue;
    }
    switch (fate) {
      case 0:
        break;
      case 1:
        apply_part(synced_content, change, 0, change.length);
        break;
      case 2:
        apply_torn(synced_content, change, random);
        break;
      default:
        // The new size reached the platter before the bytes did.
        if (change.kind == UnsyncedChange::Kind::kWrite &&
            synced_content.size() < change.offset + change.length) {
          synced_content.resize(change.offset + change.length);
        }
    }
  }
  unsynced.clear();
  content = synced_content;
}

void UnsyncedNames::apply(Change change) {
  for (Entry& entry : change)
    apply_to(entry, &MemoryNode::entries);
  changes_.push_back(std::move(change));
}

void UnsyncedNames::sync(const MemoryNode* directory) {
  // Backwards, because a change can only build upon earlier ones.
  std::set<NameKey> needed_names;
  std::vector<std::list<Change>::iterator> needed;
  for (auto change = changes_.end(); change != changes_.begin();) {
    --change;
    const bool in_directory = std::ranges::any_of(
        *change, [&](const Entry& entry) { return entry.directory.get() == directory; });
    if (!in_directory && !touches_any(*change, needed_names)) continue;
    add_names(*change, needed_names);
    needed.push_back(change);
  }
  for (const auto change : std::ranges::reverse_view(needed)) {
    for (Entry& entry : *change)
      apply_to(entry, &MemoryNode::synced_entries);
    changes_.erase(change);
  }
}

void UnsyncedNames::lose_power(std::mt19937_64& random) {
  std::set<NameKey> undone_names;
  for (Change& change : changes_) {
    if (touches_any(change, undone_names) || random() % 2 == 0) {
      add_names(change, undone_names);
      continue;
    }
    for (Entry& entry : change)
      apply_to(entry, &MemoryNode::synced_entries);
  }
  changes_.clear();
}

}  // namespace millrace
