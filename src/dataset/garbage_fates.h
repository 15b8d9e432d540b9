#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/registry_access.h"
#include "dataset/version_log.h"

namespace millrace {

// What became of a reservation, and so of the objects whose keys carry its nonce.
enum class ReservationFate : std::uint8_t {
  // No log has such a reservation: whatever lies there is not ours.
  kUnknown,
  // Somebody may be at work under it.
  kOpen,
  // It ended without a version. No manifest of a version ever names what was stored under it.
  kAborted,
  // It became a version that is published or removed, and needs what it stored.
  kKept,
  // It became such a version, or a layout of it, but the version was repacked since: some of what
  // was stored may be garbage.
  kRepacked,
  // It became such a version, by a publish that was begun again: what its earlier lives stored may
  // be garbage.
  kResumed,
  // It became a version that has been purged. Other versions may still use its objects.
  kPurged,
};

// The version that a key of ours, "<dataset>/<version>/<nonce>/...", belongs to by its form; no log
// is asked.
std::optional<VersionRef> version_of_key(std::string_view key);

// Whose object a key is.
struct KeyOwner {
  VersionRef ref;
  std::string nonce;
  ReservationFate fate = ReservationFate::kUnknown;
};

// Tells what became of reservations and repacks, from the versions as they stood at one moment:
// what was committed later counts as open. What is told does not get worse for anybody: aborted and
// purged are for ever.
//
// Memory: the last entry of every version, and a line for each reservation of versions that were
// asked about. `access` outlives it. Needs one thread at a time.
class ReservationFates {
 public:
  ReservationFates(const RegistryAccess& access, const std::vector<VersionEntry>& versions);

  // Counts as aborted from now on: for those who only want to know what would happen.
  void pretend_aborted(const VersionEntry& reservation);

  // Reads the log of the version where its last entry does not tell.
  Result<ReservationFate> of(const RequestContext& context, const VersionRef& ref,
                             const std::string& nonce);
  // Whose nonce a key of the form "<dataset>/<version>/<nonce>/..." carries; nothing for others.
  Result<std::optional<KeyOwner>> owner_of_key(const RequestContext& context, std::string_view key);
  // Its fate; kUnknown when there is none.
  Result<ReservationFate> of_key(const RequestContext& context, std::string_view key);
  // The same for the key of a manifest; see manifest_key().
  Result<ReservationFate> of_manifest(const RequestContext& context, std::string_view key);

  const std::map<VersionRef, VersionEntry>& versions() const { return versions_; }

 private:
  using Fates = std::map<std::string, ReservationFate>;
  static ReservationFate fate_of_committed(const VersionEntry& entry);
  Result<Fates> read_log(const RequestContext& context, const VersionEntry& known) const;

  const RegistryAccess& access_;
  std::map<VersionRef, VersionEntry> versions_;
  std::map<VersionRef, Fates> logs_;
  std::set<std::string> pretended_;
  // Of the last key that was asked for: neighbours share it.
  std::string last_prefix_;
  std::optional<KeyOwner> last_owner_;
};

}  // namespace millrace
