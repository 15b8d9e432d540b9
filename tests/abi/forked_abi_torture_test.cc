// Not among the unit tests, because the thread sanitizer allows no threads behind a fork.

#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/abi_world.h"

namespace millrace {
namespace {

class ForkedAbiTest : public AbiWorld {
 protected:
  ForkedAbiTest() { make_files(3, 20); }
};

TEST_F(ForkedAbiTest, ChildrenOpenDatasetsOfTheirOwn) {
  const AbiDataset dataset = open(options());
  const AbiLoader loader = load(dataset, {{"batch", 10}});
  ASSERT_NE(next(loader), nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    mr_dataset* own = nullptr;
    if (mr_dataset_open(options().dump().c_str(), &own, nullptr) != MR_OK) ::_exit(1);
    const AbiDataset owned(own);
    const AbiLoader reading = load(owned, {{"batch", 7}});
    ::_exit(keys_of_epoch(reading).size() == 60 ? 0 : 2);
  }
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_NE(next(loader), nullptr);
}

}  // namespace
}  // namespace millrace
