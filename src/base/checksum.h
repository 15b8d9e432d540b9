#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace millrace {

// CRC-32C (Castagnoli), the checksum of everything that we persist. In hardware where the processor
// has it (SSE4.2, ARMv8), else by tables. `crc` is the checksum of what came before, 0 to start.
std::uint32_t crc32c(ByteView bytes, std::uint32_t crc = 0);
// The checksum of A followed by B, from theirs and B's length.
std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b);

// CRC-64/NVME, which S3 computes for objects that were uploaded without another checksum.
std::uint64_t crc64nvme(ByteView bytes, std::uint64_t crc = 0);
// S3 gives the CRC-64 of a whole multipart object: this makes it from those of the parts.
std::uint64_t crc64nvme_combine(std::uint64_t crc_a, std::uint64_t crc_b, std::uint64_t length_b);

// By tables: for tests, and for machines without the instructions.
namespace portable {
std::uint32_t crc32c(ByteView bytes, std::uint32_t crc = 0);
std::uint64_t crc64nvme(ByteView bytes, std::uint64_t crc = 0);
}  // namespace portable

}  // namespace millrace
