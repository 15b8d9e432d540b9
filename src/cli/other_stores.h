#pragma once

#include <string>

#include "cli/location.h"
#include "cli/session.h"
#include "dataset/store_resolver.h"

namespace millrace::cli {

// Application::other_store of the session, which outlives it.
StoreResolver other_stores(Session& session);

// The URL under which manifests name the store of a place that is not in the store of the registry.
// kInvalidArgument, with what to do, where objects cannot be registered from.
Result<StoreUrl> registrable_store(const Session& session, const Location& location);

}  // namespace millrace::cli
