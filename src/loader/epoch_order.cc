#include "loader/epoch_order.h"

#include <array>
#include <cassert>
#include <utility>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr std::array<std::pair<OrderMode, std::string_view>, 3> kOrderModes = {{
    {OrderMode::kNone, "none"},
    {OrderMode::kBlock, "block"},
    {OrderMode::kFull, "full"},
}};

}  // namespace

std::string_view order_mode_name(OrderMode mode) {
  for (const auto& [known, name] : kOrderModes) {
    if (known == mode) return name;
  }
  return "unknown";
}

Result<OrderMode> parse_order_mode(std::string_view text) {
  for (const auto& [mode, name] : kOrderModes) {
    if (name == text) return mode;
  }
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("'{}' is no order; there are none, block and full", text));
}

EpochOrder::EpochOrder(const OrderPlan& plan, std::shared_ptr<const BlockLayout> layout,
                       std::uint64_t epoch)
    : size_(layout->samples()), sequence_(sequence(plan, std::move(layout), epoch)) {}

EpochOrder::Sequence EpochOrder::sequence(const OrderPlan& plan,
                                          std::shared_ptr<const BlockLayout> layout,
                                          std::uint64_t epoch) {
  const std::uint64_t samples = layout->samples();
  assert(samples > 0);
  switch (plan.mode) {
    case OrderMode::kNone:
      return std::monostate();
    case OrderMode::kFull:
      return KeyedPermutation(order_key(plan.seed, epoch, "order full"), samples);
    case OrderMode::kBlock:
      break;
  }
  return WindowedOrder(std::move(layout), order_key(plan.seed, epoch, "order block"),
                       plan.window_rows);
}

std::uint64_t EpochOrder::at(std::uint64_t position) const {
  assert(position < size_);
  if (const auto* all = std::get_if<KeyedPermutation>(&sequence_)) return all->at(position);
  if (const auto* windows = std::get_if<WindowedOrder>(&sequence_)) return windows->at(position);
  return position;
}

OrderSurroundings EpochOrder::surroundings(std::uint64_t position) const {
  if (const auto* windows = std::get_if<WindowedOrder>(&sequence_)) {
    return windows->surroundings(position);
  }
  return {.first = at(position), .last = at(position)};
}

}  // namespace millrace
