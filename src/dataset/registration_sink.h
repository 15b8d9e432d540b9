#pragma once

#include <string>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "base/task_group.h"
#include "dataset/manifest_builder.h"
#include "dataset/publish_facts.h"
#include "dataset/registration.h"
#include "dataset/reserved_keys.h"
#include "dataset/sample_index_builder.h"
#include "dataset/store_source.h"

namespace millrace {

// Takes the objects of a scan into a manifest, pinned by their identity or, where that is asked
// for, hashed. Everything outlives it. take() and report() are safe from any thread.
class RegistrationSink final : public SourceSink {
 public:
  struct Parts {
    StoreSource& source;
    ManifestBuilder& builder;
    // The URL of the objects' store, as manifests name it; empty for the store of the registry.
    const std::string& store_url;
    // Null where the objects are in another store: nothing there is ours.
    ReservedKeys* reserved;
    // Takes the samples of shards that are hashed; null when nobody asked for them.
    SampleShards* shards;
    Clock& clock;
    const RegistrationOptions& options;
  };
  RegistrationSink(const RequestContext& context, const Parts& parts)
      : context_(context), parts_(parts), hashing_(context, parts.options.parallel) {}

  Status take(std::span<SourceEntry> entries) override;
  Status report(SourceProblem problem) override;

  // After the scan.
  Status wait() { return hashing_.wait(); }
  const SourceProblems& problems() const { return problems_; }

 private:
  RequestContext request(const RequestContext& context) const {
    return context.with_deadline(parts_.clock.now() + parts_.options.request_timeout);
  }
  Status add(const SourceEntry& source);
  Status add_pinned(const SourceEntry& source);
  Status add_hashed(const RequestContext& context, const SourceEntry& source);
  Result<std::uint32_t> add_object(const SourceEntry& source,
                                   std::span<const std::uint32_t> checksums) MR_REQUIRES(mutex_);

  const RequestContext& context_;
  const Parts parts_;
  SourceProblems problems_;
  Mutex mutex_;  // Over the builder.
  Mutex group_mutex_;
  TaskGroup hashing_;  // Last: its tasks use the members above.
};

}  // namespace millrace
