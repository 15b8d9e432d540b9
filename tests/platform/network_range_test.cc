#include "platform/network_range.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <cstring>

#include <gmock/gmock.h>

namespace millrace {
namespace {

NetworkAddress address(std::string_view text) { return NetworkAddress::parse(text).value(); }
bool covers(std::string_view range, std::string_view text) {
  return NetworkRange::parse(range).value().contains(address(text));
}

TEST(NetworkRange, HoldsTheAddressesThatShareItsPrefix) {
  EXPECT_TRUE(covers("10.0.0.0/8", "10.255.0.1"));
  EXPECT_FALSE(covers("10.0.0.0/8", "11.0.0.0"));
  EXPECT_TRUE(covers("192.168.4.0/22", "192.168.7.255"));
  EXPECT_FALSE(covers("192.168.4.0/22", "192.168.8.0"));
  EXPECT_TRUE(covers("127.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(covers("127.0.0.1", "127.0.0.2"));
  EXPECT_TRUE(covers("fd00::/8", "fdff::1"));
  EXPECT_FALSE(covers("fd00::/8", "fe00::1"));
}

TEST(NetworkRange, EverybodyIsOfOneFamilyOrBoth) {
  EXPECT_TRUE(covers("0.0.0.0/0", "1.2.3.4"));
  EXPECT_FALSE(covers("0.0.0.0/0", "fd00::1"));
  EXPECT_TRUE(covers("::/0", "fd00::1"));
  EXPECT_TRUE(covers("::/0", "1.2.3.4"));
}

TEST(NetworkRange, AnAddressIsTheSameThroughEitherFamily) {
  EXPECT_TRUE(covers("10.0.0.0/8", "::ffff:10.1.2.3"));
  EXPECT_TRUE(covers("::ffff:10.0.0.0/104", "10.1.2.3"));
  sockaddr_storage peer{};
  auto* const ipv4 = reinterpret_cast<sockaddr_in*>(&peer);
  ipv4->sin_family = AF_INET;
  ::inet_pton(AF_INET, "10.1.2.3", &ipv4->sin_addr);
  EXPECT_EQ(NetworkAddress::of(peer), address("::ffff:10.1.2.3"));
  EXPECT_EQ(NetworkAddress::of(peer).to_string(), "10.1.2.3");
  auto* const ipv6 = reinterpret_cast<sockaddr_in6*>(&peer);
  ipv6->sin6_family = AF_INET6;
  ::inet_pton(AF_INET6, "fd00::7", &ipv6->sin6_addr);
  EXPECT_EQ(NetworkAddress::of(peer).to_string(), "fd00::7");
}

TEST(NetworkRange, IsShownAsItWasWritten) {
  for (const char* text : {"10.0.0.0/8", "0.0.0.0/0", "127.0.0.1", "fd00::/8", "::/0", "::1"}) {
    EXPECT_EQ(NetworkRange::parse(text).value().to_string(), text);
  }
}

TEST(NetworkRange, OtherTextIsRefused) {
  for (const char* text :
       {"", "/", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.0/8x",
        "10.0.0.0/-1", "localhost", "10.0.0.0/8/8", " 10.0.0.1"}) {
    EXPECT_EQ(NetworkRange::parse(text).error().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(NetworkRange::parse("10.0.0.1/8").error().message(),
              ::testing::HasSubstr("bits behind its prefix"));
}

}  // namespace
}  // namespace millrace
