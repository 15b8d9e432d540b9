#include <fmt/format.h>

#include "base/time_format.h"
#include "dataset/registry.h"

namespace millrace {

namespace {

// kConflict, with what the state is instead and what to do.
Status require_version_state(const VersionEntry& entry, VersionState state, std::string_view verb) {
  if (entry.state() == state) return {};
  return {StatusCode::kConflict,
          fmt::format("{} is {} (at {} by {}), and only a {} version can be {}", entry.ref.text(),
                      version_state_name(entry.state()), format_iso8601(entry.since),
                      entry.who.describe(), version_state_name(state), verb)};
}

}  // namespace

Result<VersionEntry> Registry::annotate(const RequestContext& context, const VersionRef& ref,
                                        const AnnotationChange& change) const {
  return VersionLog(access_, ref).advance(context, [&](VersionEntry& entry) -> Status {
    MR_RETURN_IF_ERROR(require_version_state(entry, VersionState::kPublished, "annotated"));
    entry.event = VersionEvent::kAnnotated;
    VersionAnnotation& annotation = entry.facts->annotation;
    if (change.notes) annotation.notes = *change.notes;
    for (const auto& [name, value] : change.labels) {
      if (value) {
        annotation.labels[name] = *value;
      } else {
        annotation.labels.erase(name);
      }
    }
    if (change.sample_count) entry.facts->sample_count = change.sample_count;
    return check_annotation(annotation);
  });
}

Result<VersionEntry> Registry::begin_repack(const RequestContext& context, const VersionRef& ref,
                                            const std::string& reason) const {
  return VersionLog(access_, ref).advance(context, [&](VersionEntry& entry) -> Status {
    MR_RETURN_IF_ERROR(require_version_state(entry, VersionState::kPublished, "repacked"));
    if (entry.facts->repacking) {
      return {StatusCode::kConflict, fmt::format("{} is being repacked since {}", ref.text(),
                                                 format_iso8601(entry.facts->repacking->since))};
    }
    entry.event = VersionEvent::kRepacking;
    entry.reason = reason;
    entry.facts->repacking = {
        .nonce = entry.nonce,
        .since = std::chrono::floor<std::chrono::milliseconds>(access_.clock.wall_now())};
    return {};
  });
}

Result<VersionEntry> Registry::relayout(const RequestContext& context, const VersionRef& ref,
                                        const std::string& nonce, const VersionLayout& to) const {
  return VersionLog(access_, ref).advance(context, [&](VersionEntry& entry) -> Status {
    MR_RETURN_IF_ERROR(require_version_state(entry, VersionState::kPublished, "laid out anew"));
    VersionFacts& facts = *entry.facts;
    if (!facts.repacking || facts.repacking->nonce != nonce) {
      return {StatusCode::kConflict, fmt::format("the repack of {} was given up, or {} removed: "
                                                 "what it stored may be gone",
                                                 ref.text(), ref.text())};
    }
    entry.event = VersionEvent::kRelayout;
    facts.layout = to;
    facts.repacking.reset();
    facts.repacked = {
        .nonce = nonce,
        .since = std::chrono::floor<std::chrono::milliseconds>(access_.clock.wall_now())};
    return check_facts(facts);
  });
}

Status Registry::abort_repack(const RequestContext& context, const VersionRef& ref,
                              const std::string& nonce, const std::string& reason) const {
  bool ended = false;
  const auto aborted =
      VersionLog(access_, ref).advance(context, [&](VersionEntry& entry) -> Status {
        ended = !entry.facts->repacking || entry.facts->repacking->nonce != nonce;
        if (ended) return {StatusCode::kConflict, "the repack has ended"};
        entry.event = VersionEvent::kRepackAborted;
        entry.reason = reason;
        entry.facts->repacking.reset();
        return {};
      });
  return aborted || ended ? Status() : aborted.error();
}

Result<VersionEntry> Registry::remove(const RequestContext& context, const VersionRef& ref,
                                      const std::string& reason, Duration retention) const {
  if (retention < Duration::zero() || retention > kRetentionMax) {
    return failure(StatusCode::kInvalidArgument, "a retention is between 0 and 90 years");
  }
  return VersionLog(access_, ref).advance(context, [&](VersionEntry& entry) -> Status {
    MR_RETURN_IF_ERROR(require_version_state(entry, VersionState::kPublished, "removed"));
    entry.event = VersionEvent::kRemoved;
    entry.facts->repacking.reset();
    entry.reason = reason;
    entry.removal = {
        .removed = std::chrono::floor<std::chrono::milliseconds>(access_.clock.wall_now()),
        .retention = std::chrono::ceil<std::chrono::seconds>(retention)};
    return {};
  });
}

Result<VersionEntry> Registry::restore(const RequestContext& context, const VersionRef& ref) const {
  return VersionLog(access_, ref).advance(context, [&](VersionEntry& entry) -> Status {
    MR_RETURN_IF_ERROR(require_version_state(entry, VersionState::kRemoved, "restored"));
    entry.event = VersionEvent::kRestored;
    entry.removal.reset();
    return {};
  });
}

Status Registry::check_not_in_use(const RequestContext& context, const VersionEntry& entry) const {
  MR_ASSIGN_OR_RETURN(const auto users, runs_.live_users(context, entry.facts->content_digest));
  for (const LiveRun& run : users) {
    if (!run.uses(entry.ref)) continue;
    return {StatusCode::kConflict,
            fmt::format("{} is in use by the run '{}' ({}) of {}, last heard of at {}: purge it "
                        "when that has ended",
                        entry.ref.text(), run.name, run.id.value(), run.who.describe(),
                        format_iso8601(run.heartbeat))};
  }
  return {};
}

Result<VersionEntry> Registry::purge(const RequestContext& context, const VersionRef& ref,
                                     bool force) const {
  return VersionLog(access_, ref).advance(context, [&](VersionEntry& entry) -> Status {
    MR_RETURN_IF_ERROR(require_version_state(entry, VersionState::kRemoved, "purged"));
    const WallTime until = entry.removal->restorable_until();
    if (!force && access_.clock.wall_now() < until) {
      return {StatusCode::kConflict, fmt::format("{} stays restorable until {}: wait, or force it",
                                                 ref.text(), format_iso8601(until))};
    }
    MR_RETURN_IF_ERROR(check_not_in_use(context, entry));
    entry.event = VersionEvent::kPurged;
    return {};
  });
}

}  // namespace millrace
