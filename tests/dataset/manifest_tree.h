#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "dataset/manifest.h"
#include "dataset/manifest_builder.h"

namespace millrace {

// A directory for manifests, removed with all in it.
class ManifestFolder {
 public:
  ManifestFolder();
  ~ManifestFolder();
  ManifestFolder(const ManifestFolder&) = delete;
  ManifestFolder& operator=(const ManifestFolder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  // Names of all that lies in it.
  std::vector<std::string> names() const;

 private:
  std::string path_;
};

std::string read_bytes(const std::string& path);
void write_bytes(const std::string& path, const std::string& bytes);

// What a version is meant to hold: the model that manifests are held against.
struct ManifestTree {
  struct Object {
    std::string key;
    std::string identity;
    std::uint64_t size = 0;
    bool foreign = false;
    std::string store = {};
    std::vector<std::uint32_t> checksums;
  };
  std::string prefix;
  std::string prefix_store;
  std::vector<Object> objects;
  std::map<std::string, NewEntry> entries;  // With all directories, the root too.

  // Adds a directory with its parents.
  void add_directories(const std::string& path);
  // Adds an entry with its parents.
  void add(NewEntry entry);
};

// Odd names, deep and wide and empty directories, empty files, symlinks, every form of extents and
// hashes.
ManifestTree random_tree(std::uint64_t seed, std::size_t entries);
// One directory "d" with `files` files of 1000 bytes in one object.
ManifestTree wide_tree(std::size_t files);

enum class TreeOrder { kShuffled, kSorted };
// Builds the manifest of the tree at `path`. `options` give what is not in the tree.
Result<ManifestSummary> build_tree(const ManifestTree& tree, const std::string& path,
                                   std::uint64_t seed = 1, TreeOrder order = TreeOrder::kShuffled,
                                   std::size_t run_bytes = 64 * kMiB);

// Holds everything that the manifest says against the tree.
void expect_tree(const Manifest& manifest, const ManifestTree& tree);
// The same for one entry, given by its path.
void expect_entry(const Manifest& manifest, const ManifestTree& tree, const std::string& path);

}  // namespace millrace
