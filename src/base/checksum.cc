#include "base/checksum.h"

#include "base/crc.h"
#include "base/crc_polynomial.h"

namespace millrace {

#if !defined(__x86_64__) && !defined(__aarch64__)
namespace crc {
Hardware hardware() { return {}; }
}  // namespace crc
#endif

namespace {

// The fastest ways that this processor has, looked up once.
struct Ways {
  Ways() {
    const crc::Hardware hardware = crc::hardware();
    if (!hardware.available) return;
    crc32c = hardware.crc32c;
    if (hardware.crc64nvme != nullptr) crc64nvme = hardware.crc64nvme;
  }
  decltype(&crc::crc32c_tables) crc32c = &crc::crc32c_tables;
  decltype(&crc::crc64nvme_tables) crc64nvme = &crc::crc64nvme_tables;
};

const Ways& ways() {
  static const Ways ways;
  return ways;
}

}  // namespace

std::uint32_t crc32c(ByteView bytes, std::uint32_t crc) {
  return ~ways().crc32c(~crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) {
  return crc::kCrc32c.combine(crc_a, crc_b, length_b);
}

std::uint64_t crc64nvme(ByteView bytes, std::uint64_t crc) {
  return ~ways().crc64nvme(~crc, bytes.data(), bytes.size());
}

std::uint64_t crc64nvme_combine(std::uint64_t crc_a, std::uint64_t crc_b, std::uint64_t length_b) {
  return crc::kCrc64Nvme.combine(crc_a, crc_b, length_b);
}

std::uint32_t portable::crc32c(ByteView bytes, std::uint32_t crc) {
  return ~crc::crc32c_tables(~crc, bytes.data(), bytes.size());
}

std::uint64_t portable::crc64nvme(ByteView bytes, std::uint64_t crc) {
  return ~crc::crc64nvme_tables(~crc, bytes.data(), bytes.size());
}

}  // namespace millrace
