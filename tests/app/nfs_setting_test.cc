#include "app/nfs_setting.h"

#include <gmock/gmock.h>

namespace millrace {
namespace {

std::string endpoint(std::string_view text) {
  const auto setting = parse_nfs_setting(text);
  if (!setting) return "refused";
  return *setting ? (*setting)->to_string() : "none";
}

TEST(NfsSetting, IsAnAddressAndMaybeAPort) {
  EXPECT_EQ(endpoint("none"), "none");
  EXPECT_EQ(endpoint("0.0.0.0"), "0.0.0.0:2049");
  EXPECT_EQ(endpoint("127.0.0.1:0"), "127.0.0.1:0");
  EXPECT_EQ(endpoint("10.0.0.1:20490"), "10.0.0.1:20490");
  EXPECT_EQ(endpoint("::"), "[::]:2049");
  EXPECT_EQ(endpoint("[::1]"), "[::1]:2049");
  EXPECT_EQ(endpoint("[fd00::1]:99"), "[fd00::1]:99");
}

TEST(NfsSetting, OtherTextIsRefused) {
  for (const char* text : {"", ":2049", "localhost", "localhost:2049", "0.0.0.0:", "0.0.0.0:65536",
                           "0.0.0.0:x", "0.0.0.0:1:2", "[::1", "[::1]x", "[::1]:", "[]:1"}) {
    EXPECT_EQ(endpoint(text), "refused") << text;
  }
}

}  // namespace
}  // namespace millrace
