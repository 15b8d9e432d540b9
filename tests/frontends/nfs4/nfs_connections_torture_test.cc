// Many clients that are connected and ask for nothing: 10,000 at full scale.
#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_client_session.h"
#include "tests/frontends/nfs4/nfs_world.h"
#include "tests/servers/loopback.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

using millrace::testing::NfsConnection;

// What a connection may take while it rests, in the heap of the server.
constexpr double kRestingBytesMax = 4096;

// Both ends of each are in this process.
std::uint64_t connections_possible() {
  rlimit files{};
  EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &files), 0);
  return files.rlim_max / 2 - 200;
}

// Has sent a call and taken its answer, as every client does at first.
File resting_connection(std::uint16_t port) {
  NfsConnection greeting(port);
  EXPECT_EQ(greeting.null().accept_status(), 0U);
  return std::move(greeting).release();
}

TEST(NfsConnectionsTorture, ManyRestAtOnce) {
  NfsWorld world;
  world.tree.write("file", "bytes");
  ASSERT_TRUE(world.publish("d@v1"));
  world.serve();
  NfsConnection connection(world.port());
  millrace::testing::NfsSession session(connection, {});
  const std::string handle = session.lookup("/datasets/d/v1/file");

  const std::uint64_t count = std::min(torture_rounds(10'000, 500), connections_possible());
  std::vector<File> resting;
  resting.reserve(count);
  const std::size_t before = ::mallinfo2().uordblks;
  for (std::uint64_t i = 0; i < count; ++i)
    resting.push_back(resting_connection(world.port()));
  const double bytes_each =
      static_cast<double>(::mallinfo2().uordblks - before) / static_cast<double>(count);
  EXPECT_EQ(world.server().connections(), count + 1);
  // Sanitizers keep memory of their own, and what was freed.
  if (!kSanitized) {
    EXPECT_LT(bytes_each, kRestingBytesMax);
  }
  EXPECT_EQ(session.read_file(handle), "bytes") << "the others are in nobody's way";
  report_torture("nfs_connections", 0,
                 fmt::format(R"("connections":{},"bytes_each":{:.0f})", count, bytes_each));
}

}  // namespace
}  // namespace millrace
