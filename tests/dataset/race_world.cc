#include "tests/dataset/race_world.h"

#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/dataset/publish_world.h"

namespace millrace {

using std::chrono::milliseconds;

namespace {

constexpr std::string_view kRaceDataset = "race/d";
constexpr std::uint64_t kMakers = 3;
// The last one promotes what lies in the store.
constexpr std::uint64_t kPromoter = kMakers - 1;
constexpr std::size_t kVisibleMax = 4;
constexpr milliseconds kRaceProcessMax{120'000};

std::string race_version(std::uint64_t round) { return fmt::format("v{:04}", round); }
std::string race_ref_text(std::string_view version) {
  return fmt::format("{}@{}", kRaceDataset, version);
}

}  // namespace

void RaceFigures::add(const RaceFigures& other) {
  rounds += other.rounds;
  processes += other.processes;
  kills += other.kills;
  pauses += other.pauses;
  sleepers += other.sleepers;
  delays += other.delays;
  told += other.told;
  moves += other.moves;
  aborted += other.aborted;
  purged += other.purged;
  deleted += other.deleted;
  looks += other.looks;
  failures += other.failures;
}

RaceWorld::RaceWorld(RaceGround& ground, std::string name, std::uint64_t seed, bool faults)
    : ground_(ground),
      name_(std::move(name)),
      seed_(seed),
      faults_(faults),
      store_(ground.open(name_)),
      registry_({.store = *store_,
                 .clock = system_clock(),
                 .random = system_random(),
                 .writer = this_process_writer()}),
      random_(seed) {}

// ---- What is planned

// Some of it is in every version, so that later ones use objects of earlier ones.
RaceWorld::Files RaceWorld::files_of(std::uint64_t round, std::uint64_t maker) const {
  const std::uint64_t own = seed_ * 1000 + round * kMakers + maker;
  Files files{{"common/large.bin", publish_bytes(70'000, 1)},
              {"common/label.txt", "the same everywhere"},
              {"own/large.bin", publish_bytes(66'000, own)},
              {"own/label.txt", fmt::format("round {} maker {}", round, maker)}};
  // An object of its own, which a promotion copies in the store.
  if (round % 8 == 0) files.emplace("own/object.bin", publish_bytes(1'100'000, own));
  return files;
}

void RaceWorld::prepare_makers() {
  for (std::uint64_t maker = 0; maker < kMakers; ++maker) {
    for (const auto& [path, bytes] : files_of(round_, maker)) {
      if (maker == kPromoter) {
        const ObjectKey key(fmt::format("staging/{}/{}", round_, path));
        const auto put = store_->put(context_, key, Slice::from_string(bytes), {});
        ASSERT_TRUE(put) << put.error().to_string();
        continue;
      }
      const std::filesystem::path file =
          fmt::format("{}/tree-{}-{}/{}", directory_.path(), round_, maker, path);
      std::filesystem::create_directories(file.parent_path());
      std::ofstream(file, std::ios::binary) << bytes;
    }
  }
}

RacePlan RaceWorld::maker_plan(std::uint64_t round, std::uint64_t maker) const {
  const std::string ref = race_ref_text(race_version(round));
  if (maker == kPromoter) {
    return {.words = {"promote", fmt::format("store:staging/{}", round), ref},
            .round = round,
            .maker = maker};
  }
  return {.words = {"publish", fmt::format("{}/tree-{}-{}", directory_.path(), round, maker), ref},
          .round = round,
          .maker = maker};
}

std::vector<std::string> RaceWorld::visible_versions() {
  std::vector<std::string> visible;
  const auto listed = registry_.versions(context_, dataset_of(kRaceDataset));
  EXPECT_TRUE(listed) << listed.error().to_string();
  if (!listed) return visible;
  for (const VersionListing& version : *listed) {
    if (version.entry && version.entry->readable()) visible.push_back(version.ref.version.text());
  }
  return visible;
}

void RaceWorld::add_alias_plans(const std::vector<std::string>& visible,
                                std::vector<RacePlan>& plans) {
  const auto now = registry_.aliases().get(context_, dataset_of(kRaceDataset), alias_of("current"));
  const std::string pointed_to = now && now->target ? now->target->text() : "";
  std::vector<std::string> targets;
  for (const std::string& version : visible) {
    if (version != pointed_to) targets.push_back(version);
  }
  std::ranges::shuffle(targets, random_);
  if (targets.size() > 2) targets.resize(2);
  for (const std::string& target : targets) {
    plans.push_back({.role = RaceRole::kMover,
                     .words = {"alias", "set", race_ref_text("current"), target, "--if",
                               pointed_to.empty() ? "none" : pointed_to},
                     .target = target,
                     .condition = pointed_to});
  }
  if (random_() % 3 == 0 && !visible.empty()) {
    const std::string& target = visible[random_() % visible.size()];
    plans.push_back({.role = RaceRole::kFreeMover,
                     .words = {"alias", "set", race_ref_text("free"), target},
                     .target = target});
    plans.push_back(
        {.role = RaceRole::kRollback, .words = {"alias", "rollback", race_ref_text("free")}});
  }
}

std::vector<RacePlan> RaceWorld::plans() {
  std::vector<RacePlan> plans;
  for (std::uint64_t maker = 0; maker < kMakers; ++maker)
    plans.push_back(maker_plan(round_, maker));
  if (random_() % 2 == 0) plans.erase(plans.begin() + static_cast<long>(random_() % kMakers));
  if (round_ > 1) {
    const std::vector<std::string> visible = visible_versions();
    add_alias_plans(visible, plans);
    if (visible.size() > kVisibleMax || (visible.size() > 2 && random_() % 4 == 0)) {
      plans.push_back({.role = RaceRole::kRemover,
                       .words = {"version", "rm", race_ref_text(visible[random_() % 2]),
                                 "--retention", "0s", "--force"}});
    }
    if (random_() % 3 != 0) {
      plans.push_back({.role = RaceRole::kCollector,
                       .words = {"version", "gc", "--json", "--abort-after",
                                 random_() % 2 == 0 ? "0s" : "1h"}});
    }
  }
  for (RacePlan& plan : plans)
    disturb(plan);
  std::ranges::shuffle(plans, random_);
  return plans;
}

// A process works for some ten milliseconds on files and for a hundred on S3: most hits are inside.
void RaceWorld::disturb(RacePlan& plan) {
  plan.round = round_;
  const auto some = [&] { return milliseconds(random_() % (random_() % 2 == 0 ? 25 : 150)); };
  switch (random_() % 8) {
    case 0:
    case 1:
      plan.kill_after = some();
      break;
    case 2:
    case 3:
      plan.pause_after = some();
      break;
    case 4:
      plan.start_after = some();
      break;
    default:
      // Somewhat later the makers are under way, and can be aborted.
      if (plan.role == RaceRole::kCollector) plan.start_after = some();
      break;
  }
}

// ---- What happens

void RaceWorld::run_until_quiet(std::list<RaceProcess>& racing) {
  const Clock::time_point began = Clock::now();
  const Clock::time_point look_at = began + milliseconds(random_() % 100);
  bool looked = false;
  for (bool active = true; active;) {
    const auto since = std::chrono::duration_cast<milliseconds>(Clock::now() - began);
    active = false;
    for (RaceProcess& process : racing) {
      process.step(since);
      active |= !process.ended() && !process.paused();
    }
    if (since > ground_.pause_max()) {
      for (std::list<RaceProcess>* all : {&racing, &sleepers_}) {
        for (RaceProcess& process : *all) {
          if (process.paused()) process.resume();
        }
      }
    }
    ASSERT_LT(since, kRaceProcessMax) << "a process does not end";
    if (!looked && Clock::now() >= look_at) {
      looked = true;
      look();
    }
    std::this_thread::sleep_for(milliseconds(1));  // As long as a poll of them may take.
  }
}

// A few of those that stand still do so for some rounds more; all others go on now.
void RaceWorld::let_some_sleep(std::list<RaceProcess>& racing) {
  for (auto process = racing.begin(); process != racing.end();) {
    const auto next = std::next(process);
    if (process->paused()) {
      if (sleepers_.size() < 3 && random_() % 3 == 0) {
        ++figures_.sleepers;
        sleepers_.splice(sleepers_.end(), racing, process);
      } else {
        process->resume();
      }
    }
    process = next;
  }
  while (!sleepers_.empty() && random_() % 3 == 0) {
    if (sleepers_.front().paused()) sleepers_.front().resume();
    racing.splice(racing.end(), sleepers_, sleepers_.begin());
  }
}

void RaceWorld::race(std::vector<RacePlan> plans) {
  std::list<RaceProcess> racing;
  for (RacePlan& plan : plans)
    racing.emplace_back(std::move(plan), ground_, name_, directory_.path(), pids_);
  run_until_quiet(racing);
  let_some_sleep(racing);
  run_until_quiet(racing);
  for (const std::list<RaceProcess>* all : {&racing, &sleepers_}) {
    for (const RaceProcess& process : *all)
      plans_[process.pid()] = process.plan();
  }
  for (const RaceProcess& process : racing)
    judge(process);
}

void RaceWorld::run_alone(RacePlan plan) {
  std::list<RaceProcess> alone;
  plan.round = round_;
  alone.emplace_back(std::move(plan), ground_, name_, directory_.path(), pids_);
  run_until_quiet(alone);
  plans_[alone.front().pid()] = alone.front().plan();
  judge(alone.front());
}

void RaceWorld::close_round() {
  const VersionRef ref = ref_of(race_ref_text(race_version(round_)));
  for (int attempt = 0; attempt < 30; ++attempt) {
    const auto entry = registry_.version(context_, ref);
    if (entry && entry->facts) return;
    // Whoever reserved it was killed, sleeps, or met faults to the last.
    if (entry && entry->state() == VersionState::kReserved && attempt > 0) {
      run_alone(
          {.role = RaceRole::kRemover, .words = {"version", "rm", "--abort", "--yes", ref.text()}});
    }
    run_alone(maker_plan(round_, static_cast<std::uint64_t>(attempt) % kMakers));
  }
  ADD_FAILURE() << "nobody can make " << ref.text();
}

// A version that is visible now is whole now, and as long as it is visible.
void RaceWorld::look() {
  const auto listed = registry_.versions(context_, dataset_of(kRaceDataset));
  if (!listed) return;
  std::vector<VersionEntry> visible;
  for (const VersionListing& version : *listed) {
    if (version.entry && version.entry->readable()) visible.push_back(*version.entry);
  }
  if (visible.empty()) return;
  const VersionEntry& entry = visible[random_() % visible.size()];
  const auto contents = whole_contents(entry);
  ++figures_.looks;
  if (contents) check_contents(entry, *contents);
}

void RaceWorld::round() {
  ++round_;
  SCOPED_TRACE(fmt::format("{} round {}", name_, round_));
  prepare_makers();
  race(plans());
  close_round();
  check_round_version();
  check_versions();
  check_alias("current");
  check_alias("free");
  ++figures_.rounds;
}

void RaceWorld::finish() {
  SCOPED_TRACE(fmt::format("{} at the end", name_));
  std::list<RaceProcess> racing = std::move(sleepers_);
  sleepers_.clear();
  for (RaceProcess& process : racing) {
    if (process.paused()) process.resume();
  }
  run_until_quiet(racing);
  for (const RaceProcess& process : racing)
    judge(process);
  for (std::uint64_t round = 1; round <= round_; ++round) {
    EXPECT_LE(told_success_[round].size(), 1U) << race_version(round);
  }
  check_versions();
  check_nothing_is_left();
  std::vector<ObjectKey> keys;
  for (const std::string& key : keys_below(""))
    keys.emplace_back(key);
  for (std::size_t at = 0; at < keys.size(); at += 1000) {
    const Status removed = store_->remove(
        context_, std::span(keys).subspan(at, std::min<std::size_t>(1000, keys.size() - at)));
    EXPECT_TRUE(removed.ok()) << removed.to_string();
  }
}

}  // namespace millrace
