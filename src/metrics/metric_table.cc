#include "metrics/metric_table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <vector>

#include "base/status.h"

namespace millrace {

namespace {

constexpr std::array<std::string_view, 10> kOperations = {
    "get_range",    "head",          "list",         "put",  "start_upload",
    "upload_write", "upload_finish", "upload_abort", "copy", "remove",
};
constexpr std::array<std::string_view, 2> kDirections = {"read", "written"};
constexpr std::array<std::string_view, 3> kCacheSources = {"disk", "memory", "store"};
constexpr std::array<std::string_view, 2> kUrgencies = {"demanded", "speculative"};
constexpr std::array<std::string_view, 3> kCacheSkips = {"no_room", "disk_failure", "busy"};
constexpr std::array<std::string_view, 4> kCacheDamages = {"fetched", "read", "scrubbed", "index"};

// In the order of FuseMetricOperation.
constexpr std::array<std::string_view, 12> kFuseOperations = {
    "lookup", "getattr", "readlink", "open",  "read",   "release",
    "statfs", "opendir", "readdir",  "xattr", "forget", "other",
};

// In the order of LoaderMetricAction and LoaderMetricStage.
constexpr std::array<std::string_view, 3> kLoaderActions = {"raise", "skip", "substitute"};
constexpr std::array<std::string_view, 4> kLoaderStages = {"store", "decode", "waiting",
                                                           "consumer"};

// From number 3 on, as the RFCs have them.
constexpr std::uint32_t kNfsOperationFirstNumber = 3;
constexpr std::array<std::string_view, 74> kNfsOperationNames = {
    "access",
    "close",
    "commit",
    "create",
    "delegpurge",
    "delegreturn",
    "getattr",
    "getfh",
    "link",
    "lock",
    "lockt",
    "locku",
    "lookup",
    "lookupp",
    "nverify",
    "open",
    "openattr",
    "open_confirm",
    "open_downgrade",
    "putfh",
    "putpubfh",
    "putrootfh",
    "read",
    "readdir",
    "readlink",
    "remove",
    "rename",
    "renew",
    "restorefh",
    "savefh",
    "secinfo",
    "setattr",
    "setclientid",
    "setclientid_confirm",
    "verify",
    "write",
    "release_lockowner",
    "backchannel_ctl",
    "bind_conn_to_session",
    "exchange_id",
    "create_session",
    "destroy_session",
    "free_stateid",
    "get_dir_delegation",
    "getdeviceinfo",
    "getdevicelist",
    "layoutcommit",
    "layoutget",
    "layoutreturn",
    "secinfo_no_name",
    "sequence",
    "set_ssv",
    "test_stateid",
    "want_delegation",
    "destroy_clientid",
    "reclaim_complete",
    "allocate",
    "copy",
    "copy_notify",
    "deallocate",
    "io_advise",
    "layouterror",
    "layoutstats",
    "offload_cancel",
    "offload_status",
    "read_plus",
    "seek",
    "write_same",
    "clone",
    "getxattr",
    "setxattr",
    "listxattrs",
    "removexattr",
    "illegal",
};
constexpr std::array<std::string_view, 2> kNfsProcedures = {"null", "compound"};
constexpr std::array<std::string_view, 2> kNfsOutcomes = {"ok", "error"};
constexpr std::array<std::string_view, 3> kNfsEnds = {"malformed", "stalled", "refused"};

constexpr std::size_t kOutcomeCount = static_cast<std::size_t>(StatusCode::kInternal) + 1;

// The names that logs use, in the order of the codes, so that a code is its own index.
std::span<const std::string_view> outcomes() {
  static const auto names = [] {
    std::array<std::string_view, kOutcomeCount> result;
    for (std::size_t i = 0; i < kOutcomeCount; ++i) {
      result[i] = status_code_name(static_cast<StatusCode>(i));
    }
    return result;
  }();
  return names;
}

template <std::size_t kBuckets>
constexpr std::array<double, kBuckets> log_spaced(double first, double factor) {
  std::array<double, kBuckets> bounds{};
  for (double& bound : bounds) {
    bound = first;
    first *= factor;
  }
  return bounds;
}

// 100 us (an answer from a server on the same machine) to 105 s (above any request's time-out).
constexpr auto kSecondsBuckets = log_spaced<21>(0.0001, 2);
// 1 KiB to 4 GiB: from a small sample to the largest single request of any store.
constexpr auto kBytesBuckets = log_spaced<12>(1024, 4);

MetricSpec row(MetricId id, std::string_view name, MetricType type, MetricUnit unit,
               std::string_view help, std::span<const MetricLabel> labels = {}) {
  return {id, name, type, unit, help, labels};
}

std::vector<MetricSpec> store_metrics() {
  using enum MetricType;
  using enum MetricUnit;
  static const std::array<MetricLabel, 1> by_operation = {{{"op", kOperations}}};
  static const std::array<MetricLabel, 2> by_operation_and_outcome = {
      {{"op", kOperations}, {"outcome", outcomes()}}};
  static const std::array<MetricLabel, 1> by_direction = {{{"direction", kDirections}}};
  return {
      row(MetricId::kStoreOperations, "millrace_store_operations_total", kCounter, kCount,
          "Requests to the object store that ended, retries and hedges counted one by one.",
          by_operation_and_outcome),
      row(MetricId::kStoreBytes, "millrace_store_bytes_total", kCounter, kBytes,
          "Bytes of objects that passed between here and the object store.", by_direction),
      row(MetricId::kStoreLatency, "millrace_store_latency_seconds", kHistogram, kSeconds,
          "Time from sending a request to the object store to its answer, failures included.",
          by_operation),
      row(MetricId::kStoreReadBytes, "millrace_store_read_size_bytes", kHistogram, kBytes,
          "Bytes that one successful get_range delivered."),
      row(MetricId::kStoreInFlight, "millrace_store_in_flight", kGauge, kCount,
          "Requests to the object store that have not been answered yet.", by_operation),
      row(MetricId::kStoreRetries, "millrace_store_retries_total", kCounter, kCount,
          "Attempts after the first one of an operation."),
      row(MetricId::kStoreRetryTokens, "millrace_store_retry_tokens", kGauge, kCount,
          "What is left of the budget for retries and hedges, of the store that has least; at "
          "zero, "
          "its first errors are final."),
      row(MetricId::kStoreRetriesRefused, "millrace_store_retries_refused_total", kCounter, kCount,
          "Retries that were wanted but not made because the budget was spent."),
      row(MetricId::kStoreThrottles, "millrace_store_throttles_total", kCounter, kCount,
          "Answers by which the object store asked for fewer requests."),
      row(MetricId::kStoreHedgesStarted, "millrace_store_hedges_started_total", kCounter, kCount,
          "Second GETs that were sent because the first was slower than the 99th percentile."),
      row(MetricId::kStoreHedgesWon, "millrace_store_hedges_won_total", kCounter, kCount,
          "Second GETs that answered before the first."),
  };
}

std::vector<MetricSpec> cache_metrics() {
  using enum MetricType;
  using enum MetricUnit;
  static const std::array<MetricLabel, 1> by_source = {{{"source", kCacheSources}}};
  static const std::array<MetricLabel, 1> by_urgency = {{{"urgency", kUrgencies}}};
  static const std::array<MetricLabel, 1> by_skip = {{{"reason", kCacheSkips}}};
  static const std::array<MetricLabel, 1> by_damage = {{{"found", kCacheDamages}}};
  return {
      row(MetricId::kCacheReads, "millrace_cache_reads_total", kCounter, kCount,
          "Reads that the cache answered, by where the slowest part of the bytes came from.",
          by_source),
      row(MetricId::kCacheReadBytes, "millrace_cache_read_bytes_total", kCounter, kBytes,
          "Bytes that the cache delivered, by where the slowest part of the read came from.",
          by_source),
      row(MetricId::kCacheFetchedBytes, "millrace_cache_fetched_bytes_total", kCounter, kBytes,
          "Bytes that the cache got from object stores, by whether somebody waited for them.",
          by_urgency),
      row(MetricId::kCacheFetchesInFlight, "millrace_cache_fetches_in_flight", kGauge, kCount,
          "GETs of the cache that have not been answered yet."),
      row(MetricId::kCacheFetchBytesInFlight, "millrace_cache_fetch_bytes_in_flight", kGauge,
          kBytes, "Bytes that were asked for and are not on the cache disk yet."),
      row(MetricId::kCacheMemoryBytes, "millrace_cache_memory_bytes", kGauge, kBytes,
          "Memory of the buffer pool that is handed out."),
      row(MetricId::kCacheUsedBytes, "millrace_cache_used_bytes", kGauge, kBytes,
          "Space that cached objects take on the cache disks."),
      row(MetricId::kCacheLimitBytes, "millrace_cache_limit_bytes", kGauge, kBytes,
          "Space that cached objects may take: the quotas, or less where a disk is nearly full."),
      row(MetricId::kCacheHandedOutBytes, "millrace_cache_handed_out_bytes", kGauge, kBytes,
          "Evicted files whose space is not free yet because a reader still has them open."),
      row(MetricId::kCacheLeasedBytes, "millrace_cache_leased_bytes", kGauge, kBytes,
          "Cached bytes that leases keep from being evicted."),
      row(MetricId::kCacheEvictedBlocks, "millrace_cache_evicted_blocks_total", kCounter, kCount,
          "Blocks that were evicted to make room."),
      row(MetricId::kCacheEvictedBytes, "millrace_cache_evicted_bytes_total", kCounter, kBytes,
          "Bytes that were evicted to make room."),
      row(MetricId::kCacheFillsSkipped, "millrace_cache_fills_skipped_total", kCounter, kCount,
          "Fetches that were served but not kept.", by_skip),
      row(MetricId::kCacheBadUnits, "millrace_cache_bad_units_total", kCounter, kCount,
          "Units that failed their check; they are fetched again and never served.", by_damage),
      row(MetricId::kCacheScrubbedBytes, "millrace_cache_scrubbed_bytes_total", kCounter, kBytes,
          "Cached bytes that a scrub compared with their checksums."),
  };
}

std::vector<MetricSpec> fuse_metrics() {
  using enum MetricType;
  using enum MetricUnit;
  static const std::array<MetricLabel, 1> by_operation = {{{"operation", kFuseOperations}}};
  return {
      row(MetricId::kFuseRequests, "millrace_fuse_requests_total", kCounter, kCount,
          "Requests of the kernel on behalf of mounts. Warm reads need none.", by_operation),
      row(MetricId::kFuseReadBytes, "millrace_fuse_read_bytes_total", kCounter, kBytes,
          "Bytes that mounts read through this process, not by the kernel itself."),
  };
}

std::vector<MetricSpec> nfs_metrics() {
  using enum MetricType;
  using enum MetricUnit;
  static const std::array<MetricLabel, 1> by_procedure = {{{"procedure", kNfsProcedures}}};
  static const std::array<MetricLabel, 2> by_operation = {
      {{"operation", kNfsOperationNames}, {"outcome", kNfsOutcomes}}};
  static const std::array<MetricLabel, 1> by_end = {{{"reason", kNfsEnds}}};
  return {
      row(MetricId::kNfsRequests, "millrace_nfs_requests_total", kCounter, kCount,
          "RPC calls of NFS clients. Files with a delegation need none.", by_procedure),
      row(MetricId::kNfsOperations, "millrace_nfs_operations_total", kCounter, kCount,
          "Operations in the compounds of NFS clients.", by_operation),
      row(MetricId::kNfsReadBytes, "millrace_nfs_read_bytes_total", kCounter, kBytes,
          "Bytes of files that were sent to NFS clients."),
      row(MetricId::kNfsDelegations, "millrace_nfs_delegations_total", kCounter, kCount,
          "Read delegations that were granted."),
      row(MetricId::kNfsConnections, "millrace_nfs_connections", kGauge, kCount,
          "Connections of NFS clients."),
      row(MetricId::kNfsConnectionsEnded, "millrace_nfs_connections_ended_total", kCounter, kCount,
          "Connections that were ended by this side.", by_end),
      row(MetricId::kNfsClients, "millrace_nfs_clients", kGauge, kCount,
          "NFS clients whose lease is not over."),
      row(MetricId::kNfsReplyBytes, "millrace_nfs_reply_bytes", kGauge, kBytes,
          "Replies to NFS clients that the network has not taken yet."),
  };
}

std::vector<MetricSpec> loader_metrics() {
  using enum MetricType;
  using enum MetricUnit;
  static const std::array<MetricLabel, 1> by_action = {{{"action", kLoaderActions}}};
  static const std::array<MetricLabel, 1> by_stage = {{{"stage", kLoaderStages}}};
  return {
      row(MetricId::kLoaderConnections, "millrace_loader_connections", kGauge, kCount,
          "Connections of loaders: one for each read that is under way or rests, and one for the "
          "plan."),
      row(MetricId::kLoaderBatches, "millrace_loader_batches_total", kCounter, kCount,
          "Batches that were given to loaders."),
      row(MetricId::kLoaderSamples, "millrace_loader_samples_total", kCounter, kCount,
          "Samples in these batches."),
      row(MetricId::kLoaderBytes, "millrace_loader_bytes_total", kCounter, kBytes,
          "Bytes of these batches, as they are laid out."),
      row(MetricId::kLoaderFailedSamples, "millrace_loader_failed_samples_total", kCounter, kCount,
          "Samples that could not be had, by what the loader did about it.", by_action),
      row(MetricId::kLoaderTime, "millrace_loader_stage_seconds_total", kCounter, kSeconds,
          "Where time goes: store and decode of the threads that read, waiting of the training for "
          "batches, consumer of the training between them.",
          by_stage),
  };
}

}  // namespace

std::size_t nfs_operation_index(std::uint32_t number) {
  const std::size_t last = kNfsOperationNames.size() - 1;
  if (number < kNfsOperationFirstNumber) return last;
  return std::min<std::size_t>(number - kNfsOperationFirstNumber, last);
}

std::size_t MetricSpec::series_count() const {
  std::size_t count = 1;
  for (const MetricLabel& label : labels)
    count *= label.values.size();
  return count;
}

std::span<const MetricSpec> metric_table() {
  static const std::vector<MetricSpec> table = [] {
    std::vector<MetricSpec> rows = store_metrics();
    std::ranges::copy(cache_metrics(), std::back_inserter(rows));
    std::ranges::copy(fuse_metrics(), std::back_inserter(rows));
    std::ranges::copy(nfs_metrics(), std::back_inserter(rows));
    std::ranges::copy(loader_metrics(), std::back_inserter(rows));
    return rows;
  }();
  return table;
}

const MetricSpec& metric_spec(MetricId id) {
  const MetricSpec& spec = metric_table()[static_cast<std::size_t>(id)];
  assert(spec.id == id && "the table is in the order of MetricId");
  return spec;
}

std::span<const double> metric_buckets(MetricUnit unit) {
  return unit == MetricUnit::kBytes ? std::span<const double>(kBytesBuckets)
                                    : std::span<const double>(kSecondsBuckets);
}

std::string_view metric_type_name(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  return "untyped";
}

std::string_view metric_unit_name(MetricUnit unit) {
  switch (unit) {
    case MetricUnit::kCount:
      return "count";
    case MetricUnit::kBytes:
      return "bytes";
    case MetricUnit::kSeconds:
      return "seconds";
  }
  return "";
}

}  // namespace millrace
