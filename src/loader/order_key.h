#pragma once

#include <cstdint>
#include <string_view>

#include "platform/digest.h"

namespace millrace {

// What every random choice of a loader comes from.
struct OrderSeed {
  Sha256Digest content_digest{};  // Of the version, so that two versions share no order.
  std::uint64_t seed = 0;         // The user's.
};

// The key of one epoch for one purpose ("order", "split", ...): purposes choose independently.
std::uint64_t order_key(const OrderSeed& seed, std::uint64_t epoch, std::string_view purpose);

// The seed of a sample's own random numbers, for augmentations. It follows from where the sample
// stands in the order, so it is the same for any number of ranks and workers. `key` is
// order_key(seed, epoch, "sample").
std::uint64_t sample_seed(std::uint64_t key, std::uint64_t position);

}  // namespace millrace
