#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::testing {

// What the proxy does to one request. "Executed" means that the server has received the whole
// request and its complete answer has reached the proxy.
enum class Fault : std::uint8_t {
  kNone,                // Pass the request and the answer unchanged.
  kInternalError,       // 500 InternalError, not executed.
  kBadGateway,          // 502 BadGateway, not executed.
  kServiceUnavailable,  // 503 ServiceUnavailable, not executed.
  kGatewayTimeout,      // 504 GatewayTimeout, not executed.
  kSlowDown,            // 503 SlowDown, Retry-After when the settings ask for it, not executed.
  kResetBeforeForward,  // RST as soon as the request head is here, not executed.
  kCloseWithoutAnswer,  // FIN instead of an answer, not executed.
  kStall,               // Never answer; hold the connection until the client leaves. Not executed.
  kOkError,             // 200 with an <Error> body, not executed; no effect on GET and HEAD.
  kOkErrorExecuted,     // The same after the request was executed.
  kLostAnswer,          // RST before the first byte of the answer, executed.
  kResetInsideHead,     // RST after half of the response head.
  kResetInsideBody,     // RST after half of the response body.
  kResetAfterBody,      // The complete answer, then RST where keep-alive was promised.
  kTruncateBody,        // FIN after half of the response body.
  kStallInsideBody,     // Half of the response body, then silence until the client leaves.
  kShortLength,         // Half of the response body, with framing that calls it complete.
  kLongBody,            // Surplus bytes after the end of the response body; keep-alive goes on.
  kFlipRequestBit,      // One bit of the request body changes on its way up.
  kFlipResponseBit,     // One bit of the response body changes on its way down.
  kDrip,                // The answer comes at ProxySettings::drip_bytes_per_second.
  kWrongContentRange,   // Content-Range names a range one byte further on.
  kChangedEtag,         // The ETag header names another version.
};
inline constexpr std::size_t kFaultCount = static_cast<std::size_t>(Fault::kChangedEtag) + 1;

// The name in lower case with dashes, for example "reset-inside-body".
std::string_view fault_name(Fault fault);
std::optional<Fault> fault_from_name(std::string_view name);

// A request as a policy sees it: its head is complete, its body has not been read.
struct ProxiedRequest {
  std::string method;
  std::string target;  // As on the request line: path and query, percent-encoded.
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<std::uint64_t> content_length;
  bool has_range = false;
  std::uint64_t sequence = 0;  // 0 for the first request of the proxy's life, in order of arrival.

  // The first value under this name (any case), or empty. The view lives as long as the request.
  std::string_view header(std::string_view name) const;
};

// Called once per request, one call at a time, in the order of `sequence`.
using FaultPolicy = std::function<Fault(const ProxiedRequest&)>;
// An empty predicate accepts every request.
using RequestPredicate = std::function<bool(const ProxiedRequest&)>;

struct WeightedFault {
  Fault fault = Fault::kNone;
  double weight = 1;
};

// Each accepted request suffers a fault with the given probability (0..1), drawn from `faults` by
// weight. The draw depends on the seed and the sequence number only.
FaultPolicy random_faults(std::uint64_t seed, double probability, std::vector<WeightedFault> faults,
                          RequestPredicate predicate = {});

// The next `count` accepted requests suffer `fault`; all later ones pass.
FaultPolicy fail_next(std::uint64_t count, Fault fault, RequestPredicate predicate = {});

// Only the `nth` accepted request (from 1) suffers `fault`: for loops that fail the first, second,
// third ... request until an operation succeeds untouched.
FaultPolicy fail_nth(std::uint64_t nth, Fault fault, RequestPredicate predicate = {});

// Every fault except kNone with weight 1. Stalls are left out unless asked for: each costs the
// client a whole timeout. With `honest_bytes` set, the faults that deliver wrong content as if it
// were right (bit flips, short length) are left out too.
struct FaultSelection {
  bool stalls = false;
  bool honest_bytes = false;
};
std::vector<WeightedFault> all_faults(FaultSelection selection = {});

}  // namespace millrace::testing
