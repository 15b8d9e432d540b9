#include "frontends/nfs4/nfs_view.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/at_hand.h"
#include "base/log.h"
#include "tests/vfs/vfs_world.h"

namespace millrace {
namespace {

class NfsViewTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.tree.write("file", "bytes");
    world_.tree.write("sub/other", "more");
    ASSERT_TRUE(world_.publish("d@v1"));
    caller_.flavour = RpcFlavour::kSys;
    caller_.credentials = {.uid = 1000, .gid = 1000};
  }
  NfsView view(std::string_view exports, const std::string& address = "10.0.0.7") {
    table_ = std::make_shared<const NfsExportTable>(parse_nfs_exports(exports).value());
    return {world_.files(),
            table_,
            {.address = NetworkAddress::parse(address).value(), .caller = caller_},
            WallTime()};
  }
  // Name by name from the root of all.
  NfsResult<NfsPlace> walk(const NfsView& view, const std::vector<std::string>& names) {
    NfsPlace place = NfsView::root();
    for (const std::string& name : names) {
      NfsResult<NfsPlace> next = view.lookup(world_.context, place, name);
      if (!next) return next;
      place = *next;
    }
    return place;
  }
  std::vector<std::string> list(const NfsView& view, const NfsPlace& directory,
                                std::uint64_t cookie = 0) {
    std::vector<std::string> names;
    EXPECT_EQ(view.read_directory(world_.context, directory, cookie,
                                  [&](std::string_view name, const NfsNode&, std::uint64_t) {
                                    names.emplace_back(name);
                                    return true;
                                  }),
              NfsStatus::kOk);
    return names;
  }

  VfsWorld world_;
  RpcCaller caller_;
  std::shared_ptr<const NfsExportTable> table_;
};

TEST_F(NfsViewTest, LeadsFromTheRootThroughTheExportsIntoTheTree) {
  const NfsView view = this->view("/a/b=/datasets/d/v1;/datasets");
  EXPECT_EQ(list(view, NfsView::root()), (std::vector<std::string>{"a", "datasets"}));
  const NfsPlace above = walk(view, {"a"}).value();
  EXPECT_EQ(above.exported, nullptr);
  EXPECT_EQ(list(view, above), std::vector<std::string>{"b"});
  const NfsPlace top = walk(view, {"a", "b"}).value();
  EXPECT_EQ(list(view, top), (std::vector<std::string>{"file", "sub"}));
  EXPECT_EQ(list(view, top, 1), std::vector<std::string>{"sub"});
  const NfsPlace file = walk(view, {"a", "b", "file"}).value();
  EXPECT_EQ(view.node(world_.context, file).value().attributes.size, 5U);
  EXPECT_EQ(walk(view, {"nothing"}).error(), NfsStatus::kNoEnt);
  EXPECT_EQ(walk(view, {"a", "b", "nothing"}).error(), NfsStatus::kNoEnt);
}

TEST_F(NfsViewTest, ParentsLeadBackToTheRoot) {
  const NfsView view = this->view("/a/b=/datasets/d/v1");
  NfsPlace place = walk(view, {"a", "b", "sub"}).value();
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"a", "b"}, std::vector<std::string>{"a"}, {}}) {
    place = view.parent(world_.context, place).value();
    EXPECT_EQ(place, walk(view, names).value());
  }
  EXPECT_EQ(view.parent(world_.context, place).error(), NfsStatus::kNoEnt);
}

TEST_F(NfsViewTest, HandlesStandForPlaces) {
  const NfsView view = this->view("/a/b=/datasets/d/v1");
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{}, {"a"}, {"a", "b"}, {"a", "b", "sub", "other"}}) {
    const NfsPlace place = walk(view, names).value();
    EXPECT_EQ(view.find(view.handle_of(place)).value(), place);
  }
  NfsHandle elsewhere = view.handle_of(walk(view, {"a", "b"}).value());
  ++elsewhere.export_id;
  EXPECT_EQ(view.find(elsewhere).error(), NfsStatus::kStale);
  EXPECT_EQ(view.find({.export_id = 0, .node = NodeNumber(99)}).error(), NfsStatus::kStale);
}

TEST_F(NfsViewTest, WhoIsNotAllowedSeesNothing) {
  const char* const exports =
      "/mine=/datasets/d/v1,clients=10.0.0.0/8;/others=/datasets/d/v1,"
      "clients=192.168.0.0/16;/trusting=/datasets/d/v1,sec=none";
  const NfsView mine = view(exports);
  EXPECT_EQ(list(mine, NfsView::root()), std::vector<std::string>{"mine"});
  EXPECT_EQ(walk(mine, {"others"}).error(), NfsStatus::kAccess);
  EXPECT_EQ(walk(mine, {"trusting"}).error(), NfsStatus::kWrongSec);
  const NfsHandle handle = mine.handle_of(walk(mine, {"mine"}).value());
  const NfsView other = view(exports, "192.168.1.1");
  EXPECT_EQ(other.find(handle).error(), NfsStatus::kAccess) << "a handle is no key";
  EXPECT_EQ(list(other, NfsView::root()), std::vector<std::string>{"others"});
}

TEST_F(NfsViewTest, AnExportOfWhatIsNotThereHidesNoOther) {
  const LogCapture quiet;
  const NfsView view = this->view("/broken=/datasets/nothing/v1;/works=/datasets/d/v1");
  EXPECT_EQ(list(view, NfsView::root()), std::vector<std::string>{"works"});
  EXPECT_EQ(walk(view, {"broken"}).error(), NfsStatus::kNoEnt);
}

TEST_F(NfsViewTest, TheRootOfAnExportCoversADirectory) {
  const NfsView view = this->view("/a/b=/datasets/d/v1");
  const auto mounted_on = [&](const std::vector<std::string>& names) {
    const NfsNode node = view.node(world_.context, walk(view, names).value()).value();
    return view.mounted_on(world_.context, node);
  };
  const NfsPlace top = walk(view, {"a", "b"}).value();
  EXPECT_NE(mounted_on({"a", "b"}), top.node.value());
  const NfsPlace below = walk(view, {"a", "b", "sub"}).value();
  EXPECT_EQ(mounted_on({"a", "b", "sub"}), below.node.value());
  const NfsPlace file = walk(view, {"a", "b", "file"}).value();
  EXPECT_EQ(mounted_on({"a", "b", "file"}), file.node.value());
}

TEST_F(NfsViewTest, SquashingCountsWhenAccessIsChecked) {
  caller_.credentials = {.uid = 0, .gid = 0};
  world_.tree.write("secret", "bytes");
  std::filesystem::permissions(world_.tree.path("secret"), std::filesystem::perms::owner_read);
  ASSERT_TRUE(world_.publish("d@v2"));
  const auto check = [&](const char* exports) {
    const NfsView view = this->view(exports);
    return view.check(view.node(world_.context, walk(view, {"x", "secret"}).value()).value(),
                      {.read = true});
  };
  EXPECT_EQ(check("/x=/datasets/d/v2,squash=none"), NfsStatus::kOk);
  EXPECT_EQ(check("/x=/datasets/d/v2,squash=root"), NfsStatus::kAccess);
}

TEST_F(NfsViewTest, AnExportIsNotCalledBrokenByWhoMustNotWait) {
  const LogCapture log;
  const NfsView view = this->view("/x=/datasets/d/v1");
  {
    const AtHandOnly at_hand(AtHandOnly::Reach::kMemory);
    EXPECT_FALSE(walk(view, {"x"}));
    EXPECT_TRUE(at_hand.refused());
  }
  EXPECT_TRUE(walk(view, {"x"}));
  EXPECT_EQ(log.text().find("cannot be shown"), std::string::npos);
}

}  // namespace
}  // namespace millrace
