#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "dataset/registry_facts.h"
#include "platform/disk.h"
#include "vfs/node_number.h"

namespace millrace {

// The number of a tree is 31 bits of a hash of its nonce, so that all gateways come to the same
// one. Where that is taken by another version that a gateway met first, it tries on: the second,
// the third and so on. With 10,000 versions there is such a pair somewhere with a chance of 1
// in 40.
TreeNumber derived_tree_number(std::string_view nonce, std::uint32_t attempt);
// How far another gateway may have tried.
inline constexpr std::uint32_t kTreeNumberAttempts = 4;
// 24 bits that tell such versions apart. Never 0.
std::uint32_t tree_check_of(std::string_view nonce);

// A version that this machine has shown. Enough to open it again when the registry cannot be
// asked.
struct NumberedTree {
  TreeNumber number;
  VersionRef ref;
  // Of the reservation that it was published under: no other version ever has it.
  std::string nonce;
  VersionLayout layout;
  // Which store it is of; empty where that was not noted, in files of old.
  std::string store = {};
};

// Gives versions numbers that stay theirs for ever, and remembers them in a file
// (docs/formats/trees.md): node numbers are made of them, and clients keep those over restarts.
//
// Invariants:
//  1. A number belongs to one version for ever, and is on the disk before anybody learns of it.
//  2. The last line of a number tells the layout that it had last, or one before if the disk was
//     full.
//
// All methods are safe from any thread. The disk outlives it.
class TreeNumbers {
 public:
  // Reads `path`, made when absent. Lines that a kill has torn are dropped; a file that is no such
  // file is kCorruption, and left alone.
  // `store` is the one that is served now.
  static Result<std::unique_ptr<TreeNumbers>> open(Disk& disk, std::string path, std::string store);

  // The version's number, with the layout that it had last here; a new one if it has none, with
  // this layout. The disk's failures for a new one alone.
  Result<NumberedTree> number_of(const VersionRef& ref, const std::string& nonce,
                                 const VersionLayout& layout);
  // From now on, and after a restart if the disk takes it, it has this layout.
  void renew(const NumberedTree& tree, const VersionLayout& layout);
  std::optional<NumberedTree> find(TreeNumber number) const;
  // tree_check_of() its nonce.
  std::optional<std::uint32_t> check_of(TreeNumber number) const;
  // In the order of their numbers.
  std::vector<NumberedTree> all() const;
  // One of this store at "dataset/version" or below it, as paths of /datasets have it. Nothing
  // where there is none, and where two have the path itself: it was purged, or the store was made
  // anew.
  std::optional<NumberedTree> find_below(std::string_view path) const;

 private:
  TreeNumbers(Disk& disk, std::string path, std::string store)
      : disk_(disk), path_(std::move(path)), store_(std::move(store)) {}
  Status load();
  Status append(const NumberedTree& tree) MR_REQUIRES(mutex_);
  // Of one that has its number.
  void replace(const NumberedTree& tree) MR_REQUIRES(mutex_);

  Disk& disk_;
  const std::string path_;
  const std::string store_;
  mutable Mutex mutex_;
  std::unique_ptr<DiskFile> file_ MR_GUARDED_BY(mutex_);
  std::uint64_t file_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::map<std::uint32_t, NumberedTree> trees_ MR_GUARDED_BY(mutex_);
  std::map<std::string, std::uint32_t> by_nonce_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
