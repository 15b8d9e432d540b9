#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace millrace {

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };
// A counter of kSeconds is given microseconds.
enum class MetricUnit : std::uint8_t { kCount, kBytes, kSeconds };

// Every metric of Millrace. A new one is a line here and a row in metric_table.cc; docs/metrics.md
// is rendered from the table and a test compares the two.
enum class MetricId : std::uint8_t {
  kStoreOperations,
  kStoreBytes,
  kStoreLatency,
  kStoreReadBytes,
  kStoreInFlight,
  kStoreRetries,
  kStoreRetryTokens,
  kStoreRetriesRefused,
  kStoreThrottles,
  kStoreHedgesStarted,
  kStoreHedgesWon,
  kCacheReads,
  kCacheReadBytes,
  kCacheFetchedBytes,
  kCacheFetchesInFlight,
  kCacheFetchBytesInFlight,
  kCacheMemoryBytes,
  kCacheUsedBytes,
  kCacheLimitBytes,
  kCacheHandedOutBytes,
  kCacheLeasedBytes,
  kCacheEvictedBlocks,
  kCacheEvictedBytes,
  kCacheFillsSkipped,
  kCacheBadUnits,
  kCacheScrubbedBytes,
  kFuseRequests,
  kFuseReadBytes,
  kNfsRequests,
  kNfsOperations,
  kNfsReadBytes,
  kNfsDelegations,
  kNfsConnections,
  kNfsConnectionsEnded,
  kNfsClients,
  kNfsReplyBytes,
  kLoaderConnections,
  kLoaderBatches,
  kLoaderSamples,
  kLoaderBytes,
  kLoaderFailedSamples,
  kLoaderTime,
};

// What the kernel asks of a mount, as the requests are counted.
enum class FuseMetricOperation : std::uint8_t {
  kLookup,
  kGetattr,
  kReadlink,
  kOpen,
  kRead,
  kRelease,
  kStatfs,
  kOpendir,
  kReaddir,
  kXattr,
  kForget,
  kOther,
};

// What NFS clients ask for. An operation of NFSv4 has the index nfs_operation_index(its number).
enum class NfsMetricProcedure : std::uint8_t { kNull, kCompound };
enum class NfsMetricOutcome : std::uint8_t { kOk, kError };
// Why we end a connection; those that clients end are not counted.
enum class NfsMetricEnd : std::uint8_t {
  kMalformed,  // What came is no RPC, or larger than allowed.
  kStalled,    // Neither takes its replies nor finishes its requests.
  kRefused,    // There are too many.
};

// Of the label `operation` of kNfsOperations; numbers that are no operation's share the last index.
std::size_t nfs_operation_index(std::uint32_t number);

// What becomes of a sample that cannot be had, and where the time of loaders goes.
enum class LoaderMetricAction : std::uint8_t { kRaise, kSkip, kSubstitute };
enum class LoaderMetricStage : std::uint8_t { kStore, kDecode, kWaiting, kConsumer };

// A label and all the values that it can take. Values are fixed, so the number of series is too: no
// key, user or host name can ever become a label.
struct MetricLabel {
  std::string_view name;
  std::span<const std::string_view> values;
};

struct MetricSpec {
  MetricId id;
  std::string_view name;
  MetricType type;
  MetricUnit unit;
  std::string_view help;  // One sentence.
  std::span<const MetricLabel> labels;

  // The product of the labels' values.
  std::size_t series_count() const;
};

// In the order of MetricId.
std::span<const MetricSpec> metric_table();
const MetricSpec& metric_spec(MetricId id);

// The upper bounds of a histogram's buckets, ascending; one more bucket holds what lies above.
// Seconds for kSeconds.
std::span<const double> metric_buckets(MetricUnit unit);

// Directions of the label `direction`.
enum class MetricDirection : std::uint8_t { kRead, kWritten };

// Values of labels of the cache's metrics.
enum class CacheSource : std::uint8_t { kDisk, kMemory, kStore };
enum class CacheSkip : std::uint8_t { kNoRoom, kDiskFailure, kBusy };
enum class CacheDamage : std::uint8_t { kFetched, kRead, kScrubbed, kIndex };

std::string_view metric_type_name(MetricType type);
std::string_view metric_unit_name(MetricUnit unit);

}  // namespace millrace
