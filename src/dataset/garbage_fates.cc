#include "dataset/garbage_fates.h"

#include <algorithm>

#include "dataset/log_record_fields.h"
#include "dataset/manifest_store.h"

namespace millrace {
namespace {

// The version that a key belongs to, if its component that begins at `nonce_at` is a nonce.
std::optional<VersionRef> version_before(std::string_view key, std::size_t nonce_at) {
  const std::string_view above = key.substr(0, nonce_at - 1);
  const std::size_t slash = above.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  auto dataset = DatasetName::parse(above.substr(0, slash));
  auto version = VersionName::parse(above.substr(slash + 1));
  if (!dataset || !version) return std::nullopt;
  return VersionRef{*std::move(dataset), *std::move(version)};
}

// The next component of a key, which is taken off with its '/'.
std::string_view take_component(std::string_view& key) {
  const std::size_t slash = std::min(key.find('/'), key.size());
  const std::string_view component = key.substr(0, slash);
  key.remove_prefix(std::min(slash + 1, key.size()));
  return component;
}

}  // namespace

std::optional<VersionRef> version_of_key(std::string_view key) {
  std::size_t begin = 0;
  for (std::size_t end = key.find('/'); end != std::string_view::npos;
       begin = end + 1, end = key.find('/', begin)) {
    if (begin == 0 || !is_record_nonce(key.substr(begin, end - begin))) continue;
    if (auto ref = version_before(key, begin)) return ref;
  }
  return std::nullopt;
}

ReservationFates::ReservationFates(const RegistryAccess& access,
                                   const std::vector<VersionEntry>& versions)
    : access_(access) {
  for (const VersionEntry& entry : versions)
    versions_.emplace(entry.ref, entry);
}

void ReservationFates::pretend_aborted(const VersionEntry& reservation) {
  pretended_.insert(reservation.open_work().nonce);
}

ReservationFate ReservationFates::fate_of_committed(const VersionEntry& entry) {
  if (entry.state() == VersionState::kPurged) return ReservationFate::kPurged;
  if (entry.facts && entry.facts->repacked) return ReservationFate::kRepacked;
  return entry.facts && entry.facts->resumed ? ReservationFate::kResumed : ReservationFate::kKept;
}

Result<ReservationFate> ReservationFates::of(const RequestContext& context, const VersionRef& ref,
                                             const std::string& nonce) {
  const auto version = versions_.find(ref);
  if (version == versions_.end()) return ReservationFate::kUnknown;
  if (pretended_.contains(nonce)) return ReservationFate::kAborted;
  const VersionEntry& entry = version->second;
  if (entry.facts && entry.facts->reservation == nonce) return fate_of_committed(entry);
  auto log = logs_.find(ref);
  if (log == logs_.end()) {
    MR_ASSIGN_OR_RETURN(Fates fates, read_log(context, entry));
    log = logs_.emplace(ref, std::move(fates)).first;
  }
  const auto fate = log->second.find(nonce);
  return fate == log->second.end() ? ReservationFate::kUnknown : fate->second;
}

Result<ReservationFates::Fates> ReservationFates::read_log(const RequestContext& context,
                                                           const VersionEntry& known) const {
  MR_ASSIGN_OR_RETURN(const auto history, VersionLog(access_, known.ref).history(context));
  Fates fates;
  std::string open;
  for (const VersionEntry& entry : history) {
    std::string now = entry.open_work().nonce;
    if (!open.empty() && now != open) {
      const bool committed =
          entry.event == VersionEvent::kPublished || entry.event == VersionEvent::kRelayout;
      if (!committed) fates[open] = ReservationFate::kAborted;
      if (committed && entry.number <= known.number) fates[open] = fate_of_committed(known);
    }
    if (!now.empty() && now != open) fates[now] = ReservationFate::kOpen;
    open = std::move(now);
  }
  return fates;
}

Result<std::optional<KeyOwner>> ReservationFates::owner_of_key(const RequestContext& context,
                                                               std::string_view key) {
  if (last_owner_ && key.starts_with(last_prefix_)) return last_owner_;
  std::size_t begin = 0;
  for (std::size_t end = key.find('/'); end != std::string_view::npos;
       begin = end + 1, end = key.find('/', begin)) {
    const std::string_view component = key.substr(begin, end - begin);
    if (begin == 0 || !is_record_nonce(component)) continue;
    const auto ref = version_before(key, begin);
    if (!ref) continue;
    MR_ASSIGN_OR_RETURN(const ReservationFate fate, of(context, *ref, std::string(component)));
    if (fate == ReservationFate::kUnknown) continue;
    last_prefix_ = key.substr(0, end + 1);
    last_owner_ = KeyOwner{.ref = *ref, .nonce = std::string(component), .fate = fate};
    return last_owner_;
  }
  return std::nullopt;
}

Result<ReservationFate> ReservationFates::of_key(const RequestContext& context,
                                                 std::string_view key) {
  MR_ASSIGN_OR_RETURN(const auto owner, owner_of_key(context, key));
  return owner ? owner->fate : ReservationFate::kUnknown;
}

Result<ReservationFate> ReservationFates::of_manifest(const RequestContext& context,
                                                      std::string_view key) {
  if (!key.starts_with(kManifestsPrefix)) return ReservationFate::kUnknown;
  key.remove_prefix(kManifestsPrefix.size());
  auto dataset = DatasetName::from_key_component(take_component(key));
  auto version = VersionName::parse(take_component(key));
  const std::string nonce(take_component(key));
  if (!dataset || !version || !is_record_nonce(nonce) || key.empty())
    return ReservationFate::kUnknown;
  return of(context, {*std::move(dataset), *std::move(version)}, nonce);
}

}  // namespace millrace
