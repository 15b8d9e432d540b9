#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer_pool.h"
#include "base/clock.h"
#include "base/random.h"
#include "dataset/pack_planner.h"
#include "dataset/publish_point.h"
#include "dataset/registry.h"
#include "dataset/source_tree.h"
#include "dataset/store_resolver.h"
#include "dataset/version_ref.h"
#include "objectstore/object_store.h"

namespace millrace {

// What a publish works with. All of it outlives it.
struct PublishEnvironment {
  ObjectStore& store;
  const Registry& registry;
  BufferPool& buffers;
  Clock& clock;
  Random& random;
  // Local, for what must survive a kill, for manifests, and for temporary files. Made when absent.
  std::string state_directory;
  // Opens the other stores that objects of a version may lie in which content is taken over from.
  StoreResolver stores = refuse_other_stores;
};

// Told how far it is; from any thread.
struct PublishProgress {
  std::function<void(std::uint64_t files)> scanned = [](std::uint64_t) {};
  // Bytes that will be stored, as far as they are planned, and bytes that are.
  std::function<void(std::uint64_t bytes)> planned = [](std::uint64_t) {};
  std::function<void(std::uint64_t bytes)> stored = [](std::uint64_t) {};
};

// How many packs and large files are best read, hashed and sent at one time on this machine: what
// is more than the cores work on waits in memory, and is no longer in their caches when it is sent.
std::size_t publish_parallel();

struct PublishOptions {
  VersionOrigin origin = VersionOrigin::kPublished;
  PackOptions packs = {};
  std::size_t parallel = publish_parallel();
  Duration request_timeout = std::chrono::minutes(5);
  // Where content is taken over from: a version of the same dataset; nothing: the one published
  // last.
  std::optional<VersionName> base = {};
  bool without_base = false;
  // Reads every file, instead of believing what the last publish noted of those that did not change
  // since (known_files.h).
  bool rehash = false;
  bool dry_run = false;
  // Leaves out what cannot be part of a version, instead of giving up.
  bool skip_problems = false;
  VersionAnnotation annotation = {};
  std::optional<std::uint64_t> sample_count = {};
  // Makes a sample index of the tar files (sample_indexing.h), which then tells the sample count.
  bool index = false;
  std::optional<WallTime> created = {};
  // See PublishUploadOptions.
  std::function<ObjectInfo(const SourceEntry&)> copied_from = nullptr;
  PublishProgress progress = {};
  // Called when a point is reached, from any thread: where a test ends the process.
  std::function<void(PublishPoint)> reached = [](PublishPoint) {};
};

struct PublishReport {
  // Nothing after a dry run.
  std::optional<VersionEntry> entry = {};
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t packs = 0;
  std::uint64_t objects = 0;        // Files that are objects of their own.
  std::uint64_t stored_bytes = 0;   // Of packs and objects, headers of the packs included.
  std::uint64_t resumed_bytes = 0;  // Of these, what an earlier attempt had stored.
  std::uint64_t reused_files = 0;   // Taken over from the base.
  std::uint64_t reused_bytes = 0;
  std::optional<VersionName> base = {};
  // Of the tar files, when an index was asked for.
  std::optional<std::uint64_t> indexed_samples = {};
  std::uint64_t problems = 0;
  std::vector<SourceProblem> first_problems = {};
};

// Makes a version of what a source has: reserves the name, stores what no earlier version has,
// reads back what was stored, writes the manifest, and makes all of it visible in one step. Blocks.
//
// Killed at any moment it leaves a reservation and objects that nobody sees; done again from the
// same machine it goes on, and stores nothing twice. kConflict names a file that changed meanwhile,
// or whoever else has the name. kInvalidArgument lists what cannot be part of a version.
Result<PublishReport> publish(const RequestContext& context, const PublishEnvironment& environment,
                              SourceTree& source, const VersionRef& ref,
                              const PublishOptions& options);

}  // namespace millrace
