#include "loader/mix.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "loader/block_layout.h"
#include "loader/even_merge.h"
#include "loader/keyed_permutation.h"

namespace millrace {

namespace {

constexpr std::uint64_t kChunkRows = 16;
// Doubles count whole numbers exactly up to here, which is also far above any epoch.
constexpr double kCountMax = 9e15;

std::unexpected<Status> bad_share(std::size_t number, std::string_view why) {
  return failure(StatusCode::kInvalidArgument, fmt::format("dataset {}: {}", number + 1, why));
}

Status check_shares(std::span<const MixShare> shares) {
  for (std::size_t n = 0; n < shares.size(); ++n) {
    const double amount = shares[n].amount;
    if (!std::isfinite(amount) || amount < 0 || amount > kCountMax) {
      return bad_share(n, fmt::format("{} is no amount of samples", amount)).error();
    }
    if (shares[n].kind != shares[0].kind) {
      return bad_share(n, "weights, repeat and choose cannot be mixed: give all datasets the same")
          .error();
    }
  }
  return {};
}

// By largest remainders, so that the counts add up.
std::vector<std::uint64_t> by_weight(std::span<const MixShare> shares, std::uint64_t total) {
  double sum = 0;
  for (const MixShare& share : shares)
    sum += share.amount;
  std::vector<std::uint64_t> counts;
  std::vector<std::pair<double, std::size_t>> fractions;
  for (std::size_t n = 0; n < shares.size(); ++n) {
    const double exact = static_cast<double>(total) * (shares[n].amount / sum);
    const double whole = std::floor(exact);
    counts.push_back(static_cast<std::uint64_t>(whole));
    if (shares[n].amount > 0) fractions.emplace_back(whole - exact, n);
  }
  std::ranges::sort(fractions);
  std::uint64_t given = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  for (std::size_t n = 0; given < total; n = (n + 1) % fractions.size()) {
    ++counts[fractions[n].second];
    ++given;
  }
  // Rounding may have given one too many.
  for (std::size_t n = 0; given > total; n = (n + 1) % counts.size()) {
    if (counts[n] == 0) continue;
    --counts[n];
    --given;
  }
  return counts;
}

}  // namespace

Result<std::vector<std::uint64_t>> mix_counts(std::span<const MixShare> shares,
                                              std::span<const std::uint64_t> samples,
                                              std::uint64_t epoch_samples) {
  assert(shares.size() == samples.size() && !shares.empty());
  MR_RETURN_IF_ERROR(check_shares(shares));
  std::vector<std::uint64_t> counts;
  if (shares[0].kind == ShareKind::kWeight) {
    if (epoch_samples == 0) {
      epoch_samples = std::accumulate(samples.begin(), samples.end(), std::uint64_t{0});
    }
    const bool any = std::ranges::any_of(shares, [](const MixShare& s) { return s.amount > 0; });
    if (!any) return failure(StatusCode::kInvalidArgument, "all weights are 0");
    counts = by_weight(shares, epoch_samples);
  }
  for (std::size_t n = 0; n < shares.size(); ++n) {
    if (shares[n].kind == ShareKind::kWeight) break;
    const double base =
        shares[n].kind == ShareKind::kRepeat ? static_cast<double>(samples[n]) : 1.0;
    if (base * shares[n].amount > kCountMax) return bad_share(n, "too many samples in an epoch");
    counts.push_back(static_cast<std::uint64_t>(std::llround(base * shares[n].amount)));
  }
  std::uint64_t total = 0;
  for (std::size_t n = 0; n < counts.size(); ++n) {
    if (counts[n] > 0 && samples[n] == 0) return bad_share(n, "it has no samples");
    total += counts[n];
  }
  if (total == 0) return failure(StatusCode::kInvalidArgument, "an epoch without samples");
  return counts;
}

MixedSequence::MixedSequence(std::vector<std::uint64_t> counts, std::uint64_t key)
    : counts_(std::move(counts)), key_(key) {
  for (const std::uint64_t count : counts_) {
    size_ += count;
    rows_ += count / kOrderLanes;
  }
  assert(size_ > 0);
}

MixedSequence::Pick MixedSequence::at(std::uint64_t position) const {
  assert(position < size_);
  if (counts_.size() == 1) return {.sequence = 0, .index = position};
  if (position >= rows_ * kOrderLanes) return loose(position - rows_ * kOrderLanes);
  const std::uint64_t lane = position % kOrderLanes;
  const std::uint64_t chunk = position / kOrderLanes / kChunkRows;
  const KeyedPermutation rows(subkey(subkey(key_, chunk + 1), lane),
                              std::min(kChunkRows, rows_ - chunk * kChunkRows));
  EvenMerge merge(chunk * kChunkRows + rows.at(position / kOrderLanes % kChunkRows), rows_);
  std::size_t n = 0;
  while (!merge.takes(counts_[n] / kOrderLanes))
    ++n;
  return {.sequence = n, .index = merge.index() * kOrderLanes + lane};
}

MixedSequence::Pick MixedSequence::loose(std::uint64_t number) const {
  std::uint64_t place = KeyedPermutation(subkey(key_, 0), size_ - rows_ * kOrderLanes).at(number);
  std::size_t n = 0;
  while (place >= counts_[n] % kOrderLanes)
    place -= counts_[n++] % kOrderLanes;
  return {.sequence = n, .index = counts_[n] / kOrderLanes * kOrderLanes + place};
}

std::uint64_t MixedSequence::boundary(std::uint64_t position) const {
  assert(position <= size_);
  if (counts_.size() == 1) return position;
  constexpr std::uint64_t kChunk = kChunkRows * kOrderLanes;
  const std::uint64_t next = (position + kChunk - 1) / kChunk * kChunk;
  const std::uint64_t whole = rows_ * kOrderLanes;
  if (position <= whole) return std::min(next, whole);
  return size_;
}

std::vector<std::uint64_t> MixedSequence::taken_before(std::uint64_t boundary) const {
  assert(this->boundary(boundary) == boundary);
  if (counts_.size() == 1) return {boundary};
  if (boundary == size_) return counts_;
  // Each sequence in turn against those that follow, as EvenMerge has it.
  std::vector<std::uint64_t> taken;
  std::uint64_t place = boundary / kOrderLanes;
  std::uint64_t total = rows_;
  for (const std::uint64_t count : counts_) {
    const std::uint64_t length = count / kOrderLanes;
    const std::uint64_t before = total == 0 ? 0 : scaled(place, length, total);
    taken.push_back(before * kOrderLanes);
    place -= before;
    total -= length;
  }
  return taken;
}

}  // namespace millrace
