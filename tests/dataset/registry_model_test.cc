// The registry against the plainest model of it: random operations, right and wrong ones, and what
// each must answer. A failure prints its seed.

#include <map>
#include <random>

#include <gtest/gtest.h>

#include "tests/dataset/registry_world.h"

namespace millrace {

namespace {

using std::chrono::hours;

struct ModelVersion {
  VersionState state = VersionState::kAborted;
  std::uint64_t records = 0;
  Reservation reservation;
  bool burned = false;
  std::string notes = {};
  WallTime removable{};
};

class RegistryModel {
 public:
  explicit RegistryModel(std::uint64_t seed) : random_(seed), world_(seed) {}

  void run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const VersionRef ref =
          ref_of(kDatasets[random_() % kDatasets.size()] + "@v" + std::to_string(random_() % 3));
      operate(ref);
      check(ref);
      world_.clock.advance(hours(random_() % 3));
    }
    check_lists();
  }

 private:
  const std::vector<std::string> kDatasets = {"a", "a/b", "a/b/c", "ab", "a/d"};

  void operate(const VersionRef& ref) {
    switch (random_() % 9) {
      case 0:
      case 1:
        return reserve(ref);
      case 2:
      case 3:
        return commit(ref);
      case 4:
        return abort(ref);
      case 5:
        return annotate(ref);
      case 6:
        return remove(ref);
      case 7:
        return restore(ref);
      default:
        return purge(ref);
    }
  }

  ModelVersion& at(const VersionRef& ref) {
    return versions_.try_emplace(ref, ModelVersion{.reservation = {.ref = ref}}).first->second;
  }

  bool exists(const std::string& dataset) const {
    for (const auto& [ref, version] : versions_) {
      if (ref.dataset.text() == dataset && version.state != VersionState::kAborted) return true;
    }
    return false;
  }

  bool name_is_free(const std::string& dataset) const {
    for (const std::string& other : kDatasets) {
      const bool overlap = other != dataset && ((other + "/").starts_with(dataset + "/") ||
                                                (dataset + "/").starts_with(other + "/"));
      if (overlap && exists(other)) return false;
    }
    return true;
  }

  void reserve(const VersionRef& ref) {
    ModelVersion& version = at(ref);
    const auto reservation = registry_.reserve(world_.context, ref, {});
    const bool allowed =
        version.state == VersionState::kAborted && name_is_free(ref.dataset.text());
    ASSERT_EQ(reservation.has_value(), allowed);
    if (!reservation) {
      ASSERT_EQ(reservation.error().code(), StatusCode::kConflict);
      return;
    }
    version.state = VersionState::kReserved;
    version.reservation = *reservation;
    ++version.records;
  }

  // With the last reservation there was, open or not.
  void commit(const VersionRef& ref) {
    ModelVersion& version = at(ref);
    if (version.reservation.number == 0) return;
    const auto entry = registry_.commit(world_.context, version.reservation, facts_of(ref.text()));
    if (version.state == VersionState::kReserved) {
      version.state = VersionState::kPublished;
      version.burned = true;
      version.notes = facts_of(ref.text()).annotation.notes;
      ++version.records;
    }
    ASSERT_EQ(entry.has_value(), version.burned);
  }

  void abort(const VersionRef& ref) {
    ModelVersion& version = at(ref);
    if (version.reservation.number == 0) return;
    const Status status = registry_.abort(world_.context, version.reservation, "test");
    if (version.state == VersionState::kReserved) {
      version.state = VersionState::kAborted;
      ++version.records;
    }
    ASSERT_EQ(status.ok(), !version.burned);
  }

  // What a change must answer that needs one state.
  void check_change(const Result<VersionEntry>& entry, const ModelVersion& version, bool allowed) {
    ASSERT_EQ(entry.has_value(), allowed);
    if (!entry) {
      ASSERT_EQ(entry.error().code(),
                version.burned ? StatusCode::kConflict : StatusCode::kNotFound);
    }
  }

  void annotate(const VersionRef& ref) {
    ModelVersion& version = at(ref);
    const std::string notes = std::to_string(random_());
    const auto entry = registry_.annotate(world_.context, ref, {.notes = notes});
    const bool allowed = version.state == VersionState::kPublished;
    check_change(entry, version, allowed);
    if (!allowed) return;
    version.notes = notes;
    ++version.records;
  }

  void remove(const VersionRef& ref) {
    ModelVersion& version = at(ref);
    const auto entry = registry_.remove(world_.context, ref, "test", hours(2));
    const bool allowed = version.state == VersionState::kPublished;
    check_change(entry, version, allowed);
    if (!allowed) return;
    version.state = VersionState::kRemoved;
    version.removable = world_.clock.wall_now() + hours(2);
    ++version.records;
  }

  void restore(const VersionRef& ref) {
    ModelVersion& version = at(ref);
    const auto entry = registry_.restore(world_.context, ref);
    const bool allowed = version.state == VersionState::kRemoved;
    check_change(entry, version, allowed);
    if (!allowed) return;
    version.state = VersionState::kPublished;
    ++version.records;
  }

  void purge(const VersionRef& ref) {
    ModelVersion& version = at(ref);
    const bool force = random_() % 8 == 0;
    const auto entry = registry_.purge(world_.context, ref, force);
    const bool allowed = version.state == VersionState::kRemoved &&
                         (force || world_.clock.wall_now() >= version.removable);
    check_change(entry, version, allowed);
    if (!allowed) return;
    version.state = VersionState::kPurged;
    ++version.records;
  }

  void check(const VersionRef& ref) {
    const ModelVersion& version = at(ref);
    const auto entry = registry_.version(world_.context, ref);
    ASSERT_EQ(entry.has_value(), version.records > 0);
    const auto resolved = registry_.resolve(world_.context, ref);
    ASSERT_EQ(resolved.has_value(), version.state == VersionState::kPublished);
    if (!entry) return;
    ASSERT_EQ(entry->state(), version.state);
    ASSERT_EQ(entry->number, version.records);
    ASSERT_EQ(entry->facts.has_value(), version.burned);
    if (version.burned) {
      ASSERT_EQ(entry->facts->annotation.notes, version.notes);
      ASSERT_EQ(entry->facts->content_digest, facts_of(ref.text()).content_digest);
    }
  }

  void check_lists() {
    std::map<VersionRef, VersionState> expected;
    std::size_t open = 0;
    for (const auto& [ref, version] : versions_) {
      if (version.records > 0) expected.emplace(ref, version.state);
      if (version.state == VersionState::kReserved) ++open;
    }
    std::map<VersionRef, VersionState> listed;
    const auto every = registry_.every_version(world_.context).value();
    for (const VersionListing& listing : every)
      listed.emplace(listing.ref, listing.entry->state());
    EXPECT_EQ(listed, expected);
    EXPECT_EQ(registry_.open_reservations(world_.context).value().size(), open);
  }

  std::mt19937_64 random_;
  RegistryWorld world_;
  const Registry registry_ = world_.registry();
  std::map<VersionRef, ModelVersion> versions_;
};

TEST(RegistryModel, RandomOperationsAnswerAsTheModelDoes) {
  for (std::uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RegistryModel(seed).run(150);
  }
}

}  // namespace

}  // namespace millrace
