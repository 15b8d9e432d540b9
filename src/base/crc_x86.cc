#include "base/crc.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cstring>

#include "base/crc_polynomial.h"

namespace millrace::crc {

namespace {

#define MR_CRC_TARGET __attribute__((target("sse4.2,pclmul")))

std::uint64_t load(const std::byte* data) {
  std::uint64_t word;
  std::memcpy(&word, data, sizeof(word));
  return word;
}

// ---- CRC-32C. The crc32 instruction takes 3 cycles but one can start each cycle, so three streams
// run side by side and are joined by a carry-less multiplication.

// The crc32 of a 64-bit word multiplies by x^32, and a product of two reflected words comes out
// multiplied by x; so shifting by n bytes is a multiplication by x^(8n - 33).
constexpr std::uint32_t shift_constant(std::size_t bytes) {
  return kCrc32c.power_of_x(8 * bytes - 33);
}

MR_CRC_TARGET std::uint64_t shift(std::uint64_t state, std::uint32_t constant) {
  const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128(static_cast<long long>(state)),
                                               _mm_cvtsi64_si128(constant), 0);
  return _mm_crc32_u64(0, static_cast<std::uint64_t>(_mm_cvtsi128_si64(product)));
}

// Consumes 3 * kStreamBytes.
template <std::size_t kStreamBytes>
MR_CRC_TARGET std::uint64_t three_streams(std::uint64_t state, const std::byte* data) {
  static_assert(kStreamBytes % 8 == 0);
  constexpr std::uint32_t kShiftOne = shift_constant(kStreamBytes);
  constexpr std::uint32_t kShiftTwo = shift_constant(2 * kStreamBytes);
  std::uint64_t a = state;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  for (std::size_t i = 0; i < kStreamBytes; i += 8) {
    a = _mm_crc32_u64(a, load(data + i));
    b = _mm_crc32_u64(b, load(data + kStreamBytes + i));
    c = _mm_crc32_u64(c, load(data + 2 * kStreamBytes + i));
  }
  return shift(a, kShiftTwo) ^ shift(b, kShiftOne) ^ c;
}

MR_CRC_TARGET std::uint32_t crc32c_sse42(std::uint32_t start, const std::byte* data,
                                         std::size_t size) {
  constexpr std::size_t kLong = 4096;
  constexpr std::size_t kShort = 256;
  std::uint64_t state = start;
  for (; size >= 3 * kLong; data += 3 * kLong, size -= 3 * kLong) {
    state = three_streams<kLong>(state, data);
  }
  for (; size >= 3 * kShort; data += 3 * kShort, size -= 3 * kShort) {
    state = three_streams<kShort>(state, data);
  }
  for (; size >= 8; data += 8, size -= 8)
    state = _mm_crc32_u64(state, load(data));
  auto narrow = static_cast<std::uint32_t>(state);
  for (; size > 0; ++data, --size) {
    narrow = _mm_crc32_u8(narrow, std::to_integer<std::uint8_t>(*data));
  }
  return narrow;
}

// ---- CRC-64/NVME by folding: four 128-bit accumulators are each multiplied by x^512 and meet the
// next 64 bytes. What they hold at the end is congruent to the message, so the tables finish it.

// For moving a 128-bit word on by `bits`: its lower half stands 64 bits higher, and a product comes
// out multiplied by x.
MR_CRC_TARGET __m128i fold_constants(std::uint64_t for_low, std::uint64_t for_high) {
  return _mm_set_epi64x(static_cast<long long>(for_high), static_cast<long long>(for_low));
}
template <std::uint64_t kBits>
MR_CRC_TARGET __m128i fold_by() {
  constexpr std::uint64_t kLow = kCrc64Nvme.power_of_x(kBits + 63);
  constexpr std::uint64_t kHigh = kCrc64Nvme.power_of_x(kBits - 1);
  return fold_constants(kLow, kHigh);
}

MR_CRC_TARGET __m128i fold(__m128i word, __m128i constants, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(word, constants, 0x00);
  const __m128i high = _mm_clmulepi64_si128(word, constants, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

MR_CRC_TARGET __m128i load_128(const std::byte* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

MR_CRC_TARGET std::uint64_t crc64nvme_pclmul(std::uint64_t state, const std::byte* data,
                                             std::size_t size) {
  constexpr std::size_t kBlock = 64;
  if (size < 2 * kBlock) return crc64nvme_tables(state, data, size);
  __m128i a = _mm_xor_si128(load_128(data), _mm_cvtsi64_si128(static_cast<long long>(state)));
  __m128i b = load_128(data + 16);
  __m128i c = load_128(data + 32);
  __m128i d = load_128(data + 48);
  const __m128i by_block = fold_by<8 * kBlock>();
  for (data += kBlock, size -= kBlock; size >= kBlock; data += kBlock, size -= kBlock) {
    a = fold(a, by_block, load_128(data));
    b = fold(b, by_block, load_128(data + 16));
    c = fold(c, by_block, load_128(data + 32));
    d = fold(d, by_block, load_128(data + 48));
  }
  const __m128i by_word = fold_by<128>();
  const __m128i all = fold(fold(fold(a, by_word, b), by_word, c), by_word, d);
  std::byte remainder[16];
  std::memcpy(remainder, &all, sizeof(remainder));
  return crc64nvme_tables(crc64nvme_tables(0, remainder, sizeof(remainder)), data, size);
}

}  // namespace

Hardware hardware() {
  // Called from constructors of statics, maybe before the runtime has looked at the processor.
  __builtin_cpu_init();
  const bool available = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
  return {available, &crc32c_sse42, &crc64nvme_pclmul};
}

}  // namespace millrace::crc

#endif
