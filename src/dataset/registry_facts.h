#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "dataset/registry_writer.h"
#include "dataset/version_ref.h"
#include "platform/digest.h"

namespace millrace {

// Where a version stands. Each record of its log leads from one state to the next.
enum class VersionState : std::uint8_t {
  // Somebody is making it. Only the holder of the reservation's nonce may commit; anybody may
  // abort.
  kReserved,
  // Whoever reserved it gave up, or was given up. The name is free again.
  kAborted,
  // Readable, and its content never changes. From here on the name is burned for ever.
  kPublished,
  // Hidden, and restorable until its retention has passed; its objects are kept.
  kRemoved,
  // Gone. Its objects may be deleted once nothing else uses them.
  kPurged,
};

// What a record of a version's log says happened.
enum class VersionEvent : std::uint8_t {
  kReserved,
  kAborted,
  kPublished,
  kAnnotated,  // Notes and labels were replaced.
  kRelayout,   // The same content lies elsewhere: a repack is done.
  kRemoved,    // Also ends a repack that is open.
  kRestored,
  kPurged,
  kRepacking,      // Somebody begins to lay it out anew.
  kRepackAborted,  // Whoever did gave up, or was given up.
};

// "reserved", "aborted", ...: as in records and in --json output.
std::string_view version_state_name(VersionState state);
std::string_view version_event_name(VersionEvent event);
std::optional<VersionEvent> version_event_from_name(std::string_view name);
VersionState state_after(VersionEvent event);

enum class VersionOrigin : std::uint8_t { kPublished, kRegistered, kPromoted };
std::string_view version_origin_name(VersionOrigin origin);
std::optional<VersionOrigin> version_origin_from_name(std::string_view name);

// How the content lies in the store. Replaced as a whole by a relayout.
struct VersionLayout {
  Sha256Digest layout_digest{};
  std::string manifest_key = {};
  std::uint64_t manifest_bytes = 0;
  std::uint64_t index_bytes = 0;
  // What its objects take, those shared with other versions included.
  std::uint64_t stored_bytes = 0;
  // Versions whose objects it uses too.
  std::vector<VersionRef> parents = {};

  bool operator==(const VersionLayout&) const = default;
};

struct VersionTotals {
  std::uint64_t files = 0;
  std::uint64_t directories = 0;
  std::uint64_t symlinks = 0;
  std::uint64_t bytes = 0;

  bool operator==(const VersionTotals&) const = default;
};

// What people say about a version. May be replaced at any time while it is published.
struct VersionAnnotation {
  std::string notes = {};
  std::map<std::string, std::string> labels = {};

  bool operator==(const VersionAnnotation&) const = default;
};

// Work on a version, a reservation or a repack: what it stores lies below its nonce.
struct VersionWork {
  std::string nonce = {};
  // When it began, or ended.
  WallTime since{};

  bool operator==(const VersionWork&) const = default;
};

// What is known about a version from its commit on. Every later record carries it forward, so that
// the last record of a log tells all.
struct VersionFacts {
  VersionOrigin origin = VersionOrigin::kPublished;
  Sha256Digest content_digest{};
  VersionLayout layout = {};
  VersionTotals totals = {};
  std::optional<std::uint64_t> sample_count = {};
  WallTime created{};
  VersionAnnotation annotation = {};
  // Where the content came from: a directory, a URL. Bytes that are no UTF-8 are not kept.
  std::string source = {};
  // The nonce of the reservation that it was committed under: its objects' keys carry it. Filled by
  // commit().
  std::string reservation = {};
  // The publish was begun again at least once: what an earlier life of it stored last, and did not
  // note, lies below the reservation and is nobody's.
  bool resumed = false;
  // When, and by whom, it became visible. Filled by commit().
  WallTime published{};
  WriterIdentity publisher = {};
  // The repack that is open, and the one that made the present layout.
  std::optional<VersionWork> repacking = {};
  std::optional<VersionWork> repacked = {};

  bool operator==(const VersionFacts&) const = default;
};

struct VersionRemoval {
  WallTime removed{};
  Duration retention{};

  // Cut at the end of time: both come from a record.
  WallTime restorable_until() const {
    return removed > WallTime::max() - retention ? WallTime::max() : removed + retention;
  }
  bool operator==(const VersionRemoval&) const = default;
};

// Limits of what people write, so that a record stays small. Notes and labels are UTF-8.
inline constexpr std::size_t kNotesBytesMax = 16 * 1024;
inline constexpr std::size_t kLabelsMax = 64;
inline constexpr std::size_t kLabelNameBytesMax = 128;
inline constexpr std::size_t kLabelValueBytesMax = 1024;
inline constexpr std::size_t kSourceBytesMax = 4096;
inline constexpr std::size_t kParentsMax = 256;

// kInvalidArgument, with the limit that is passed.
Status check_annotation(const VersionAnnotation& annotation);
Status check_facts(const VersionFacts& facts);

}  // namespace millrace
