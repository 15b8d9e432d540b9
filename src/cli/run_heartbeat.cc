#include "cli/run_heartbeat.h"

#include "base/request_context.h"

namespace millrace::cli {

RunHeartbeat::RunHeartbeat(Clock& clock, const RunLog& runs, RunRecording& recording,
                           Duration timeout)
    : clock_(clock), runs_(runs), recording_(recording), timeout_(timeout) {
  thread_ = std::thread([this] { beat(); });
}

RunHeartbeat::~RunHeartbeat() { (void)stop(); }

Status RunHeartbeat::stop() {
  cancellation_->request();
  if (thread_.joinable()) thread_.join();
  return last_;
}

void RunHeartbeat::beat() {
  const RequestContext context =
      RequestContext(TimePoint::max(), "cli").with_cancellation(cancellation_);
  const Duration period = recording_.description.heartbeat_period;
  while (clock_.sleep_until(clock_.now() + period, cancellation_.get())) {
    const Status status =
        runs_.heartbeat(context.with_deadline(clock_.now() + timeout_), recording_);
    // A beat that the end of the run cuts off is no failure.
    if (!cancellation_->requested()) last_ = status;
  }
}

}  // namespace millrace::cli
