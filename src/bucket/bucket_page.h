#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "objectstore/object_store.h"

namespace millrace {

// A file or directory as the keys of a store make it.
struct BucketEntry {
  // The name; behind that of a directory stands '/'. Pages are in the order of this text, which is
  // the order of the keys.
  std::string text = {};
  // Of a file: what its object was.
  std::uint64_t size = 0;
  ObjectIdentity identity = {};
  // In whole seconds: answers about one object and listings differ in the rest.
  WallTime modified{};

  bool is_directory() const { return text.ends_with('/'); }
  std::string_view name() const {
    return std::string_view(text).substr(0, text.size() - (is_directory() ? 1 : 0));
  }
};
BucketEntry file_entry(std::string_view name, const ObjectInfo& object);

// A stretch of one directory.
//
// Invariants:
//  1. It knows all that the directory had behind `after` up to and with `through`, or to the end.
//  2. Entries ascend by their text, and no name is there twice.
struct BucketPage {
  std::string directory = {};  // "", or ends in '/'.
  std::string after = {};
  std::vector<BucketEntry> entries = {};
  std::string through = {};
  bool is_last = false;
  bool has_keys = false;  // The store has keys there, whether or not they can be shown.

  // Whether it tells if there is an entry with this text.
  bool covers(std::string_view text) const { return text > after && (is_last || text <= through); }
  // Where the entries behind `text` begin.
  std::vector<BucketEntry>::const_iterator behind(std::string_view text) const;
  // Null when it is not there.
  const BucketEntry* find(std::string_view text) const;
};

// Told of each key (or beginning of keys) that cannot be shown, and why: "it ends in '/' and ...".
using HiddenKeySink = std::function<void(const std::string& key, const std::string& reason)>;

// Asks for the page of a directory that begins behind `after`. One request as a rule: a directory
// whose page the store cuts inside "a", "a-b", ... "a/" costs one more for each such "a".
//
// Hidden are: names that no file can have (base/file_name.h), an object whose key is also a
// directory of others (the directory is shown), and an object with bytes whose key ends in '/'; one
// without bytes is what consoles make for a directory, and makes one here. Fails as the store does;
// kInternal when it lists what was not asked for. Blocks.
Result<BucketPage> read_bucket_page(const RequestContext& context, ObjectStore& store,
                                    const std::string& directory, const std::string& after,
                                    std::uint32_t entries_max, const HiddenKeySink& hidden);

// Whether the store has a key below "key/". A key that the store cannot have is none.
Result<bool> has_keys_below(const RequestContext& context, ObjectStore& store,
                            const std::string& key);

}  // namespace millrace
