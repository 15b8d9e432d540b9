#include "frontends/loader/losses_of_jobs.h"

#include <algorithm>

namespace millrace {

void LossesOfJobs::add(const std::string& job, const std::vector<SampleLoss>& losses) {
  if (job.empty() || losses.empty()) return;
  MutexLock lock(mutex_);
  Lost& lost = jobs_[job];
  lost.last = ++additions_;
  lost.places.add(losses);
  if (jobs_.size() <= kJobsMax) return;
  jobs_.erase(
      std::ranges::min_element(jobs_, {}, [](const auto& each) { return each.second.last; }));
}

std::vector<LostPlace> LossesOfJobs::of(const std::string& job) const {
  MutexLock lock(mutex_);
  const auto found = jobs_.find(job);
  return found == jobs_.end() ? std::vector<LostPlace>() : found->second.places.all();
}

}  // namespace millrace
