#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>

#include "base/strong_type.h"
#include "frontends/nfs4/nfs_protocol.h"

namespace millrace {

// What operations and state speak of. Plain values, in host order.

// What an operation that fails answers, instead of a Status: clients act on the number alone.
template <class T>
using NfsResult = std::expected<T, NfsStatus>;

using NfsClientId = StrongType<std::uint64_t, struct NfsClientIdTag>;
using NfsVerifier = StrongType<std::array<std::byte, 8>, struct NfsVerifierTag>;
using NfsSessionId = StrongType<std::array<std::byte, 16>, struct NfsSessionIdTag>;
// A connection that a client made to us, as long as this process lives.
using NfsConnectionId = StrongType<std::uint64_t, struct NfsConnectionIdTag>;

struct NfsStateid {
  std::uint32_t seqid = 0;
  std::array<std::byte, 12> other = {};

  auto operator<=>(const NfsStateid&) const = default;
};

// co_ownerid of EXCHANGE_ID, and the id of SETCLIENTID.
struct NfsClientOwner {
  NfsVerifier verifier;
  std::string id;  // Any bytes.

  bool operator==(const NfsClientOwner&) const = default;
};

// Who opens or locks. 4.1 sends a client id that does not count: the session's is put here.
struct NfsStateOwner {
  NfsClientId client;
  std::string owner;  // Any bytes.

  auto operator<=>(const NfsStateOwner&) const = default;
};

// server_owner and server_scope of EXCHANGE_ID's answer.
struct NfsServerOwner {
  std::uint64_t minor_id = 0;
  std::string major_id;
  std::string scope;
};

// channel_attrs4, but for RDMA.
struct NfsChannelAttributes {
  std::uint32_t header_pad_bytes = 0;
  std::uint32_t request_bytes_max = 0;
  std::uint32_t response_bytes_max = 0;
  std::uint32_t cached_response_bytes_max = 0;
  std::uint32_t operations_max = 0;
  std::uint32_t requests_max = 0;

  bool operator==(const NfsChannelAttributes&) const = default;
};

// What a callback is sent with: AUTH_NONE, or AUTH_SYS as the client asked for.
struct NfsCallbackSecurity {
  bool auth_sys = false;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

}  // namespace millrace
