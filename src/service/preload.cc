#include "service/preload.h"

#include <array>

#include <fmt/format.h>

#include "base/units.h"

namespace millrace {
namespace {

// In the order of the states.
constexpr std::array<std::string_view, 5> kPreloadStateNames = {"queued", "running", "ready",
                                                                "failed", "cancelled"};

}  // namespace

std::string_view preload_state_name(PreloadState state) {
  return kPreloadStateNames[static_cast<std::size_t>(state)];
}

std::optional<PreloadState> parse_preload_state(std::string_view name) {
  const auto found = std::ranges::find(kPreloadStateNames, name);
  if (found == kPreloadStateNames.end()) return std::nullopt;
  return static_cast<PreloadState>(found - kPreloadStateNames.begin());
}

std::string PreloadFit::text() const {
  std::string text = fmt::format(
      "it needs {} ({} of them cached); the cache may hold {}, and others have leased {} of it "
      "besides",
      format_size(wanted_bytes), format_size(cached_bytes), format_size(limit_bytes),
      format_size(leased_bytes));
  if (!fits()) text += fmt::format(": {} too little", format_size(short_bytes));
  return text;
}

}  // namespace millrace
