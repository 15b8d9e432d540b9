#include <pwd.h>
#include <unistd.h>

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/cli/millrace_process.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using Frame = MillraceTest;

TEST_F(Frame, HelpIsGroupedAndShowsDefaults) {
  const Outcome help = millrace({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, AllOf(HasSubstr("Data:"), HasSubstr("This machine:"), HasSubstr("512MiB"),
                              HasSubstr("Exit codes:"), HasSubstr("MILLRACE_STORE")));
  EXPECT_THAT(millrace({"store", "cp", "--help"}).out,
              AllOf(HasSubstr("millrace store cp"), HasSubstr("--no-clobber"), HasSubstr("=8")));
  EXPECT_THAT(millrace({"help", "store", "cp"}).out, HasSubstr("--no-clobber"));
  EXPECT_EQ(millrace({"help"}).out, help.out);
  EXPECT_THAT(millrace({"help", "exit-codes"}).out, HasSubstr("not found"));
  EXPECT_THAT(millrace({"--version"}).out, AllOf(HasSubstr("millrace "), HasSubstr("features:")));
}

TEST_F(Frame, AWordThatIsWrongIsNamedWithTheOneThatWasMeant) {
  const auto says = [&](std::vector<std::string> arguments, const std::string& what) {
    const Outcome outcome = millrace(arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_EQ(outcome.out, "");
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("millrace: "), HasSubstr(what)));
  };
  says({"stroe", "ls"}, "did you mean 'store'?");
  says({"store", "lss"}, "did you mean 'ls'?");
  says({"store"}, "'millrace store' needs a command: ls, stat, cat, cp, rm, bench");
  says({}, "needs a command: store, mount");
  EXPECT_THAT(millrace({}).err, Not(HasSubstr("keeper"))) << "it is not for people";
  says({"store", "ls", "--recusive"}, "did you mean '--recursive'?");
  says({"store", "cat"}, "'millrace store cat' needs URL");
  says({"store", "cp", "a"}, "needs DST");
  says({"store", "stat", "a", "b"}, "does not expect 'b'");
  says({"store", "cp", "-j", "0", "a", "b"}, "millrace store cp");
  says({"completion", "tcsh"}, "bash, zsh or fish");
  says({"--store", "s4://b", "store", "ls"}, "--store");
  says({"--log-level", "loud", "store", "ls"}, "debug, info, warn, error, off");
  says({"help", "stroe"}, "did you mean 'store'?");
  says({"store", "ls", "s3://"}, "names no bucket");
  says({"store", "ls", "s3:/bucket"}, "expected s3://bucket/key");
  says({"store", "cp", "a", "s3:bucket/key"}, "expected s3://bucket/key");
}

TEST_F(Frame, AFlagWithAValueIsRefused) {
  const auto refuses = [&](std::vector<std::string> arguments, const std::string& flag) {
    const Outcome outcome = millrace(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << flag << ": " << outcome.out;
    EXPECT_THAT(outcome.err, HasSubstr(flag + " takes no value"));
  };
  refuses({"version", "gc", "--no-repack=3"}, "--no-repack");
  refuses({"version", "gc", "--dry-run=false"}, "--dry-run");
  refuses({"publish", ".", "d@v1", "--rehash=no"}, "--rehash");
  refuses({"version", "rm", "d@v1", "--force=0"}, "--force");
  refuses({"store", "ls", "--recursive=off"}, "--recursive");
  refuses({"store", "ls", "--json=2"}, "--json");
  // One that takes a value still does.
  write("s/x", "x");
  EXPECT_EQ(millrace({"--store=./s", "store", "ls", "--json"}).exit_code, 0);
}

TEST_F(Frame, ANameLikeACommandIsStillAName) {
  write("s/doctor", "x");
  EXPECT_EQ(millrace({"--store", "./s", "store", "cat", "doctor"}).out, "x");
  EXPECT_EQ(millrace({"--store", "./s", "store", "ls", "doctor"}).out, "doctor\n");
}

TEST_F(Frame, ErrorsAreJsonWhenAskedFor) {
  const Outcome missing = millrace({"store", "stat", "none", "--json"});
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_EQ(missing.out, "");
  EXPECT_EQ(missing.error_json()["error"]["code"], "not_found");
  EXPECT_EQ(missing.error_json()["error"]["exit_code"], 3);
  EXPECT_THAT(millrace({"store", "cat", "x", "--json"}).err, HasSubstr("leave out --json"));
  const Outcome usage = millrace({"stroe", "--json"});
  EXPECT_EQ(usage.error_json()["error"]["code"], "invalid_argument");
}

TEST_F(Frame, ConfigShowSaysWhereEachSettingComesFrom) {
  write("c.yaml", "cache: /nvme\n");
  variables_["MILLRACE_TIMEOUT"] = "7s";
  const auto shown = millrace({"--config", "c.yaml", "config", "show", "--json", "--store", "./x"})
                         .json()["settings"];
  EXPECT_EQ(shown["cache"]["where"], "c.yaml:1");
  EXPECT_EQ(shown["timeout"]["source"], "environment");
  EXPECT_EQ(shown["store"]["where"], "--store");
  EXPECT_EQ(shown["memory_max"]["source"], "default");
  EXPECT_THAT(millrace({"--config", "c.yaml", "config", "show"}).out, HasSubstr("c.yaml:1"));
  EXPECT_EQ(millrace({"--config", "none.yaml", "config", "show"}).exit_code, 3);
}

TEST_F(Frame, WithoutHomeTheListOfUsersSaysWhereFilesBelong) {
  const passwd* const user = ::getpwuid(::geteuid());
  if (user == nullptr || !std::filesystem::is_directory(user->pw_dir)) {
    GTEST_SKIP() << "this user has no home";
  }
  variables_.erase("HOME");
  const auto shown = millrace({"config", "show", "--json"}).json()["settings"];
  EXPECT_EQ(shown["cache"]["value"], std::string(user->pw_dir) + "/.local/share/millrace/cache");
}

TEST_F(Frame, DoctorFindsWhatIsWrong) {
  const Outcome healthy = millrace({"doctor", "--json"});
  EXPECT_EQ(healthy.exit_code, 0) << healthy.out << healthy.err;
  EXPECT_EQ(healthy.json()["healthy"], true);
  EXPECT_THAT(healthy.out, AllOf(HasSubstr("create_if_absent"), HasSubstr("open_files"),
                                 HasSubstr("mounts work")));
  write("file", "x");
  const Outcome sick = millrace({"--cache", path("file/cache"), "doctor"});
  EXPECT_EQ(sick.exit_code, 1);
  EXPECT_THAT(sick.out, AllOf(HasSubstr("fail  cache_directory"), HasSubstr("--cache DIR")));
}

TEST_F(Frame, OutputThatCannotBeWrittenIsAFailure) {
  write("s/a", "x");
  const Outcome full = bash("millrace --store ./s store cat a > /dev/full");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("standard output: No space left on device"));
  EXPECT_EQ(bash("millrace --help > /dev/full").exit_code, 1);
}

TEST_F(Frame, AStreamThatIsClosedIsAFailure) {
  write("s/a", "x");
  const Outcome input = bash("timeout 20 millrace store cp - store:x <&-");
  EXPECT_EQ(input.exit_code, 1);
  EXPECT_THAT(input.err, HasSubstr("standard input"));
  const Outcome output = bash("timeout 20 millrace --store ./s store ls >&-");
  EXPECT_EQ(output.exit_code, 1);
  EXPECT_THAT(output.err, HasSubstr("standard output"));
}

TEST_F(Frame, AReaderThatGoesAwayEndsItQuietly) {
  write("s/big", std::string(30'000'000, 'x'));
  const Outcome gone =
      bash("millrace --store ./s store cat big | head -c 10; echo \" ${PIPESTATUS[0]}\"");
  EXPECT_EQ(gone.out, "xxxxxxxxxx 141\n");
  EXPECT_EQ(gone.err, "");
}

TEST_F(Frame, ASignalEndsItCleanly) {
  // Waits for bytes that never come. The shell learns the number when the program reads.
  const Outcome interrupted = bash(
      "set -m; mkfifo f; exec 3<>f; millrace store cp - store:x <f & p=$!; printf x >&3; sleep 1;"
      "kill -INT $p; wait $p; echo $?; millrace store ls -r");
  EXPECT_EQ(interrupted.out, "130\n");
}

TEST_F(Frame, CompletionWorksInBash) {
  const auto completes = [&](const std::string& line) {
    return bash("source <(millrace completion bash); COMP_WORDS=(" + line +
                "); COMP_CWORD=$((${#COMP_WORDS[@]}-1)); _millrace; echo \"${COMPREPLY[*]}\"")
        .out;
  };
  EXPECT_EQ(completes("millrace sto"), "store stop\n");
  EXPECT_EQ(completes("millrace store ''"), completes("millrace --store s3://b store ''"));
  EXPECT_THAT(completes("millrace store ''"), HasSubstr("ls stat cat cp rm bench"));
  EXPECT_EQ(completes("millrace store ls --rec"), "--recursive\n");
  EXPECT_EQ(completes("millrace store ls --js"), "--json\n");
  EXPECT_EQ(completes("millrace --log-level d"), "debug\n");
  EXPECT_EQ(completes("millrace completion f"), "fish\n");
  EXPECT_EQ(completes("millrace doctor st"), "\n");
}

TEST_F(Frame, CompletionScriptsAreReadableByTheirShells) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Outcome script = millrace({"completion", shell});
    EXPECT_EQ(script.exit_code, 0);
    write("script." + shell, script.out);
    const Outcome read =
        bash("command -v " + shell + " >/dev/null || exit 0; " + shell + " -n script." + shell);
    EXPECT_EQ(read.exit_code, 0) << read.err;
  }
}

TEST_F(Frame, AnUnreachableEndpointIsOneSentence) {
  variables_["AWS_ACCESS_KEY_ID"] = "a";
  variables_["AWS_SECRET_ACCESS_KEY"] = "b";
  const Outcome refused =
      millrace({"--attempts-max", "1", "store", "ls", "s3://bucket/x?endpoint=http://127.0.0.1:1"});
  EXPECT_EQ(refused.exit_code, 5) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("127.0.0.1"));
  EXPECT_EQ(std::count(refused.err.begin(), refused.err.end(), '\n'), 1) << refused.err;
}

}  // namespace
}  // namespace millrace::cli
