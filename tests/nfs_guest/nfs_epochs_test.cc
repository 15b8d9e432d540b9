// What a training job costs in requests, by our own metrics.
#include "tests/nfs_guest/nfs_guest_world.h"

namespace millrace {
namespace {

// Of NfsGuestTest's tree.
constexpr int kEpochFiles = 64;
constexpr int kEpochDirectories = 3;

class NfsEpochsTest : public NfsGuestTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void read_all(const std::string& directory) {
    on_guest("cd " + directory + "; find . -type f | xargs cat | sha256sum");
  }
  // Reads all of a version three times after a first one, for which no file may be asked for, and
  // returns the requests that this took.
  double requests_of_later_epochs(const std::string& directory) {
    read_all(directory);
    EXPECT_LE(operations("open"), kEpochFiles);
    EXPECT_LE(operations("close"), kEpochFiles);
    EXPECT_GE(gateway_->metric("millrace_nfs_delegations_total"), kEpochFiles - 1)
        << "an empty file may need none";
    const auto of_files = [&] {
      return operations("open") + operations("read") + operations("close");
    };
    const double requests_before = requests();
    const double of_files_before = of_files();
    for (int epoch = 0; epoch < kEpochs; ++epoch)
      read_all(directory);
    EXPECT_EQ(of_files() - of_files_before, 0);
    return requests() - requests_before;
  }
  std::string options() const { return fmt::format("ro,noatime,actimeo=3600,vers={}", GetParam()); }

  static constexpr int kEpochs = 3;
};

TEST_P(NfsEpochsTest, FromTheSecondEpochOnNoFileIsAskedFor) {
  mount(options(), "/datasets/a/v1");
  const double attributes_before = operations("getattr");
  const double asked = requests_of_later_epochs("/mnt");
  EXPECT_LE(asked, kEpochs * kEpochDirectories)
      << "listing a directory asks whether it has changed, and for nothing else";
  EXPECT_GE(operations("getattr") - attributes_before, asked);
  unmount();
}

// What is above versions may change, so the kernel asks for it again, though hardly each time: it
// looks up the dataset and the version, and who may enter the directories that they are in.
TEST_P(NfsEpochsTest, WhoComesFromAboveAsksForTheDirectoriesThere) {
  mount(options());
  constexpr int kAbove = 4;
  EXPECT_LE(requests_of_later_epochs("/mnt/a/v1"), kEpochs * (kEpochDirectories + kAbove));
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
