#include <gtest/gtest.h>

#include "base/base64.h"
#include "base/hex.h"
#include "base/random.h"

namespace millrace {
namespace {

std::string decoded(Result<std::vector<std::byte>> bytes) {
  return bytes ? std::string(as_text(*bytes)) : "(" + bytes.error().to_string() + ")";
}

TEST(Hex, BothWays) {
  EXPECT_EQ(to_hex({}), "");
  EXPECT_EQ(to_hex(as_bytes(std::string_view("\x00\x7f\xff\x0a", 4))), "007fff0a");
  EXPECT_EQ(decoded(from_hex("48656C6c6f")), "Hello");
  EXPECT_EQ(decoded(from_hex("")), "");
  for (const std::string_view bad : {"1", "zz", "0x", "1g", " 1", "1 ", "\xff\xff"}) {
    EXPECT_FALSE(from_hex(bad)) << bad;
  }
}

// RFC 4648 section 10.
TEST(Base64, Vectors) {
  const std::vector<std::pair<std::string_view, std::string_view>> cases = {{"", ""},
                                                                            {"f", "Zg=="},
                                                                            {"fo", "Zm8="},
                                                                            {"foo", "Zm9v"},
                                                                            {"foob", "Zm9vYg=="},
                                                                            {"fooba", "Zm9vYmE="},
                                                                            {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, encoded] : cases) {
    EXPECT_EQ(base64_encode(as_bytes(plain)), encoded);
    EXPECT_EQ(decoded(base64_decode(encoded)), plain);
  }
}

TEST(Base64, RefusesEveryOtherSpelling) {
  for (const std::string_view bad :
       {"Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm9v\n", "Z g=", "=",
        "==", "====", "Z===", "Zg==Zg==", "Zm9v=", "Zm-_", "Zm=v", "\xff\xff\xff\xff"}) {
    EXPECT_FALSE(base64_decode(bad)) << bad;
  }
}

TEST(Encoding, RoundTripsAndHasOneSpelling) {
  SeededRandom random(11);
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::byte> bytes(random.next() % 40);
    for (std::byte& byte : bytes)
      byte = static_cast<std::byte>(random.next());
    EXPECT_EQ(*from_hex(to_hex(bytes)), bytes);
    EXPECT_EQ(*base64_decode(base64_encode(bytes)), bytes);
    std::string text;
    for (std::uint64_t i = random.next() % 9; i > 0; --i)
      text += "AZaz09+/="[random.next() % 9];
    if (const auto value = base64_decode(text)) {
      EXPECT_EQ(base64_encode(*value), text);
    }
  }
}

}  // namespace
}  // namespace millrace
