#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "loader/lost_places.h"

namespace millrace {

// What the readers of each job have lost, for the process that deals to them and cannot see it. In
// memory alone: that process asks again and again, and keeps it in its states. Safe from any
// thread.
class LossesOfJobs {
 public:
  // Beyond it the job that lost nothing for the longest time is forgotten.
  static constexpr std::size_t kJobsMax = 256;

  // Of a job without a name nothing is kept.
  void add(const std::string& job, const std::vector<SampleLoss>& losses) MR_EXCLUDES(mutex_);
  std::vector<LostPlace> of(const std::string& job) const MR_EXCLUDES(mutex_);

 private:
  struct Lost {
    std::uint64_t last = 0;  // Of the additions.
    LostPlaces places = {};
  };

  mutable Mutex mutex_;
  std::uint64_t additions_ MR_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Lost> jobs_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
