#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "cli/local_file.h"
#include "cli/session.h"
#include "objectstore/object_store.h"

namespace millrace::cli {

struct ReadLimits {
  std::uint64_t range_bytes = 8 * kMiB;
  std::size_t ranges_in_flight = 8;
};

// Delivers a part of one object in order, by ranged GETs of which several are under way at once.
// All of them ask for the identity in `info`: when the object is replaced meanwhile the read fails
// with kPreconditionFailed, and never mixes two contents. Memory stays below range_bytes x
// ranges_in_flight. Returns when no request is under way any more.
Status read_object(Session& session, const RequestContext& context, ObjectStore& store,
                   const ObjectInfo& info, ByteRange range, const ByteSink& sink,
                   const ReadLimits& limits = {});

}  // namespace millrace::cli
