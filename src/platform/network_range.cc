#include "platform/network_range.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <span>

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr unsigned kAddressBits = 128;
constexpr unsigned kIpv4Bits = 32;
constexpr unsigned kIpv4PrefixBits = kAddressBits - kIpv4Bits;
constexpr std::array<std::uint8_t, 12> kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

// Of a byte, those bits that a prefix of `bits` covers when `before` bits lie in front of it.
std::uint8_t covered(unsigned bits, unsigned before) {
  if (bits <= before) return 0;
  if (bits - before >= 8) return 0xff;
  return static_cast<std::uint8_t>(0xff << (8 - (bits - before)));
}

Status refuse_range(std::string_view text) {
  return {StatusCode::kInvalidArgument,
          fmt::format("'{}' is no network: expected an address, or a network as 10.0.0.0/8 or "
                      "fd00::/8",
                      text)};
}

}  // namespace

Result<NetworkAddress> NetworkAddress::parse(std::string_view text) {
  const std::string name(text);  // inet_pton wants its terminator.
  NetworkAddress address;
  if (::inet_pton(AF_INET, name.c_str(), address.bytes_.data() + kIpv4Prefix.size()) == 1) {
    std::ranges::copy(kIpv4Prefix, address.bytes_.begin());
    return address;
  }
  if (::inet_pton(AF_INET6, name.c_str(), address.bytes_.data()) == 1) return address;
  return failure(StatusCode::kInvalidArgument, fmt::format("'{}' is no IP address", text));
}

NetworkAddress NetworkAddress::of(const sockaddr_storage& peer) {
  NetworkAddress address;
  if (peer.ss_family == AF_INET) {
    sockaddr_in from{};
    std::memcpy(&from, &peer, sizeof from);
    std::ranges::copy(kIpv4Prefix, address.bytes_.begin());
    std::memcpy(address.bytes_.data() + kIpv4Prefix.size(), &from.sin_addr, sizeof from.sin_addr);
  } else if (peer.ss_family == AF_INET6) {
    sockaddr_in6 from{};
    std::memcpy(&from, &peer, sizeof from);
    std::memcpy(address.bytes_.data(), &from.sin6_addr, sizeof from.sin6_addr);
  }
  return address;
}

bool NetworkAddress::is_ipv4() const {
  return std::ranges::equal(kIpv4Prefix, std::span(bytes_).first(kIpv4Prefix.size()));
}

std::string NetworkAddress::to_string() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_ipv4()) {
    ::inet_ntop(AF_INET, bytes_.data() + kIpv4Prefix.size(), text.data(), text.size());
  } else {
    ::inet_ntop(AF_INET6, bytes_.data(), text.data(), text.size());
  }
  return text.data();
}

Result<NetworkRange> NetworkRange::parse(std::string_view text) {
  const std::size_t slash = text.find('/');
  const Result<NetworkAddress> address = NetworkAddress::parse(text.substr(0, slash));
  if (!address) return std::unexpected(refuse_range(text));
  NetworkRange range;
  range.address_ = *address;
  if (slash == std::string_view::npos) return range;

  const std::string_view number = text.substr(slash + 1);
  const bool is_short = address->is_ipv4() && !text.substr(0, slash).contains(':');
  unsigned bits = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bits);
  if (error != std::errc() || end != number.data() + number.size() ||
      bits > (is_short ? kIpv4Bits : kAddressBits)) {
    return std::unexpected(refuse_range(text));
  }
  range.bits_ = bits + (is_short ? kIpv4PrefixBits : 0);
  for (unsigned i = 0; i < range.address_.bytes().size(); ++i) {
    if ((range.address_.bytes()[i] & ~covered(range.bits_, i * 8)) != 0) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("'{}' has bits behind its prefix: write the network's own "
                                 "address in front of the '/'",
                                 text));
    }
  }
  return range;
}

bool NetworkRange::contains(const NetworkAddress& address) const {
  for (unsigned i = 0; i < address.bytes().size(); ++i) {
    const std::uint8_t mask = covered(bits_, i * 8);
    if ((address.bytes()[i] & mask) != address_.bytes()[i]) return false;
  }
  return true;
}

std::string NetworkRange::to_string() const {
  if (bits_ == kAddressBits) return address_.to_string();
  const bool is_short = address_.is_ipv4() && bits_ >= kIpv4PrefixBits;
  return fmt::format("{}/{}", address_.to_string(), is_short ? bits_ - kIpv4PrefixBits : bits_);
}

}  // namespace millrace
