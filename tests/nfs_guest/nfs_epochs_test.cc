// What a training job costs in requests, by our own metrics.
#include "tests/nfs_guest/nfs_guest_world.h"

namespace millrace {
namespace {

// Of NfsGuestTest's tree.
constexpr int kEpochFiles = 64;
constexpr int kEpochDirectories = 3;

class NfsEpochsTest : public NfsGuestTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void read_all() { on_guest("cd /mnt/a/v1; find . -type f | xargs cat | sha256sum"); }
};

TEST_P(NfsEpochsTest, FromTheSecondEpochOnNoFileIsAskedFor) {
  mount(fmt::format("ro,noatime,actimeo=3600,vers={}", GetParam()));
  read_all();
  EXPECT_LE(operations("open"), kEpochFiles);
  EXPECT_LE(operations("close"), kEpochFiles);
  EXPECT_GE(gateway_->metric("millrace_nfs_delegations_total"), kEpochFiles - 1)
      << "an empty file may need none";
  const double requests_before = requests();
  const double attributes_before = operations("getattr");
  constexpr int kEpochs = 3;
  for (int epoch = 0; epoch < kEpochs; ++epoch)
    read_all();
  // Listing a directory asks whether it has changed, and for nothing else.
  const double asked = operations("getattr") - attributes_before;
  EXPECT_LE(asked, kEpochs * kEpochDirectories);
  EXPECT_EQ(requests() - requests_before, asked)
      << "opens " << operations("open") << ", reads " << operations("read") << ", closes "
      << operations("close");
  unmount();
}

INSTANTIATE_TEST_SUITE_P(InVersion, NfsEpochsTest, ::testing::Values("4.1", "4.2"),
                         [](const auto& version) {
                           return std::string(1, version.param[0]) + "_" + version.param[2];
                         });

TEST_F(NfsGuestTest, OldClientsGetNoDelegations) {
  mount("ro,noatime,vers=4.0");
  on_guest("cat /mnt/a/v1/d/1.jpg > /dev/null");
  EXPECT_EQ(gateway_->metric("millrace_nfs_delegations_total"), 0);
  unmount();
}

}  // namespace
}  // namespace millrace
