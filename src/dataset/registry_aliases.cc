#include "dataset/registry_aliases.h"

#include <utility>

#include <fmt/format.h>

#include "dataset/registry_names.h"
#include "dataset/version_log.h"

namespace millrace {

namespace {

constexpr int kAliasRoundsMax = 100;

Status no_such_alias(const DatasetName& dataset, const AliasName& alias) {
  return {StatusCode::kNotFound,
          fmt::format("{} has no alias '{}': 'millrace alias ls {}' lists them", dataset.text(),
                      alias.text(), dataset.text())};
}

Status alias_keeps_moving(const DatasetName& dataset, const AliasName& alias) {
  return {StatusCode::kConflict, fmt::format("others keep moving the alias '{}' of {}: try again",
                                             alias.text(), dataset.text())};
}

// The record after `now`, still without an event of its own.
AliasEntry alias_after(const DatasetName& dataset, const AliasName& alias,
                       const std::optional<AliasEntry>& now) {
  AliasEntry next{.dataset = dataset, .alias = alias};
  next.number = now ? now->number + 1 : 1;
  if (!now) return next;
  next.previous = now->target;
  next.position = now->position;
  next.below = now->below;
  return next;
}

Status check_alias_condition(const AliasCondition& condition, const DatasetName& dataset,
                             const AliasName& alias, const std::optional<VersionName>& target) {
  if (condition.kind == AliasCondition::Kind::kAny || condition.target == target) return {};
  const std::string now = target ? fmt::format("points to '{}'", target->text()) : "does not exist";
  return {StatusCode::kConflict,
          condition.target
              ? fmt::format("the alias '{}' of {} {}, not to '{}' as expected", alias.text(),
                            dataset.text(), now, condition.target->text())
              : fmt::format("the alias '{}' of {} {}, it was expected not to exist", alias.text(),
                            dataset.text(), now)};
}

}  // namespace

Status RegistryAliases::check_readable(const RequestContext& context, const VersionRef& ref) const {
  MR_ASSIGN_OR_RETURN(const auto version, VersionLog(access_, ref).last(context));
  if (version && version->readable()) return {};
  return {StatusCode::kNotFound,
          fmt::format("{} {}: an alias points to a published version only", ref.text(),
                      version ? fmt::format("is {}", version_state_name(version->state()))
                              : std::string("does not exist"))};
}

Result<AliasEntry> RegistryAliases::set(const RequestContext& context, const DatasetName& dataset,
                                        const AliasName& alias, const VersionName& target,
                                        const AliasCondition& condition) const {
  const AliasLog log(access_, dataset, alias);
  MR_RETURN_IF_ERROR(check_readable(context, {dataset, target}));
  for (int round = 0; round < kAliasRoundsMax; ++round) {
    MR_ASSIGN_OR_RETURN(const auto now, log.last(context));
    MR_RETURN_IF_ERROR(check_alias_condition(condition, dataset, alias,
                                             now ? now->target : std::optional<VersionName>()));
    if (now && now->target == target) return *now;
    AliasEntry next = alias_after(dataset, alias, now);
    if (!now || !now->target) {
      // Also after a claim, for its writer may have died before it looked.
      Status free = check_no_version_has_name(context, access_, dataset, alias);
      if (!free.ok() && now && now->holds_name() && free == StatusCode::kConflict) {
        next.event = AliasEvent::kWithdrawn;
        MR_ASSIGN_OR_RETURN(const auto withdrawn, log.append(context, next));
        if (!withdrawn.ours) continue;
      }
      MR_RETURN_IF_ERROR(free);
    }
    if (!now || !now->holds_name()) {
      next.event = AliasEvent::kClaimed;
      MR_ASSIGN_OR_RETURN(const auto claimed, log.append(context, next));
      continue;  // Ours or not, the name is looked at once more, now that it is claimed.
    }
    next.event = AliasEvent::kSet;
    next.target = target;
    next.below = std::exchange(next.position, next.number);
    MR_ASSIGN_OR_RETURN(auto outcome, log.append(context, next));
    if (outcome.ours) return std::move(outcome.entry);
  }
  return failure(alias_keeps_moving(dataset, alias));
}

Result<AliasEntry> RegistryAliases::rollback(const RequestContext& context,
                                             const DatasetName& dataset,
                                             const AliasName& alias) const {
  const AliasLog log(access_, dataset, alias);
  for (int round = 0; round < kAliasRoundsMax; ++round) {
    MR_ASSIGN_OR_RETURN(const auto now, log.last(context));
    if (!now || !now->target) return failure(no_such_alias(dataset, alias));
    if (now->below == 0) {
      return failure(StatusCode::kConflict,
                     fmt::format("the alias '{}' of {} has pointed to nothing before '{}'",
                                 alias.text(), dataset.text(), now->target->text()));
    }
    MR_ASSIGN_OR_RETURN(const AliasEntry before, log.entry(context, now->below));
    if (!before.target) {
      return failure(StatusCode::kCorruption,
                     fmt::format("record {} of the alias '{}' of {} leads back to record {}, "
                                 "which has no target",
                                 now->number, alias.text(), dataset.text(), now->below));
    }
    if (Status status = check_readable(context, {dataset, *before.target}); !status.ok()) {
      return failure(status == StatusCode::kNotFound
                         ? Status(StatusCode::kConflict, status.message())
                         : status);
    }
    AliasEntry next = alias_after(dataset, alias, now);
    next.event = AliasEvent::kRolledBack;
    next.target = before.target;
    next.position = before.number;
    next.below = before.below;
    MR_ASSIGN_OR_RETURN(auto outcome, log.append(context, next));
    if (outcome.ours) return std::move(outcome.entry);
  }
  return failure(alias_keeps_moving(dataset, alias));
}

Result<AliasEntry> RegistryAliases::withdraw(const RequestContext& context,
                                             const DatasetName& dataset,
                                             const AliasName& alias) const {
  const AliasLog log(access_, dataset, alias);
  for (int round = 0; round < kAliasRoundsMax; ++round) {
    MR_ASSIGN_OR_RETURN(const auto now, log.last(context));
    if (!now || !now->holds_name()) return failure(no_such_alias(dataset, alias));
    AliasEntry next = alias_after(dataset, alias, now);
    next.event = AliasEvent::kWithdrawn;
    MR_ASSIGN_OR_RETURN(auto outcome, log.append(context, next));
    if (outcome.ours) return std::move(outcome.entry);
  }
  return failure(alias_keeps_moving(dataset, alias));
}

Result<AliasEntry> RegistryAliases::get(const RequestContext& context, const DatasetName& dataset,
                                        const AliasName& alias) const {
  MR_ASSIGN_OR_RETURN(auto now, AliasLog(access_, dataset, alias).last(context));
  if (!now || !now->target) return failure(no_such_alias(dataset, alias));
  return std::move(*now);
}

Result<std::vector<AliasEntry>> RegistryAliases::list(const RequestContext& context,
                                                      const DatasetName& dataset) const {
  const std::string prefix = alias_logs_prefix(dataset);
  MR_ASSIGN_OR_RETURN(const auto ends, list_log_ends(context, access_, prefix));
  std::vector<AliasName> names;
  std::vector<LogPosition> positions;
  for (const auto& [log, end] : ends) {
    if (log.size() <= prefix.size()) continue;
    auto name = AliasName::parse(log.substr(prefix.size(), log.size() - prefix.size() - 1));
    if (!name) continue;
    MR_ASSIGN_OR_RETURN(const std::uint64_t number, end);
    names.push_back(std::move(*name));
    positions.push_back({log, number});
  }
  MR_ASSIGN_OR_RETURN(const auto records, read_log_records(context, access_, positions));
  std::vector<AliasEntry> entries;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (!records[i]) return failure(records[i].error());
    MR_ASSIGN_OR_RETURN(AliasEntry entry, decode_alias_entry(dataset, names[i], *records[i]));
    if (entry.target) entries.push_back(std::move(entry));
  }
  return entries;
}

Result<std::vector<AliasEntry>> RegistryAliases::history(const RequestContext& context,
                                                         const DatasetName& dataset,
                                                         const AliasName& alias) const {
  MR_ASSIGN_OR_RETURN(auto entries, AliasLog(access_, dataset, alias).history(context));
  if (entries.empty()) return failure(no_such_alias(dataset, alias));
  return entries;
}

}  // namespace millrace
