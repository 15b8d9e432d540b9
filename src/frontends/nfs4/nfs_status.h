#pragma once

#include <cstdint>

#include "base/status.h"
#include "frontends/nfs4/nfs_protocol.h"

namespace millrace {

// What was tried when something failed.
enum class NfsAttempt : std::uint8_t {
  kName,  // To find a child: what is not there is no error of the handle.
  kNode,  // Something with the node of a handle.
  kData,  // To read bytes.
};

// What a client is told. What may pass by itself becomes kDelay: a client then asks again, and the
// application waits instead of failing.
NfsStatus nfs_status_of(const Status& status, NfsAttempt attempt);

}  // namespace millrace
