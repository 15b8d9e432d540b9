#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "loader/epoch_order.h"
#include "loader/mix.h"
#include "loader/sample_split.h"

namespace millrace {

// A dataset of a job, as far as the order needs to know it.
struct JobSource {
  Sha256Digest content_digest{};
  // Of the samples that the job takes: of the part, where there is one.
  std::shared_ptr<const BlockLayout> layout;
  std::optional<SampleSplit> split = {};
};

// The same for all datasets of a job.
struct JobOrderOptions {
  OrderMode mode = OrderMode::kBlock;
  std::uint64_t seed = 0;
  std::uint64_t window_rows = kWindowRows;
  std::uint64_t epoch_samples = 0;  // As mix_counts() has it.
};

// From some point of a job on its epochs are mixed like this. A job has one from its beginning, and
// one more each time that its shares are changed.
struct MixPhase {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;  // In that epoch.
  // How many samples of each dataset the job took before, over all its epochs.
  std::vector<std::uint64_t> taken = {};
  std::vector<MixShare> shares = {};
  bool operator==(const MixPhase&) const = default;
};

// Which sample of which dataset stands where in one epoch of a job, from the phase's beginning on
// where that is inside. A function of contents, options, epoch and phase; one dataset that is taken
// once needs no more than its own EpochOrder.
//
// A dataset that gives fewer samples to an epoch than it has goes on in the next one where it
// stopped; one that gives more is begun again, in another order. So over time each of its samples
// is taken equally often.
//
// Memory is by datasets. Immutable, safe from any thread.
class JobOrder {
 public:
  struct Place {
    std::size_t source = 0;
    std::uint64_t sample = 0;  // Of the whole dataset.
    bool operator==(const Place&) const = default;
  };

  // `epoch` is not before the phase's. kInvalidArgument as mix_counts(), and for shares that were
  // changed inside an epoch whose size they decide.
  static Result<JobOrder> make(const JobOrderOptions& options, std::vector<JobSource> sources,
                               const MixPhase& phase, std::uint64_t epoch);

  std::uint64_t epoch() const { return epoch_; }
  // Positions are below samples(), and not before first().
  std::uint64_t first() const { return first_; }
  std::uint64_t samples() const { return first_ + mix_.size(); }
  Place at(std::uint64_t position) const;
  // Of the whole dataset, and in positions of the job.
  OrderSurroundings surroundings(std::uint64_t position) const;
  // For random numbers of the sample's own.
  std::uint64_t seed_at(std::uint64_t position) const;

  // The phase that other shares begin, as soon as they can from `position` on: up to 768 samples
  // later, so that no dataset has a gap; with repeat and choose at the end of the epoch, unless it
  // has only begun.
  MixPhase change(std::uint64_t position, std::vector<MixShare> shares) const;

 private:
  JobOrder(const JobOrderOptions& options, std::vector<JobSource> sources, std::uint64_t epoch,
           std::uint64_t first, std::vector<std::uint64_t> counts,
           std::vector<std::uint64_t> taken);
  EpochOrder pass_order(std::size_t source, std::uint64_t pass) const;
  // Calls `use` with the pass over its dataset that a pick is in, and its place there.
  template <class Use>
  auto in_pass(const MixedSequence::Pick& pick, const Use& use) const;

  JobOrderOptions options_;
  std::vector<JobSource> sources_;
  std::uint64_t epoch_;
  std::uint64_t first_;
  MixedSequence mix_;
  std::uint64_t sample_key_;
  bool by_weight_ = false;
  std::vector<std::uint64_t> taken_;  // Before first_.
  // The first passes over each dataset in this epoch; mostly there is only one.
  std::vector<std::vector<EpochOrder>> passes_;
};

// One epoch of a job whose shares may change inside it. As JobOrder.
class JobEpoch {
 public:
  // `phases` are in the order of their beginnings. kInvalidArgument as JobOrder, and when none of
  // them begins at or before the epoch's beginning.
  static Result<JobEpoch> make(const JobOrderOptions& options,
                               const std::vector<JobSource>& sources,
                               const std::vector<MixPhase>& phases, std::uint64_t epoch);

  std::uint64_t epoch() const { return orders_.front().epoch(); }
  std::uint64_t samples() const { return orders_.back().samples(); }
  JobOrder::Place at(std::uint64_t position) const { return order(position).at(position); }
  std::uint64_t seed_at(std::uint64_t position) const { return order(position).seed_at(position); }
  // The order that a position is in.
  const JobOrder& order(std::uint64_t position) const;

 private:
  explicit JobEpoch(std::vector<JobOrder> orders) : orders_(std::move(orders)) {}

  std::vector<JobOrder> orders_;  // Each is good up to the first() of the next.
};

}  // namespace millrace
