#include "platform/tcp_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace millrace {
namespace {

File connect_to(std::uint16_t port) {
  File socket = File::adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "client");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(
      ::connect(socket.descriptor(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
      0);
  return socket;
}

TEST(TcpListener, TellsWhoConnects) {
  const auto listener = TcpListener::listen("127.0.0.1", 0);
  ASSERT_TRUE(listener) << listener.error().to_string();
  EXPECT_NE(listener->port(), 0);
  EXPECT_FALSE(listener->accept()->has_value());
  const File client = connect_to(listener->port());
  pollfd ready{.fd = listener->descriptor(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, 30'000), 1);
  const auto accepted = listener->accept();
  ASSERT_TRUE(accepted && accepted->has_value());
  EXPECT_EQ((*accepted)->peer.ss_family, AF_INET);
}

TEST(TcpListener, ATakenPortIsAConflict) {
  const auto first = TcpListener::listen("127.0.0.1", 0);
  ASSERT_TRUE(first);
  const auto second = TcpListener::listen("127.0.0.1", first->port());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error(), StatusCode::kConflict);
}

TEST(TcpListener, NamesAreNoAddresses) {
  const auto listener = TcpListener::listen("localhost", 0);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
