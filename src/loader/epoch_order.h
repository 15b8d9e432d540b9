#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include "base/status.h"
#include "loader/block_layout.h"
#include "loader/keyed_permutation.h"
#include "loader/order_key.h"
#include "loader/windowed_order.h"

namespace millrace {

// How samples are shuffled.
enum class OrderMode : std::uint8_t {
  kNone,   // As the version has them.
  kBlock,  // Blocks, then samples inside windows: WindowedOrder.
  kFull,   // All samples at once. On data larger than the cache every sample is a fetch.
};

// "none", "block", "full"; and back: kInvalidArgument says what there is.
std::string_view order_mode_name(OrderMode mode);
Result<OrderMode> parse_order_mode(std::string_view text);

struct OrderPlan {
  OrderMode mode = OrderMode::kBlock;
  OrderSeed seed = {};
  std::uint64_t window_rows = kWindowRows;
};

// Which sample stands where in one pass over a version: a function of (content, seed, epoch, plan)
// and of nothing else. Computed and not stored. Immutable, safe from any thread.
class EpochOrder {
 public:
  // `layout` has at least one sample.
  EpochOrder(const OrderPlan& plan, std::shared_ptr<const BlockLayout> layout, std::uint64_t epoch);

  std::uint64_t size() const { return size_; }
  // `position` is below size().
  std::uint64_t at(std::uint64_t position) const;
  // Other orders than blocks' have none but the sample itself.
  OrderSurroundings surroundings(std::uint64_t position) const;

 private:
  using Sequence = std::variant<std::monostate, KeyedPermutation, WindowedOrder>;
  static Sequence sequence(const OrderPlan& plan, std::shared_ptr<const BlockLayout> layout,
                           std::uint64_t epoch);

  std::uint64_t size_;
  Sequence sequence_;
};

}  // namespace millrace
