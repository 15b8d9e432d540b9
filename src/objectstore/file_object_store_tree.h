#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "objectstore/object.h"
#include "platform/file.h"

namespace millrace::file_object_store {

// The directory tree of a FileObjectStore: names and directories, nothing about contents.
//
// Paths are relative to the root, escaped as in file_object_store_keys.h; "" is the root. Nothing
// outside the root is ever opened: symbolic links are not followed, wherever they stand.
// Directories come with their first object and go with their last, in races of several processes as
// well. Safe from any thread.
class Tree {
 public:
  // kNotFound when the directory is absent and not to be created.
  static Result<Tree> open(const std::string& path, bool create);

  const std::string& root_path() const { return root_.path(); }
  int root() const { return root_.descriptor(); }

  // Opens a regular file for reading. kNotFound for all that is none.
  Result<File> open_file(const std::string& path) const;
  // kNotFound when it is absent, or no directory.
  Result<File> open_directory(const std::string& path) const;
  // With missing parents. kInvalidArgument when something on the way is an object; `key` is named.
  Result<File> make_directories(const std::string& path, const ObjectKey& key) const;
  // Makes the names of the directory and of all above it durable. Every level, because whoever made
  // a directory that we found may not have synced it yet. What is gone meanwhile counts as synced.
  Status sync_upwards(std::string path) const;
  // Removes the directory and those above it as far as they are empty, and makes that durable.
  Status remove_empty_directories(std::string path) const;

 private:
  explicit Tree(File root) : root_(std::move(root)) {}
  std::string full_path(std::string_view path) const;

  File root_;
};

// Opens a path below `root` without following any symbolic link. Returns a descriptor or -errno.
int open_beneath(int root, const std::string& path, int flags);
// The same on kernels (before 5.6) and in sandboxes without openat2.
int open_beneath_by_steps(int root, const std::string& path, int flags);

}  // namespace millrace::file_object_store
