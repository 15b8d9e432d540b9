#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "base/strong_type.h"
#include "dataset/log_record.h"
#include "dataset/version_ref.h"
#include "platform/digest.h"

namespace millrace {

// "20260102T030405Z-0123456789abcdef": ids sort by the time of their start.
using RunId = StrongType<std::string, struct RunIdTag>;
// kInvalidArgument when `text` has not that form.
Result<RunId> parse_run_id(std::string_view text);

inline constexpr Duration kHeartbeatPeriodDefault = std::chrono::seconds(60);
// A run that was not heard of for this many periods is dead.
inline constexpr int kHeartbeatPeriodsMax = 3;
inline constexpr std::size_t kRunUsesMax = 256;
// More of a command line is cut off: it is for people.
inline constexpr std::size_t kRunCommandBytesMax = 32 * 1024;

// What a run reads: a version, and the content that it had then.
struct RunUse {
  VersionRef ref;
  Sha256Digest content_digest{};

  bool operator==(const RunUse&) const = default;
};

// What is known when a run begins.
struct RunDescription {
  std::string name = {};
  std::vector<RunUse> uses = {};
  std::string git_commit = {};
  std::vector<std::string> command_line = {};
  Duration heartbeat_period = kHeartbeatPeriodDefault;

  bool operator==(const RunDescription&) const = default;
};

// What a gateway saw a run read of one version.
struct RunRead {
  std::string version = {};  // Or a bucket, or what rows that were added up are called.
  std::uint64_t read_bytes = 0;
  std::uint64_t reads = 0;
  // Requests to the store because of it, and what those delivered.
  std::uint64_t fetches = 0;
  std::uint64_t fetched_bytes = 0;
  std::uint64_t handed_out_files = 0;

  bool operator==(const RunRead&) const = default;
};
inline constexpr std::size_t kRunReadsMax = 1024;

// A sample that loaders of a run could not have.
struct RunFailure {
  std::string dataset = {};  // A version, or where it lies; or "(other)" for what is not listed.
  std::uint64_t sample = 0;
  std::string key = {};
  std::string action = {};  // What they did about it: "raise", "skip", "substitute".
  std::string error = {};
  std::uint64_t times = 0;

  bool operator==(const RunFailure&) const = default;
};
inline constexpr std::size_t kRunFailuresMax = 129;

// What gateways saw of a run. Empty when none was asked.
struct RunObservation {
  std::vector<RunRead> reads = {};
  std::vector<RunFailure> failures = {};

  bool operator==(const RunObservation&) const = default;
};

// How a run ended.
struct RunEnd {
  std::uint64_t exit_code = 0;
  RunObservation observed = {};
};

// A run as its three records tell it.
struct RunEntry {
  RunId id = {};
  RunDescription description = {};
  WriterIdentity who = {};
  WallTime started{};
  // The last one, by the clock of its writer or that of the store, whichever is later.
  WallTime heartbeat{};
  std::optional<WallTime> ended = {};
  std::optional<std::uint64_t> exit_code = {};
  RunObservation observed = {};

  // Has not ended, and was heard of lately.
  bool live(WallTime now) const;
};

bool heartbeat_is_fresh(WallTime heartbeat, Duration period, WallTime now);

// kInvalidArgument, with the limit that is passed.
Status check_run(const RunDescription& description);

// Payloads of the records of kind "run_started" and "run_heartbeat" (the same), and "run_ended".
nlohmann::json run_payload(const RunDescription& description);
Result<RunDescription> read_run_payload(const LogRecord& record);
nlohmann::json run_end_payload(const RunEnd& end);
Result<RunEnd> read_run_end_payload(const LogRecord& record);

}  // namespace millrace
