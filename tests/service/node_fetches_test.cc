// What nodes with caches of their own fetch of a version between them.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "loader/plan_bounds.h"
#include "loader/process_engine.h"
#include "loader/sample_readers.h"
#include "service/version_sample_files.h"
#include "tests/service/service_world.h"

namespace millrace {
namespace {

constexpr int kNodeFiles = 600;
constexpr std::size_t kNodeFileBytes = 20'000;
constexpr std::uint64_t kNodes = 4;

// One of them. Its store is its own too, with the same content.
class Node {
 public:
  Node() {
    for (int n = 0; n < kNodeFiles; ++n)
      world_.tree.write(fmt::format("{:04}.bin", n), publish_bytes(kNodeFileBytes, n));
    PublishOptions options = world_.options();
    options.packs.target_bytes = 8 * kMiB;  // Those up to 1 MiB come whole.
    EXPECT_TRUE(world_.publish("a@v1", options));
    const auto entry = world_.registry.version(world_.context, VersionRef::parse("a@v1").value());
    source_.files = std::make_shared<VersionSampleFiles>(
        world_.versions().of(world_.context, entry.value()).value());
    source_.source =
        open_samples(world_.context, {.files = *source_.files, .store = *world_.recording}, "files",
                     "")
            .value();
    source_.facts = {.samples = source_.source->samples(),
                     .stretches = source_.source->stretches()};
    engine_ = std::make_unique<ProcessEngine>(std::vector{source_}, &world_.cache().plans());
    world_.recording->clear();
  }

  std::shared_ptr<const LoaderJob> job() const {
    JobChoice choice;
    choice.sources.push_back({.name = "a@v1"});
    return LoaderJob::make(std::move(choice), engine_->sources()).value();
  }

  // Reads the rest of the cursor's epoch by a plan.
  void read(JobCursor cursor) {
    const PlanBounds bounds(cursor);
    const auto plan = engine_->start_plan(world_.context.caller());
    std::vector<std::vector<PlacedSample>> batches;
    std::vector<PlannedSample> planned;
    while (!cursor.at_end()) {
      const Share share = cursor.take().share;
      batches.push_back(places_of(*cursor.order(), share));
      for (const PlacedSample& place : batches.back())
        planned.push_back(bounds.at(*cursor.order(), place.position));
    }
    plan->extend(world_.context, planned);
    for (const std::vector<PlacedSample>& batch : batches) {
      const auto answer = engine_->read(world_.context.with_plan(), 0, batch);
      ASSERT_TRUE(answer) << answer.error().to_string();
      ASSERT_TRUE(answer->failed.empty());
      for (const PlacedSample& place : batch)
        note_units(place.sample);
    }
  }

  // What was fetched, and what its samples lie in: whole units, each once.
  std::uint64_t fetched_bytes() const { return world_.object_gets().bytes; }
  std::uint64_t requests() const { return world_.object_gets().requests; }
  std::uint64_t wanted_bytes() const {
    std::uint64_t bytes = 0;
    for (const auto& [object, units] : units_)
      for (const std::uint32_t unit : units)
        bytes += bytes_of({unit, 1}, sizes_.at(object)).length;
    return bytes;
  }

 private:
  void note_units(std::uint64_t sample) {
    const auto location = source_.source->locate(world_.context, sample);
    std::vector<PlannedRead> reads;
    for (const SamplePart& part : location->parts)
      ASSERT_TRUE(source_.files->plan_read(part.file, part.range, reads).ok());
    for (const PlannedRead& read : reads) {
      const UnitRange units = units_of(read.range);
      sizes_[read.object.digest().to_text()] = read.object.size();
      for (std::uint32_t unit = units.first; unit < units.end(); ++unit)
        units_[read.object.digest().to_text()].insert(unit);
    }
  }

  ServiceWorld world_;
  OpenSource source_;
  std::unique_ptr<ProcessEngine> engine_;
  std::map<std::string, std::set<std::uint32_t>> units_;
  std::map<std::string, std::uint64_t> sizes_;
};

RankChoice node_of_four(std::uint64_t node) {
  return {.rank = node, .topology = {.world = kNodes}, .batch = 16};
}

TEST(NodeFetchesTest, EachNodeFetchesWhatItsSamplesLieInAndNoMore) {
  for (std::uint64_t number = 0; number < kNodes; ++number) {
    Node node;
    node.read(JobCursor::make(node.job(), node_of_four(number)).value());
    EXPECT_EQ(node.fetched_bytes(), node.wanted_bytes()) << "node " << number;
  }
}

TEST(NodeFetchesTest, AJobOfOneNodeGoesOnOnFourWithEmptyCaches) {
  for (std::uint64_t number = 0; number < kNodes; ++number) {
    Node node;
    LoaderState state = node.job()->first_state();
    state.position = kNodeFiles * 3 / 10;
    node.read(JobCursor::resume(node.job(), node_of_four(number), state).value());
    EXPECT_EQ(node.fetched_bytes(), node.wanted_bytes()) << "node " << number;
  }
}

TEST(NodeFetchesTest, OneNodeFetchesEverythingOnceInLargePieces) {
  Node node;
  node.read(JobCursor::make(node.job(), {.batch = 16}).value());
  const std::uint64_t bytes = kNodeFiles * kNodeFileBytes;
  EXPECT_GE(node.fetched_bytes(), bytes);
  EXPECT_LE(node.fetched_bytes(), bytes + kNodeFiles * 1100) << "with the headers of packs";
  EXPECT_LE(node.requests(), node.fetched_bytes() / kPlannedPieceBytes + 8);
}

}  // namespace
}  // namespace millrace
