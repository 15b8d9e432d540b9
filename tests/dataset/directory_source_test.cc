#include "dataset/directory_source.h"

#include <fcntl.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/dataset/source_world.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const RequestContext kDirectoryContext = RequestContext::background();
constexpr std::int64_t kLongAgo = 1'000'000'000'123'456'789;

class DirectorySourceTest : public ::testing::Test {
 protected:
  std::unique_ptr<DirectorySource> open(DirectorySourceOptions options = {}) {
    return DirectorySource::open_root(tree_.root(), options).value();
  }
  std::set<std::string> paths(const CollectedSource& collected) {
    std::set<std::string> result;
    for (const auto& [path, entry] : collected.entries())
      result.insert(path);
    return result;
  }

  ScratchTree tree_;
};

TEST_F(DirectorySourceTest, GivesEveryEntryAsItIs) {
  tree_.write("a/b/file", "hello");
  tree_.make_directory("a/empty");
  tree_.write("zero", "");
  tree_.link("link", "../somewhere/else");
  fs::create_hard_link(tree_.path("a/b/file"), tree_.path("a/twin"));
  tree_.set_mode("a/b/file", 04751);
  tree_.set_mtime("a/b/file", kLongAgo);
  tree_.set_mode("a/empty", 0700);
  tree_.set_mtime("a/empty", kLongAgo + 1);
  tree_.set_mtime("link", kLongAgo + 2);

  const auto source = open();
  const auto found = scan_all(*source);
  EXPECT_TRUE(found->problems().empty());
  EXPECT_THAT(paths(*found), ::testing::ElementsAre("", "a", "a/b", "a/b/file", "a/empty", "a/twin",
                                                    "link", "zero"));
  const SourceEntry& file = found->at("a/b/file");
  EXPECT_EQ(file.kind, EntryKind::kFile);
  EXPECT_EQ(file.mode, 04751);
  EXPECT_EQ(file.mtime_ns, kLongAgo);
  EXPECT_EQ(file.size, 5U);
  EXPECT_EQ(found->at("a/twin").token, file.token);
  EXPECT_EQ(found->at("a/empty").kind, EntryKind::kDirectory);
  EXPECT_EQ(found->at("a/empty").mode, 0700);
  EXPECT_EQ(found->at("a/empty").mtime_ns, kLongAgo + 1);
  EXPECT_EQ(found->at("a/empty").size, 0U);
  EXPECT_EQ(found->at("").kind, EntryKind::kDirectory);
  EXPECT_EQ(found->at("link").kind, EntryKind::kSymlink);
  EXPECT_EQ(found->at("link").symlink_target, "../somewhere/else");
  EXPECT_EQ(found->at("link").mtime_ns, kLongAgo + 2);
  EXPECT_EQ(read_source(*source, file).value(), "hello");
  EXPECT_EQ(read_source(*source, found->at("zero")).value(), "");
}

TEST_F(DirectorySourceTest, TakesOddNames) {
  const std::set<std::string> names = {
      "\xff\xfe not UTF-8",  "line\nfeed", " ",       "...", "-rf", "a\\b", "\x01", "*?[x]",
      std::string(255, 'n'), "e\xcc\x81",  "\xc3\xa9"};
  for (const std::string& name : names)
    tree_.write("d/" + name, name);
  const auto source = open();
  const auto found = scan_all(*source);
  EXPECT_EQ(found->entries().size(), names.size() + 2);
  for (const std::string& name : names) {
    EXPECT_EQ(read_source(*source, found->at("d/" + name)).value(), name);
  }
}

TEST_F(DirectorySourceTest, FollowsNoLinkBelowTheRoot) {
  ScratchTree outside;
  outside.write("secret", "secret");
  tree_.write("d/x", "inside");
  tree_.link("d/loop", "..");
  tree_.link("d/self", "self");
  tree_.link("away", outside.root());
  const auto source = open();
  auto found = scan_all(*source);
  EXPECT_THAT(paths(*found), ::testing::ElementsAre("", "away", "d", "d/loop", "d/self", "d/x"));

  // Nor does it when a directory becomes a link after the scan.
  outside.write("x", "INSIDE");
  fs::rename(tree_.path("d"), tree_.path("e"));
  tree_.link("d", outside.root());
  const auto opened = source->open(kDirectoryContext, found->at("d/x"));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), StatusCode::kConflict);
  EXPECT_THAT(opened.error().message(), HasSubstr("d/x"));
}

TEST_F(DirectorySourceTest, RootMayBeALink) {
  tree_.write("real/x", "1");
  tree_.link("name", "real");
  const auto source = DirectorySource::open_root(tree_.path("name")).value();
  EXPECT_THAT(paths(*scan_all(*source)), ::testing::ElementsAre("", "x"));
  EXPECT_EQ(DirectorySource::open_root(tree_.path("none")).error().code(), StatusCode::kNotFound);
  EXPECT_FALSE(DirectorySource::open_root(tree_.path("real/x")));
}

TEST_F(DirectorySourceTest, SpecialFilesAreProblems) {
  ASSERT_EQ(::mkfifo(tree_.path("fifo").c_str(), 0600), 0);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = tree_.path("socket");
  ASSERT_LT(name.size(), sizeof address.sun_path);
  name.copy(address.sun_path, name.size());
  ASSERT_EQ(::bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ::close(listener);
  tree_.write("file", "");
  const auto found = scan_all(*open());
  EXPECT_THAT(paths(*found), ::testing::ElementsAre("", "file"));
  EXPECT_THAT(found->problems(),
              ::testing::ElementsAre(::testing::Pair("fifo", "it is a FIFO"),
                                     ::testing::Pair("socket", "it is a socket")));
}

// Nobody, for file systems, while it lives; threads that are started meanwhile are so too. Root
// would read everything.
class AsNobody {
 public:
  AsNobody() : before_(::setfsuid(::geteuid() == 0 ? 65534 : ::geteuid())) {}
  ~AsNobody() { ::setfsuid(static_cast<uid_t>(before_)); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  const int before_;
};

TEST_F(DirectorySourceTest, WhatMayNotBeReadIsNamed) {
  tree_.set_mode("", 0755);
  tree_.write("shut/x", "");
  tree_.write("open/x", "");
  tree_.write("open/y", "");
  tree_.set_mode("shut", 0);
  tree_.set_mode("open/x", 0);
  const AsNobody nobody;
  const auto source = open();
  const auto found = scan_all(*source);
  EXPECT_THAT(paths(*found), ::testing::ElementsAre("", "open", "open/x", "open/y"));
  ASSERT_EQ(found->problems().size(), 1U);
  EXPECT_THAT(found->problems().at("shut"), HasSubstr("cannot be read"));
  EXPECT_EQ(read_source(*source, found->at("open/y")).value(), "");
  const auto opened = source->open(kDirectoryContext, found->at("open/x"));
  EXPECT_EQ(opened.error().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(opened.error().message(), HasSubstr("open/x"));
}

TEST_F(DirectorySourceTest, PathsThatAreTooLongAreProblems) {
  // Deeper than one path can say: made step by step.
  const std::string name(200, 'd');
  int at = ::open(tree_.root().c_str(), O_RDONLY | O_DIRECTORY);
  std::size_t levels = 0;
  for (; levels < 25; ++levels) {
    ASSERT_EQ(::mkdirat(at, name.c_str(), 0700), 0);
    const int next = ::openat(at, name.c_str(), O_RDONLY | O_DIRECTORY);
    ::close(at);
    at = next;
  }
  ::close(at);
  const auto found = scan_all(*open({.threads = 2, .waiting_directories_max = 0}));
  // 20 levels of 201 bytes less one are 4019; the next is too long.
  EXPECT_EQ(found->entries().size(), 21U);
  ASSERT_EQ(found->problems().size(), 1U);
  EXPECT_EQ(found->problems().begin()->first.size(), 21 * 201 - 1);
  EXPECT_THAT(found->problems().begin()->second, HasSubstr("4095"));
}

TEST_F(DirectorySourceTest, WalksDeeperThanItsOwnLevels) {
  std::string path = "d";
  for (int level = 1; level < 150; ++level)
    path += "/d";
  tree_.write(path + "/x", "deep");
  for (const std::size_t waiting : {0, 1, 4096}) {
    const auto source = open({.threads = 3, .waiting_directories_max = waiting});
    const auto found = scan_all(*source);
    EXPECT_EQ(found->entries().size(), 152U);
    EXPECT_EQ(read_source(*source, found->at(path + "/x")).value(), "deep");
  }
}

TEST_F(DirectorySourceTest, EveryNumberOfThreadsFindsTheSame) {
  std::set<std::string> expected = {""};
  for (int d = 0; d < 40; ++d) {
    const std::string top = "d" + std::to_string(d);
    expected.insert({top, top + "/e"});
    for (int f = 0; f < 25; ++f) {
      const std::string path = top + "/e/f" + std::to_string(f);
      tree_.write(path, path);
      expected.insert(path);
    }
  }
  for (const std::size_t threads : {1, 2, 8}) {
    for (const std::size_t waiting : {0, 2, 4096}) {
      const auto source = open({.threads = threads, .waiting_directories_max = waiting});
      EXPECT_EQ(paths(*scan_all(*source)), expected);
    }
  }
}

struct Change {
  const char* name;
  std::function<void(const ScratchTree&)> make;
};

// Each leaves the size as it was, but for those that say otherwise.
std::vector<Change> changes() {
  return {
      {"rewritten in place",
       [](const ScratchTree& tree) {
         std::ofstream(tree.path("d/f"), std::ios::in | std::ios::out) << "other";
       }},
      {"rewritten, and its mtime put back",
       [](const ScratchTree& tree) {
         std::ofstream(tree.path("d/f"), std::ios::in | std::ios::out) << "other";
         tree.set_mtime("d/f", kLongAgo);
       }},
      {"replaced",
       [](const ScratchTree& tree) {
         tree.write("d/new", "other");
         tree.set_mtime("d/new", kLongAgo);
         fs::rename(tree.path("d/new"), tree.path("d/f"));
       }},
      {"longer",
       [](const ScratchTree& tree) {
         std::ofstream(tree.path("d/f"), std::ios::app) << "more";
         tree.set_mtime("d/f", kLongAgo);
       }},
      {"shorter", [](const ScratchTree& tree) { fs::resize_file(tree.path("d/f"), 2); }},
      {"touched", [](const ScratchTree& tree) { tree.set_mtime("d/f", kLongAgo + 5); }},
      {"removed", [](const ScratchTree& tree) { fs::remove(tree.path("d/f")); }},
  };
}

TEST_F(DirectorySourceTest, NoticesChangesBetweenScanAndOpening) {
  for (const Change& change : changes()) {
    SCOPED_TRACE(change.name);
    tree_.write("d/f", "first");
    tree_.set_mtime("d/f", kLongAgo);
    const auto source = open();
    const auto found = scan_all(*source);
    ASSERT_EQ(read_source(*source, found->at("d/f")).value(), "first");
    change.make(tree_);
    const auto opened = source->open(kDirectoryContext, found->at("d/f"));
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code(), StatusCode::kConflict);
    EXPECT_THAT(opened.error().message(), HasSubstr(tree_.path("d/f")));
  }
}

TEST_F(DirectorySourceTest, NoticesChangesWhileReading) {
  for (const Change& change : changes()) {
    SCOPED_TRACE(change.name);
    tree_.write("d/f", "first");
    tree_.set_mtime("d/f", kLongAgo);
    const auto source = open();
    const auto found = scan_all(*source);
    const auto file = source->open(kDirectoryContext, found->at("d/f")).value();
    EXPECT_TRUE(file->unchanged(kDirectoryContext).value());
    change.make(tree_);
    EXPECT_FALSE(file->unchanged(kDirectoryContext).value());
  }
}

// Times move in ticks: a file that was written just now is not read before the next one.
TEST_F(DirectorySourceTest, NoticesChangesRightAfterTheLast) {
  for (int round = 0; round < 50; ++round) {
    tree_.write("f", "first");
    const auto source = open({.threads = 1});
    const auto found = scan_all(*source);
    const auto file = source->open(kDirectoryContext, found->at("f")).value();
    std::ofstream(tree_.path("f"), std::ios::in | std::ios::out) << "other";
    ASSERT_FALSE(file->unchanged(kDirectoryContext).value()) << round;
  }
}

TEST_F(DirectorySourceTest, NoticesThatAFileIsSomethingElse) {
  const auto refuses = [&](const auto& replace) {
    tree_.write("f", "first");
    const auto source = open();
    const auto found = scan_all(*source);
    fs::remove(tree_.path("f"));
    replace();
    const auto opened = source->open(kDirectoryContext, found->at("f"));
    EXPECT_EQ(opened.error().code(), StatusCode::kConflict) << opened.error().to_string();
    fs::remove_all(tree_.path("f"));
  };
  refuses([&] { tree_.make_directory("f"); });
  refuses([&] { tree_.link("f", "/etc/passwd"); });
  refuses([&] { ::mkfifo(tree_.path("f").c_str(), 0600); });
}

TEST_F(DirectorySourceTest, ScansATreeThatOthersChange) {
  for (int n = 0; n < 200; ++n)
    tree_.write("keep/" + std::to_string(n), "x");
  std::atomic<bool> stop = false;
  std::thread other([&] {
    for (int n = 0; !stop; ++n) {
      const std::string top = "gone" + std::to_string(n % 7);
      tree_.write(top + "/a/b", "x");
      std::error_code ignored;
      fs::remove_all(tree_.path(top), ignored);
    }
  });
  for (int round = 0; round < 30; ++round) {
    const auto found = scan_all(*open({.threads = 3}));
    for (int n = 0; n < 200; ++n) {
      ASSERT_TRUE(found->entries().contains("keep/" + std::to_string(n)));
    }
    for (const auto& [path, reason] : found->problems()) {
      ASSERT_THAT(path, HasSubstr("gone")) << reason;
    }
  }
  stop = true;
  other.join();
}

TEST_F(DirectorySourceTest, StopsWhenToldTo) {
  for (int n = 0; n < 300; ++n)
    tree_.write("d" + std::to_string(n) + "/x", "");
  class Refusing final : public SourceSink {
   public:
    Status take(std::span<SourceEntry>) override { return Status(StatusCode::kIoError, "full"); }
    Status report(SourceProblem) override { return {}; }
  } refusing;
  const auto source = open();
  EXPECT_EQ(source->scan(kDirectoryContext, refusing).code(), StatusCode::kIoError);

  const RequestContext cancelled(TimePoint::max(), "test");
  cancelled.cancellation().request();
  CollectedSource collected;
  EXPECT_EQ(source->scan(cancelled, collected).code(), StatusCode::kCancelled);
}

TEST_F(DirectorySourceTest, HoldsAHundredThousandFiles) {
  // In memory where that is possible: to make them on a busy disk takes half a minute.
  const ScratchTree large(::access("/dev/shm", W_OK) == 0 ? "/dev/shm/" : ::testing::TempDir());
  const int directory = ::open(large.root().c_str(), O_RDONLY | O_DIRECTORY);
  for (int d = 0; d < 100; ++d) {
    const std::string name = std::to_string(d);
    ASSERT_EQ(::mkdirat(directory, name.c_str(), 0700), 0);
    const int at = ::openat(directory, name.c_str(), O_RDONLY | O_DIRECTORY);
    // One of them is large.
    for (int f = 0; f < (d == 0 ? 50'500 : 500); ++f) {
      const int file = ::openat(at, std::to_string(f).c_str(), O_CREAT | O_WRONLY, 0600);
      ASSERT_GE(file, 0);
      ::close(file);
    }
    ::close(at);
  }
  ::close(directory);
  const auto source = DirectorySource::open_root(large.root()).value();
  EXPECT_EQ(scan_all(*source)->entries().size(), 100'101U);
}

}  // namespace
}  // namespace millrace
