// What happens where files cannot be handed to the kernel: all is read through this process.
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "tests/frontends/fuse/fuse_world.h"

namespace millrace {
namespace {

constexpr std::size_t kFallbackBytes = 3 * kMiB + 4711;

// While it lives, this thread, and those that it starts, have not CAP_SYS_ADMIN.
class WithoutSysAdmin {
 public:
  WithoutSysAdmin() {
    EXPECT_EQ(::syscall(SYS_capget, &header_, data_), 0);
    Data less[_LINUX_CAPABILITY_U32S_3] = {data_[0], data_[1]};
    less[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective &= ~CAP_TO_MASK(CAP_SYS_ADMIN);
    EXPECT_EQ(::syscall(SYS_capset, &header_, less), 0);
  }
  ~WithoutSysAdmin() { EXPECT_EQ(::syscall(SYS_capset, &header_, data_), 0); }
  WithoutSysAdmin(const WithoutSysAdmin&) = delete;
  WithoutSysAdmin& operator=(const WithoutSysAdmin&) = delete;

 private:
  using Data = __user_cap_data_struct;
  __user_cap_header_struct header_{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  Data data_[_LINUX_CAPABILITY_U32S_3]{};
};

class FuseFallbackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world.tree.write("whole.bin", wanted);
    world.tree.write("other.bin", other);
    const auto published = world.publish("a@v1");
    ASSERT_TRUE(published) << published.error().to_string();
    // The one who mounts may, and the threads that serve may not.
    ASSERT_NO_FATAL_FAILURE(
        world.mount("datasets/a/v1", FuseOpening::kPassthrough, [](FuseSession& session) {
          const WithoutSysAdmin less;
          EXPECT_TRUE(session.start().ok());
        }));
  }
  std::string read(std::string_view name) const {
    return FuseWorld::read_file_by(world.mounted(name), 128 * kKiB);
  }
  bool is_cached(std::string_view name) const {
    char text[16];
    const ssize_t got =
        ::getxattr(world.mounted(name).c_str(), "user.millrace.cached", text, sizeof(text));
    return got > 0 && std::string_view(text, static_cast<std::size_t>(got)) == "yes";
  }
  void await_cached(std::string_view name) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!is_cached(name) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_TRUE(is_cached(name));
  }

  const std::string wanted = publish_bytes(kFallbackBytes, 5);
  const std::string other = publish_bytes(kFallbackBytes, 6);
  FuseWorld world;
};

TEST_F(FuseFallbackTest, CompleteFilesAreReadThroughUs) {
  EXPECT_TRUE(read("whole.bin") == wanted);
  ASSERT_NO_FATAL_FAILURE(await_cached("whole.bin"));
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(read("whole.bin") == wanted) << "complete, and refused by the kernel";
  EXPECT_TRUE(read("other.bin") == other);
  ASSERT_NO_FATAL_FAILURE(await_cached("other.bin"));
  EXPECT_TRUE(read("other.bin") == other);
  const std::string logged = ::testing::internal::GetCapturedStderr();
  const std::size_t said = logged.find("files are not handed to the kernel");
  EXPECT_NE(said, std::string::npos) << logged;
  EXPECT_EQ(logged.find("files are not handed to the kernel", said + 1), std::string::npos)
      << "once for a mount";
  EXPECT_EQ(world.connection().files.passthrough_opens(), 0U);
  EXPECT_EQ(world.connection().files.backings(), 0U);
}

TEST_F(FuseFallbackTest, AFileThatBecomesCompleteWhileItIsOpenReadsOn) {
  const File held = File::open(world.mounted("whole.bin"), O_RDONLY).value();
  EXPECT_TRUE(read("whole.bin") == wanted);
  ASSERT_NO_FATAL_FAILURE(await_cached("whole.bin"));
  // The first that could be handed over is another file, so the refusal comes while this one is
  // open.
  EXPECT_TRUE(read("other.bin") == other);
  ASSERT_NO_FATAL_FAILURE(await_cached("other.bin"));
  EXPECT_TRUE(read("other.bin") == other);
  EXPECT_TRUE(read("whole.bin") == wanted);
  std::string again(wanted.size(), '\0');
  EXPECT_EQ(::pread(held.descriptor(), again.data(), again.size(), 0),
            static_cast<ssize_t>(wanted.size()));
  EXPECT_TRUE(again == wanted);
  EXPECT_EQ(world.connection().files.passthrough_opens(), 0U);
}

TEST_F(FuseFallbackTest, TheNextServiceGoesOnWithWhatIsOpen) {
  EXPECT_TRUE(read("whole.bin") == wanted);
  ASSERT_NO_FATAL_FAILURE(await_cached("whole.bin"));
  const File held = File::open(world.mounted("whole.bin"), O_RDONLY).value();
  world.end_service();
  world.take_over();
  std::string again(wanted.size(), '\0');
  EXPECT_EQ(::pread(held.descriptor(), again.data(), again.size(), 0),
            static_cast<ssize_t>(wanted.size()));
  EXPECT_TRUE(again == wanted);
  // This one may hand files over, and must not do it while one is read the other way.
  EXPECT_TRUE(read("whole.bin") == wanted);
}

TEST_F(FuseFallbackTest, TheNextServiceGoesOnWithWhatWasOpenedAfterARefusal) {
  for (const std::string_view name : {"whole.bin", "other.bin"}) {
    EXPECT_EQ(read(name).size(), kFallbackBytes);
    ASSERT_NO_FATAL_FAILURE(await_cached(name));
  }
  EXPECT_TRUE(read("whole.bin") == wanted) << "refused by the kernel";
  const File held = File::open(world.mounted("other.bin"), O_RDONLY).value();
  world.end_service();
  world.take_over();
  EXPECT_TRUE(read("other.bin") == other);
  EXPECT_EQ(world.connection().files.passthrough_opens(), 0U);
}

TEST_F(FuseFallbackTest, WhatTheKernelReadsItselfStaysSoWhenItRefusesTheNext) {
  world.end_service();
  world.take_over();  // By somebody who may hand files over.
  for (const std::string_view name : {"whole.bin", "other.bin"}) {
    EXPECT_EQ(read(name).size(), kFallbackBytes);
    ASSERT_NO_FATAL_FAILURE(await_cached(name));
  }
  const File held = world.open_handed_over("whole.bin");
  world.end_service();
  {
    const WithoutSysAdmin less;
    world.take_over();
  }
  EXPECT_TRUE(read("other.bin") == other) << "refused by the kernel";
  EXPECT_EQ(world.connection().files.passthrough_opens(), 0U);
  EXPECT_TRUE(read("whole.bin") == wanted) << "as whoever has it open reads it";
  EXPECT_EQ(world.connection().files.passthrough_opens(), 1U);
}

}  // namespace
}  // namespace millrace
