// Linux mounts the gateway over NFS: what ordinary programs see.
#include "tests/nfs_guest/nfs_guest_world.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class NfsMountTest : public NfsGuestTest, public ::testing::WithParamInterface<const char*> {
 protected:
  std::string version() const { return fmt::format("ro,vers={}", GetParam()); }
};

TEST_P(NfsMountTest, AllOfAVersionIsReadAsItIs) {
  mount(version());
  EXPECT_THAT(on_guest("grep ' /mnt ' /proc/mounts"),
              HasSubstr(fmt::format("vers={}", GetParam())));
  EXPECT_EQ(sums("/mnt/a/v1"), on_host("cat sums"));
  EXPECT_EQ(on_guest("cd /mnt/a/v1; find . | sort"), on_host("cd tree; find . | sort"));
  const std::string facts = "-exec stat -c '%n %a %s %Y %F %h' {} + | sort";
  EXPECT_EQ(on_guest("cd /mnt/a/v1; find . -type f " + facts),
            on_host("cd tree; find . -type f " + facts));
  EXPECT_EQ(on_guest("readlink /mnt/a/v1/d/link; cat /mnt/a/v1/d/e/hello.txt"),
            "../large.bin\nhello\n");
  EXPECT_THAT(on_guest("df /mnt/a/v1"), HasSubstr("/mnt"));
  unmount();
}

TEST_P(NfsMountTest, AProgramOnItIsMappedAndRun) {
  mount(version());
  EXPECT_EQ(on_guest("/mnt/a/v1/busybox sha256sum /mnt/a/v1/busybox | cut -d' ' -f1"),
            on_host("sha256sum tree/busybox | cut -d' ' -f1"));
  unmount();
}

TEST_P(NfsMountTest, AnAliasIsASymlinkThatFollowsIt) {
  // The kernel keeps names for as long as it is told to: a second, here.
  mount(version() + ",actimeo=1");
  EXPECT_EQ(on_guest("readlink /mnt/a/current; cd /mnt/a/current/d/e; cat hello.txt"),
            "v1\nhello\n");
  on_host("echo second > tree/d/e/hello.txt");
  gateway_->millrace({"publish", directory_.path() + "/tree", "a@v2"});
  gateway_->millrace({"alias", "set", "a@current", "v2"});
  on_guest("until test $(readlink /mnt/a/current) = v2; do sleep 0.2; done");
  EXPECT_EQ(on_guest("cat /mnt/a/current/d/e/hello.txt /mnt/a/v1/d/e/hello.txt"),
            "second\nhello\n");
  unmount();
}

TEST_P(NfsMountTest, NothingCanBeWritten) {
  // Mounted as if it could be: the refusal is the server's.
  mount(fmt::format("rw,vers={}", GetParam()));
  const std::string before = sums("/mnt/a/v1");
  for (const char* attempt :
       {"touch new", "echo x > d/1.jpg", "echo x >> d/1.jpg", "rm d/1.jpg", "mkdir new",
        "rmdir d/e", "mv d/1.jpg d/other", "ln d/1.jpg hard", "ln -s d/1.jpg soft",
        "chmod 777 d/1.jpg", "chown 1:1 d/1.jpg", "touch d/1.jpg", "mknod fifo p",
        "truncate -s 0 d/1.jpg", "dd if=/dev/zero of=d/1.jpg bs=1 count=1 conv=notrunc"}) {
    const CommandResult result = guest_->run(fmt::format("cd /mnt/a/v1; {}", attempt));
    EXPECT_NE(result.status, 0) << attempt;
    EXPECT_THAT(result.output, HasSubstr("Read-only file system")) << attempt;
  }
  EXPECT_EQ(sums("/mnt/a/v1"), before);
  unmount();
}

TEST_P(NfsMountTest, AStormOfLooksIsAnswered) {
  mount(version() + ",actimeo=0");
  on_guest(
      "for n in 1 2 3 4; do (for m in 1 2 3; do ls -lR /mnt/a/v1 > /tmp/list.$n.$m; done) & done;"
      "wait; for n in 1 2 3 4; do for m in 1 2 3; do cmp /tmp/list.1.1 /tmp/list.$n.$m; done; "
      "done");
  EXPECT_GT(operations("getattr"), 500);
  unmount();
}

TEST_P(NfsMountTest, WhatIsNotThereIsSaid) {
  mount(version());
  EXPECT_THAT(guest_->run("cat /mnt/a/v1/nothing").output, HasSubstr("No such file"));
  EXPECT_THAT(guest_->run("ls /mnt/a/v9").output, HasSubstr("No such file"));
  EXPECT_THAT(guest_->run("cat /mnt/a/v1/d/1.jpg/x").output, HasSubstr("Not a directory"));
  EXPECT_THAT(guest_->run("cat /mnt/a/v1/d").output, HasSubstr("Is a directory"));
  const std::string longest(255, 'n');
  EXPECT_THAT(guest_->run("cat /mnt/a/v1/" + longest).output, HasSubstr("No such file"));
  EXPECT_THAT(guest_->run("cat /mnt/a/v1/" + longest + "n").output, HasSubstr("name too long"));
  unmount();
}

INSTANTIATE_TEST_SUITE_P(InVersion, NfsMountTest, ::testing::Values("4.0", "4.1", "4.2"),
                         [](const auto& version) {
                           return std::string(1, version.param[0]) + "_" + version.param[2];
                         });

TEST_F(NfsGuestTest, ManyConnectionsCarryOneSession) {
  mount("ro,vers=4.1,nconnect=4");
  EXPECT_EQ(sums("/mnt/a/v1"), on_host("cat sums"));
  EXPECT_EQ(gateway_->metric("millrace_nfs_connections"), 4);
  unmount();
}

TEST_F(NfsGuestTest, ExportsComeAndGoWhileTheServerRuns) {
  gateway_->millrace({"export", "add", "/sets/mine", "a@v1", "--clients", "127.0.0.1"});
  mount("ro,vers=4.2", "/sets/mine");
  EXPECT_EQ(sums("/mnt"), on_host("cat sums"));
  unmount();
  mount("ro,vers=4.2", "/");
  EXPECT_EQ(on_guest("ls /mnt /mnt/sets"), "/mnt:\ndatasets\nsets\n\n/mnt/sets:\nmine\n");
  unmount();
  gateway_->millrace({"export", "rm", "/sets/mine"});
  gateway_->millrace({"export", "add", "/other", "a@v1", "--clients", "10.1.2.3"});
  for (const char* path : {"/sets/mine", "/other"}) {
    EXPECT_NE(guest_
                  ->run(fmt::format("mount -t nfs4 -o addr=10.0.2.2,port={},vers=4.2,ro "
                                    "10.0.2.2:{} /mnt",
                                    gateway_->port(), path))
                  .status,
              0)
        << path;
  }
}

}  // namespace
}  // namespace millrace
