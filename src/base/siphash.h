#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace millrace {

using SipHashKey = std::array<std::uint64_t, 2>;

// SipHash-2-4: a checksum of short messages that nobody can make without the key. Some tens of
// nanoseconds for what fits a file handle.
std::uint64_t siphash(const SipHashKey& key, ByteView message);

}  // namespace millrace
