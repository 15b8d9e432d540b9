#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"

namespace millrace {

// How much of an epoch comes from one dataset.
enum class ShareKind : std::uint8_t {
  kWeight,  // In proportion to the weights of all.
  kRepeat,  // So many times all its samples; 0.5 is a half.
  kChoose,  // So many samples.
};

struct MixShare {
  ShareKind kind = ShareKind::kRepeat;
  double amount = 1;
  bool operator==(const MixShare&) const = default;
};

// How many samples of each dataset an epoch has. `samples` are those of the datasets.
// `epoch_samples` is the size of an epoch by weights; 0: as many as all datasets have. Where
// weights do not divide it the largest fractions are rounded up. kInvalidArgument, naming the
// dataset by its number, for amounts that are no sensible number, for kinds that differ, and for an
// empty epoch.
Result<std::vector<std::uint64_t>> mix_counts(std::span<const MixShare> shares,
                                              std::span<const std::uint64_t> samples,
                                              std::uint64_t epoch_samples);

// Several sequences in one, so that each is spread over it in proportion: over every 16 rows of 48
// positions exactly, within them by chance.
//
// 1. at() takes each element of each sequence once.
// 2. At every boundary() the elements taken so far are the first of each sequence: there the
//    proportions can be changed without a gap or a repetition.
// 3. Position p takes an element whose index has the same remainder by 48, but for those that fill
//    no row: what windowed_order.h promises of lanes also holds here.
//
// Memory is by sequences. Immutable, safe from any thread.
class MixedSequence {
 public:
  static constexpr unsigned kAlgorithm = 1;

  struct Pick {
    std::size_t sequence = 0;
    std::uint64_t index = 0;
    bool operator==(const Pick&) const = default;
  };

  // At least one sequence has elements.
  MixedSequence(std::vector<std::uint64_t> counts, std::uint64_t key);

  std::uint64_t size() const { return size_; }
  std::uint64_t count(std::size_t sequence) const { return counts_[sequence]; }
  Pick at(std::uint64_t position) const;
  // The first boundary at or behind a position, which is at most size().
  std::uint64_t boundary(std::uint64_t position) const;
  // How many of each sequence were taken before a boundary.
  std::vector<std::uint64_t> taken_before(std::uint64_t boundary) const;

 private:
  Pick loose(std::uint64_t number) const;

  std::vector<std::uint64_t> counts_;
  std::uint64_t key_;
  std::uint64_t size_ = 0;
  std::uint64_t rows_ = 0;
};

}  // namespace millrace
