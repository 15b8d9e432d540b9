#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/time_format.h"
#include "dataset/log_record_fields.h"
#include "dataset/registry.h"
#include "dataset/registry_names.h"

namespace millrace {

namespace {

constexpr int kReserveRoundsMax = 100;

VersionEntry entry_after_reservation(const Reservation& reservation, VersionEvent event,
                                     std::string nonce) {
  return {.ref = reservation.ref,
          .event = event,
          .number = reservation.number + 1,
          .nonce = std::move(nonce)};
}

// What lies below a nonce may be deleted once its reservation has ended: it must never come back.
Status check_nonce_is_new(const RequestContext& context, const VersionLog& log,
                          const std::string& nonce) {
  MR_ASSIGN_OR_RETURN(const std::vector<VersionEntry> history, log.history(context));
  const bool is_new = std::ranges::none_of(history, [&](const VersionEntry& entry) {
    return entry.event == VersionEvent::kReserved && entry.nonce == nonce;
  });
  if (is_new) return {};
  return {StatusCode::kConflict, "the reservation was aborted meanwhile: begin anew"};
}

}  // namespace

Status Registry::check_names(const RequestContext& context, const VersionRef& ref) const {
  MR_RETURN_IF_ERROR(check_dataset_name(context, access_, ref.dataset));
  return check_no_alias_has_name(context, access_, ref);
}

Result<Reservation> Registry::reserve(const RequestContext& context, const VersionRef& ref,
                                      const ReserveOptions& options) const {
  if (!options.nonce.empty() && !is_record_nonce(options.nonce)) {
    return failure(StatusCode::kInvalidArgument,
                   "the nonce of a reservation is not 32 lower-case hexadecimal digits");
  }
  const VersionLog log(access_, ref);
  const std::string nonce = options.nonce.empty() ? access_.random.token() : options.nonce;
  std::optional<VersionEntry> own;
  for (int round = 0; round < kReserveRoundsMax && !own; ++round) {
    MR_ASSIGN_OR_RETURN(auto now, log.last(context));
    if (now && now->state() == VersionState::kReserved && now->nonce == nonce) {
      own = std::move(now);
      break;
    }
    if (now) MR_RETURN_IF_ERROR(check_reservable(*now));
    if (now && !options.nonce.empty()) MR_RETURN_IF_ERROR(check_nonce_is_new(context, log, nonce));
    MR_RETURN_IF_ERROR(check_names(context, ref));
    const VersionEntry next{.ref = ref,
                            .event = VersionEvent::kReserved,
                            .number = now ? now->number + 1 : 1,
                            .nonce = nonce,
                            .reason = options.reason};
    MR_ASSIGN_OR_RETURN(auto outcome, log.append(context, next));
    if (outcome.ours) own = std::move(outcome.entry);
  }
  if (!own) {
    return failure(StatusCode::kConflict,
                   fmt::format("others keep reserving {}: try again", ref.text()));
  }
  // Again, now that others can see this one; also when it is found again, because its writer may
  // have died before it looked.
  Reservation reservation = Reservation::of(*own);
  const Status allowed = check_names(context, ref);
  if (allowed.ok()) return reservation;
  if (allowed == StatusCode::kConflict) {
    MR_RETURN_IF_ERROR(abort(context, reservation, allowed.message()));
  }
  return failure(allowed);
}

Result<VersionEntry> Registry::commit(const RequestContext& context, const Reservation& reservation,
                                      VersionFacts facts) const {
  MR_RETURN_IF_ERROR(check_facts(facts));
  VersionEntry next =
      entry_after_reservation(reservation, VersionEvent::kPublished, access_.random.token());
  facts.created = std::chrono::floor<std::chrono::milliseconds>(facts.created);
  facts.published = std::chrono::floor<std::chrono::milliseconds>(access_.clock.wall_now());
  facts.publisher = access_.writer;
  facts.reservation = reservation.nonce;
  next.facts = std::move(facts);
  MR_ASSIGN_OR_RETURN(auto outcome, VersionLog(access_, reservation.ref).append(context, next));
  VersionEntry& entry = outcome.entry;
  // A commit of the same reservation by an earlier life of this process is ours, too.
  MR_RETURN_IF_ERROR(check_held(reservation, entry));
  return std::move(entry);
}

Status Registry::abort(const RequestContext& context, const Reservation& reservation,
                       const std::string& reason) const {
  VersionEntry next =
      entry_after_reservation(reservation, VersionEvent::kAborted, access_.random.token());
  next.reason = reason;
  MR_ASSIGN_OR_RETURN(const auto outcome,
                      VersionLog(access_, reservation.ref).append(context, next));
  if (outcome.entry.event == VersionEvent::kAborted) return {};
  return {StatusCode::kConflict,
          fmt::format("{} was published at {} by {}, its reservation cannot be aborted any more",
                      reservation.ref.text(), format_iso8601(outcome.entry.since),
                      outcome.entry.who.describe())};
}

}  // namespace millrace
