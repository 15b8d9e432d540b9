#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

// An IP address without a port. IPv4 addresses are kept as IPv6 has them (::ffff:a.b.c.d), so that
// a client is the same whichever socket it comes through.
class NetworkAddress {
 public:
  // "10.0.0.1", "fd00::1", "::ffff:10.0.0.1"; kInvalidArgument for anything else, names included.
  static Result<NetworkAddress> parse(std::string_view text);
  // Of a peer. All zeros for what is neither IPv4 nor IPv6.
  static NetworkAddress of(const sockaddr_storage& peer);

  bool is_ipv4() const;
  // As people write it: IPv4 without its prefix.
  std::string to_string() const;
  const std::array<std::uint8_t, 16>& bytes() const { return bytes_; }

  bool operator==(const NetworkAddress&) const = default;

 private:
  std::array<std::uint8_t, 16> bytes_{};
};

// All addresses that share their first bits.
class NetworkRange {
 public:
  // "10.0.0.0/8", "fd00::/8", or one address. kInvalidArgument says what is wrong; bits behind the
  // prefix must be zero, since "10.0.0.1/8" is more often a slip than meant.
  static Result<NetworkRange> parse(std::string_view text);

  bool contains(const NetworkAddress& address) const;
  std::string to_string() const;

  bool operator==(const NetworkRange&) const = default;

 private:
  NetworkAddress address_;
  unsigned bits_ = 128;  // Of the 128, also for IPv4.
};

}  // namespace millrace
