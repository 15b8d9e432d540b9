#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "platform/memory_disk_content.h"

namespace millrace {

// The inside of MemoryDisk: files and directories, each as it is now and as it is on the platter.
// Thread-compatible; the disk's mutex guards all of it.

// One change of a file since its last sync.
struct UnsyncedChange {
  enum class Kind : std::uint8_t { kWrite, kPunch, kTruncate };
  Kind kind = Kind::kWrite;
  std::uint64_t offset = 0;  // For a truncation, the new size.
  std::uint64_t length = 0;
  std::string bytes;  // Of a write.
};

struct MemoryNode {
  explicit MemoryNode(bool directory) : is_directory(directory) {}

  const bool is_directory;
  WallTime modified{};

  // Of a file.
  MemoryContent content;
  MemoryContent synced_content;
  std::vector<UnsyncedChange> unsynced;
  // The boot of the disk in which it was locked and not released again.
  std::optional<std::uint64_t> locked_in_boot;

  // Of a directory.
  using Entries = std::map<std::string, std::shared_ptr<MemoryNode>>;
  Entries entries;
  Entries synced_entries;

  void write(std::uint64_t offset, ByteView bytes);
  void punch(std::uint64_t offset, std::uint64_t length);
  void truncate(std::uint64_t size);
  void sync();
  // Leaves the file with its synced content and a random part of what came after.
  void lose_power(std::mt19937_64& random);
};

// Changes of names that no sync_directory has covered yet, oldest first.
class UnsyncedNames {
 public:
  // One name that now means another node, or none.
  struct Entry {
    std::shared_ptr<MemoryNode> directory;
    std::string name;
    std::shared_ptr<MemoryNode> node;
  };
  // A rename has two entries, which stand or fall together.
  using Change = std::vector<Entry>;

  // Applies a change to the directories as they are now, and remembers it.
  void apply(Change change);
  // Brings everything that concerns `directory` to the platter, with the earlier changes of the
  // same names in other directories that it builds upon.
  void sync(const MemoryNode* directory);
  // Brings a random part of the changes to the platter and forgets the rest.
  void lose_power(std::mt19937_64& random);

 private:
  std::list<Change> changes_;
};

}  // namespace millrace
