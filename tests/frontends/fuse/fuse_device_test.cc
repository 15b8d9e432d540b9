#include "frontends/fuse/fuse_device.h"

#include <sys/epoll.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(FuseDevice, SaysWhichKernelAMountNeedsToOutliveItsDaemon) {
  // As an old kernel does, it takes no such message: EINVAL.
  const FuseDevice device{File::adopt(::epoll_create1(EPOLL_CLOEXEC), "old")};
  const Status status = device.resend();
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_NE(status.message().find("Linux 6.9"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace millrace
