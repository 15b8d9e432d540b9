#include "abi/sampler_plan.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace millrace {
namespace {

// What workers have asked for and may not have read yet: a DataLoader asks for two batches for each
// of them. What counts as read is protected no longer, but stays for a while.
constexpr std::uint64_t kUnreadSteps = 16;
// The training waits meanwhile.
constexpr Duration kTellTimeout = std::chrono::seconds(2);

}  // namespace

SamplerPlan::SamplerPlan(std::shared_ptr<DatasetHandle> dataset, const JobCursor& from)
    : process_(::getpid()),
      dataset_(std::move(dataset)),
      unread_max_(kUnreadSteps * from.choice().batch),
      planner_(dataset_->sources(), from, 2 * unread_max_) {}

SamplerPlan::~SamplerPlan() {
  if (is_ours() || plan_ == nullptr) return;
  // The sockets are the parent's too, and what goes over them.
  (void)plan_.release();
  (void)new std::shared_ptr<BatchEngine>(std::move(engine_));
}

bool SamplerPlan::is_ours() const { return process_ == ::getpid(); }

void SamplerPlan::note_step(std::uint64_t samples) {
  // Where the process reads by itself there are no workers.
  if (!is_ours() || dataset_->kind() != "daemon") return;
  dealt_ += samples;
  const std::uint64_t read = dealt_ - std::min(dealt_, unread_max_);
  if (plan_ == nullptr) {
    auto engine = dataset_->engine();
    if (!engine) return;
    engine_ = *std::move(engine);
    plan_ = engine_->start_plan(dataset_->caller());
  }
  if (read > 0) plan_->advance(std::min(read, planner_.planned()));
  if (!planner_.is_due(read)) return;
  const std::vector<PlannedSample> planned = planner_.take(read);
  if (!planned.empty()) {
    plan_->extend(dataset_->context(system_clock().now() + kTellTimeout).with_plan(), planned);
  }
}

}  // namespace millrace
