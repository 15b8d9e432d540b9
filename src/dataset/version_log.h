#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/append_log.h"
#include "dataset/registry_facts.h"
#include "dataset/version_ref.h"

namespace millrace {

// A version as one record of its log tells it; the last one tells how it is now.
struct VersionEntry {
  VersionRef ref;
  VersionEvent event = VersionEvent::kReserved;
  // Which record this is, who wrote it and when.
  std::uint64_t number = 0;
  std::string nonce = {};
  WallTime since{};
  WriterIdentity who = {};
  // Why, in the words of whoever wrote it: what a reservation is for, why it was aborted.
  std::string reason = {};
  // From the commit on. A version that has them is burned.
  std::optional<VersionFacts> facts = {};
  // While it is removed, and when it has been purged.
  std::optional<VersionRemoval> removal = {};

  VersionState state() const { return state_after(event); }
  bool readable() const { return state() == VersionState::kPublished; }
  // The reservation or the repack that is open, and since when; an empty nonce when none is.
  VersionWork open_work() const;
};

// ".millrace/datasets/<name>/versions/", and the log of one version below it.
std::string version_logs_prefix(const DatasetName& dataset);
std::string version_log_prefix(const VersionRef& ref);
// The reverse of version_log_prefix(); nothing when it is the prefix of something else.
std::optional<VersionRef> version_of_log_prefix(const std::string& prefix);

// kCorruption, with the record's key, when it is no record of a version's log.
Result<VersionEntry> decode_version_entry(const VersionRef& ref, const LogRecord& record);

// The log of one version. Which record may follow which:
//
//   (nothing), aborted                            reserved
//   reserved                                      published, aborted
//   published, annotated, relayout, restored,     annotated, removed; repacking while no repack is
//   repacking, repack_aborted                     open; relayout, repack_aborted while one is
//   removed                                       restored, purged
//   purged                                        nothing
//
// Hence, before the first commit, reserved records have odd numbers and the others even ones: a
// reservation that is open has an odd last number, and an aborted one an even last number, so that
// a listing tells most of the others apart without reading them.
//
// Stateless, safe from any thread. Blocks.
class VersionLog {
 public:
  VersionLog(const RegistryAccess& access, VersionRef ref);

  // Nothing when the log has no record.
  Result<std::optional<VersionEntry>> last(const RequestContext& context) const;
  Result<std::vector<VersionEntry>> history(const RequestContext& context) const;

  // Appends `next` at next.number; fills in since and who. The answer is the entry that has the
  // number now: ours when `ours` is set, else that of whoever was first.
  struct Outcome {
    bool ours = false;
    VersionEntry entry;
  };
  Result<Outcome> append(const RequestContext& context, const VersionEntry& next) const;

  // Appends what `step` makes of the last entry. When somebody else appends first it reads again
  // and repeats; kConflict when that happens too often. `step` sees a version that was published
  // once; kNotFound for any other. It sets event, facts, removal and reason.
  using Step = std::function<Status(VersionEntry& entry)>;
  Result<VersionEntry> advance(const RequestContext& context, const Step& step) const;

 private:
  const RegistryAccess& access_;
  const VersionRef ref_;
  const AppendLog log_;
};

}  // namespace millrace
