#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace millrace {

// How calls travel (RFC 9289), each safer than the one before.
enum class RpcTransport : std::uint8_t {
  kPlain,
  kTls,        // The client knows who we are.
  kMutualTls,  // And has shown a certificate of an authority that we trust.
};

inline constexpr std::array<std::string_view, 3> kRpcTransportNames = {"tcp", "tls", "mtls"};

inline std::string_view rpc_transport_name(RpcTransport transport) {
  return kRpcTransportNames[static_cast<std::size_t>(transport)];
}

}  // namespace millrace
