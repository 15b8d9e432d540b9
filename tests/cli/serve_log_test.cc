#include "cli/serve_log.h"

#include <fcntl.h>
#include <unistd.h>

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

TEST(ServeLog, OneThatIsNotItsOwnIsLeftAlone) {
  const ScratchTree tree{"/tmp/"};
  tree.write("serve.log", std::string(kServeLogBytesMax + 1, 'x'));
  EXPECT_TRUE(bound_own_serve_log(tree.path("serve.log")).ok());
  EXPECT_FALSE(read_file(tree.path("serve.log.1")));
}

}  // namespace
}  // namespace millrace::cli
