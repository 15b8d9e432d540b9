#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "dataset/registry.h"
#include "tests/dataset/race_process.h"
#include "tests/dataset/version_contents.h"

namespace millrace {

// What really happened in races.
struct RaceFigures {
  std::uint64_t rounds = 0;
  std::uint64_t processes = 0;
  std::uint64_t kills = 0;     // Hit a process that was running.
  std::uint64_t pauses = 0;    // The same.
  std::uint64_t sleepers = 0;  // Of these, those that slept into a later round.
  std::uint64_t delays = 0;    // Began later than the others.
  std::uint64_t told = 0;      // Lost, and were told to whom.
  std::uint64_t moves = 0;     // Of aliases.
  std::uint64_t aborted = 0;   // Reservations that were ended by others.
  std::uint64_t purged = 0;    // Versions.
  std::uint64_t deleted = 0;   // Objects and manifests, by collections that told.
  std::uint64_t looks = 0;     // At versions, while others raced.
  std::uint64_t failures = 0;  // Processes that gave up because of the store.

  void add(const RaceFigures& other);
};

// One dataset in a store of its own, and rounds of processes that race on it. In each round several
// want to make the same version, several want to move the same alias from the same place, and
// others move another alias, remove versions and collect garbage, while some are killed, paused or
// late.
//
// It holds, and is checked after each round, and at random moments in between:
//  1. A version that is visible or restorable has all its objects, and the bytes of exactly one of
//     those who wanted to make it.
//  2. Its log has one commit; whoever was told success is the one who wrote it, and whoever was
//  told
//     that the name is taken was told by whom.
//  3. The history of an alias is a chain: each move begins where the one before ended, and a move
//     with a condition began where that said.
//  4. After the end a collection leaves what versions need, and nothing else.
//
// Needs one thread.
class RaceWorld {
 public:
  // `faults`: whether processes may fail because of the store.
  RaceWorld(RaceGround& ground, std::string name, std::uint64_t seed, bool faults);

  void round();
  // Ends whoever still sleeps, collects, checks the rest, and empties the store.
  void finish();
  const RaceFigures& figures() const { return figures_; }

 private:
  using Files = std::map<std::string, std::string>;
  using Clock = std::chrono::steady_clock;

  // ---- What is planned.
  void prepare_makers();
  Files files_of(std::uint64_t round, std::uint64_t maker) const;
  RacePlan maker_plan(std::uint64_t round, std::uint64_t maker) const;
  std::vector<RacePlan> plans();
  void add_alias_plans(const std::vector<std::string>& visible, std::vector<RacePlan>& plans);
  void disturb(RacePlan& plan);

  // ---- What happens.
  void race(std::vector<RacePlan> plans);
  void run_until_quiet(std::list<RaceProcess>& racing);
  void let_some_sleep(std::list<RaceProcess>& racing);
  // Undisturbed.
  void run_alone(RacePlan plan);
  // Until the name of the round is taken for good.
  void close_round();
  void look();

  // ---- What must hold.
  void judge(const RaceProcess& process);
  void judge_maker(const RaceProcess& process, const std::string& text);
  void judge_mover(const RaceProcess& process, const std::string& text);
  void judge_collector(const RaceProcess& process, const std::string& text);
  bool names_another(const RaceProcess& process, const std::string& text) const;
  void check_round_version();
  void check_versions();
  std::optional<VersionContents> whole_contents(const VersionEntry& entry);
  void check_contents(const VersionEntry& entry, const VersionContents& contents) const;
  void check_alias(const std::string& alias);
  void check_nothing_is_left();
  std::vector<std::string> visible_versions();
  std::vector<std::string> keys_below(const std::string& prefix);

  RaceGround& ground_;
  const std::string name_;
  const std::uint64_t seed_;
  const bool faults_;
  const RequestContext context_ = RequestContext::background();
  TortureDirectory directory_;
  const std::shared_ptr<ObjectStore> store_;
  const Registry registry_;
  std::mt19937_64 random_;

  std::uint64_t round_ = 0;
  std::list<RaceProcess> sleepers_;
  // Of all who ever took part, by process.
  std::set<pid_t> pids_;
  std::map<std::uint64_t, RacePlan> plans_;
  // Makers that were told success, by round.
  std::map<std::uint64_t, std::set<std::uint64_t>> told_success_;
  // By versions, when all of them were looked at last.
  std::set<std::string> needed_;
  RaceFigures figures_;
};

}  // namespace millrace
