#include "dataset/reservation.h"

#include <fmt/format.h>

#include "base/time_format.h"

namespace millrace {

Status check_reservable(const VersionEntry& entry) {
  const std::string ref = entry.ref.text();
  const std::string since = format_iso8601(entry.since);
  switch (entry.state()) {
    case VersionState::kAborted:
      return {};
    case VersionState::kReserved:
      return {StatusCode::kConflict,
              fmt::format("{} is being made by {}, since {}. If that process is dead, free the "
                          "name with 'millrace version rm --abort {}'",
                          ref, entry.who.describe(), since, ref)};
    case VersionState::kPublished:
      return {
          StatusCode::kConflict,
          fmt::format("{} was published at {} by {} and never changes: choose another version", ref,
                      format_iso8601(entry.facts->published), entry.facts->publisher.describe())};
    case VersionState::kRemoved:
      return {
          StatusCode::kConflict,
          fmt::format("{} was removed at {} by {}, and the name of a published version is never "
                      "used again: choose another, or 'millrace version restore {}'",
                      ref, since, entry.who.describe(), ref)};
    case VersionState::kPurged:
      break;
  }
  return {StatusCode::kConflict,
          fmt::format("{} was purged at {} by {}, and the name of a published version is never "
                      "used again: choose another",
                      ref, since, entry.who.describe())};
}

Status check_held(const Reservation& reservation, const VersionEntry& now) {
  if (now.facts && now.facts->reservation == reservation.nonce) return {};
  if (now.state() == VersionState::kReserved && now.nonce == reservation.nonce) return {};
  if (now.state() != VersionState::kAborted) return check_reservable(now);
  return {StatusCode::kConflict,
          fmt::format("the reservation of {} was aborted at {} by {} ({}): begin again",
                      now.ref.text(), format_iso8601(now.since), now.who.describe(), now.reason)};
}

}  // namespace millrace
