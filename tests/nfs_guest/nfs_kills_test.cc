// kill -9 of the gateway, again and again, while Linux reads from it.
#include "tests/nfs_guest/nfs_guest_world.h"

namespace millrace {
namespace {

class NfsKillsTest : public NfsGuestTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(NfsKillsTest, ReadersGoOnWithTheRightBytes) {
  const auto kills = static_cast<int>(torture_rounds(100, 5));
  mount(fmt::format("ro,vers={},hard,timeo=50,actimeo=1", GetParam()));
  on_guest("cat > /tmp/sums <<END\n" + on_host("cat sums") + "END\n");
  // Each pass reads from the server: what the kernel has kept is dropped before it. One file stays
  // open from the first pass to the last.
  on_guest(
      "(cd /mnt/a/v1; exec 5< large.bin; until test -e /tmp/end; do"
      "   sha256sum -c /tmp/sums > /tmp/checked 2>&1 || { echo failed > /tmp/result; exit; };"
      "   head -c 1 <&5 > /dev/null || { echo lost > /tmp/result; exit; };"
      "   echo pass >> /tmp/passes; echo 3 > /proc/sys/vm/drop_caches;"
      " done; echo good > /tmp/result) > /dev/null 2>&1 &");
  for (int n = 0; n < kills; ++n) {
    // Not at the same place of a pass each time.
    ASSERT_TRUE(becomes([&] { return requests() >= 5 + 17 * (n % 7); })) << "after kill " << n;
    gateway_->kill();
    gateway_->start();
  }
  on_guest("touch /tmp/end; until test -e /tmp/result; do sleep 0.1; done");
  EXPECT_EQ(on_guest("cat /tmp/result"), "good\n") << on_guest("cat /tmp/checked");
  EXPECT_EQ(sums("/mnt/a/v1"), on_host("cat sums"));
  unmount();
  on_guest("rm -f /tmp/end /tmp/result /tmp/passes");
  report_torture(fmt::format("nfs_kills_{}", GetParam()), 0, fmt::format(R"("kills":{})", kills));
}

INSTANTIATE_TEST_SUITE_P(InVersion, NfsKillsTest, ::testing::Values("4.0", "4.1", "4.2"),
                         [](const auto& version) {
                           return std::string(1, version.param[0]) + "_" + version.param[2];
                         });

}  // namespace
}  // namespace millrace
