#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "loader/sample_loss.h"

namespace millrace {

// Where a sample stood that was skipped or replaced.
struct LostPlace {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;
  std::uint64_t source = 0;
  std::uint64_t sample = 0;
  auto operator<=>(const LostPlace&) const = default;
};

// The lost places of one job, each once however often it was read. Of more than kPlacesMax the
// first ones are forgotten: who wants them all asks before that. Needs one thread at a time.
class LostPlaces {
 public:
  static constexpr std::size_t kPlacesMax = 4096;

  // Those that ended in a failure were not delivered, so they are not lost.
  void add(const std::vector<SampleLoss>& losses);
  // In the order of the epochs.
  std::vector<LostPlace> all() const { return {places_.begin(), places_.end()}; }

 private:
  std::set<LostPlace> places_;
};

}  // namespace millrace
