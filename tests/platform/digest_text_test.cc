#include "platform/digest_text.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/hex.h"

namespace millrace {
namespace {

TEST(DigestTextTest, ReadsWhatWasWritten) {
  const Sha256Digest digest = sha256(as_bytes("a"));
  EXPECT_EQ(parse_sha256(to_hex(digest)), digest);
}

TEST(DigestTextTest, RefusesAnyOtherText) {
  const std::string text = to_hex(sha256(as_bytes("a")));
  EXPECT_EQ(parse_sha256(""), std::nullopt);
  EXPECT_EQ(parse_sha256(text.substr(2)), std::nullopt);
  EXPECT_EQ(parse_sha256(text + "00"), std::nullopt);
  EXPECT_EQ(parse_sha256("x" + text.substr(1)), std::nullopt);
}

}  // namespace
}  // namespace millrace
