#pragma once

#include <nlohmann/json.hpp>

#include "dataset/version_log.h"

namespace millrace {

// What a record of a version's log holds besides its envelope.
nlohmann::json version_payload(const VersionEntry& entry);

// Fills reason, facts and removal of `entry`, whose event is known. kCorruption, with the key, when
// something is missing that the event demands, or is not as it must be.
Status read_version_payload(const LogRecord& record, VersionEntry& entry);

}  // namespace millrace
