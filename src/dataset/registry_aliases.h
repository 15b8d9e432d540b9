#pragma once

#include <optional>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/alias_log.h"
#include "dataset/version_ref.h"

namespace millrace {

// What an alias must point to for a change to be made.
struct AliasCondition {
  enum class Kind : std::uint8_t { kAny, kAbsent, kTarget };
  Kind kind = Kind::kAny;
  std::optional<VersionName> target = {};

  static AliasCondition any() { return {}; }
  static AliasCondition absent() { return {.kind = Kind::kAbsent}; }
  static AliasCondition points_to(VersionName version) {
    return {.kind = Kind::kTarget, .target = std::move(version)};
  }
};

// The aliases of a registry. Stateless, safe from any thread; what `access` refers to outlives it.
// Blocks. A failure that says that the outcome is not known may have taken effect.
class RegistryAliases {
 public:
  explicit RegistryAliases(RegistryAccess access) : access_(std::move(access)) {}

  // Lets the alias point to a published version. Changes nothing when it does already. kConflict
  // when the condition does not hold, or when the name is that of a version; kNotFound when the
  // target cannot be read.
  Result<AliasEntry> set(const RequestContext& context, const DatasetName& dataset,
                         const AliasName& alias, const VersionName& target,
                         const AliasCondition& condition = AliasCondition::any()) const;
  // Lets it point to what it pointed to before the present target. Repeated, it goes further back.
  // kConflict when there is nothing before, or when that version cannot be read any more.
  Result<AliasEntry> rollback(const RequestContext& context, const DatasetName& dataset,
                              const AliasName& alias) const;
  // Removes it and frees its name, also when it was claimed and never set.
  Result<AliasEntry> withdraw(const RequestContext& context, const DatasetName& dataset,
                              const AliasName& alias) const;

  // kNotFound when there is no such alias.
  Result<AliasEntry> get(const RequestContext& context, const DatasetName& dataset,
                         const AliasName& alias) const;
  // Those that point somewhere, by name. Takes one list for each 1,000 records and one GET for
  // each alias.
  Result<std::vector<AliasEntry>> list(const RequestContext& context,
                                       const DatasetName& dataset) const;
  // Every move, oldest first. kNotFound when there never was such an alias.
  Result<std::vector<AliasEntry>> history(const RequestContext& context, const DatasetName& dataset,
                                          const AliasName& alias) const;

 private:
  Status check_readable(const RequestContext& context, const VersionRef& ref) const;

  const RegistryAccess access_;
};

}  // namespace millrace
