#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"
#include "base/strong_type.h"
#include "dataset/version_ref.h"

namespace millrace {

// 12 hexadecimal digits.
using PreloadId = StrongType<std::string, struct PreloadIdTag>;

enum class PreloadState : std::uint8_t {
  kQueued,     // Fits, and holds its lease if it was asked for one; others go first.
  kRunning,    // Is being fetched. A store that is away makes it wait, not fail.
  kReady,      // All that was wanted was cached then; with a lease it still is.
  kFailed,     // `problem` says why. What was fetched stays until it is evicted.
  kCancelled,  // By request. Its lease is released.
};
std::string_view preload_state_name(PreloadState state);
std::optional<PreloadState> parse_preload_state(std::string_view name);
inline bool has_ended(PreloadState state) { return state >= PreloadState::kReady; }

// What somebody asks for.
struct PreloadRequest {
  VersionRef version;
  // Patterns (service/path_glob.h); a file is wanted if one matches. None: all files.
  std::vector<std::string> paths = {};
  // How long what was preloaded must stay, from when it is ready. Nothing: as long as it happens
  // to.
  std::optional<Duration> lease = {};
  // 0: as fast as readers leave room for.
  std::uint64_t bytes_per_second_max = 0;
  // Does not refuse what does not fit, and takes the part that does.
  bool what_fits = false;
  // Who asks, and pays.
  Caller holder = {.principal = "millrace", .run = ""};
};

// Whether it fits, in bytes on the cache's disks.
struct PreloadFit {
  std::uint64_t wanted_bytes = 0;
  std::uint64_t cached_bytes = 0;  // Of those wanted.
  std::uint64_t limit_bytes = 0;   // Of the cache.
  // By others and not wanted here, cached or not: cannot be evicted.
  std::uint64_t leased_bytes = 0;
  // By how much there is too little; where a part was enough, what of the wanted is left out.
  std::uint64_t short_bytes = 0;

  bool fits() const { return short_bytes == 0; }
  // "needs 3 GiB (1 GiB of it cached); the cache may hold 2 GiB, of which ..."
  std::string text() const;
};

// A preload as it stands.
struct PreloadInfo {
  PreloadId id = {};
  PreloadRequest request;
  PreloadState state = PreloadState::kQueued;
  WallTime created{};
  std::optional<WallTime> ended = {};
  std::uint64_t files = 0;
  PreloadFit fit = {};
  std::uint64_t bytes_total = 0;  // What it will have cached in the end.
  std::uint64_t bytes_done = 0;
  // While it runs, and once it is known.
  std::uint64_t bytes_per_second = 0;
  std::optional<Duration> time_left = {};
  // Why it failed, or what it is waiting for.
  std::string problem = {};
  // What kind of failure that was; kOk of all that have not failed.
  StatusCode code = StatusCode::kOk;
  // While a lease holds it.
  std::optional<WallTime> leased_until = {};
};

}  // namespace millrace
