#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "cli/location.h"
#include "cli/object_reader.h"
#include "cli/session.h"

namespace millrace::cli {

// The two ends of a copy.
struct LocalPath {
  std::string path;
};
struct StandardStream {};
using Endpoint = std::variant<LocalPath, StandardStream, Location>;

// "-", a URL, "store:path", or else a local path.
Result<Endpoint> parse_endpoint(Session& session, const std::string& text);
std::string describe(const Endpoint& endpoint);

struct TransferOptions {
  bool keep_existing = false;  // --no-clobber
  ReadLimits limits;
};

// Copies one file or object and returns its size. Whole or not at all: the target appears at the
// end. kPreconditionFailed when keep_existing is set and the target exists. Safe from any thread
// but for the standard streams.
Result<std::uint64_t> transfer(Session& session, const RequestContext& context,
                               const Endpoint& source, const Endpoint& target,
                               const TransferOptions& options, Progress& progress);

}  // namespace millrace::cli
