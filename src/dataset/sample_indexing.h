#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/publisher.h"
#include "dataset/sample_index_builder.h"
#include "dataset/store_resolver.h"
#include "dataset/version_ref.h"

namespace millrace {

struct SampleIndexing {
  // Of the version that is being made, complete, on this machine.
  std::string manifest_path;
  VersionRef ref;
  StoreResolver stores;
  // All shards of it, when whoever makes the version has read them anyway. Null: they are read now.
  SampleShards* shards = nullptr;
  std::size_t parallel = 16;
  Duration request_timeout = std::chrono::minutes(5);
};

// Sees to it that the store has a sample index of this content, and returns how many samples it
// has. One that is there already, made for another version of the same content, is taken as it is.
// Fails as build_sample_index() and SampleIndexStore do. Blocks.
Result<std::uint64_t> index_samples(const RequestContext& context,
                                    const PublishEnvironment& environment,
                                    const SampleIndexing& indexing);

}  // namespace millrace
