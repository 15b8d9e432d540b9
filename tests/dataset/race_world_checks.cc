// What must hold in a RaceWorld, whatever was killed, paused or late.

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "dataset/manifest_store.h"
#include "tests/dataset/publish_world.h"
#include "tests/dataset/race_world.h"

namespace millrace {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

// Exit codes of the program, docs/cli.md.
constexpr int kExitNotFound = 3;
constexpr int kExitUnavailable = 5;
constexpr int kExitConflict = 6;

DatasetName raced_dataset() { return dataset_of("race/d"); }

std::string target_text(const std::optional<VersionName>& target) {
  return target ? target->text() : "";
}

}  // namespace

void RaceWorld::judge(const RaceProcess& process) {
  ++figures_.processes;
  if (process.plan().start_after.count() > 0) ++figures_.delays;
  if (process.was_paused()) ++figures_.pauses;
  if (!process.ended()) {
    ADD_FAILURE() << "a process of round " << process.plan().round << " does not end";
    return;
  }
  if (process.killed()) {
    ++figures_.kills;
    return;
  }
  const std::string text = process.text();
  SCOPED_TRACE(fmt::format("{} of round {}: exit {}: {}", fmt::join(process.plan().words, " "),
                           process.plan().round, process.status(), text));
  // The store was not to be had, as far as the process could see; it may have taken the write.
  if (faults_ && process.status() == kExitUnavailable) {
    ++figures_.failures;
    return;
  }
  switch (process.plan().role) {
    case RaceRole::kMaker:
      judge_maker(process, text);
      break;
    case RaceRole::kMover:
    case RaceRole::kFreeMover:
      judge_mover(process, text);
      break;
    case RaceRole::kRollback:
      // Nothing to go back to, or that version is gone.
      EXPECT_THAT(process.status(), AnyOf(0, kExitNotFound, kExitConflict));
      break;
    case RaceRole::kRemover:
      EXPECT_THAT(process.status(), AnyOf(0, kExitConflict));
      break;
    case RaceRole::kCollector:
      judge_collector(process, text);
      break;
  }
}

void RaceWorld::judge_collector(const RaceProcess& process, const std::string& text) {
  const auto totals = nlohmann::json::parse(text, nullptr, false);
  ASSERT_FALSE(totals.is_discarded());
  if (process.status() == 0) {
    figures_.deleted += totals["objects"].get<std::uint64_t>();
    figures_.deleted += totals["manifests"].get<std::uint64_t>();
    figures_.purged += totals["purged"].size();
    return;
  }
  // One that slept may find that another collection has purged what was there when it began.
  EXPECT_EQ(process.status(), kExitConflict);
  EXPECT_THAT(text, HasSubstr("another collection"));
  EXPECT_TRUE(names_another(process, text)) << "it was not told which";
  ++figures_.told;
}

// "alice@node7, process 4711", of somebody else who took part.
bool RaceWorld::names_another(const RaceProcess& process, const std::string& text) const {
  constexpr std::string_view kProcess = ", process ";
  for (std::size_t at = text.find(kProcess); at != text.npos; at = text.find(kProcess, at + 1)) {
    const std::uint64_t pid = std::strtoull(text.c_str() + at + kProcess.size(), nullptr, 10);
    if (pid != process.pid() && plans_.contains(pid)) return true;
  }
  return false;
}

void RaceWorld::judge_maker(const RaceProcess& process, const std::string& text) {
  const std::uint64_t round = process.plan().round;
  if (process.status() == 0) {
    told_success_[round].insert(process.pid());
    const auto entry =
        registry_.version(context_, {raced_dataset(), version_of(fmt::format("v{:04}", round))});
    ASSERT_TRUE(entry && entry->facts) << "it was told success, and there is no version";
    EXPECT_EQ(entry->facts->publisher.pid, process.pid()) << "somebody else has published it";
    return;
  }
  EXPECT_EQ(process.status(), kExitConflict);
  // The same maker again, while the first one sleeps.
  const bool own_journal = text.contains("another process on this machine publishes the same");
  EXPECT_TRUE(own_journal || names_another(process, text)) << "it was not told who has the name";
  ++figures_.told;
}

void RaceWorld::judge_mover(const RaceProcess& process, const std::string& text) {
  const std::string alias = process.plan().role == RaceRole::kMover ? "current" : "free";
  std::uint64_t moves = 0;
  const auto history = registry_.aliases().history(context_, raced_dataset(), alias_of(alias));
  if (history) {
    for (const AliasEntry& entry : *history) {
      if (entry.event == AliasEvent::kSet && entry.who.pid == process.pid()) {
        ++moves;
        EXPECT_EQ(target_text(entry.target), process.plan().target);
      }
    }
  }
  if (process.status() == 0) {
    // Without a condition it may have pointed there already.
    if (process.plan().role == RaceRole::kMover) {
      EXPECT_EQ(moves, 1U) << "it was told success";
    }
    figures_.moves += moves;
    return;
  }
  EXPECT_EQ(moves, 0U) << "it was told that it failed";
  // The version that it was to point to may have been removed.
  EXPECT_THAT(process.status(), AnyOf(kExitNotFound, kExitConflict));
  if (process.status() == kExitConflict) {
    EXPECT_THAT(text, HasSubstr("points to '"));
    ++figures_.told;
  }
}

void RaceWorld::check_round_version() {
  const VersionRef ref{raced_dataset(), version_of(fmt::format("v{:04}", round_))};
  const auto history = registry_.history(context_, ref);
  ASSERT_TRUE(history) << history.error().to_string();
  std::uint64_t commits = 0;
  for (std::size_t n = 0; n < history->size(); ++n) {
    const VersionEntry& entry = (*history)[n];
    EXPECT_EQ(entry.number, n + 1);
    figures_.aborted += entry.event == VersionEvent::kAborted;
    if (entry.event != VersionEvent::kPublished) continue;
    ++commits;
    const auto plan = plans_.find(entry.facts->publisher.pid);
    ASSERT_NE(plan, plans_.end()) << "published by a stranger";
    EXPECT_EQ(plan->second.round, round_);
    for (const std::uint64_t pid : told_success_[round_])
      EXPECT_EQ(pid, plan->first) << "another one was told success";
  }
  EXPECT_EQ(commits, 1U);
}

// The bytes are those of the one who published it, not a mix.
void RaceWorld::check_contents(const VersionEntry& entry, const VersionContents& contents) const {
  const std::uint64_t round = std::stoull(entry.ref.version.text().substr(1));
  const auto plan = plans_.find(entry.facts->publisher.pid);
  for (std::uint64_t maker = 0; maker < 3; ++maker) {
    if (contents.files != files_of(round, maker)) continue;
    // One that still runs is not known yet.
    if (plan != plans_.end()) {
      EXPECT_EQ(plan->second.maker, maker) << entry.ref.text();
    }
    return;
  }
  ADD_FAILURE() << entry.ref.text() << " is torn: nobody has made that";
}

// What a version holds; nothing if it was purged since it was listed. Somebody may do that at any
// time: sleepers that hold others up are woken, and then run on beside the checks.
std::optional<VersionContents> RaceWorld::whole_contents(const VersionEntry& entry) {
  auto contents = read_version_contents(context_, *store_, entry, directory_.path());
  if (contents) return *std::move(contents);
  const auto history = registry_.history(context_, entry.ref);
  if (!history) {
    ADD_FAILURE() << history.error().to_string();
    return std::nullopt;
  }
  if (history->back().state() == VersionState::kPurged) return std::nullopt;
  // What is torn stays torn: whatever reads well now was told wrong, or was not there yet.
  const auto again = read_version_contents(context_, *store_, history->back(), directory_.path());
  std::string records;
  for (const VersionEntry& past : *history) {
    records += fmt::format("\n  {} {} by {}", past.number, version_event_name(past.event),
                           past.who.describe());
  }
  ADD_FAILURE() << "a version that is not purged is torn: " << contents.error().to_string()
                << "\nread again: " << (again ? "it is whole" : again.error().to_string())
                << records;
  return std::nullopt;
}

void RaceWorld::check_versions() {
  needed_.clear();
  const auto listed = registry_.versions(context_, raced_dataset());
  ASSERT_TRUE(listed) << listed.error().to_string();
  for (const VersionListing& version : *listed) {
    ASSERT_TRUE(version.entry) << version.entry.error().to_string();
    const VersionState state = version.entry->state();
    if (state != VersionState::kPublished && state != VersionState::kRemoved) continue;
    const auto contents = whole_contents(*version.entry);
    if (!contents) continue;
    check_contents(*version.entry, *contents);
    needed_.insert(contents->keys.begin(), contents->keys.end());
  }
}

void RaceWorld::check_alias(const std::string& alias) {
  const auto history = registry_.aliases().history(context_, raced_dataset(), alias_of(alias));
  if (!history && history.error() == StatusCode::kNotFound) return;
  ASSERT_TRUE(history) << history.error().to_string();
  std::string before;
  for (std::size_t n = 0; n < history->size(); ++n) {
    const AliasEntry& entry = (*history)[n];
    SCOPED_TRACE(fmt::format("record {} of {}", entry.number, alias));
    EXPECT_EQ(entry.number, n + 1);
    EXPECT_EQ(target_text(entry.previous), before);
    const auto plan = plans_.find(entry.who.pid);
    ASSERT_NE(plan, plans_.end()) << "moved by a stranger";
    if (entry.event == AliasEvent::kSet && plan->second.role == RaceRole::kMover) {
      EXPECT_EQ(plan->second.condition, before);
    }
    before = target_text(entry.target);
  }
}

std::vector<std::string> RaceWorld::keys_below(const std::string& prefix) {
  std::vector<std::string> keys;
  ListRequest request{.prefix = prefix};
  do {
    const auto page = store_->list(context_, request);
    EXPECT_TRUE(page) << page.error().to_string();
    if (!page) break;
    for (const ObjectInfo& object : page->objects)
      keys.push_back(object.key.value());
    request.continuation = page->continuation;
  } while (!request.continuation.empty());
  return keys;
}

void RaceWorld::check_nothing_is_left() {
  for (int attempt = 0; attempt < 30; ++attempt) {
    const std::uint64_t failures = figures_.failures;
    run_alone({.role = RaceRole::kCollector,
               .words = {"version", "gc", "--json", "--abort-after", "0s"}});
    if (figures_.failures == failures) break;
  }
  check_versions();
  for (const std::string& key : keys_below("race/"))
    EXPECT_TRUE(needed_.contains(key)) << key << " is left, and no version needs it";
  // A manifest whose objects are alive may be written again by the next publish, and stays.
  const std::vector<std::string> manifests = keys_below(std::string(kManifestsPrefix));
  for (const std::string& key : needed_) {
    if (key.starts_with(kManifestsPrefix)) {
      EXPECT_TRUE(std::ranges::find(manifests, key) != manifests.end()) << key << " is gone";
    }
  }
}

}  // namespace millrace
