// `require_version` binds loaders too, whichever engine they have.
#include <gmock/gmock.h>

#include "tests/abi/daemon_abi_world.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class RequireVersionAbi : public DaemonAbiTest, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    DaemonAbiTest::SetUp();
    engine = GetParam();
  }
  AbiJson strict(const std::string& name) const {
    AbiJson with = options(name);
    with["settings"]["require_version"] = "true";
    return with;
  }
};

TEST_P(RequireVersionAbi, PlacesAreRefusedAndVersionsRead) {
  for (const std::string& place : {data.root(), "file://" + data.root()}) {
    mr_dataset* dataset = nullptr;
    EXPECT_NE(mr_dataset_open(strict(place).dump().c_str(), &dataset, &error), MR_OK) << place;
    EXPECT_THAT(take_error(),
                AllOf(HasSubstr(place), HasSubstr("require_version"), HasSubstr("NAME@VERSION")));
    mr_dataset_close(dataset);
  }
  EXPECT_THAT(run("publish " + data.root() + " pets@v1 --store " + home.path("store")),
              HasSubstr("pets@v1"));
  EXPECT_NE(open(strict("pets@v1")), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Engines, RequireVersionAbi, ::testing::Values("process", "daemon"));

}  // namespace
}  // namespace millrace
