#include "loader/sample_split.h"

#include <algorithm>
#include <cassert>
#include <charconv>

#include <fmt/format.h>

#include "loader/even_merge.h"
#include "loader/keyed_permutation.h"

namespace millrace {

namespace {

constexpr std::uint64_t kSplitGroupMax = 10'000;

// Takes a number and what must follow it from the front of `text`.
bool take_number(std::string_view& text, std::uint64_t& number, std::string_view then) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (!text.starts_with(then)) return false;
  text.remove_prefix(then.size());
  return true;
}

// The places of a group of `of` that fall into its first `places` when it has only those.
std::uint64_t tail_place(std::uint64_t place, std::uint64_t places, std::uint64_t of) {
  return (place * places + of - 1) / of;
}

}  // namespace

Result<SplitRule> SplitRule::parse(std::string_view text) {
  SplitRule rule;
  std::string_view rest = text;
  const bool good = take_number(rest, rule.first, "-") && take_number(rest, rule.end, "/") &&
                    take_number(rest, rule.of, "") && rest.empty() && rule.first < rule.end &&
                    rule.end <= rule.of && rule.of <= kSplitGroupMax;
  if (good) return rule;
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("'{}' is no part of a version: write '0-90/100' for nine tenths and "
                             "'90-100/100' for the rest; groups have at most {} samples",
                             text.substr(0, 80), kSplitGroupMax));
}

std::string SplitRule::text() const { return fmt::format("{}-{}/{}", first, end, of); }

SampleSplit::SampleSplit(const SplitRule& rule, const OrderSeed& seed, std::uint64_t samples)
    : rule_(rule), key_(order_key(seed, 0, "split")), samples_(samples) {
  assert(rule.first < rule.end && rule.end <= rule.of);
  const std::uint64_t tail = samples % rule.of;
  tail_first_ = samples - tail;
  tail_places_first_ = tail_place(rule.first, tail, rule.of);
  tail_places_end_ = tail_place(rule.end, tail, rule.of);
  size_ = samples / rule.of * (rule.end - rule.first) + tail_places_end_ - tail_places_first_;
}

std::uint64_t SampleSplit::sample(std::uint64_t number) const {
  assert(number < size_);
  const std::uint64_t taken = rule_.end - rule_.first;
  const std::uint64_t group = number / taken;
  const std::uint64_t first = group * rule_.of;
  const bool is_tail = first == tail_first_;
  const std::uint64_t places = is_tail ? samples_ - tail_first_ : rule_.of;
  const std::uint64_t place = (is_tail ? tail_places_first_ : rule_.first) + number % taken;
  return first + KeyedPermutation(subkey(key_, group), places).at(place);
}

std::vector<SampleStretch> SampleSplit::stretches(const std::vector<SampleStretch>& whole) const {
  std::vector<SampleStretch> parts;
  std::uint64_t passed = 0;
  std::uint64_t passed_part = 0;
  for (const SampleStretch& stretch : whole) {
    if (stretch.samples == 0) continue;
    passed += stretch.samples;
    // Where exactly a stretch ends inside a group does not matter, only that all add up.
    const std::uint64_t until = passed == samples_ ? size_ : scaled(passed, size_, samples_);
    const std::uint64_t samples = until - passed_part;
    parts.push_back({.samples = samples, .bytes = scaled(stretch.bytes, samples, stretch.samples)});
    passed_part = until;
  }
  return parts;
}

}  // namespace millrace
