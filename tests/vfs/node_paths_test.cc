#include "vfs/node_paths.h"

#include <string>

#include <gtest/gtest.h>

#include "base/log.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"

namespace millrace {
namespace {

class NodePathsTest : public ::testing::Test {
 protected:
  std::unique_ptr<NodePaths> open(NodePathsLimits limits = {}) {
    auto opened = NodePaths::open(disk, "/nodes", limits);
    EXPECT_TRUE(opened) << opened.error().to_string();
    return *std::move(opened);
  }
  static NodeNumber number(const std::string& path) {
    return named_node(NamedNodes::kBuckets, path);
  }
  static void add(NodePaths& paths, const std::string& path) {
    EXPECT_EQ(paths.add(path).value(), number(path));
    EXPECT_TRUE(paths.flush().ok());
  }
  // "" when it is not known.
  static std::string find(NodePaths& paths, const std::string& path) {
    const Result<std::string> found = paths.find(number(path));
    if (!found) {
      EXPECT_EQ(found.error().code(), StatusCode::kNotFound);
    }
    return found.value_or("");
  }
  std::string content(const std::string& file = "/nodes") {
    std::string text(disk.stat(file)->size, '\0');
    const auto opened = disk.open(file, OpenMode::kRead).value();
    EXPECT_TRUE(opened->read_at(0, std::as_writable_bytes(std::span(text))));
    return text;
  }
  void replace(std::string_view text) {
    const auto file = disk.open("/nodes", OpenMode::kCreate).value();
    ASSERT_TRUE(file->truncate(0).ok());
    ASSERT_TRUE(file->write_at(0, as_bytes(text)).ok());
  }

  MemoryDisk disk;
  LogCapture quiet;
};

TEST_F(NodePathsTest, ANumberLeadsToItsPathAfterARestart) {
  {
    const auto paths = open();
    EXPECT_EQ(find(*paths, "train/a"), "");
    EXPECT_EQ(paths->add("train/a").value(), number("train/a"));
    EXPECT_EQ(find(*paths, "train/a"), "train/a") << "before it is written";
    add(*paths, "train/a/");
    add(*paths, "train/a");
    add(*paths, std::string("odd\n\0\xFF", 6));
    add(*paths, std::string(NodePaths::kPathBytesMax, 'p'));
    EXPECT_EQ(find(*paths, "train/a/"), "train/a/");
  }
  const auto paths = open();
  for (const std::string& path : {std::string("train/a"), std::string("train/a/"),
                                  std::string("odd\n\0\xFF", 6), std::string(2048, 'p')})
    EXPECT_EQ(find(*paths, path), path);
  EXPECT_EQ(find(*paths, "train/b"), "");
  EXPECT_EQ(paths->add(std::string(2049, 'p')).error().code(), StatusCode::kInvalidArgument);
}

TEST_F(NodePathsTest, WhatIsKnownIsNotWrittenAgain) {
  const auto paths = open();
  add(*paths, "train/a");
  const std::size_t size = content().size();
  add(*paths, "train/a");
  EXPECT_EQ(content().size(), size);
}

TEST_F(NodePathsTest, ManyAreReadPieceByPiece) {
  constexpr int kPaths = 30'000;  // More than two pieces of 1 MiB.
  const auto path = [](int n) { return std::string(80, 'd') + "/" + std::to_string(n); };
  {
    const auto paths = open();
    for (int n = 0; n < kPaths; ++n)
      ASSERT_TRUE(paths->add(path(n)));
    ASSERT_TRUE(paths->flush().ok());
  }
  EXPECT_GT(content().size(), 2 * kMiB);
  const auto paths = open();
  for (int n = 0; n < kPaths; ++n)
    ASSERT_EQ(find(*paths, path(n)), path(n));
}

TEST_F(NodePathsTest, TheOldestAreForgottenAndTheUsedAreNot) {
  const NodePathsLimits limits{.paths_max = 10, .bytes_max = kMiB};
  auto paths = open(limits);
  add(*paths, "used");
  add(*paths, "unused");
  for (int n = 0; n < 100; ++n) {
    add(*paths, "other" + std::to_string(n));
    ASSERT_EQ(find(*paths, "used"), "used") << n;
    if (n % 7 == 0) paths = open(limits);
  }
  EXPECT_EQ(find(*paths, "unused"), "");
  EXPECT_EQ(find(*paths, "other99"), "other99");
  EXPECT_EQ(find(*paths, "other92"), "other92") << "at least the last ten";
  EXPECT_LT(content().size() + content("/nodes.before").size(), 1000u);
  add(*paths, "unused");
  EXPECT_EQ(find(*paths, "unused"), "unused");
}

TEST_F(NodePathsTest, BytesAreBoundedToo) {
  const auto paths = open({.paths_max = 1'000'000, .bytes_max = 10'000});
  for (int n = 0; n < 1000; ++n)
    add(*paths, std::string(500, 'p') + std::to_string(n));
  EXPECT_LT(content().size(), 11'000u);
  EXPECT_LT(content("/nodes.before").size(), 11'000u);
}

TEST_F(NodePathsTest, SurvivesAnyTornEnd) {
  {
    const auto paths = open();
    add(*paths, "train/a");
    add(*paths, "train/b");
  }
  const std::string whole = content();
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    replace(std::string_view(whole).substr(0, size));
    const auto paths = open();
    EXPECT_EQ(find(*paths, "train/b").empty(), size != whole.size()) << size;
    add(*paths, "train/c");
    EXPECT_EQ(find(*open(), "train/c"), "train/c") << size;
  }
}

// No flipped bit makes a number lead elsewhere.
TEST_F(NodePathsTest, DamageIsNoticed) {
  {
    const auto paths = open();
    add(*paths, "train/a");
    add(*paths, "train/b");
  }
  const std::string whole = content();
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    replace(damaged);
    const auto opened = NodePaths::open(disk, "/nodes");
    if (!opened) {
      EXPECT_EQ(opened.error().code(), StatusCode::kCorruption) << bit;
      EXPECT_EQ(content(), damaged) << "it is left alone";
      continue;
    }
    for (const std::string path : {"train/a", "train/b"}) {
      const std::string found = find(**opened, path);
      EXPECT_TRUE(found.empty() || found == path) << bit;
    }
  }
}

TEST_F(NodePathsTest, DamageBehindItsBackIsNoticed) {
  const auto paths = open();
  add(*paths, "train/a");
  std::string text = content();
  text.back() = 'x';
  replace(text);
  EXPECT_EQ(paths->find(number("train/a")).error().code(), StatusCode::kCorruption);
}

TEST_F(NodePathsTest, APowerLossLosesNoMoreThanPaths) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const NodePathsLimits limits{.paths_max = 20, .bytes_max = kMiB};
    {
      const auto paths = open(limits);
      for (int n = 0; n < 50; ++n)
        add(*paths, "train/" + std::to_string(seed) + "/" + std::to_string(n));
    }
    disk.simulate_power_loss(seed);
    const auto paths = open(limits);
    for (int n = 0; n < 50; ++n) {
      const std::string path = "train/" + std::to_string(seed) + "/" + std::to_string(n);
      const std::string found = find(*paths, path);
      EXPECT_TRUE(found.empty() || found == path) << seed;
    }
  }
}

// Whichever call to the disk fails: it is told, and all is well afterwards.
TEST_F(NodePathsTest, GoesOnAfterAnyFailure) {
  for (std::uint64_t failing = 1;; ++failing) {
    FaultyDisk faulty(disk);
    const NodePathsLimits limits{.paths_max = 3, .bytes_max = kMiB};
    auto opened = NodePaths::open(faulty, "/nodes" + std::to_string(failing), limits);
    ASSERT_TRUE(opened);
    std::uint64_t calls = 0;
    faulty.set_fault([&](const DiskCall&) { return ++calls == failing ? EIO : 0; });
    for (int n = 0; n < 10; ++n) {
      const std::string path = "train/" + std::to_string(n);
      while (!(*opened)->add(path) || !(*opened)->flush().ok() || !(*opened)->find(number(path))) {
      }
      EXPECT_EQ((*opened)->find(number(path)).value_or(path), path);
    }
    faulty.set_fault({});
    opened = NodePaths::open(faulty, "/nodes" + std::to_string(failing), limits);
    for (int n = 7; n < 10; ++n) {
      const std::string path = "train/" + std::to_string(n);
      EXPECT_EQ((*opened)->find(number(path)).value(), path) << failing;
    }
    if (calls < failing) break;
  }
}

}  // namespace
}  // namespace millrace
