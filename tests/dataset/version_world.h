#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/checksum.h"
#include "cache/unit.h"
#include "dataset/directory_source.h"
#include "dataset/manifest_builder.h"
#include "dataset/pack_builder.h"
#include "dataset/version_reader.h"
#include "objectstore/recording_object_store.h"
#include "tests/dataset/manifest_tree.h"
#include "tests/dataset/registry_world.h"
#include "tests/dataset/source_world.h"

namespace millrace {

inline UnitChecksums unit_checksums_of(std::string_view bytes) {
  UnitChecksums checksums;
  for (std::uint64_t at = 0; at < bytes.size(); at += kUnitBytes)
    checksums.push_back(crc32c(as_bytes(bytes.substr(at, kUnitBytes))));
  return checksums;
}

// A version of a directory as a publish stores it: packs, and objects for large files.
class StoredVersion final : public PackPlanSink {
 public:
  static constexpr const char* kPrefix = "a/v1/0123456789abcdef0123456789abcdef/";

  StoredVersion(const std::string& directory, PackOptions packs)
      : source_(DirectorySource::open_root(directory).value()) {
    const auto scanned = scan_all(*source_);
    EXPECT_TRUE(scanned->problems().empty());
    auto builder = ManifestBuilder::create({.path = folder.file("manifest")});
    EXPECT_TRUE(builder.has_value());
    builder_ = *std::move(builder);
    std::vector<SourceEntry> files;
    for (const auto& [path, entry] : scanned->entries()) {
      if (entry.kind == EntryKind::kFile) {
        files.push_back(entry);
        continue;
      }
      add({.path = path,
           .kind = entry.kind,
           .mode = entry.mode,
           .mtime_ns = entry.mtime_ns,
           .symlink_target = entry.symlink_target});
    }
    std::ranges::sort(files, [](const SourceEntry& a, const SourceEntry& b) {
      return compare_entries(a.path, b.path) < 0;
    });
    PackPlanner planner(packs, *this);
    for (const SourceEntry& file : files)
      EXPECT_TRUE(planner.add(file).ok());
    EXPECT_TRUE(planner.finish().ok());
    EXPECT_TRUE(builder_->finish().has_value());
    manifest = Manifest::open(folder.file("manifest")).value();
  }

  Status add_pack(PlannedPack pack) override {
    PackBuilder packer(*world.memory, pool_);
    MR_ASSIGN_OR_RETURN(
        const BuiltPack built,
        packer.build(world.context, *source_, pack,
                     ObjectKey(kPrefix + std::to_string(keys.size()) + ".tar"), {}));
    keys.push_back(built.object.key.value());
    MR_ASSIGN_OR_RETURN(const std::uint32_t object,
                        builder_->add_object({.key = built.object.key,
                                              .identity = built.object.identity,
                                              .size = built.object.size,
                                              .checksums = built.checksums}));
    for (std::size_t n = 0; n < pack.members.size(); ++n)
      add_file(pack.members[n].file, object, built.members[n].content_offset,
               built.members[n].hash);
    return {};
  }

  Status add_object(SourceEntry file) override {
    MR_ASSIGN_OR_RETURN(const std::string bytes, read_source(*source_, file));
    const ObjectKey key(kPrefix + file.path);
    MR_ASSIGN_OR_RETURN(const ObjectInfo info,
                        world.memory->put(world.context, key, Slice::copy_of(bytes), {}));
    keys.push_back(key.value());
    const UnitChecksums checksums = unit_checksums_of(bytes);
    MR_ASSIGN_OR_RETURN(
        const std::uint32_t object,
        builder_->add_object(
            {.key = key, .identity = info.identity, .size = bytes.size(), .checksums = checksums}));
    add_file(file, object, 0, sha256(as_bytes(bytes)));
    return {};
  }

  VersionReader reader(VersionReaderOptions options = {}) {
    return VersionReader(*world.recording, *manifest, ref_of("a@v1"), options, world.clock);
  }
  // Replaces one byte of an object, and keeps its identity where the store would not notice.
  void damage(const std::string& key, std::size_t at) {
    std::string bytes = world.content(key);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    world.write(key, bytes);
  }

  RegistryWorld world;
  ManifestFolder folder;
  std::vector<std::string> keys;
  std::unique_ptr<Manifest> manifest;

 private:
  void add(const NewEntry& entry) { EXPECT_TRUE(builder_->add(entry).ok()) << entry.path; }
  void add_file(const SourceEntry& file, std::uint32_t object, std::uint64_t offset,
                const Sha256Digest& hash) {
    NewEntry entry{.path = file.path,
                   .mode = file.mode,
                   .mtime_ns = file.mtime_ns,
                   .size = file.size,
                   .hash = ContentHash::of_content(hash)};
    if (file.size > 0) {
      entry.extents.push_back({.object = object,
                               .offset = offset,
                               .stored_bytes = file.size,
                               .logical_bytes = file.size});
    }
    add(entry);
  }

  std::unique_ptr<DirectorySource> source_;
  BufferPool pool_{{}};
  std::unique_ptr<ManifestBuilder> builder_;
};

// A tree with all that a version can hold, from a seed.
inline void fill_tree(const ScratchTree& tree, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto bytes = [&](std::size_t size) {
    std::string text(size, '\0');
    for (char& c : text)
      c = static_cast<char>(random());
    return text;
  };
  for (int n = 0; n < 60; ++n) {
    const std::string stem = "d" + std::to_string(random() % 5) + "/e" +
                             std::to_string(random() % 3) + "/" + std::to_string(n);
    tree.write(stem + ".jpg", bytes(random() % 40'000));
    tree.write(stem + ".cls", std::to_string(random() % 10));
  }
  tree.write("large.bin", bytes(300'000 + random() % 100'000));
  tree.write("empty", "");
  tree.write("\xff odd\nname", "odd");
  tree.make_directory("nothing/in here");
  tree.link("link", "large.bin");
  tree.link("d0/outside", "../../../../etc/passwd");
  tree.set_mode("large.bin", 0640);
  tree.set_mode("empty", 0400);
  tree.set_mtime("large.bin", 1'234'567'890'123'456'789);
  tree.set_mtime("link", 987'654'321);
  tree.set_mtime("nothing/in here", -1'500'000'000);
  tree.set_mtime("nothing", 1'000'000'000'000'000'007);
  tree.set_mode("nothing", 0555);
}

}  // namespace millrace
