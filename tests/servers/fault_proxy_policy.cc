#include "tests/servers/fault_proxy_policy.h"

#include <strings.h>

#include <array>
#include <memory>

namespace millrace::testing {
namespace {

constexpr std::array<std::string_view, kFaultCount> kNames = {
    "none",
    "internal-error",
    "bad-gateway",
    "service-unavailable",
    "gateway-timeout",
    "slow-down",
    "reset-before-forward",
    "close-without-answer",
    "stall",
    "ok-error",
    "ok-error-executed",
    "lost-answer",
    "reset-inside-head",
    "reset-inside-body",
    "reset-after-body",
    "truncate-body",
    "stall-inside-body",
    "short-length",
    "long-body",
    "flip-request-bit",
    "flip-response-bit",
    "drip",
    "wrong-content-range",
    "changed-etag",
};
static_assert(!kNames.back().empty(), "every fault has a name");

// SplitMix64: a good hash of consecutive numbers, the same on every platform.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

double unit_interval(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

bool accepts(const RequestPredicate& predicate, const ProxiedRequest& request) {
  return !predicate || predicate(request);
}

}  // namespace

std::string_view fault_name(Fault fault) { return kNames[static_cast<std::size_t>(fault)]; }

std::optional<Fault> fault_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Fault>(i);
  }
  return std::nullopt;
}

std::string_view ProxiedRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && strncasecmp(key.data(), name.data(), name.size()) == 0) {
      return value;
    }
  }
  return {};
}

FaultPolicy random_faults(std::uint64_t seed, double probability, std::vector<WeightedFault> faults,
                          RequestPredicate predicate) {
  double total = 0;
  for (const WeightedFault& entry : faults)
    total += entry.weight;
  return [=, faults = std::move(faults),
          predicate = std::move(predicate)](const ProxiedRequest& request) {
    if (!accepts(predicate, request)) return Fault::kNone;
    const std::uint64_t first = mix(mix(seed) ^ request.sequence);
    if (unit_interval(first) >= probability) return Fault::kNone;
    double pick = unit_interval(mix(first)) * total;
    for (const WeightedFault& entry : faults) {
      pick -= entry.weight;
      if (pick < 0) return entry.fault;
    }
    return faults.empty() ? Fault::kNone : faults.back().fault;
  };
}

// The counters below need no lock of their own: the proxy calls a policy one request at a time.
// They are shared because std::function copies its target.
FaultPolicy fail_next(std::uint64_t count, Fault fault, RequestPredicate predicate) {
  auto left = std::make_shared<std::uint64_t>(count);
  return [=, predicate = std::move(predicate)](const ProxiedRequest& request) {
    if (*left == 0 || !accepts(predicate, request)) return Fault::kNone;
    --*left;
    return fault;
  };
}

FaultPolicy fail_nth(std::uint64_t nth, Fault fault, RequestPredicate predicate) {
  auto seen = std::make_shared<std::uint64_t>(0);
  return [=, predicate = std::move(predicate)](const ProxiedRequest& request) {
    if (!accepts(predicate, request)) return Fault::kNone;
    return ++*seen == nth ? fault : Fault::kNone;
  };
}

std::vector<WeightedFault> all_faults(FaultSelection selection) {
  std::vector<WeightedFault> faults;
  for (std::size_t i = 1; i < kFaultCount; ++i) {
    const auto fault = static_cast<Fault>(i);
    const bool stalls = fault == Fault::kStall || fault == Fault::kStallInsideBody;
    const bool lies = fault == Fault::kShortLength || fault == Fault::kFlipRequestBit ||
                      fault == Fault::kFlipResponseBit;
    if (stalls && !selection.stalls) continue;
    if (lies && selection.honest_bytes) continue;
    faults.push_back({.fault = fault});
  }
  return faults;
}

}  // namespace millrace::testing
