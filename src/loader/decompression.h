#pragma once

#include <cstdint>
#include <string_view>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// Decompresses a whole file whose length before compression is known. `algorithm` is "zstd", "gz",
// "bz2", "snappy" or "br"; kUnsupported for others, kCorruption for bytes that are damaged or of
// another length. Takes any bytes, and never more memory than `raw_bytes`.
Result<Slice> decompress(std::string_view algorithm, ByteView bytes, std::uint64_t raw_bytes);

}  // namespace millrace
