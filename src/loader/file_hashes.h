#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// Compares bytes with digests, given as (algorithm, hexadecimal digits), where algorithms have the
// names of Python's hashlib and xxhash, which are all that writers of MDS take. kCorruption names
// `what` and the algorithm when one differs; kUnsupported an algorithm that is not known here.
Status check_hashes(ByteView bytes, std::span<const std::pair<std::string, std::string>> hashes,
                    std::string_view what);

}  // namespace millrace
