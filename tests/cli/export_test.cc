// `millrace export`, and NFS by libnfs' programs, which know nothing of us.
#include <gmock/gmock.h>

#include "tests/cli/millrace_process.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ExportCommand : public MillraceTest {
 protected:
  void SetUp() override {
    MillraceTest::SetUp();
    write("tree/d/hello.txt", "hello\n");
    ASSERT_EQ(bash("cd $DIR; head -c 3000000 /dev/urandom > tree/large.bin;"
                   "for n in $(seq 40); do echo $n > tree/d/$n; done; millrace publish tree a@v1;"
                   "millrace alias set a@current v1")
                  .exit_code,
              0);
  }
  void TearDown() override {
    if (!directory_.empty()) millrace({"stop"});
    MillraceTest::TearDown();
  }
  void serve() {
    const Outcome started = millrace({"serve", "--background", "--nfs", "127.0.0.1:0"});
    ASSERT_EQ(started.exit_code, 0) << started.err;
  }
  // Where NFS is served.
  std::string port() {
    const auto status = millrace({"status", "--json"}).json();
    for (const auto& front_end : status["front_ends"]) {
      if (front_end["name"] != "nfs") continue;
      const std::string address = front_end["address"];
      return address.substr(address.rfind(':') + 1);
    }
    return "";
  }
  // One of libnfs' programs on a path of the server.
  Outcome libnfs(const std::string& program, const std::string& path) {
    return bash(program + " 'nfs://127.0.0.1" + path + "?version=4&nfsport=" + port() + "'");
  }
};

TEST_F(ExportCommand, IsKeptAndListed) {
  serve();
  ASSERT_EQ(millrace({"export", "add", "/mine", "a@current", "--anon", "7:8"}).exit_code, 0);
  ASSERT_EQ(millrace({"stop"}).exit_code, 0);
  serve();
  const auto listed = bash("millrace export ls --json | grep mine").json();
  EXPECT_EQ(listed["source"], "/datasets/a/v1") << "an alias is what it stood for";
  EXPECT_EQ(listed["anonymous_gid"], 8);
  EXPECT_EQ(listed["setting"], false);
  EXPECT_EQ(millrace({"export", "rm", "/mine"}).exit_code, 0);
  EXPECT_EQ(millrace({"export", "rm", "/mine"}).exit_code, 3);
}

TEST_F(ExportCommand, SaysWhatIsWrong) {
  serve();
  const auto message = [this](const std::vector<std::string>& arguments) {
    const Outcome outcome = millrace(arguments);
    EXPECT_NE(outcome.exit_code, 0);
    return outcome.err;
  };
  EXPECT_THAT(message({"export", "add", "mine", "a@v1"}), HasSubstr("'mine' is no path"));
  EXPECT_THAT(message({"export", "add", "/mine,sec=tls", "a@v1"}),
              HasSubstr("export add PATH --sec tls"));
  EXPECT_THAT(message({"export", "add", "/mine", "b@v1"}), HasSubstr("b has no version"));
  EXPECT_THAT(message({"export", "add", "/mine", "/datasets/a/v1/large.bin"}),
              HasSubstr("is not a directory"));
  EXPECT_THAT(message({"export", "add", "/datasets/mine", "a@v1"}),
              HasSubstr("one holds the other"));
  EXPECT_THAT(message({"export", "add", "/mine", "a@v1", "--clients", "office"}),
              HasSubstr("'office' is no network"));
  EXPECT_THAT(message({"export", "add", "/mine", "a@v1", "--squash", "some"}),
              HasSubstr("expected none, root or all"));
}

TEST_F(ExportCommand, WithoutAServerItSaysThatNothingIsServed) {
  const Outcome added = millrace({"export", "add", "/mine", "a@v1"});
  EXPECT_EQ(added.exit_code, 0);
  EXPECT_THAT(added.err, HasSubstr("does not serve NFS: start it with --nfs"));
}

TEST_F(ExportCommand, APortThatIsTakenIsNamed) {
  serve();
  const Outcome second =
      bash("millrace serve --nfs 127.0.0.1:" + port() + " --cache $DIR/c --socket $DIR/s");
  EXPECT_NE(second.exit_code, 0);
  EXPECT_THAT(second.err, AllOf(HasSubstr("nfs"), HasSubstr(port())));
}

TEST_F(ExportCommand, LibnfsListsAndReads) {
  serve();
  const Outcome listed = libnfs("nfs-ls", "/datasets/a/v1/d/");
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  EXPECT_THAT(listed.out, AllOf(HasSubstr("hello.txt"), HasSubstr(" 40")));
  const Outcome read = libnfs("nfs-cat", "/datasets/a/v1/d/hello.txt");
  EXPECT_EQ(read.out, "hello\n") << read.err;
  const Outcome same =
      bash("nfs-cat 'nfs://127.0.0.1/datasets/a/current/large.bin?version=4&nfsport=" + port() +
           "' | cmp - $DIR/tree/large.bin");
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_NE(libnfs("nfs-cat", "/datasets/a/v1/nothing").exit_code, 0);
  EXPECT_NE(libnfs("nfs-ls", "/elsewhere/").exit_code, 0);
}

}  // namespace
}  // namespace millrace::cli
