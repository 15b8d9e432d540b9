#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace millrace {

// The moments of a publish between which something changes, in the store or on the local disk. A
// publish that is killed at any of them goes on when it is done again; a test kills it at each.
enum class PublishPoint : std::uint8_t {
  kScanned,          // Nothing is written yet.
  kNonceNoted,       // The journal has the nonce, the store has no reservation of it.
  kReserved,         // Others see that the name is taken.
  kBaseOpened,       // What can be taken over is known.
  kPackStored,       // The store has a pack that the journal does not know of.
  kPackNoted,        // It is in the journal.
  kPartWritten,      // Some of a large object was handed to the store.
  kObjectStored,     // The store has a file that the journal does not know of.
  kObjectNoted,      // It is in the journal.
  kAllStored,        // Every object is in the store.
  kChecked,          // Every object was asked for again.
  kManifestWritten,  // The manifest is on the local disk.
  kManifestStored,   // It is in the store.
  kCommitted,        // The version is visible; the journal is still there.
  kJournalRemoved,   // Nothing is left to do.
};

struct NamedPublishPoint {
  PublishPoint point;
  std::string_view name;
};

// All of them, in the order in which a publish meets them first.
inline constexpr std::array kPublishPoints = std::to_array<NamedPublishPoint>({
    {PublishPoint::kScanned, "scanned"},
    {PublishPoint::kNonceNoted, "nonce-noted"},
    {PublishPoint::kReserved, "reserved"},
    {PublishPoint::kBaseOpened, "base-opened"},
    {PublishPoint::kPackStored, "pack-stored"},
    {PublishPoint::kPackNoted, "pack-noted"},
    {PublishPoint::kPartWritten, "part-written"},
    {PublishPoint::kObjectStored, "object-stored"},
    {PublishPoint::kObjectNoted, "object-noted"},
    {PublishPoint::kAllStored, "all-stored"},
    {PublishPoint::kChecked, "checked"},
    {PublishPoint::kManifestWritten, "manifest-written"},
    {PublishPoint::kManifestStored, "manifest-stored"},
    {PublishPoint::kCommitted, "committed"},
    {PublishPoint::kJournalRemoved, "journal-removed"},
});
static_assert(kPublishPoints.size() == static_cast<std::size_t>(PublishPoint::kJournalRemoved) + 1,
              "every point stands in the table");

}  // namespace millrace
