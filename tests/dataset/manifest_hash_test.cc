#include <gtest/gtest.h>

#include "dataset/content_hash.h"

namespace millrace {
namespace {

TEST(ContentHashTest, UsualEtagsComeBackAsTheyWere) {
  const std::string digits = "0123456789abcdef0123456789abcdef";
  for (const std::string& text : {digits, '"' + digits + '"', digits + "-1",
                                  '"' + digits + "-10000\"", digits + "-4294967295"}) {
    const ContentHash hash = ContentHash::of_identity(ObjectIdentity(text));
    EXPECT_EQ(hash.kind, HashKind::kEtag) << text;
    EXPECT_EQ(hash.identity(), ObjectIdentity(text));
  }
}

TEST(ContentHashTest, OtherIdentitiesAreHashed) {
  const std::string digits = "0123456789abcdef0123456789abcdef";
  for (const std::string& text :
       {std::string(), std::string("\""), std::string("\"\""), digits.substr(1), digits + "0",
        digits + "-", digits + "-0", digits + "-01", digits + "-x", digits + "-1x",
        digits + "-4294967296", digits + "--1", '"' + digits, digits + '"',
        std::string("0123456789ABCDEF0123456789abcdef"), "W/\"" + digits + '"',
        std::string("1700000000000000")}) {
    const ContentHash hash = ContentHash::of_identity(ObjectIdentity(text));
    EXPECT_EQ(hash.kind, HashKind::kIdentity) << text;
    EXPECT_EQ(hash.identity(), std::nullopt);
    EXPECT_EQ(hash.bytes, sha256(as_bytes(text)));
  }
}

TEST(ContentHashTest, HasATextForPeople) {
  EXPECT_EQ(ContentHash().to_text(), "none");
  EXPECT_EQ(
      ContentHash::of_identity(ObjectIdentity("\"0123456789abcdef0123456789abcdef-7\"")).to_text(),
      "etag:0123456789abcdef0123456789abcdef-7");
  EXPECT_EQ(ContentHash::of_content(sha256({})).to_text(),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_TRUE(ContentHash::of_identity(ObjectIdentity("x")).to_text().starts_with("identity:"));
}

TEST(Sha256Test, PiecesGiveTheDigestOfTheWhole) {
  std::string text;
  for (int i = 0; i < 20'000; ++i)
    text += static_cast<char>(i * 7);
  Sha256 sha;
  for (std::size_t at = 0, step = 0; at < text.size(); at += step) {
    step = (at * 31 % 9000) + 1;
    sha.add(as_bytes(std::string_view(text).substr(at, step)));
  }
  EXPECT_EQ(sha.finish(), sha256(as_bytes(text)));
  EXPECT_EQ(sha.finish(), sha256({}));
}

}  // namespace
}  // namespace millrace
