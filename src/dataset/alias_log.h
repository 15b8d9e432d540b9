#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/append_log.h"
#include "dataset/dataset_name.h"

namespace millrace {

// What a record of an alias's log says happened.
enum class AliasEvent : std::uint8_t {
  // The name is taken for an alias, so that no version gets it; it points nowhere yet.
  kClaimed,
  kSet,
  kRolledBack,
  // The alias is gone; its name is free.
  kWithdrawn,
};
std::string_view alias_event_name(AliasEvent event);

// An alias as one record of its log tells it; the last one tells how it is now.
//
// The targets that rollback goes through form a stack, which lives in the log itself: `position` is
// the number of the kSet record whose target is on top, `below` that of the one under it, 0 for
// none. A kSet pushes itself, a kRolledBack pops one, the others leave the stack alone.
struct AliasEntry {
  DatasetName dataset;
  AliasName alias;
  AliasEvent event = AliasEvent::kClaimed;
  std::uint64_t number = 0;
  std::string nonce = {};
  WallTime time{};
  WriterIdentity who = {};
  // Nothing for kClaimed and kWithdrawn.
  std::optional<VersionName> target = {};
  // What it pointed to before.
  std::optional<VersionName> previous = {};
  std::uint64_t position = 0;
  std::uint64_t below = 0;

  // Whether the name is taken: it may point nowhere yet.
  bool holds_name() const { return event != AliasEvent::kWithdrawn; }
};

// ".millrace/datasets/<name>/aliases/".
std::string alias_logs_prefix(const DatasetName& dataset);

// kCorruption, with the record's key, when it is no record of an alias's log.
Result<AliasEntry> decode_alias_entry(const DatasetName& dataset, const AliasName& alias,
                                      const LogRecord& record);

// The log of one alias. Stateless, safe from any thread. Blocks.
class AliasLog {
 public:
  AliasLog(const RegistryAccess& access, DatasetName dataset, AliasName alias);

  // Nothing when the log has no record.
  Result<std::optional<AliasEntry>> last(const RequestContext& context) const;
  Result<AliasEntry> entry(const RequestContext& context, std::uint64_t number) const;
  Result<std::vector<AliasEntry>> history(const RequestContext& context) const;

  struct Outcome {
    bool ours = false;
    AliasEntry entry;
  };
  // Appends `next` at next.number, with a nonce of its own; the answer is the entry that has the
  // number now, ours or that of whoever was first.
  Result<Outcome> append(const RequestContext& context, const AliasEntry& next) const;

 private:
  const RegistryAccess& access_;
  const DatasetName dataset_;
  const AliasName alias_;
  const AppendLog log_;
};

}  // namespace millrace
