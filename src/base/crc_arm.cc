#include "base/crc.h"

#if defined(__aarch64__)

#include <arm_acle.h>
#include <sys/auxv.h>

#include <cstring>

#include <asm/hwcap.h>

namespace millrace::crc {

namespace {

#if defined(__clang__)
__attribute__((target("crc")))
#else
__attribute__((target("+crc")))
#endif
std::uint32_t
crc32c_armv8(std::uint32_t state, const std::byte* data, std::size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, data, sizeof(word));
    state = __crc32cd(state, word);
  }
  for (; size > 0; ++data, --size)
    state = __crc32cb(state, std::to_integer<std::uint8_t>(*data));
  return state;
}

}  // namespace

Hardware hardware() {
  const bool available = (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0;
  return {available, &crc32c_armv8, nullptr};
}

}  // namespace millrace::crc

#endif
