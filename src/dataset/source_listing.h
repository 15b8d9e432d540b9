#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "dataset/source_tree.h"
#include "dataset/source_work.h"
#include "objectstore/object_store.h"

namespace millrace {

// The keys of one listing: greater than `after`, up to and with `through`. Ranges that share their
// ends leave no key out and give none twice, whatever the ends are.
struct SourceKeyRange {
  std::string after = {};
  // Empty: to the end of the prefix.
  std::string through = {};

  bool operator==(const SourceKeyRange&) const = default;
};

// Finds where to cut the keys below a prefix, so that many listings can run at once: at the
// directories that folded listings show, level by level, until there are enough. It reads two pages
// per directory at most; a cut that is not found costs speed only. A directory of a million objects
// and no subdirectories is one listing.
class SourceSplit {
 public:
  SourceSplit(ObjectStore& store, std::string prefix, std::size_t ranges_max,
              std::uint32_t page_entries_max);

  // Ascending ranges, `ranges_max` at most, that are all keys of the prefix.
  Result<std::vector<SourceKeyRange>> run(const RequestContext& context, std::size_t threads);

 private:
  struct Directory {
    std::string prefix = {};
    std::size_t level = 0;
  };
  Status look_into(const RequestContext& context, SourceWork<Directory>& work,
                   const Directory& directory);
  std::vector<SourceKeyRange> ranges() const;

  ObjectStore& store_;
  const std::string prefix_;
  const std::size_t ranges_max_;
  const std::uint32_t page_entries_max_;

  mutable Mutex mutex_;
  std::set<std::string> cuts_ MR_GUARDED_BY(mutex_);
};

// Lists one range and makes entries and problems of its keys. One object per range.
//
// Invariants:
//  1. `held_` are the objects listed so far whose keys begin the last key listed, shortest first:
//     those that later keys may still prove to be directories too. All keys with a common beginning
//     follow one another, so an object is settled when a key comes that does not begin with its
//     own.
//  2. It is never longer than a key is.
//
// Thread-compatible.
class SourceListing {
 public:
  // Everything outlives it.
  SourceListing(const RequestContext& context, const Clock& clock, ObjectStore& store,
                const std::string& prefix, std::uint32_t page_entries_max, SourceSink& sink);

  Status run(const SourceKeyRange& range);

 private:
  struct Held {
    ObjectInfo object;
    bool is_directory_too = false;
  };
  Status add(ObjectInfo object);
  // Settles held objects until one begins `key`, and marks those that `key` is below of.
  Status settle_before(std::string_view key);
  Status settle(Held held);
  // At the end of a range that is not the last, keys of the next one may lie below held objects.
  Status settle_rest(bool more_keys_follow);
  Result<bool> has_keys_below(const std::string& key);

  const RequestContext& context_;
  const Clock& clock_;
  ObjectStore& store_;
  const std::string& prefix_;
  const std::uint32_t page_entries_max_;
  SourceBatch batch_;
  std::vector<Held> held_;
};

}  // namespace millrace
