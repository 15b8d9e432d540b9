#include "tests/dataset/race_process.h"

#include <signal.h>

#include <cstdlib>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "platform/file.h"

namespace millrace {

using std::chrono::milliseconds;

RaceProcess::RaceProcess(RacePlan plan, const RaceGround& ground, std::string world,
                         std::string directory, std::set<pid_t>& pids)
    : plan_(std::move(plan)),
      ground_(ground),
      world_(std::move(world)),
      directory_(std::move(directory)),
      pids_(pids),
      output_(fmt::format("{}/output-{}", directory_, system_random().token())) {}

void RaceProcess::start() {
  const char* const program = std::getenv("MILLRACE_BIN");
  ASSERT_NE(program, nullptr) << "MILLRACE_BIN is not set: run it through ctest";
  std::vector<std::string> command = {program};
  command.insert(command.end(), plan_.words.begin(), plan_.words.end());
  testing::ChildOptions options{
      .output_file = output_, .environment = ground_.environment(), .pids_refused = &pids_};
  // Makers keep what they did in a directory of their own, since each stands for a machine.
  options.environment.emplace_back(
      "MILLRACE_CACHE", plan_.role == RaceRole::kMaker
                            ? fmt::format("{}/state-{}-{}", directory_, plan_.round, plan_.maker)
                            : directory_ + "/state");
  options.environment.emplace_back("MILLRACE_STORE", ground_.url(world_));
  options.environment.emplace_back("HOME", directory_);
  child_ = std::make_unique<testing::ChildProcess>(command, options);
  pids_.insert(child_->pid());
  pid_ = static_cast<std::uint64_t>(child_->pid());
}

void RaceProcess::step(milliseconds since) {
  if (status_ || since < plan_.start_after) return;
  if (!child_) start();
  if (!child_) return;
  if (!paused_) status_ = child_->wait(milliseconds(0));
  if (status_) return;
  if (plan_.kill_after && since >= plan_.start_after + *plan_.kill_after) {
    child_->signal(SIGKILL);
  } else if (plan_.pause_after && !pause_sent_ && since >= plan_.start_after + *plan_.pause_after) {
    child_->signal(SIGSTOP);
    paused_ = pause_sent_ = true;
  }
}

void RaceProcess::resume() {
  pause_hit_ = child_->running();
  child_->signal(SIGCONT);
  paused_ = false;
}

bool RaceProcess::killed() const { return status_ == 128 + SIGKILL; }

std::string RaceProcess::text() const {
  const auto text = read_file(output_);
  return text ? *text : text.error().to_string();
}

}  // namespace millrace
