#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// Decompresses a snappy block (the raw format, without framing). `into` is as large as the block
// says it is. Takes any bytes: kCorruption for what is no such block, or of another length.
//
// Written here, since the format is a page long and its library would be for this alone.
Status decompress_snappy(ByteView block, MutableByteView into);

}  // namespace millrace
