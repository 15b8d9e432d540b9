#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/registry.h"

namespace millrace {

// Where a probe of what the store can do keeps its scratch objects, for seconds.
inline constexpr std::string_view kProbeFolder = ".millrace/probe";

// Tells the keys that are our own, in the store of a registry, from those of everybody else: what
// lies below ".millrace/", and below the prefix of a reservation, whatever became of it. A
// collection may delete those; who registers them would lose them.
//
// Reads the list of datasets once, and a log for each version whose name stands before what looks
// like a nonce. Safe from any thread. The registry outlives it.
class ReservedKeys {
 public:
  explicit ReservedKeys(const Registry& registry) : registry_(registry) {}

  // Why the key is not free, as a SourceProblem says it; nothing when it is. Fails as the registry.
  Result<std::optional<std::string>> fault(const RequestContext& context, std::string_view key)
      MR_EXCLUDES(mutex_);

 private:
  Result<bool> is_reserved(const RequestContext& context, const VersionRef& ref,
                           std::string_view nonce) MR_EXCLUDES(mutex_);

  const Registry& registry_;
  Mutex mutex_;
  // Names of all datasets; nothing before the first question.
  std::optional<std::set<std::string>> datasets_ MR_GUARDED_BY(mutex_);
  // Nonces of a version's reservations.
  std::map<VersionRef, std::set<std::string, std::less<>>> nonces_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
