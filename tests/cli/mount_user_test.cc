// Mounts of users who are not root, and of machines that have no FUSE or forbid it. Each script has
// mounts, devices and /etc/fuse.conf of its own, and all that it starts ends with it.
#include <unistd.h>

#include <gmock/gmock.h>

#include "tests/cli/mount_world.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class MountUserTest : public MountTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
    MountTest::SetUp();
    if (HasFatalFailure()) return;
    if (bash("unshare -m mount -t tmpfs none /mnt").exit_code != 0) {
      GTEST_SKIP() << "this machine lets nobody have mounts of his own";
    }
  }
  // Runs a script as root. `owner COMMAND` runs as the one whom the directory belongs to, `other`
  // as somebody else.
  Outcome apart(const std::string& script) {
    write("script", R"(
      set -uo pipefail; cd $DIR; trap 'owner millrace --quiet stop 2> /dev/null' EXIT
      OWNER="setpriv --reuid 65534 --regid 65534 --clear-groups"
      owner() { $OWNER "$@"; }
      other() { setpriv --reuid 65533 --regid 65533 --clear-groups "$@"; }
      device() { mknod -m $1 fuse.device c 10 229; mount --bind fuse.device /dev/fuse; }
      cp --remove-destination $(readlink -f bin/millrace) bin/millrace
      chmod 755 $DIR; chown -R 65534:65534 $DIR
      )" + script);
    return bash("unshare -m --propagation private bash $DIR/script");
  }
};

TEST_F(MountUserTest, WhoIsNotRootMountsByFusermount) {
  const Outcome outcome = apart(R"(
      device 666; set -e
      owner millrace mount --opening passthrough a@v1 mnt
      owner diff -r --no-dereference tree mnt
      $OWNER bash -c 'cd mnt; echo in > ../in; exec sleep 1000' & user=$!
      until test -e in; do sleep 0.01; done
      owner millrace umount mnt && exit 9
      kill $user; wait $user || true
      owner bash -c 'kill -9 $(millrace --json status | grep -o "\"pid\":[0-9]*" | cut -d: -f2)'
      owner diff -r --no-dereference tree mnt
      owner millrace umount mnt
      mountpoint -q mnt && exit 8
      owner millrace umount mnt || echo end)");
  EXPECT_THAT(outcome.out, HasSubstr("end\n")) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("all reads go through the daemon: FUSE passthrough"),
                                 HasSubstr("is in use: end what uses it"),
                                 HasSubstr("nothing of ours is mounted on")));
}

TEST_F(MountUserTest, APathMayHaveCommas) {
  const Outcome outcome = apart(R"(
      device 666; mkdir -p 'live/a,fsname=x\y'; echo hello > 'live/a,fsname=x\y/f'
      chown -R 65534:65534 live; mkdir 'm,nt'; chown 65534 'm,nt'
      owner millrace --buckets live=file://$DIR/live mount '/buckets/live/a,fsname=x\y' 'm,nt'
      owner cat 'm,nt/f'; findmnt -rno SOURCE 'm,nt'; owner millrace umount 'm,nt' && echo end)");
  EXPECT_THAT(outcome.out, HasSubstr("\nhello\n")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nmillrace:/buckets/live/a,fsname=x")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nend\n")) << outcome.err;
}

TEST_F(MountUserTest, OthersLookOnlyWhereTheyMay) {
  const Outcome outcome = apart(R"(
      device 666
      owner millrace mount a@v1 mnt && other cat mnt/d/e/hello.txt; owner millrace umount mnt
      owner millrace mount --allow-other a@v1 mnt
      echo user_allow_other > fuse.conf; mount --bind fuse.conf /etc/fuse.conf
      owner millrace mount --allow-other a@v1 mnt && other cat mnt/d/e/hello.txt)");
  EXPECT_THAT(outcome.err, HasSubstr("mnt/d/e/hello.txt: Permission denied"));
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("'user_allow_other'"), Not(HasSubstr("credentials"))));
  EXPECT_THAT(outcome.out, HasSubstr("\nhello\n")) << outcome.err;
}

TEST_F(MountUserTest, RootShowsItsMountsToOthers) {
  const Outcome outcome =
      apart("owner() { \"$@\"; }; millrace mount a@v1 mnt && other cat mnt/d/e/hello.txt");
  EXPECT_THAT(outcome.out, HasSubstr("\nhello\n")) << outcome.err;
}

// With the helper where the README puts it: /usr/sbin is an overlay of this test's own. mount(8)
// hands its helpers no HOME, so root's is this test's too.
TEST_F(MountUserTest, ALineOfFstabMountsIt) {
  const Outcome outcome = apart(R"(
      set -e; owner() { "$@"; }; mount --bind home ~root
      mkdir helpers work
      mount -t overlay none -o lowerdir=/usr/sbin,upperdir=helpers,workdir=work /usr/sbin
      ln -s $DIR/bin/millrace /usr/sbin/mount.millrace
      echo "a@v1 $DIR/mnt millrace ro,_netdev,noexec,opening=stateless 0 0" > fstab
      mount --fstab fstab -a; cmp tree/large.bin mnt/large.bin; findmnt -no OPTIONS mnt
      mount --fstab fstab -a && echo again
      umount mnt; rmdir mnt; mkdir mnt
      mount --fstab fstab $DIR/mnt; cmp tree/large.bin mnt/large.bin
      umount mnt && echo end)");
  EXPECT_THAT(outcome.out, HasSubstr("noexec")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nagain\n")) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\nend\n")) << outcome.err;
}

TEST_F(MountUserTest, WhatIsMissingIsNamedWithWhatToDo) {
  const auto message = [this](const std::string& script) {
    const Outcome outcome = apart(script);
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.err, Not(HasSubstr("credentials")));
    return outcome.err;
  };
  EXPECT_THAT(message("device 600; owner millrace mount a@v1 mnt"),
              HasSubstr("this user may not open /dev/fuse: check the rights of the device"));
  EXPECT_THAT(
      message(R"(mkdir dev; mount -t tmpfs none dev; cp -a /dev/{null,zero,urandom,random} dev
      mount --move dev /dev; owner millrace mount a@v1 mnt)"),
      HasSubstr("this machine has no /dev/fuse: load the kernel module (modprobe fuse)"));
  EXPECT_THAT(message("device 666; owner env PATH=$DIR/bin $DIR/bin/millrace mount a@v1 mnt"),
              HasSubstr("install the package fuse3"));
  EXPECT_THAT(message("device 666; chown root mnt; owner millrace mount a@v1 mnt"),
              HasSubstr("user has no write access to mountpoint"));
  EXPECT_THAT(
      message("owner() { setpriv --bounding-set -sys_admin --inh-caps -sys_admin \"$@\"; }\n"
              "owner millrace mount a@v1 mnt"),
      HasSubstr("a container needs CAP_SYS_ADMIN"));
}

}  // namespace
}  // namespace millrace::cli
