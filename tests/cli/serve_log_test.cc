#include "cli/serve_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "platform/file.h"
#include "tests/dataset/source_world.h"

namespace millrace::cli {
namespace {

TEST(ServeLog, KeepsItsEndAndWhoeverHasItOpenGoesOn) {
  const ScratchTree tree{"/tmp/"};
  const std::string path = tree.path("serve.log");
  EXPECT_TRUE(bound_serve_log(path, 10).ok()) << "there is none";
  const File log = File::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600).value();
  const auto say = [&](const std::string& text) {
    EXPECT_EQ(::write(log.descriptor(), text.data(), text.size()), ssize_t(text.size()));
  };
  say("0123456789");
  EXPECT_TRUE(bound_serve_log(path, 10).ok());
  EXPECT_EQ(read_file(path).value(), "0123456789");
  EXPECT_FALSE(read_file(path + ".1"));
  say("ab");
  EXPECT_TRUE(bound_serve_log(path, 10).ok());
  EXPECT_EQ(read_file(path).value(), "");
  EXPECT_EQ(read_file(path + ".1").value(), "23456789ab");
  say("and on it goes");
  EXPECT_EQ(read_file(path).value(), "and on it goes");
  EXPECT_TRUE(bound_serve_log(path, 10).ok());
  EXPECT_EQ(read_file(path + ".1").value(), "on it goes");
}

// Each line that is written while the log is emptied is in one of the two files, but for what comes
// in the last moment: once in so many times that is nothing.
TEST(ServeLog, WhatIsWrittenMeanwhileIsKept) {
  const ScratchTree tree{"/tmp/"};
  const std::string path = tree.path("serve.log");
  const File log = File::open(path, O_WRONLY | O_CREAT | O_APPEND, 0600).value();
  std::jthread writer([&log](const std::stop_token& stop) {
    for (std::uint64_t line = 0; !stop.stop_requested(); ++line) {
      const std::string text = fmt::format("{:015}\n", line);
      if (::write(log.descriptor(), text.data(), text.size()) != ssize_t(text.size())) return;
    }
  });
  const auto number_at = [](const std::string& text, std::size_t place) {
    return std::stoull(text.substr(place, 15));
  };
  std::uint64_t lost_min = std::numeric_limits<std::uint64_t>::max();
  for (int n = 0; n < 100 && lost_min > 2; ++n) {
    while (log.size().value() <= 256 * kKiB)
      std::this_thread::yield();
    ASSERT_TRUE(bound_serve_log(path, 256 * kKiB).ok());
    while (log.size().value() < 16)
      std::this_thread::yield();
    const std::string kept = read_file(path + ".1").value();
    const std::string rest = read_file(path, 1 * kGiB).value();
    ASSERT_GE(kept.size(), 256 * kKiB);
    const std::uint64_t last = number_at(kept, kept.size() - 16);
    lost_min = std::min<std::uint64_t>(lost_min, number_at(rest, 0) - last - 1);
  }
  EXPECT_LE(lost_min, 2);
}

TEST(ServeLog, IsLeftToWhoeverIsJustEmptyingIt) {
  const ScratchTree tree{"/tmp/"};
  const std::string path = tree.path("serve.log");
  tree.write("serve.log", "0123456789ab");
  tree.write("serve.log.1", "before");
  File other = File::open(path, O_RDWR).value();
  ASSERT_EQ(::flock(other.descriptor(), LOCK_EX), 0);
  EXPECT_TRUE(bound_serve_log(path, 10).ok());
  EXPECT_EQ(read_file(path).value(), "0123456789ab");
  EXPECT_EQ(read_file(path + ".1").value(), "before");
  other.close();
  EXPECT_TRUE(bound_serve_log(path, 10).ok());
  EXPECT_EQ(read_file(path + ".1").value(), "23456789ab");
}

TEST(ServeLog, IsEmptiedAlsoWhenItsEndCannotBeKept) {
  const ScratchTree tree{"/tmp/"};
  const std::string path = tree.path("serve.log");
  tree.write("serve.log", "0123456789ab");
  tree.write("serve.log.1/in_the_way", "");
  EXPECT_FALSE(bound_serve_log(path, 10).ok());
  EXPECT_EQ(read_file(path).value(), "");
  EXPECT_FALSE(read_file(path + ".1.new")) << "nothing is left";
}

TEST(ServeLog, OneThatIsNotItsOwnIsLeftAlone) {
  const ScratchTree tree{"/tmp/"};
  tree.write("serve.log", std::string(kServeLogBytesMax + 1, 'x'));
  EXPECT_TRUE(bound_own_serve_log(tree.path("serve.log")).ok());
  EXPECT_FALSE(read_file(tree.path("serve.log.1")));
}

}  // namespace
}  // namespace millrace::cli
