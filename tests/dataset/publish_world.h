#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/buffer_pool.h"
#include "base/random.h"
#include "base/thread_pool.h"
#include "dataset/directory_source.h"
#include "dataset/manifest_cursor.h"
#include "dataset/manifest_store.h"
#include "dataset/publisher.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"
#include "tests/dataset/registry_world.h"
#include "tests/dataset/source_world.h"

namespace millrace {

// Bytes that are not like those of another seed.
inline std::string publish_bytes(std::size_t size, std::uint64_t seed) {
  SeededRandom random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes)
    byte = static_cast<char>(random.next());
  return bytes;
}

// What an object of a publish is, whichever life of the publish has stored it:
// "packs/00000000.tar".
inline std::string name_below_life(const std::string& key) {
  for (const std::string_view folder : {"/packs/", "/files/", "/objects/"}) {
    const std::size_t at = key.find(folder);
    if (at != std::string::npos) return key.substr(at + 1);
  }
  return key;
}

// A tree on the disk, a store in memory that remembers requests and can fail, and what a publish
// needs between them.
class PublishWorld {
 public:
  // Small packs, so that few files make several.
  PublishOptions options() const {
    PublishOptions options;
    options.packs = {.file_bytes_max = 64 * kKiB, .target_bytes = 256 * kKiB};
    options.parallel = 4;
    return options;
  }
  PublishEnvironment environment(const std::string& state_name) {
    return {.store = *faulty,
            .registry = registry,
            .buffers = buffers,
            .clock = system_clock(),
            .random = random,
            .state_directory = state.path(state_name)};
  }
  Result<PublishReport> publish(std::string_view ref, const PublishOptions& publish_options,
                                const std::string& state_name = "state") {
    const auto source = DirectorySource::open_root(tree.root()).value();
    return millrace::publish(context, environment(state_name), *source, ref_of(ref),
                             publish_options);
  }
  Result<PublishReport> publish(std::string_view ref) { return publish(ref, options()); }

  std::unique_ptr<Manifest> manifest(std::string_view ref) {
    const VersionEntry entry = registry.version(context, ref_of(ref)).value();
    ManifestStore manifests(*memory, state.path("manifests"));
    auto opened = manifests.open_whole(context, entry.facts->layout);
    EXPECT_TRUE(opened) << opened.error().to_string();
    return *std::move(opened);
  }

  // Every file of a version as the store has it, by path; directories end in '/', links in '@' and
  // their target.
  std::map<std::string, std::string> contents(std::string_view ref) {
    std::map<std::string, std::string> found;
    const std::unique_ptr<Manifest> opened = manifest(ref);
    ManifestCursor cursor(*opened);
    while (const auto item = cursor.next().value()) {
      const std::string path(item->path);
      switch (item->entry.kind()) {
        case EntryKind::kDirectory:
          found[path + "/"] = "";
          break;
        case EntryKind::kSymlink:
          found[path + "@"] = std::string(opened->symlink_target(item->entry).value());
          break;
        case EntryKind::kFile:
          found[path] = content(*opened, item->entry);
          break;
      }
    }
    return found;
  }

  std::string content(const Manifest& opened, const ManifestEntry& entry) {
    std::string bytes;
    const std::vector<Extent> extents = opened.extents(entry).value();
    for (const Extent& extent : extents) {
      const ManifestObject object = opened.object_of(entry, extent).value();
      const auto got = memory->get(context, {.key = object.key,
                                             .range = ByteRange{extent.offset, extent.stored_bytes},
                                             .identity = object.identity});
      EXPECT_TRUE(got) << object.key.value();
      if (got) bytes += got->data.text();
    }
    EXPECT_EQ(bytes.size(), entry.size());
    if (entry.hash().kind == HashKind::kSha256) {
      EXPECT_EQ(entry.hash(), ContentHash::of_content(sha256(as_bytes(bytes))));
    }
    return bytes;
  }

  // Keys of the store below a prefix.
  std::vector<std::string> keys(const std::string& prefix) {
    std::vector<std::string> found;
    const ListPage page = memory->list(context, {.prefix = prefix}).value();
    for (const ObjectInfo& object : page.objects)
      found.push_back(object.key.value());
    return found;
  }

  const RequestContext context = RequestContext::background();
  ScratchTree tree;
  ScratchTree state;
  SeededRandom random{7};
  ThreadPool pool{{.name = "store", .threads = 2, .queued_tasks_max = 1024}};
  BufferPool buffers{{.bytes_max = 256 * kMiB, .idle_bytes_max = 0}};
  const std::shared_ptr<MemoryObjectStore> memory = std::make_shared<MemoryObjectStore>();
  const std::shared_ptr<RecordingObjectStore> recording =
      std::make_shared<RecordingObjectStore>(memory);
  const std::shared_ptr<FaultyObjectStore> faulty =
      std::make_shared<FaultyObjectStore>(recording, no_faults(), system_clock(), pool);
  const Registry registry{
      {.store = *faulty, .clock = system_clock(), .random = random, .writer = writer_of("alice")}};
};

}  // namespace millrace
