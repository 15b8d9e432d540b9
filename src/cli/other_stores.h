#pragma once

#include <string>

#include "cli/location.h"
#include "cli/session.h"
#include "dataset/store_resolver.h"

namespace millrace::cli {

// Opens stores that a manifest of the registry names, with the credentials that this user has for
// any URL. kPermissionDenied for a directory of this machine, unless the registry is one too:
// whoever can write to a bucket must not choose which local files others read. The session
// outlives it.
StoreResolver other_stores(Session& session);

// The URL under which manifests name the store of a place that is not in the store of the registry.
// kInvalidArgument, with what to do, where objects cannot be registered from.
Result<StoreUrl> registrable_store(const Session& session, const Location& location);

}  // namespace millrace::cli
