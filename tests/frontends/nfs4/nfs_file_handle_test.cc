#include "frontends/nfs4/nfs_file_handle.h"

#include <stdlib.h>

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "platform/file.h"

namespace millrace {
namespace {

constexpr SipHashKey kTestHandleKey = {1, 2};

class NfsHandleKey : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/millrace-handles-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path() const { return directory_ + "/key"; }
  std::string directory_;
};

TEST(NfsHandles, KnowsItsOwnAgain) {
  const NfsHandle handle{.export_id = 7, .node = NodeNumber(0x100000005), .tree_check = 0xabcdef};
  const NfsHandles::Bytes bytes = NfsHandles(kTestHandleKey).encode(handle);
  EXPECT_EQ(NfsHandles(kTestHandleKey).decode(bytes), handle);
}

// Whatever is changed, it is no longer ours: neither another node nor another export can be had.
TEST(NfsHandles, NoBitCanBeChanged) {
  const NfsHandles handles(kTestHandleKey);
  const NfsHandles::Bytes bytes = handles.encode({.export_id = 7, .node = NodeNumber(5)});
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    NfsHandles::Bytes changed = bytes;
    changed[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_FALSE(handles.decode(changed).has_value()) << bit;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(handles.decode(ByteView(bytes).first(size)).has_value());
}

TEST(NfsHandles, AnotherKeyDoesNotKnowThem) {
  const NfsHandles::Bytes bytes =
      NfsHandles(kTestHandleKey).encode({.export_id = 7, .node = NodeNumber(5)});
  EXPECT_FALSE(NfsHandles({1, 3}).decode(bytes).has_value());
}

TEST_F(NfsHandleKey, IsMadeOnceAndIsTheOwners) {
  const auto first = NfsHandles::open(path(), system_random());
  ASSERT_TRUE(first.has_value()) << first.error().to_string();
  const NfsHandles::Bytes bytes = first->encode({.export_id = 7, .node = NodeNumber(5)});
  EXPECT_TRUE(NfsHandles::open(path(), system_random())->decode(bytes).has_value());
  EXPECT_EQ(std::filesystem::status(path()).permissions(), std::filesystem::perms(0600));
}

TEST_F(NfsHandleKey, WhatIsNoneIsNamed) {
  ASSERT_TRUE(write_file_atomically(path(), as_bytes("abc")).ok());
  const auto opened = NfsHandles::open(path(), system_random());
  ASSERT_FALSE(opened.has_value());
  EXPECT_EQ(opened.error(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
