// Versions whose layout is replaced, or whose manifest is gone, while they are served.
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "base/log.h"
#include "dataset/garbage_collector.h"
#include "tests/vfs/vfs_world.h"

namespace millrace {
namespace {

// Names that do not compress, so that the manifest is too large to be fetched at once.
constexpr int kNames = 4000;

class VersionLayoutsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int n = 0; n < kNames; ++n)
      world.tree.write(name_of(n), "");
    write_samples(0);
    ASSERT_TRUE(world.publish("a@v1"));
    write_samples(1);
    ASSERT_TRUE(world.publish("a@v2"));
    ASSERT_GT(layout().manifest_bytes, 256 * kKiB);
  }
  static std::string name_of(int n) {
    return "names/" + to_hex(as_bytes(publish_bytes(100, static_cast<std::uint64_t>(n))));
  }
  // Every fourth stays as it was, so that the packs of the first version become mostly garbage.
  void write_samples(int edition) {
    for (int n = 0; n < 40; ++n) {
      if (edition > 0 && n % 4 == 0) continue;
      world.tree.write(fmt::format("d/{:03}.jpg", n),
                       publish_bytes(9'000, static_cast<std::uint64_t>(n * 10 + edition)));
    }
  }
  VersionLayout layout() {
    return world.registry.version(world.context, ref_of("a@v2")).value().facts->layout;
  }
  // The version gets a new layout, and the old one is deleted.
  void pack_anew() {
    const VersionLayout before = layout();
    ASSERT_TRUE(world.registry.remove(world.context, ref_of("a@v1"), "test", Duration::zero()));
    GarbageOptions options;
    options.manifest_directory = world.state.path("gc");
    options.abort_repacks_after = Duration::zero();
    options.layout_grace = Duration::zero();
    // The first moves the files, and the second deletes what they were moved from.
    for (int n = 0; n < 2; ++n) {
      GarbageCollector collector({.store = *world.memory,
                                  .clock = system_clock(),
                                  .random = world.random,
                                  .writer = writer_of("gc")},
                                 options);
      const auto report = collector.run(world.context);
      ASSERT_TRUE(report) << report.error().to_string();
    }
    ASSERT_NE(layout().layout_digest, before.layout_digest);
    ASSERT_FALSE(world.memory->head(world.context, ObjectKey(before.manifest_key)));
  }
  // Until it ends, the store says that no manifest is there.
  void hide_manifests() {
    world.faulty->set_plan([](const FaultableCall& call) -> std::optional<Fault> {
      if (!call.key.starts_with(kManifestsPrefix)) return std::nullopt;
      return Fault{.code = StatusCode::kNotFound};
    });
  }
  void expect_whole_version() { expect_whole_version(world.contents("a@v2")); }
  void expect_whole_version(const std::map<std::string, std::string>& wanted) {
    std::map<std::string, std::string> found;
    world.walk(root, "", found);
    EXPECT_TRUE(found == wanted) << found.size() << " of " << wanted.size();
  }

  VfsWorld world;
  const LogCapture log;
  NodeNumber root;
};

TEST_F(VersionLayoutsTest, S1ATreeGoesOnWithTheNewLayoutWhenPagesOfTheOldAreGone) {
  root = world.at("datasets/a/v2").number;
  ASSERT_NO_FATAL_FAILURE(pack_anew());
  for (const int n : {0, kNames / 2, kNames - 1})
    EXPECT_EQ(world.at("datasets/a/v2/" + name_of(n)).size, 0U);
  expect_whole_version();
}

TEST_F(VersionLayoutsTest, S1AVersionThatIsKnownByItsNumberIsOpenedWithTheNewLayout) {
  root = world.at("datasets/a/v2").number;
  ASSERT_NO_FATAL_FAILURE(pack_anew());
  world.stop();
  std::filesystem::remove_all(world.state.path("opened"));
  world.start();
  expect_whole_version();
}

// What is here is of the layout before: no name that was only listed takes that away.
TEST_F(VersionLayoutsTest, S19ANewLayoutThatCannotBeHadLeavesWhatIsHere) {
  root = world.at("datasets/a/v2").number;
  const std::map<std::string, std::string> wanted = world.contents("a@v2");
  expect_whole_version(wanted);
  ASSERT_NO_FATAL_FAILURE(pack_anew());
  world.stop();
  world.start();
  EXPECT_EQ(world.names(world.at("datasets/a").number), std::vector<std::string>{"v2"});
  world.faulty->set_plan([](const FaultableCall&) { return Fault{}; });
  for (int start = 0; start < 2; ++start) {
    expect_whole_version(wanted);
    EXPECT_EQ(world.at("datasets/a/v2").number, root);
    world.stop();
    world.start();
  }
}

TEST_F(VersionLayoutsTest, S1AnOpenFileReadsTheSameBytesWhereverTheyLie) {
  std::map<std::string, std::shared_ptr<OpenFile>> opened;
  for (int n = 0; n < 40; ++n) {
    const std::string path = fmt::format("d/{:03}.jpg", n);
    opened[path] =
        world.files().open(world.context, world.at("datasets/a/v2/" + path).number).value();
  }
  ASSERT_NO_FATAL_FAILURE(pack_anew());
  const std::map<std::string, std::string> wanted = world.contents("a@v2");
  for (int pass = 0; pass < 2; ++pass) {
    for (const auto& [path, file] : opened) {
      const auto read = world.read(*file, {0, file->size()});
      ASSERT_TRUE(read) << path << ": " << read.error().to_string();
      EXPECT_TRUE(*read == wanted.at(path)) << path;
    }
  }
}

TEST_F(VersionLayoutsTest, AMissingManifestIsNoStatementAboutNames) {
  root = world.at("datasets/a/v2").number;
  const NodeNumber names = world.at("datasets/a/v2/names").number;
  const NodeNumber sample = world.at("datasets/a/v2/d/039.jpg").number;
  const std::string name = name_of(1).substr(6);
  FileSystem& files = world.files();
  hide_manifests();
  EXPECT_EQ(files.lookup(world.context, names, name).error().code(), StatusCode::kIoError);
  EXPECT_EQ(
      files.read_directory(world.context, names, 0, [](const NodeEntry&) { return true; }).code(),
      StatusCode::kIoError);
  world.faulty->set_plan(no_faults());
  EXPECT_TRUE(files.lookup(world.context, names, name));
  EXPECT_EQ(files.lookup(world.context, names, "none").error().code(), StatusCode::kNotFound);

  world.stop();
  std::filesystem::remove_all(world.state.path("opened"));
  world.start();
  hide_manifests();
  EXPECT_EQ(world.files().attributes(world.context, sample).error().code(), StatusCode::kIoError);
  EXPECT_EQ(world.files().resolve(world.context, "datasets/a/v2").error().code(),
            StatusCode::kIoError);
  world.faulty->set_plan(no_faults());
  expect_whole_version();
}

}  // namespace
}  // namespace millrace
