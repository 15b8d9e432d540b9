// Names and handles that lead nowhere, on a real mount.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/frontends/fuse/fuse_world.h"

namespace millrace {
namespace {

class FuseLookupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world.tree.write("d/f", "one");
    world.tree.write("e/f", "two");
    ASSERT_TRUE(world.publish("a@v1"));
    ASSERT_TRUE(world.publish("b@v1"));
  }
  void mount(std::string_view path) {
    ASSERT_NO_FATAL_FAILURE(world.mount(path, FuseOpening::kStateless));
  }
  NodeNumber node(std::string_view path) {
    return world.files().resolve(world.context, path).value().number;
  }
  // 0 when the name leads somewhere.
  int error_at(const std::string& name) {
    struct stat found{};
    return ::stat(world.mounted(name).c_str(), &found) == 0 ? 0 : errno;
  }
  // Of opening the node by a handle that was made up; 0 when that works.
  int error_by_handle(NodeNumber number) {
    constexpr int kFuseHandle = 0x81;  // The number's upper and lower half, and the generation.
    const std::uint32_t parts[] = {static_cast<std::uint32_t>(number.value() >> 32),
                                   static_cast<std::uint32_t>(number.value()), 0};
    alignas(file_handle) char memory[sizeof(file_handle) + sizeof(parts)] = {};
    auto* const handle = reinterpret_cast<file_handle*>(memory);
    handle->handle_bytes = sizeof(parts);
    handle->handle_type = kFuseHandle;
    std::memcpy(handle->f_handle, parts, sizeof(parts));
    const File root = File::open(world.mounted(), O_RDONLY | O_DIRECTORY).value();
    const int fd = ::open_by_handle_at(root.descriptor(), handle, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno;
    ::close(fd);
    return 0;
  }

  FuseWorld world;
};

TEST_F(FuseLookupTest, S25HandlesLeadNowhereOutsideOfTheVersionThatIsMounted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root opens files by their handles";
  ASSERT_NO_FATAL_FAILURE(mount("datasets/a/v1"));
  EXPECT_EQ(error_by_handle(node("datasets/a/v1/d/f")), 0);
  EXPECT_EQ(error_by_handle(node("datasets/a/v1/e")), 0);
  EXPECT_EQ(error_by_handle(node("datasets/b/v1/d/f")), ESTALE);
  EXPECT_EQ(error_by_handle(node("datasets/b/v1")), ESTALE);
  EXPECT_EQ(error_by_handle(node("datasets/a")), ESTALE);
  EXPECT_EQ(error_by_handle(datasets_node()), ESTALE);
}

TEST_F(FuseLookupTest, S25HandlesLeadNowhereOutsideOfTheFolderThatIsMounted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root opens files by their handles";
  ASSERT_NO_FATAL_FAILURE(mount("datasets/a/v1/d"));
  EXPECT_EQ(error_by_handle(node("datasets/a/v1/d/f")), 0);
  EXPECT_EQ(error_by_handle(node("datasets/a/v1/e/f")), ESTALE);
  EXPECT_EQ(error_by_handle(node("datasets/a/v1")), ESTALE);
}

TEST_F(FuseLookupTest, S25HandlesLeadToAllOfTheTreeWhereThatIsMounted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root opens files by their handles";
  ASSERT_NO_FATAL_FAILURE(mount("/"));
  EXPECT_EQ(error_by_handle(node("datasets/a/v1/d/f")), 0);
  EXPECT_EQ(error_by_handle(node("datasets/b")), 0);
}

TEST_F(FuseLookupTest, S12ANameThatIsTooLongIsCalledSo) {
  ASSERT_NO_FATAL_FAILURE(mount("datasets/a/v1"));
  EXPECT_EQ(error_at(std::string(255, 'n')), ENOENT);
  EXPECT_EQ(error_at(std::string(256, 'n')), ENAMETOOLONG);
}

TEST_F(FuseLookupTest, S21ANameIsNotAbsentBecauseItsVersionIsNotKnown) {
  ASSERT_NO_FATAL_FAILURE(mount("datasets/a/v1"));
  ASSERT_EQ(error_at("d"), 0) << "from now on the kernel knows the directory";
  world.end_service();
  std::filesystem::rename(world.state.path("trees"), world.state.path("away"));
  world.take_over();
  EXPECT_EQ(error_at("d/f"), ESTALE);
  world.end_service();
  std::filesystem::rename(world.state.path("away"), world.state.path("trees"));
  world.take_over();
  EXPECT_EQ(error_at("d/f"), 0);
}

TEST_F(FuseLookupTest, S19AVersionIsListedWhoseManifestCannotBeHad) {
  world.tree.write("g", "so that its manifest is another");
  ASSERT_TRUE(world.publish("b@v2"));
  ASSERT_NO_FATAL_FAILURE(mount("/"));
  ASSERT_EQ(error_at("datasets/b/v1"), 0);
  world.faulty->set_plan(random_faults(1, {{1.0, {.kind = Fault::Kind::kFailBefore}}}));
  std::map<std::string, bool> listed;
  for (const auto& entry : std::filesystem::directory_iterator(world.mounted("datasets/b")))
    listed.emplace(entry.path().filename().string(), entry.is_directory());
  EXPECT_EQ(listed, (std::map<std::string, bool>{{"v1", true}, {"v2", true}}));
  EXPECT_EQ(error_at("datasets/b/v2"), EIO);
  world.faulty->set_plan(no_faults());
  EXPECT_EQ(error_at("datasets/b/v2"), 0);
}

TEST_F(FuseLookupTest, S17ANameBelowAForgottenDirectoryIsStaleAndNotAbsent) {
  ASSERT_TRUE(world.live->put(world.context, ObjectKey("d/f"), Slice::copy_of("x"), {}));
  ASSERT_NO_FATAL_FAILURE(mount("/"));
  const File directory =
      File::open(world.mounted("buckets/live/d"), O_RDONLY | O_DIRECTORY).value();
  const auto error_below = [&](const char* name) {
    struct stat found{};
    return ::fstatat(directory.descriptor(), name, &found, 0) == 0 ? 0 : errno;
  };
  EXPECT_EQ(error_below("none"), ENOENT);
  world.end_service();
  std::filesystem::rename(world.state.path("nodes"), world.state.path("away"));
  world.take_over();
  EXPECT_EQ(error_below("f"), ESTALE);
  EXPECT_EQ(error_at("buckets/live/d/f"), 0) << "its name leads to it again";
  EXPECT_EQ(error_below("f"), 0);
  EXPECT_EQ(error_below("none"), ENOENT);
}

}  // namespace
}  // namespace millrace
