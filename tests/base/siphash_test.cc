#include "base/siphash.h"

#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// The key 00 01 .. 0f, and the messages 00 01 .. of the paper's appendix.
constexpr SipHashKey kPaperKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

std::uint64_t hash_of_counting(std::size_t length) {
  std::vector<std::byte> message(length);
  for (std::size_t i = 0; i < length; ++i)
    message[i] = static_cast<std::byte>(i);
  return siphash(kPaperKey, message);
}

TEST(SipHash, GivesTheVectorsOfThePaper) {
  EXPECT_EQ(hash_of_counting(0), 0x726fdb47dd0e0e31);
  EXPECT_EQ(hash_of_counting(1), 0x74f839c593dc67fd);
  EXPECT_EQ(hash_of_counting(8), 0x93f5f5799a932462);
  EXPECT_EQ(hash_of_counting(15), 0xa129ca6149be45e5);
  EXPECT_EQ(hash_of_counting(63), 0x958a324ceb064572);
}

TEST(SipHash, EveryBitOfKeyAndMessageCounts) {
  std::vector<std::byte> message(40);
  const std::uint64_t plain = siphash(kPaperKey, message);
  for (std::size_t bit = 0; bit < message.size() * 8; ++bit) {
    message[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(siphash(kPaperKey, message), plain) << bit;
    message[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  for (std::size_t bit = 0; bit < 128; ++bit) {
    SipHashKey key = kPaperKey;
    key[bit / 64] ^= std::uint64_t{1} << (bit % 64);
    EXPECT_NE(siphash(key, message), plain) << bit;
  }
}

}  // namespace
}  // namespace millrace
