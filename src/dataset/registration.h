#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "dataset/publisher.h"
#include "dataset/registry.h"
#include "dataset/source_tree.h"

namespace millrace {

struct RegistrationOptions {
  // Reads every object, so that its content is known by SHA-256 and every later read is verified.
  // Without it an object is known by its identity, and its first read is trusted.
  bool hash = false;
  std::size_t parallel = 16;
  Duration request_timeout = std::chrono::minutes(5);
  bool dry_run = false;
  bool skip_problems = false;
  VersionAnnotation annotation = {};
  std::optional<std::uint64_t> sample_count = {};
  // Makes a sample index of the tar files (sample_indexing.h), which then tells the sample count.
  bool index = false;
  std::optional<WallTime> created = {};
  PublishProgress progress = {};
};

// Where the objects are that become a version.
struct RegistrationPlace {
  std::string prefix = {};
  // Another store than that of the registry, and its URL as the manifest names it for readers. Null
  // and empty: the store of the registry.
  ObjectStore* store = nullptr;
  std::string store_url = {};
};

// Makes a version of the objects below a prefix of a store, where they are: no bytes are copied,
// and each object is pinned by identity and size. The objects stay foreign: nothing of ours ever
// deletes them, and one that is changed later makes reads of it fail. What is our own in the store
// of the registry is refused as a problem (reserved_keys.h).
//
// kNotFound, and nothing is reserved, when there is no object. Other failures as publish(); the
// reservation is given up then. Blocks.
Result<PublishReport> register_version(const RequestContext& context,
                                       const PublishEnvironment& environment,
                                       const RegistrationPlace& place, const VersionRef& ref,
                                       const RegistrationOptions& options);

}  // namespace millrace
