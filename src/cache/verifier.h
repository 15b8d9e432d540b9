#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "cache/cache_directories.h"
#include "cache/cached_object.h"
#include "cache/unit.h"
#include "metrics/metrics.h"

namespace millrace {

// Holds units on the disk against their recorded checksums. Good ones become ready; bad ones are
// reported and forgotten, so that the next reader fetches them. Blocks. Safe from any thread.
class Verifier {
 public:
  Verifier(CacheDirectories& directories, Metrics& metrics)
      : directories_(directories), metrics_(metrics) {}

  struct Outcome {
    std::uint64_t bytes = 0;  // Read and compared.
    std::uint32_t bad_units = 0;
  };
  // Checks those of the units that are on the disk; with `again` also those that were checked
  // before.
  Outcome check(CachedObject& object, UnitRange units, CacheDamage found_by, bool again);
  // Takes units out of use that the disk failed to read. False when they were freed already.
  bool distrust(CachedObject& object, UnitRange units, CacheDamage found_by);

 private:
  Outcome check_run(CachedObject& object, UnitRange run, CacheDamage found_by);

  CacheDirectories& directories_;
  Metrics& metrics_;
};

}  // namespace millrace
