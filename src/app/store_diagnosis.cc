#include "app/store_diagnosis.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "base/units.h"
#include "objectstore/capability_probe.h"

namespace millrace {
namespace {

using Level = Diagnosis::Level;

constexpr std::string_view kProbePrefix = ".millrace-doctor";

std::string advice_for(StatusCode code) {
  switch (code) {
    case StatusCode::kUnauthenticated:
      return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile with ?profile=";
    case StatusCode::kPermissionDenied:
      return "give this user or these credentials the right to list, read, write and delete there";
    case StatusCode::kNotFound:
      return "check the name in --store or MILLRACE_STORE, or create it first";
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kThrottled:
      return "check the endpoint in the URL, the network, the proxy variables and the firewall";
    case StatusCode::kInvalidArgument:
      return "correct the URL in --store or MILLRACE_STORE";
    default:
      return "see the message";
  }
}

// Compares the time that the store gives a new object with ours.
Diagnosis clock_diagnosis(const RequestContext& context, ObjectStore& store, Clock& clock) {
  const ObjectKey key(fmt::format("{}/clock", kProbePrefix));
  const WallTime before = clock.wall_now();
  auto written = store.put(context, key, Slice::copy_of("clock"), {});
  if (!written) return {Level::kWarn, "clock", written.error().message(), "see the message"};
  const auto info = store.head(context, key);
  const std::array keys = {key};
  const Status removed = store.remove(context, keys);
  if (!info) return {Level::kWarn, "clock", info.error().message(), "see the message"};
  if (!removed.ok()) return {Level::kWarn, "clock", removed.message(), "see the message"};
  const auto skew = std::chrono::duration_cast<std::chrono::seconds>(info->modified - before);
  const auto seconds = std::abs(skew.count());
  if (seconds <= 5) return {Level::kOk, "clock", "agrees with the store's to 5 s", ""};
  return {seconds < 300 ? Level::kWarn : Level::kFail, "clock",
          fmt::format("the store's clock is {} s {} ours", seconds,
                      skew.count() > 0 ? "ahead of" : "behind"),
          "let NTP or chrony set the clock: signed requests fail when it is 15 minutes off"};
}

Diagnosis capability_diagnosis(const CapabilityFinding& found) {
  const std::string check(capability_name(found.capability));
  if (found.finding == Finding::kHonoured) return {Level::kOk, check, found.sentence, ""};
  const bool needed = found.capability == Capability::kCreateIfAbsent;
  const bool dangerous = found.finding == Finding::kIgnored;
  return {needed ? Level::kFail : Level::kWarn, check, found.sentence,
          needed      ? "publishing needs create-if-absent: use a newer server, or another store"
          : dangerous ? "do not rely on it with this store; millrace does not"
                      : "nothing: millrace does without it"};
}

}  // namespace

Diagnosis credentials_diagnosis(const Result<std::string>& description) {
  if (description) return {Level::kOk, "credentials", *description, ""};
  return {Level::kFail, "credentials", description.error().message(),
          advice_for(description.error().code())};
}

Diagnosis unreachable_store(const Status& status, const std::string& name) {
  return {Level::kFail, "store", fmt::format("{}: {}", name, status.message()),
          advice_for(status.code())};
}

std::vector<Diagnosis> store_diagnosis(const RequestContext& context, ObjectStore& store,
                                       const std::string& name, Clock& clock) {
  const TimePoint started = clock.now();
  ListRequest request;
  request.entries_max = 1;
  const auto listed = store.list(context, request);
  if (!listed) return {unreachable_store(listed.error(), name)};
  const Duration took = clock.now() - started;
  std::vector<Diagnosis> found = {
      {Level::kOk, "store",
       fmt::format("{} answers in {}", store.describe(),
                   format_duration(std::chrono::ceil<std::chrono::milliseconds>(took))),
       ""}};
  const auto report = probe_capabilities(context, store, std::string(kProbePrefix));
  if (!report) {
    found.push_back({Level::kFail, "store_writes", report.error().message(),
                     advice_for(report.error().code())});
    return found;
  }
  for (const CapabilityFinding& finding : report->findings) {
    found.push_back(capability_diagnosis(finding));
  }
  found.push_back(clock_diagnosis(context, store, clock));
  return found;
}

}  // namespace millrace
