#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/request_context.h"
#include "objectstore/file_object_store_tree.h"
#include "objectstore/object_store.h"

namespace millrace::file_object_store {

// Makes one page of a listing by walking the tree in the order of the keys.
//
// Invariants:
//  1. Among the entries of one directory, the order of their keys is the order of their unescaped
//     names, with a '/' behind those of directories: "a-b" < "a/" < "a0". Whole subtrees follow
//     one another in that order, so a walk in it is a walk in key order.
//  2. A directory is opened only if a key below it can match the prefix and lie behind the cursor.
//  3. Of one directory no more names are held than the page can still use: memory is bounded by
//     page size times depth, however many files there are.
//
// One object per page. Thread-compatible.
class Lister {
 public:
  Lister(const RequestContext& context, const Clock& clock, const Tree& tree,
         const ListRequest& request);

  // kInvalidArgument for a continuation that is not from a listing with this prefix and folding.
  Result<ListPage> run();

 private:
  struct Entry {
    // The unescaped name; with a '/' behind it for a directory.
    std::string sort_name;
    std::string file_name;
    bool is_directory() const { return sort_name.ends_with('/'); }
    auto operator<=>(const Entry& other) const { return sort_name <=> other.sort_name; }
  };

  Status decode_continuation();
  std::string encode_continuation(char kind, std::string_view last) const;

  // Both return true when the page is full.
  Result<bool> walk(const std::string& path, const std::string& key_prefix);
  Result<bool> visit(const std::string& path, const std::string& key_prefix, const Entry& entry);
  // The next entries of a directory behind `after`, ascending, at most batch_size_ of them.
  Result<std::vector<Entry>> scan(const std::string& path, const std::string& key_prefix,
                                  const std::string& after);
  bool wanted(const std::string& key_prefix, const Entry& entry);
  bool directory_may_match(std::string_view key) const;
  bool key_matches(std::string_view key) const;
  Result<bool> add_object(const std::string& path, const std::string& key);
  // True when any object below the directory belongs into this listing.
  Result<bool> holds_match(const std::string& path, const std::string& key_prefix);
  bool page_is_full() const;

  const RequestContext& context_;
  const Clock& clock_;
  const Tree& tree_;
  const ListRequest& request_;
  const std::size_t entries_max_;

  // Only keys behind this one; with skip_below_, also none that begin with it.
  std::string after_;
  bool skip_below_ = false;
  // What the next page goes on behind.
  std::string last_;
  char last_kind_ = 'k';
  ListPage page_;
};

}  // namespace millrace::file_object_store
