#include "loader/delivery_digest.h"

#include <charconv>

#include <fmt/format.h>

#include "loader/keyed_permutation.h"

namespace millrace {

namespace {

// Where the two halves of a hash start, so that they differ.
constexpr std::uint64_t kHighStart = 1;
constexpr std::uint64_t kLowStart = 2;
constexpr std::size_t kHalfDigits = 16;

template <class Number>
bool parse_all(std::string_view text, Number& number, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void DeliveryDigest::add(std::uint64_t epoch, std::uint64_t position, std::uint64_t source,
                         std::uint64_t sample) {
  const auto half = [&](std::uint64_t start) {
    return subkey(subkey(subkey(subkey(start, epoch), position), source), sample);
  };
  add(half(kHighStart), half(kLowStart));
  ++samples_;
}

void DeliveryDigest::add(const DeliveryDigest& other) {
  add(other.high_, other.low_);
  samples_ += other.samples_;
}

void DeliveryDigest::add(std::uint64_t high, std::uint64_t low) {
  low_ += low;
  high_ += high + (low_ < low ? 1 : 0);
}

std::string DeliveryDigest::text() const {
  return fmt::format("{:016x}{:016x}:{}", high_, low_, samples_);
}

Result<DeliveryDigest> DeliveryDigest::parse(std::string_view text) {
  DeliveryDigest digest;
  const bool good = text.size() > 2 * kHalfDigits + 1 && text[2 * kHalfDigits] == ':' &&
                    parse_all(text.substr(0, kHalfDigits), digest.high_, 16) &&
                    parse_all(text.substr(kHalfDigits, kHalfDigits), digest.low_, 16) &&
                    parse_all(text.substr(2 * kHalfDigits + 1), digest.samples_, 10);
  if (good) return digest;
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("'{}' is no digest of delivered samples", text.substr(0, 80)));
}

}  // namespace millrace
