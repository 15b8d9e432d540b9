#pragma once

#include <string_view>

#include "app/json.h"
#include "dataset/registry.h"

namespace millrace {

// The registry's things as documents. Names and units of fields are the same wherever one is shown:
// in --json output, and in the control interface.

Json writer_document(const WriterIdentity& who);
Json version_document(const VersionEntry& entry);
Json alias_document(const AliasEntry& entry);
Json run_document(const RunEntry& entry, WallTime now);

// "running", "ended" or "lost": the last for a run that was not heard of for too long.
std::string_view run_state(const RunEntry& entry, WallTime now);

}  // namespace millrace
