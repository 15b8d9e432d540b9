#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/garbage_alive.h"
#include "dataset/garbage_fates.h"
#include "dataset/manifest_store.h"
#include "dataset/pack_tally.h"
#include "dataset/registry.h"

namespace millrace {

struct GarbageOptions {
  // Changes nothing, and says what would be done.
  bool dry_run = false;
  // Reservations at least this old are aborted. Their publishers are told when they commit.
  Duration abort_after = std::chrono::days(7);
  // Repacks at least this old are aborted, too: there is nothing to lose by it but their work.
  Duration abort_repacks_after = std::chrono::days(1);
  // Layouts that were replaced less long ago count as alive: somebody may still read by them.
  Duration layout_grace = std::chrono::days(1);
  // Moves what is needed out of packs that are less than half alive.
  bool repack = true;
  // How long to wait for the other reservations to end.
  Duration wait = Duration::zero();
  Duration poll_interval = std::chrono::seconds(5);
  // One request, its retries included.
  Duration request_timeout = std::chrono::minutes(5);
  // Local, for pages of manifests; see ManifestStore.
  std::string manifest_directory = {};
  // Told of everything that is deleted, or would be.
  std::function<void(const std::string& key, std::uint64_t bytes)> deleted = [](const std::string&,
                                                                                std::uint64_t) {};
};

struct GarbageReport {
  std::vector<VersionRef> purged = {};
  // Retention is over, but they could not be purged: why.
  std::vector<Status> not_purged = {};
  // Reservations and repacks.
  std::vector<VersionEntry> aborted = {};
  // Those that are still open. While there are any, only what aborted ones stored is deleted.
  std::vector<VersionEntry> open = {};
  std::uint64_t objects = 0;
  std::uint64_t manifests = 0;
  // Sample indexes, and what probes of killed programs have left.
  std::uint64_t others = 0;
  std::uint64_t bytes = 0;
  // Packs that no version needs any more, once the layouts that name them are too old to be read.
  std::uint64_t repacked_packs = 0;
  std::uint64_t repacked_bytes = 0;
  // What was stored instead.
  std::uint64_t copied_bytes = 0;
  std::vector<VersionRef> repacked = {};
  // Versions that could not be repacked: why.
  std::vector<Status> not_repacked = {};
};

// Deletes what no version needs any more. docs/garbage_collection.md says why that is safe beside
// publishes and other collections, paused and killed ones too; the numbers there are those here.
//
// Lifecycle: one run() each. What `access` refers to outlives it. Needs one thread at a time.
// Memory: one entry for each version, and at most AliveKeys::kKeysPerPassMax keys. Blocks.
class GarbageCollector {
 public:
  GarbageCollector(RegistryAccess access, GarbageOptions options);

  // Deletes nothing unless every log, and the manifest of every version that is kept, can be read.
  // After a failure some garbage may be gone; the next run does the rest.
  Result<GarbageReport> run(const RequestContext& context);

 private:
  // A layout that versions are, or lately were, read by.
  struct LiveLayout {
    VersionRef ref;
    VersionLayout layout;
    bool registered = false;
    // It is the present layout, and may be replaced.
    bool present = false;
    bool replaceable = false;
  };

  RequestContext request(const RequestContext& context) const;
  // Step 1.
  Status purge_expired(const RequestContext& context);
  Status purge(const RequestContext& context, VersionEntry& entry);
  Status check_unused(const RequestContext& context, const VersionEntry& entry) const;
  // Step 2.
  Status end_reservations(const RequestContext& context);
  Result<bool> abort_old(const RequestContext& context, const VersionEntry& reservation);
  Status forget_ended(const RequestContext& context);
  // Step 3.
  Status find_live_layouts(const RequestContext& context);
  Status add_layouts_of(const RequestContext& context, const VersionEntry& entry);
  Result<std::uint64_t> count_live_objects(const RequestContext& context);
  Status add_live_keys(const RequestContext& context, AliveKeys& alive);
  // Why the manifest of a live layout could not be read.
  Status explain_unreadable(const RequestContext& context, const LiveLayout& live,
                            const Status& status) const;
  Status add_keys_of(const RequestContext& context, const LiveLayout& live, AliveKeys& alive);
  Status add_alive(const RequestContext& context, const std::string& key, AliveKeys& alive);
  // Step 4.
  Status collect_manifests(const RequestContext& context, const AliveKeys& alive);
  Status collect_objects(const RequestContext& context, const AliveKeys& alive);
  Status collect_below(const RequestContext& context, const std::string& prefix,
                       const AliveKeys& alive);
  Status collect_indexes(const RequestContext& context);
  Status collect_probes(const RequestContext& context);
  // Step 5.
  Status repack_thin(const RequestContext& context);
  Status tally_packs(const RequestContext& context, PackTally& tally);
  Result<bool> may_be_thin(const RequestContext& context, const ManifestObject& object);
  Status repack(const RequestContext& context,
                const std::map<std::string, const TalliedPack*>& packs);
  bool may_delete(ReservationFate fate) const;
  Status erase(const RequestContext& context, const std::vector<ObjectInfo>& objects,
               std::uint64_t& counter);

  const RegistryAccess access_;
  const Registry registry_;
  const GarbageOptions options_;
  ManifestStore manifests_;

  GarbageReport report_;
  std::optional<ReservationFates> fates_;
  std::vector<LiveLayout> live_;
  std::set<std::string> live_manifest_keys_;
  std::set<Sha256Digest> live_contents_;
};

}  // namespace millrace
