#include "base/task_group.h"

#include <memory>
#include <utility>

namespace millrace {

TaskGroup::TaskGroup(const RequestContext& context, std::size_t parallel)
    : cancellation_(context),
      places_("parallel tasks", Limiter::Unit::kCount, parallel),
      parallel_(parallel),
      pool_({"task", parallel, parallel}) {}

TaskGroup::~TaskGroup() { cancellation_.context().cancellation().request(); }

Status TaskGroup::add(GroupTask task) {
  MR_RETURN_IF_ERROR(first_failure());
  auto place = places_.reserve(cancellation_.context(), 1);
  // A failure of a task cancels the wait for a place, and says more than "cancelled".
  MR_RETURN_IF_ERROR(first_failure());
  if (!place) return std::move(place).error();
  return pool_.submit([this, task = std::move(task), held = std::move(*place)]() mutable {
    Status status = task(cancellation_.context());
    if (!status.ok()) fail(std::move(status));
    held = {};
  });
}

Status TaskGroup::wait() {
  // All places free means that no task is running. Not cancellable: the tasks are, and a task must
  // not outlive what it works on.
  auto all = places_.reserve(RequestContext::background(), parallel_);
  MR_RETURN_IF_ERROR(first_failure());
  return all ? Status() : std::move(all).error();
}

Status TaskGroup::first_failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

void TaskGroup::fail(Status status) {
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = std::move(status);
  }
  cancellation_.context().cancellation().request();
}

}  // namespace millrace
