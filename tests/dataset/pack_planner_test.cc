#include "dataset/pack_planner.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "dataset/sample_name.h"

namespace millrace {
namespace {

struct CollectedPlan final : PackPlanSink {
  Status add_pack(PlannedPack pack) override {
    packs.push_back(std::move(pack));
    return {};
  }
  Status add_object(SourceEntry file) override {
    objects.push_back(std::move(file));
    return {};
  }
  // The packs as "a b | c", for plans of few files.
  std::string text() const {
    std::string result;
    for (const PlannedPack& pack : packs) {
      if (!result.empty()) result += "| ";
      for (const PlannedMember& member : pack.members)
        result += member.file.path + " ";
    }
    for (const SourceEntry& object : objects)
      result += "+" + object.path + " ";
    return result;
  }

  std::vector<PlannedPack> packs;
  std::vector<SourceEntry> objects;
};

using Sizes = std::vector<std::pair<std::string, std::uint64_t>>;

CollectedPlan plan_of(const Sizes& files, PackOptions options) {
  CollectedPlan plan;
  PackPlanner planner(options, plan);
  for (const auto& [path, size] : files)
    EXPECT_TRUE(planner.add({.path = path, .size = size}).ok());
  EXPECT_TRUE(planner.finish().ok());
  return plan;
}

// A block of content takes two in the tar; a pack of 16 KiB has room for 15 such files.
constexpr PackOptions kSmallPacks = {.file_bytes_max = 4 * kKiB, .target_bytes = 16 * kKiB};

TEST(PackPlanner, PacksSmallFilesInOrder) {
  EXPECT_EQ(plan_of({}, kSmallPacks).text(), "");
  EXPECT_EQ(plan_of({{"a", 1}, {"b", 5000}, {"c", 4096}, {"d", 0}}, kSmallPacks).text(),
            "a c d +b ");
  Sizes many;
  for (char c = 'a'; c < 'a' + 20; ++c)
    many.emplace_back(std::string(1, c), 512);
  EXPECT_EQ(plan_of(many, kSmallPacks).text(), "a b c d e f g h i j k l m n o | p q r s t ");
}

TEST(PackPlanner, KnowsThePlaceOfEveryByte) {
  const CollectedPlan plan =
      plan_of({{"a", 1}, {std::string(150, 'n'), 513}, {"z", 0}}, kSmallPacks);
  ASSERT_EQ(plan.packs.size(), 1U);
  const PlannedPack& pack = plan.packs[0];
  EXPECT_EQ(pack.members[0].content_offset, 512U);
  EXPECT_EQ(pack.members[1].content_offset, 1024U + 3 * 512);
  EXPECT_EQ(pack.members[2].content_offset, 1024U + 3 * 512 + 1024 + 512);
  EXPECT_EQ(pack.bytes, pack.members[2].content_offset + kTarEndBytes);
}

TEST(PackPlanner, KeepsSamplesWhole) {
  // By the threshold: the image is large, its label is small.
  EXPECT_EQ(plan_of({{"1.cls", 1}, {"1.jpg", 5000}, {"2.jpg", 5000}}, kSmallPacks).text(),
            "1.cls 1.jpg +2.jpg ");
  // Too large for a pack: all of it are objects.
  EXPECT_EQ(plan_of({{"1.cls", 1}, {"1.mp4", 50'000}, {"2.cls", 1}}, kSmallPacks).text(),
            "2.cls +1.cls +1.mp4 ");
  // By the end of a pack: c.* does not fit behind the others.
  EXPECT_EQ(plan_of({{"a", 4000}, {"b", 4000}, {"c.1", 3000}, {"c.2", 3000}, {"d", 1}}, kSmallPacks)
                .text(),
            "a b | c.1 c.2 d ");
  // Larger than the target, and not than twice of it.
  const CollectedPlan large =
      plan_of({{"a", 1}, {"c.1", 4000}, {"c.2", 9000}, {"c.3", 9000}, {"d", 1}}, kSmallPacks);
  EXPECT_EQ(large.text(), "a | c.1 c.2 c.3 | d ");
  // The same base in another directory is another sample, and so is a name without extension.
  EXPECT_EQ(
      plan_of({{"a/1.x", 1}, {"a/1.y", 50'000}, {"b/1.x", 1}, {"b/1", 2}}, kSmallPacks).text(),
      "b/1.x b/1 +a/1.x +a/1.y ");
}

TEST(PackPlanner, ASeriesIsNoSample) {
  Sizes frames;
  for (int n = 100; n < 300; ++n)
    frames.emplace_back("frame." + std::to_string(n) + ".png", n == 250 ? 5000 : 512);
  const CollectedPlan plan = plan_of(frames, kSmallPacks);
  ASSERT_EQ(plan.objects.size(), 1U);
  EXPECT_EQ(plan.objects[0].path, "frame.250.png");
  EXPECT_EQ(plan.packs.size(), 14U);
  // As many files of one sample that fit into a pack are one.
  const CollectedPlan small = plan_of(Sizes(frames.begin(), frames.begin() + 25), kSmallPacks);
  EXPECT_EQ(small.packs.size(), 1U);
}

TEST(PackPlanner, SizesFromOutsideDoNotOverflow) {
  Sizes files;
  for (int n = 10; n < 60; ++n)
    files.emplace_back("x." + std::to_string(n), (1ULL << 62) - n);
  EXPECT_EQ(plan_of(files, kSmallPacks).objects.size(), 50U);
  CollectedPlan plan;
  PackPlanner planner({}, plan);
  EXPECT_EQ(planner.add({.path = "x", .size = UINT64_MAX}).code(), StatusCode::kInvalidArgument);
}

TEST(PackPlanner, AFailureOfTheSinkEndsThePlan) {
  struct : PackPlanSink {
    Status add_pack(PlannedPack) override { return Status(StatusCode::kIoError, "pack"); }
    Status add_object(SourceEntry) override { return Status(StatusCode::kIoError, "object"); }
  } refusing;
  PackPlanner objects(kSmallPacks, refusing);
  ASSERT_TRUE(objects.add({.path = "a", .size = 10'000}).ok());
  EXPECT_EQ(objects.add({.path = "b"}).message(), "object");
  PackPlanner packs(kSmallPacks, refusing);
  ASSERT_TRUE(packs.add({.path = "a"}).ok());
  EXPECT_EQ(packs.finish().message(), "pack");
}

// The invariants of the planner, one by one, for any files.
void expect_plan_holds(const Sizes& files, const CollectedPlan& plan, const PackOptions& options) {
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> samples;  // Count and bytes.
  std::map<std::string, std::uint64_t> sizes(files.begin(), files.end());
  const auto sample_of = [](const std::string& path) {
    const auto name = sample_name(path);
    return name ? std::string(name->base) : path + "/";
  };
  for (const auto& [path, size] : files) {
    auto& [count, bytes] = samples[sample_of(path)];
    ++count;
    bytes += 512 + tar_padded(size);
  }
  std::map<std::string, std::set<std::size_t>> places;  // Pack numbers; SIZE_MAX for objects.
  std::vector<std::string> packed;
  for (std::size_t n = 0; n < plan.packs.size(); ++n) {
    std::uint64_t bytes = 0;
    std::set<std::string> in_pack;
    for (const PlannedMember& member : plan.packs[n].members) {
      EXPECT_EQ(member.content_offset, bytes + 512);
      bytes += 512 + tar_padded(member.file.size);
      packed.push_back(member.file.path);
      places[sample_of(member.file.path)].insert(n);
      in_pack.insert(sample_of(member.file.path));
      EXPECT_EQ(sizes.erase(member.file.path), 1U);
    }
    EXPECT_EQ(plan.packs[n].bytes, bytes + kTarEndBytes);
    EXPECT_LE(plan.packs[n].bytes, 2 * options.target_bytes);
    EXPECT_TRUE(plan.packs[n].bytes <= options.target_bytes || in_pack.size() == 1);
  }
  EXPECT_TRUE(std::ranges::is_sorted(packed));
  for (const SourceEntry& object : plan.objects) {
    places[sample_of(object.path)].insert(SIZE_MAX);
    EXPECT_EQ(sizes.erase(object.path), 1U);
  }
  EXPECT_TRUE(sizes.empty());
  for (const auto& [base, where] : places) {
    const auto [count, bytes] = samples[base];
    const bool fits = bytes + kTarEndBytes <= 2 * options.target_bytes;
    if (fits || count <= PackPlanner::kSampleFilesMax) {
      EXPECT_EQ(where.size(), 1U) << base;
    }
    if (count > 1 && fits) {
      EXPECT_FALSE(where.contains(SIZE_MAX)) << base;
    }
  }
  for (const SourceEntry& object : plan.objects) {
    if (samples[sample_of(object.path)].first == 1) {
      EXPECT_GT(object.size, options.file_bytes_max);
    }
  }
}

TEST(PackPlanner, HoldsItsInvariantsForRandomTrees) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::set<std::string> names;
    const std::size_t count = random() % 400;
    const std::uint64_t bases = 1 + random() % 60;
    for (std::size_t n = 0; n < count; ++n) {
      std::string name = "d/" + std::to_string(random() % bases);
      if (random() % 8 != 0) name += "." + std::to_string(random() % 50);
      names.insert(name);
    }
    Sizes files;
    const std::uint64_t sizes[] = {1, 600, 5000, 40'000};
    for (const std::string& name : names)
      files.emplace_back(name, random() % sizes[random() % 4]);
    expect_plan_holds(files, plan_of(files, kSmallPacks), kSmallPacks);
  }
}

}  // namespace
}  // namespace millrace
