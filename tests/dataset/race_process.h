#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/dataset/race_ground.h"
#include "tests/servers/child_process.h"

namespace millrace {

enum class RaceRole : std::uint8_t {
  kMaker,      // Publishes or promotes the version of the round.
  kMover,      // Moves an alias if it points to what it pointed to before the round.
  kFreeMover,  // Moves another alias whatever it points to.
  kRollback,   // Moves that one back.
  kRemover,    // Removes an older version.
  kCollector,  // Collects garbage.
};

struct RacePlan {
  RaceRole role = RaceRole::kMaker;
  // Of the program.
  std::vector<std::string> words = {};
  std::uint64_t round = 0;
  // Makers: which of them, and so what the version would hold.
  std::uint64_t maker = 0;
  // Movers: to which version, and what must be there before.
  std::string target = {};
  std::string condition = {};

  // What happens to it, counted from the begin of the round.
  std::chrono::milliseconds start_after{0};
  std::optional<std::chrono::milliseconds> kill_after = {};
  std::optional<std::chrono::milliseconds> pause_after = {};
};

// The real program as one participant of a race. Needs one thread.
class RaceProcess {
 public:
  // Its number is none of `pids`, which it adds it to: the registry tells processes by it.
  RaceProcess(RacePlan plan, const RaceGround& ground, std::string world, std::string directory,
              std::set<pid_t>& pids);

  // Does what is due `since` the begin of the round.
  void step(std::chrono::milliseconds since);
  // Lets one that stands still go on.
  void resume();

  const RacePlan& plan() const { return plan_; }
  bool paused() const { return paused_; }
  // It did stand still, and had not ended before that.
  bool was_paused() const { return pause_hit_; }
  bool ended() const { return status_.has_value(); }
  // As a shell has it; once it has ended.
  int status() const { return *status_; }
  bool killed() const;
  std::uint64_t pid() const { return pid_; }
  // What it wrote, standard error included.
  std::string text() const;

 private:
  void start();

  const RacePlan plan_;
  const RaceGround& ground_;
  const std::string world_;
  const std::string directory_;
  std::set<pid_t>& pids_;
  std::string output_;
  std::unique_ptr<testing::ChildProcess> child_;
  std::uint64_t pid_ = 0;
  bool paused_ = false;
  bool pause_sent_ = false;
  bool pause_hit_ = false;
  std::optional<int> status_;
};

}  // namespace millrace
