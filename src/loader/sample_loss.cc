#include "loader/sample_loss.h"

#include <array>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::array<std::pair<FaultAction, std::string_view>, 3> kFaultActions = {{
    {FaultAction::kRaise, "raise"},
    {FaultAction::kSkip, "skip"},
    {FaultAction::kSubstitute, "substitute"},
}};

}  // namespace

std::string_view fault_action_name(FaultAction action) {
  for (const auto& [known, name] : kFaultActions) {
    if (known == action) return name;
  }
  return "raise";
}

Result<FaultAction> parse_fault_action(std::string_view text) {
  for (const auto& [action, name] : kFaultActions) {
    if (name == text) return action;
  }
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("'{}' is not what can be done about a sample that cannot be had: "
                             "raise, skip or substitute",
                             text));
}

LoaderReport& LoaderReport::operator+=(const LoaderReport& other) {
  losses.insert(losses.end(), other.losses.begin(), other.losses.end());
  waiting += other.waiting;
  consumer += other.consumer;
  return *this;
}

}  // namespace millrace
