#include "base/siphash.h"

#include <bit>

#include "base/little_endian.h"

namespace millrace {
namespace {

struct SipState {
  std::uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }

  void add(std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t siphash(const SipHashKey& key, ByteView message) {
  SipState state{.v0 = key[0] ^ 0x736f6d6570736575,
                 .v1 = key[1] ^ 0x646f72616e646f6d,
                 .v2 = key[0] ^ 0x6c7967656e657261,
                 .v3 = key[1] ^ 0x7465646279746573};
  std::uint64_t last = std::uint64_t{message.size()} << 56;
  for (; message.size() >= 8; message = message.subspan(8))
    state.add(load_little_endian<std::uint64_t>(message.data()));
  for (std::size_t i = 0; i < message.size(); ++i)
    last |= std::to_integer<std::uint64_t>(message[i]) << (8 * i);
  state.add(last);
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i)
    state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace millrace
