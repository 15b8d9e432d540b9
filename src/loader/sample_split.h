#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "loader/block_layout.h"
#include "loader/order_key.h"

namespace millrace {

// A part of a version by rule: of every `of` consecutive samples, shuffled, those at the places
// [first, end). Written "0-90/100". Parts that do not overlap share no sample, and parts that cover
// all places cover all samples.
struct SplitRule {
  std::uint64_t first = 0;
  std::uint64_t end = 1;
  std::uint64_t of = 1;

  // kInvalidArgument says what to write instead.
  static Result<SplitRule> parse(std::string_view text);
  std::string text() const;
  bool operator==(const SplitRule&) const = default;
};

// The samples of a version that a rule takes. Neighbours stay neighbours, so blocks stay blocks;
// and in a version that is sorted by class, every class is split alike.
//
// 1. The choice depends on the content and the rule's own seed, not on that of the training.
// 2. Nothing is stored: sample n of the part is computed.
//
// Immutable, safe from any thread.
class SampleSplit {
 public:
  SampleSplit(const SplitRule& rule, const OrderSeed& seed, std::uint64_t samples);

  std::uint64_t size() const { return size_; }
  // Which sample of the version the part's sample `number` is.
  std::uint64_t sample(std::uint64_t number) const;
  // The stretches of the part, for those of the version.
  std::vector<SampleStretch> stretches(const std::vector<SampleStretch>& whole) const;

 private:
  SplitRule rule_;
  std::uint64_t key_;
  std::uint64_t samples_;
  std::uint64_t size_;
  // What stands behind the last whole group, and which places of it are taken.
  std::uint64_t tail_first_;
  std::uint64_t tail_places_first_;
  std::uint64_t tail_places_end_;
};

}  // namespace millrace
