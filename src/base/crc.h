#pragma once

#include <cstddef>
#include <cstdint>

// The ways to compute base/checksum.h's functions, for checksum.cc to choose from.
namespace millrace::crc {

// The processor's own ways. Each may be called only where its `available` says so. `state` is the
// inverted checksum: what the registers hold between the first and the last inversion.
struct Hardware {
  bool available;
  std::uint32_t (*crc32c)(std::uint32_t state, const std::byte* data, std::size_t size);
  // Null where there is none.
  std::uint64_t (*crc64nvme)(std::uint64_t state, const std::byte* data, std::size_t size);
};
Hardware hardware();

// Table versions on the same state.
std::uint32_t crc32c_tables(std::uint32_t state, const std::byte* data, std::size_t size);
std::uint64_t crc64nvme_tables(std::uint64_t state, const std::byte* data, std::size_t size);

}  // namespace millrace::crc
