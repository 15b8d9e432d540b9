#include "loader/loader_state.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/hex.h"

namespace millrace {

namespace {

// Quoted, because it may be empty.
std::string shown(std::string_view text) { return fmt::format("'{}'", text); }
std::string shown(std::uint64_t number) { return fmt::format("{}", number); }

template <class Value>
Status same(std::string_view field, const Value& saved, const Value& now) {
  if (saved == now) return {};
  return {StatusCode::kInvalidArgument,
          fmt::format("the state is of another job: its {} is {}, but now it is {}", field,
                      shown(saved), shown(now))};
}

}  // namespace

void LostSamples::add(const LostSample& lost) {
  ++count;
  if (named.size() < kNamedMax && std::ranges::find(named, lost) == named.end()) {
    named.push_back(lost);
  }
}

Status check_loader_state(const LoaderState& saved, const LoaderState& now) {
  MR_RETURN_IF_ERROR(same("order", order_mode_name(saved.mode), order_mode_name(now.mode)));
  MR_RETURN_IF_ERROR(same("seed", saved.seed, now.seed));
  MR_RETURN_IF_ERROR(same("window_rows", saved.window_rows, now.window_rows));
  MR_RETURN_IF_ERROR(same("block_bytes", saved.block_bytes, now.block_bytes));
  MR_RETURN_IF_ERROR(same("epoch_samples", saved.epoch_samples, now.epoch_samples));
  MR_RETURN_IF_ERROR(same("number of sources", saved.sources.size(), now.sources.size()));
  for (std::size_t n = 0; n < saved.sources.size(); ++n) {
    const StateSource& a = saved.sources[n];
    const StateSource& b = now.sources[n];
    const auto field = [&](std::string_view name) {
      return fmt::format("sources[{}].{}", n, name);
    };
    MR_RETURN_IF_ERROR(same(field("content"), to_hex(a.content_digest), to_hex(b.content_digest)));
    MR_RETURN_IF_ERROR(same(field("reader"), a.reader, b.reader));
    MR_RETURN_IF_ERROR(same(field("directory"), a.directory, b.directory));
    MR_RETURN_IF_ERROR(same(field("split"), a.split, b.split));
    MR_RETURN_IF_ERROR(same(field("samples"), a.samples, b.samples));
  }
  return {};
}

}  // namespace millrace
