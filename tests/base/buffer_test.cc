#include "base/buffer.h"

#include <cstring>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Buffer, FreezesIntoSlicesThatKeepTheBytes) {
  Buffer buffer = Buffer::allocate(10);
  ASSERT_EQ(buffer.size(), 10U);
  std::memcpy(buffer.data(), "0123456789", 10);
  buffer.truncate(8);
  const std::byte* const memory = buffer.data();
  Slice part;
  {
    const Slice whole = std::move(buffer).freeze();
    EXPECT_EQ(whole.data(), memory) << "no copy";
    EXPECT_EQ(whole.text(), "01234567");
    part = whole.part(2, 3);
  }
  EXPECT_EQ(part.text(), "234");
  EXPECT_EQ(part.data(), memory + 2);
}

TEST(Buffer, MovedFromIsEmpty) {
  Buffer a = Buffer::allocate(3);
  Buffer b = std::move(a);
  EXPECT_EQ(a.size(), 0U);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(b.size(), 3U);
  a = std::move(b);
  EXPECT_EQ(b.size(), 0U);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(a.bytes().size(), 3U);
}

TEST(Buffer, Empty) {
  Buffer buffer = Buffer::allocate(0);
  buffer.truncate(0);
  EXPECT_TRUE(std::move(buffer).freeze().empty());
  EXPECT_TRUE(Buffer().bytes().empty());
}

TEST(Slice, CopiesOrTakesStrings) {
  std::string text(100, 'x');
  const char* const characters = text.data();
  const Slice copy = Slice::copy_of(text);
  EXPECT_EQ(copy.text(), text);
  EXPECT_NE(static_cast<const void*>(copy.data()), characters);
  const Slice taken = Slice::from_string(std::move(text));
  EXPECT_EQ(static_cast<const void*>(taken.data()), characters);
  EXPECT_EQ(Slice::from_string("short").text(), "short") << "short strings live in the object";
}

TEST(Slice, PartsAreCutAtTheEnd) {
  const Slice slice = Slice::from_string("abcdef");
  EXPECT_EQ(slice.part(0).text(), "abcdef");
  EXPECT_EQ(slice.part(4, 10).text(), "ef");
  EXPECT_EQ(slice.part(4).part(1).text(), "f");
  EXPECT_TRUE(slice.part(6).empty());
  EXPECT_TRUE(slice.part(2, 0).empty());
  EXPECT_TRUE(Slice().part(0).empty());
  EXPECT_TRUE(Slice::copy_of("").empty());
}

TEST(Slice, BorrowHoldsTheOwnerUntilTheLastSliceGoes) {
  auto owner = std::make_shared<std::string>("borrowed");
  Slice slice = Slice::borrow(as_bytes(*owner), owner);
  EXPECT_EQ(owner.use_count(), 2);
  const Slice part = slice.part(3);
  slice = Slice();
  EXPECT_EQ(owner.use_count(), 2);
  EXPECT_EQ(part.text(), "rowed");
}

TEST(Slice, MovedFromIsEmpty) {
  Slice a = Slice::copy_of("abc");
  const Slice b = std::move(a);
  EXPECT_TRUE(a.empty());  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(b.text(), "abc");
}

}  // namespace
}  // namespace millrace
