// `millrace mount` as people use it: real processes, a real mount, ordinary programs on it.
#include <signal.h>

#include <algorithm>
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/cli/mount_world.h"
#include "tests/servers/child_process.h"
#include "tests/servers/fault_proxy.h"
#include "tests/servers/strict_s3_server.h"

namespace millrace::cli {
namespace {

using millrace::testing::ChildProcess;
using millrace::testing::FaultProxy;
using millrace::testing::ProxiedRequest;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// In front of a command that reads what only a store has that does not answer, with a deadline of
// 3 s: it ends by itself before this kills it.
constexpr const char* kWithinTheDeadline = "timeout -s KILL 15 ";

TEST_F(MountTest, OneCommandShowsAVersionAndOneEndsIt) {
  const Outcome mounted = succeed("millrace mount a@v1 mnt");
  EXPECT_THAT(mounted.out, HasSubstr("/datasets/a/v1 is at " + path("mnt") + " ("));
  succeed("diff -r --no-dereference tree mnt");
  EXPECT_EQ(mounts(), 1);
  succeed("millrace umount mnt");
  EXPECT_FALSE(is_mounted());
  EXPECT_TRUE(becomes([this] {
    return !std::filesystem::exists(path("home/.local/share/millrace/cache/keeper.sock"));
  })) << "the keeper ends with the last mount";
}

TEST_F(MountTest, APathLeadsToItsMountHoweverItIsWritten) {
  succeed("ln -s mnt lnk; ln -s $DIR/lnk far; mkdir sub; ln -s .. sub/up");
  for (const std::string name :
       {"lnk", "lnk/", "far", "mnt/", "./mnt/.", "sub/../mnt", "sub/up/mnt"}) {
    succeed("millrace mount a@v1 " + name);
    EXPECT_TRUE(is_mounted()) << name;
    succeed("millrace umount " + name);
    EXPECT_FALSE(is_mounted()) << name;
  }
  succeed("(cd mnt; millrace mount a@v1 .); millrace umount $DIR/mnt");
}

TEST_F(MountTest, AMountIsFoundWhereItsDirectoryWasMovedTo) {
  succeed(
      "mkdir -p old/m; millrace mount a@v1 old/m; mv old new; cmp tree/large.bin new/m/large.bin");
  EXPECT_EQ(mounts(), 1);
  EXPECT_THAT(bash("cd $DIR; mkdir -p old/m; millrace umount old/m").err,
              HasSubstr("nothing of ours is mounted on"));
  // What was its place is free, and the two are not mixed up.
  succeed("millrace mount a old/m; test -e new/m/large.bin; test -e old/m/v1/large.bin");
  EXPECT_THAT(bash("cd $DIR; millrace mount a@v1 new/m").err,
              HasSubstr("new/m' shows /datasets/a/v1 already; unmount it first"));
  const int daemon = daemon_pid();
  ASSERT_GT(daemon, 0);
  ::kill(daemon, SIGKILL);
  ASSERT_TRUE(becomes([&] { return daemon_pid() != daemon && daemon_pid() > 0; }));
  succeed("cmp tree/large.bin new/m/large.bin; millrace umount new/m; test -z \"$(ls new/m)\"");
  succeed("test -e old/m/v1/large.bin; millrace umount old/m; test -z \"$(ls old/m)\"");
}

TEST_F(MountTest, AStopEndsMountsWhereTheyAreNow) {
  succeed(
      "mkdir -p old/m bound; millrace mount a@v1 old/m; mount --bind old/m/d bound; mv old new;"
      "cmp tree/large.bin new/m/large.bin; cmp tree/d/1.jpg bound/1.jpg");
  succeed("millrace stop");
  EXPECT_EQ(bash("grep -c \" $DIR/\" /proc/self/mountinfo").out, "0\n");
  succeed("test -z \"$(ls new/m)\"; test -z \"$(ls bound)\"");
}

TEST_F(MountTest, AMountThatIsBoundElsewhereEndsWithTheLastPlace) {
  succeed(
      "mkdir bound; millrace mount a@v1 mnt; mount --bind mnt bound; millrace umount mnt;"
      "cmp tree/large.bin bound/large.bin; millrace umount bound; test -z \"$(ls bound)\"");
  EXPECT_TRUE(becomes([this] { return keepers().empty(); }));
}

TEST_F(MountTest, S22AMountThatWasMovedEndsToo) {
  variables_["MILLRACE_KEEPER_WAIT"] = "1s";
  succeed("mkdir -p old/m; millrace mount a@v1 old/m; mv old new");
  const int daemon = daemon_pid();
  ASSERT_GT(daemon, 0);
  succeed("mkdir -p home/.config/millrace; echo nonsense > home/.config/millrace/config.yaml");
  ::kill(daemon, SIGKILL);
  EXPECT_TRUE(becomes([this] { return bash("mountpoint -q $DIR/new/m").exit_code == 32; }));
}

TEST_F(MountTest, AnotherDaemonDoesNotMountOverIt) {
  succeed("millrace mount a@v1 mnt");
  const std::string other = "--cache $DIR/cache2 --socket $DIR/socket2 ";
  const Outcome refused = bash("cd $DIR; millrace " + other + "mount a mnt");
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("mnt' shows millrace:/datasets/a/v1 already, by another "));
  EXPECT_THAT(refused.err, HasSubstr("umount '"));
  succeed("cmp tree/large.bin mnt/large.bin; millrace " + other + "stop");
}

TEST_F(MountTest, OrdinaryProgramsReadIt) {
  succeed("millrace mount a@v1 mnt");
  succeed("(cd mnt && sha256sum --quiet -c ../sums)");
  succeed(
      "cp -a mnt copy; diff -r --no-dereference tree copy; rsync -a mnt/ synced;"
      "diff -r --no-dereference tree synced; test -z \"$(rsync -ai tree/ synced)\"");
  succeed("tar -C mnt -cf all.tar .; mkdir out; tar -C out -xf all.tar; diff -r tree out");
  succeed(
      "test $(find mnt -type f -size +0 | wc -l) = 62; test $(find mnt -name '*.jpg' | wc -l) = "
      "60");
  succeed(
      "for t in tree mnt; do (cd $t; find . -printf '%P %y %m %s %T@ %l\\n' | grep -v '^[^ ]* d'"
      " | sort) > list-$t; done; cmp list-tree list-mnt");
  succeed(
      "python3 -c \"import mmap; f=open('mnt/large.bin','rb');"
      "m=mmap.mmap(f.fileno(),0,access=mmap.ACCESS_READ);"
      "assert m[:]==open('tree/large.bin','rb').read()\"");
}

TEST_F(MountTest, TheWholeTreeFollowsItsAliases) {
  succeed("millrace alias set a@current v1; millrace mount mnt");
  EXPECT_EQ(succeed("readlink mnt/datasets/a/current").out, "v1\n");
  succeed("cmp tree/large.bin mnt/datasets/a/current/large.bin");
  succeed("echo more > tree/more; millrace publish tree a@v2; millrace alias set a@current v2");
  EXPECT_TRUE(
      becomes([this] { return bash("readlink $DIR/mnt/datasets/a/current").out == "v2\n"; }));
  succeed("cmp tree/more mnt/datasets/a/current/more; ! test -e mnt/datasets/a/v1/more");
}

TEST_F(MountTest, S22ADaemonThatIsKilledComesBackAndReadersGoOn) {
  succeed("millrace mount --opening passthrough a@v1 mnt");
  succeed("cmp tree/large.bin mnt/large.bin");
  const int before = daemon_pid();
  ASSERT_GT(before, 0);
  const auto reader = std::make_unique<ChildProcess>(
      std::vector<std::string>{"/bin/bash", "-c",
                               "cd " + path("mnt") +
                                   " && for n in 1 2 3 4 5 6 7 8; do sha256sum --quiet -c ../sums "
                                   "|| exit 1; done"},
      millrace::testing::ChildOptions{.output_file = path("reader.log"), .environment = {}});
  ::kill(before, SIGKILL);
  EXPECT_EQ(reader->wait(std::chrono::seconds(90)), 0) << read("reader.log");
  EXPECT_TRUE(becomes([&] { return daemon_pid() != before && daemon_pid() > 0; }));
  succeed("(cd mnt && sha256sum --quiet -c ../sums); millrace umount mnt");
  EXPECT_FALSE(is_mounted());
}

TEST_F(MountTest, WhatOthersUnmountCanBeMountedAgainAtOnceAndSurvivesAKill) {
  variables_["MILLRACE_KEEPER_WAIT"] = "1s";
  for (int n = 0; n < 15; ++n)
    succeed("millrace mount a@v1 mnt; umount mnt");
  succeed("millrace mount a@v1 mnt");
  // By then those of the mounts before have done whatever they do at their end.
  EXPECT_TRUE(becomes([this] { return keepers().size() == 1; }));
  const int before = daemon_pid();
  ::kill(before, SIGKILL);
  succeed("(cd mnt && sha256sum --quiet -c ../sums)");
  EXPECT_NE(daemon_pid(), before);
}

TEST_F(MountTest, S22AKeeperThatIsKilledHasASuccessorThatHoldsTheMounts) {
  succeed("mkdir mnt2; millrace mount a@v1 mnt; millrace mount --opening passthrough a@v1 mnt2");
  succeed("cmp tree/large.bin mnt2/large.bin; cmp tree/large.bin mnt2/large.bin");
  ASSERT_EQ(keepers().size(), 1U);
  const int keeper = keepers().front();
  ::kill(keeper, SIGKILL);
  EXPECT_TRUE(becomes([this] {
    return read("home/.local/share/millrace/serve.log").find("another has taken its place") !=
           std::string::npos;
  }));
  ASSERT_EQ(keepers().size(), 1U);
  EXPECT_NE(keepers().front(), keeper);
  const int daemon = daemon_pid();
  ::kill(daemon, SIGKILL);
  succeed("for m in mnt mnt2; do (cd $m && sha256sum --quiet -c ../sums); done");
  EXPECT_NE(daemon_pid(), daemon);
  succeed("millrace umount mnt; millrace umount mnt2");
  EXPECT_TRUE(becomes([this] { return keepers().empty(); }));
}

TEST_F(MountTest, AMountThatDiedWithItsKeeperIsReplacedOrTakenAway) {
  for (const std::string next : {"mount -o noexec a@v1 mnt", "umount mnt"}) {
    succeed("millrace mount a@v1 mnt; stat mnt");
    const int daemon = daemon_pid();
    ::kill(daemon, SIGSTOP);  // So that it starts no other keeper.
    for (const int keeper : keepers())
      ::kill(keeper, SIGKILL);
    ::kill(daemon, SIGKILL);
    ASSERT_TRUE(becomes([this] { return bash("cat $DIR/mnt/d/1.jpg").exit_code != 0; }));
    succeed("millrace " + next);
    if (next.starts_with("mount")) {
      EXPECT_THAT(succeed("findmnt -no OPTIONS mnt").out, HasSubstr("noexec"))
          << "the kernel gives the new one the number of the dead one";
    }
    if (next.starts_with("mount")) succeed("(cd mnt && sha256sum --quiet -c ../sums); umount mnt");
    EXPECT_FALSE(is_mounted()) << "after " << next;
  }
}

TEST_F(MountTest, TheKeeperEndsWhenSomebodyElseUnmounts) {
  succeed("millrace mount a@v1 mnt; umount mnt");
  EXPECT_TRUE(becomes([this] { return keepers().empty(); }));
}

TEST_F(MountTest, S22MountsThatNoDaemonComesForEndAndReadersAreTold) {
  variables_["MILLRACE_KEEPER_WAIT"] = "1s";
  succeed("millrace mount a@v1 mnt");
  const int daemon = daemon_pid();
  ASSERT_GT(daemon, 0);
  succeed("mkdir -p home/.config/millrace; echo nonsense > home/.config/millrace/config.yaml");
  ::kill(daemon, SIGKILL);
  const Outcome read = bash("cat $DIR/mnt/large.bin > $DIR/copy");
  EXPECT_NE(read.exit_code, 0) << "it waited, and was told";
  EXPECT_TRUE(becomes([this] { return !is_mounted(); }));
  succeed("test -z \"$(ls mnt)\"; rm home/.config/millrace/config.yaml; millrace mount a@v1 mnt");
  succeed("cmp tree/large.bin mnt/large.bin");
}

TEST_F(MountTest, MountEightCallsItByItsHelpersName) {
  succeed(
      "ln -s $(command -v millrace) bin/mount.millrace;"
      "bin/mount.millrace a@v1 $DIR/mnt -o ro,_netdev,opening=stateless,log_level=debug;"
      "cmp tree/large.bin mnt/large.bin");
  const Outcome refused = bash("cd $DIR; bin/mount.millrace a@v1 $DIR/mnt -o rw");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("use ro instead of rw"));
}

TEST_F(MountTest, WhatIsMountedAlreadyIsNoFailureForMountEight) {
  succeed(
      "ln -s $(command -v millrace) bin/mount.millrace; millrace alias set a@current v1;"
      "bin/mount.millrace a@v1 $DIR/mnt -o ro,_netdev;"
      "bin/mount.millrace a@v1 $DIR/mnt -o ro,_netdev;"
      "bin/mount.millrace a@current $DIR/mnt -o ro,opening=stateless");
  EXPECT_EQ(mounts(), 1);
  for (const char* const other :
       {"bin/mount.millrace a $DIR/mnt", "bin/mount.millrace a@v1 $DIR/mnt -o opening=passthrough",
        "bin/mount.millrace a@v1 $DIR/mnt -o noexec", "millrace mount a@v1 mnt"}) {
    const Outcome refused = bash(std::string("cd $DIR; ") + other);
    EXPECT_EQ(refused.exit_code, 6) << other << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("shows /datasets/a/v1 already")) << other;
  }
  EXPECT_THAT(succeed("findmnt -no OPTIONS mnt").out, Not(HasSubstr("noexec")));
  succeed("cmp tree/large.bin mnt/large.bin");
}

TEST_F(MountTest, AFakeMountOnlyChecks) {
  succeed("ln -s $(command -v millrace) bin/mount.millrace; bin/mount.millrace a@v1 $DIR/mnt -f");
  EXPECT_FALSE(is_mounted());
  EXPECT_EQ(daemon_pid(), 0) << "nobody needs one";
  EXPECT_THAT(bash("cd $DIR; bin/mount.millrace a@v1 $DIR/mnt -f -o nonsense").err,
              HasSubstr("unknown mount option 'nonsense'"));
  succeed("bin/mount.millrace a@v1 $DIR/mnt -f -s -o nonsense");
  EXPECT_THAT(bash("cd $DIR; bin/mount.millrace a@v1 $DIR/none -fv").err,
              HasSubstr("make the directory first"));
}

TEST_F(MountTest, ADirectoryMayHaveAnyNameThatIsUtf8) {
  for (const std::string name :
       {"a b", "a\\tb", "a\\nb", "a\\\\b", "a,b=\\\"c", "a#b", "\\xC3\\xA9"}) {
    succeed("d=$'" + name + "'; mkdir -p \"$d/m\"; millrace mount a@v1 \"$d/m\";" +
            "cmp tree/large.bin \"$d/m/large.bin\"; mv \"$d\" moved; millrace umount moved/m;" +
            "mkdir -p \"$d\"; millrace mount a@v1 \"$d\"; millrace umount \"$d\";" +
            "test -z \"$(ls \"$d\")\"; rmdir moved/m moved \"$d\"");
  }
  const Outcome refused = bash("cd $DIR; d=$'caf\\xE9'; mkdir \"$d\"; millrace mount a@v1 \"$d\"");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              HasSubstr("its path is not UTF-8; mount on a directory of another name"));
  // Who gives it such a name later ends it by that.
  succeed(
      "mkdir -p old/m; millrace mount a@v1 old/m; mv old $'\\xE9'; millrace --json status;"
      "millrace umount $'\\xE9/m'; test -z \"$(ls $'\\xE9/m')\"");
}

TEST_F(MountTest, TheOptionsThatEveryFileSystemHasAreTaken) {
  succeed("ln -s $(command -v millrace) bin/mount.millrace");
  succeed(
      "bin/mount.millrace a@v1 $DIR/mnt -o "
      "ro,suid,dev,exec,async,relatime,nodiratime,lazytime,user,"
      "nofail,comment=x,x-systemd.automount,X-mount.mkdir; cmp tree/large.bin mnt/large.bin");
  EXPECT_THAT(succeed("findmnt -no OPTIONS mnt").out,
              AllOf(HasSubstr("ro,nosuid,nodev"), Not(HasSubstr("noexec"))));
  succeed("millrace umount mnt; bin/mount.millrace a@v1 $DIR/mnt -o noexec,sync,strictatime");
  EXPECT_THAT(succeed("findmnt -no OPTIONS mnt").out, HasSubstr("ro,nosuid,nodev,noexec"));
  succeed("cmp tree/large.bin mnt/large.bin");
}

TEST_F(MountTest, InTheForegroundItEndsWithTheCommandOrItsDaemon) {
  succeed("mkdir -p old/m");
  std::vector<std::string> command = {"/usr/bin/env", "-i"};
  for (const auto& [name, value] : variables_)
    command.push_back(name + "=" + value);
  command.insert(command.end(), {program_, "mount", "--foreground", "a@v1", path("old/m")});
  for (const bool by_daemon : {false, true}) {
    ChildProcess mount(command, {.output_file = path("mount.log"), .environment = {}});
    ASSERT_TRUE(becomes([this] { return bash("mountpoint -q $DIR/old/m").exit_code == 0; }))
        << read("mount.log");
    succeed("mv old new");
    EXPECT_FALSE(mount.wait(std::chrono::milliseconds(1500))) << "it is only somewhere else";
    succeed("cmp tree/large.bin new/m/large.bin");
    if (by_daemon) {
      succeed("millrace stop");
    } else {
      mount.signal(SIGINT);
    }
    EXPECT_EQ(mount.wait(std::chrono::seconds(30)), 0) << read("mount.log");
    succeed("test -z \"$(ls new/m)\"; mv new old");
  }
}

TEST_F(MountTest, WhatOthersMountedOverItIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root mounts a tmpfs";
  succeed("millrace mount a@v1 mnt; mount -t tmpfs none mnt; touch mnt/theirs");
  const Outcome refused = bash("cd $DIR; millrace umount mnt");
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr("something else mounted on it (tmpfs): unmount that first"));
  succeed("test -e mnt/theirs; umount mnt; cmp tree/large.bin mnt/large.bin; millrace umount mnt");
  EXPECT_FALSE(is_mounted());
}

TEST_F(MountTest, WhatCannotBeMountedIsSaidClearly) {
  const auto message = [this](const std::string& command) {
    const Outcome outcome = bash("cd $DIR; millrace " + command);
    EXPECT_NE(outcome.exit_code, 0) << command;
    return outcome.err;
  };
  EXPECT_THAT(message("mount a@v1 nowhere"), HasSubstr("make the directory first"));
  EXPECT_THAT(message("mount a@v1"), HasSubstr("say where ('millrace mount a@v1 DIR')"));
  EXPECT_THAT(message("mount a b c"), HasSubstr("'millrace mount' does not expect 'c'"));
  EXPECT_THAT(message("mount b@v1 mnt"), HasSubstr("b has no version or alias 'v1'"));
  EXPECT_THAT(message("mount a@v9 mnt"), HasSubstr("'millrace version ls a' lists them"));
  EXPECT_THAT(message("mount b mnt"),
              HasSubstr("no '/datasets/b' to mount: 'millrace dataset ls' lists the datasets"));
  EXPECT_THAT(message("mount /nothing mnt"), HasSubstr("no '/nothing' to mount"));
  EXPECT_THAT(message("mount /buckets mnt"),
              HasSubstr("no '/buckets' to mount: the setting 'buckets' names what is shown there"));
  EXPECT_THAT(message("mount a@v1 tree/large.bin"), HasSubstr("not a directory"));
  EXPECT_THAT(message("mount --opening x a@v1 mnt"), HasSubstr("'x' is no way to open files"));
  EXPECT_THAT(message("mount -o whatever a@v1 mnt"), HasSubstr("unknown mount option 'whatever'"));
  EXPECT_THAT(message("umount mnt"), HasSubstr("nothing of ours is mounted on"));
  succeed("millrace mount a@v1 mnt");
  EXPECT_THAT(message("mount a@v1 mnt"), HasSubstr("unmount it first"));
  const auto busy = std::make_unique<ChildProcess>(
      std::vector<std::string>{"/bin/bash", "-c", "cd " + path("mnt") + "; echo in; sleep 1000"},
      millrace::testing::ChildOptions{.output_file = path("busy.log"), .environment = {}});
  ASSERT_TRUE(becomes([this] { return read("busy.log") == "in\n"; }));
  EXPECT_THAT(message("umount mnt"), AllOf(HasSubstr("in use"), HasSubstr("--lazy")));
  succeed("millrace umount --lazy mnt");
  EXPECT_FALSE(is_mounted());
}

TEST_F(MountTest, WhatIsCachedIsReadWhileTheStoreIsAwayAndTheRestFails) {
  const millrace::testing::StrictS3Server server;
  auto proxy = std::make_unique<FaultProxy>(server.url());
  const std::uint16_t port = proxy->port();
  use_s3(proxy->endpoint());
  variables_["MILLRACE_TIMEOUT"] = "3s";
  variables_["MILLRACE_ATTEMPTS_MAX"] = "100";  // So many that the deadline comes first.
  succeed(
      "millrace publish tree a@v1; millrace mount a@v1 mnt; cmp tree/large.bin mnt/large.bin;"
      "ls -lR mnt > /dev/null");
  proxy.reset();
  succeed("echo 3 > /proc/sys/vm/drop_caches; cmp tree/large.bin mnt/large.bin");
  const Outcome cold = bash(std::string(kWithinTheDeadline) + "cat $DIR/mnt/d/60.jpg > /dev/null");
  EXPECT_EQ(cold.exit_code, 1);
  EXPECT_THAT(cold.err, HasSubstr("Input/output error"));
  proxy = std::make_unique<FaultProxy>("127.0.0.1", server.port(),
                                       millrace::testing::ProxySettings{}, port);
  EXPECT_TRUE(
      becomes([this] { return bash("cmp $DIR/tree/d/60.jpg $DIR/mnt/d/60.jpg").exit_code == 0; }));
}

// It takes requests, and never answers.
TEST_F(MountTest, S19WhatAStoreThatHangsHasFailsByTheDeadlineOfARead) {
  const millrace::testing::StrictS3Server server;
  FaultProxy proxy(server.url());
  use_s3(proxy.endpoint());
  variables_["MILLRACE_TIMEOUT"] = "3s";
  succeed("millrace publish tree a@v1; millrace mount a@v1 mnt; cmp tree/large.bin mnt/large.bin");
  proxy.set_policy([](const ProxiedRequest&) { return millrace::testing::Fault::kStall; });
  succeed("echo 3 > /proc/sys/vm/drop_caches; cmp tree/large.bin mnt/large.bin");
  const Outcome cold = bash(std::string(kWithinTheDeadline) + "cat $DIR/mnt/d/60.jpg > /dev/null");
  EXPECT_EQ(cold.exit_code, 1);
  EXPECT_THAT(cold.err, HasSubstr("Input/output error"));
  proxy.set_policy({});
  EXPECT_TRUE(
      becomes([this] { return bash("cmp $DIR/tree/d/60.jpg $DIR/mnt/d/60.jpg").exit_code == 0; }));
}

TEST_F(MountTest, MoreLargeFilesAreReadThanDescriptorsAreAllowed) {
  succeed(R"(mkdir many; for n in $(seq 140); do head -c 1100000 /dev/urandom > many/$n; done
             millrace publish many many@v1
             (ulimit -n 256; millrace mount many@v1 mnt))");
  for (int pass = 0; pass < 2; ++pass)
    succeed("timeout 100 diff -r many mnt");
  succeed("timeout 10 millrace status; timeout 10 millrace umount mnt; timeout 10 millrace stop");
  // As many as it may, it takes by itself.
  succeed(R"((ulimit -Sn 256; ulimit -Hn 2048; millrace mount many@v1 mnt)
             pid=$(millrace status --json | grep -o '"pid":[0-9]*' | cut -d: -f2)
             grep -qE 'Max open files +2048 +2048' /proc/$pid/limits)");
}

TEST_F(MountTest, BucketsAreShownAsTheyAreUnlessOnlyVersionsMayBe) {
  succeed(
      "mkdir -p live/x; echo one > live/x/one; millrace --buckets live=file://$DIR/live mount mnt;"
      "cmp live/x/one mnt/buckets/live/x/one");
  succeed("echo two, and longer > live/x/one");
  EXPECT_TRUE(becomes([this] {
    return bash("cmp -s $DIR/live/x/one $DIR/mnt/buckets/live/x/one").exit_code == 0;
  }));
  succeed(
      "millrace umount mnt; millrace stop;"
      "millrace --buckets live=file://$DIR/live mount mnt");
  const Outcome usage = succeed("millrace usage");
  EXPECT_THAT(usage.out, HasSubstr("/buckets/live")) << "reads are counted, also over a restart";
  succeed(
      "millrace umount mnt; millrace stop;"
      "millrace --buckets live=file://$DIR/live --require-version true mount mnt;"
      "test -e mnt/datasets/a/v1/empty; ! test -e mnt/buckets");
  for (const char* const other :
       {"mount /buckets/live other", "mount /buckets other", "export add /live /buckets/live"}) {
    const Outcome refused = bash(std::string("cd $DIR; mkdir -p other; millrace ") + other);
    EXPECT_EQ(refused.exit_code, 3) << other << refused.out;
    EXPECT_THAT(refused.err, HasSubstr("/buckets")) << other;
  }
}

TEST_F(MountTest, ABucketThatDoesNotExistIsAFailureThatTheLogExplains) {
  const millrace::testing::StrictS3Server server;
  be_known_to_s3();
  variables_["MILLRACE_BUCKETS"] = "gone=s3://no-such-bucket/pre?endpoint=" + server.url();
  succeed("millrace mount mnt; test $(ls mnt/buckets) = gone");
  for (const std::string command : {"ls", "ls", "cat"}) {
    const Outcome failed = bash(command + " $DIR/mnt/buckets/gone" + (command == "ls" ? "" : "/x"));
    EXPECT_THAT(failed.err, HasSubstr("Input/output error")) << command;
  }
  const Outcome logged =
      bash("grep 'bucket cannot be listed' $DIR/home/.local/share/millrace/serve.log");
  EXPECT_THAT(logged.out,
              AllOf(HasSubstr("mend the setting 'buckets'"),
                    HasSubstr("path=/buckets/gone store=\"s3://no-such-bucket/pre at ")));
  EXPECT_EQ(std::ranges::count(logged.out, '\n'), 1) << logged.out;
}

TEST_F(MountTest, ManyReadersOfAColdFileFetchEachByteOnce) {
  succeed(
      "millrace mount a@v1 mnt;"
      "for n in $(seq 64); do cmp tree/large.bin mnt/large.bin & readers+=($!); done;"
      "for reader in ${readers[@]}; do wait $reader; done");
  const Outcome metrics = succeed(
      "curl -s --unix-socket home/.local/share/millrace/millrace.sock http://m/metrics |"
      "awk '/^millrace_cache_fetched_bytes_total/ {sum += $2} END {print sum}'");
  EXPECT_EQ(metrics.out, "5000000\n");
}

}  // namespace
}  // namespace millrace::cli
