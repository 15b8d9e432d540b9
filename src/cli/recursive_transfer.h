#pragma once

#include <cstdint>

#include "cli/transfer.h"

namespace millrace::cli {

struct TransferTotals {
  std::uint64_t objects = 0;
  std::uint64_t skipped = 0;  // Existed already, with keep_existing.
  std::uint64_t bytes = 0;
};

// Copies everything below `source` to the same names below `target`, `parallel` at a time. Stops at
// the first failure; what was copied until then stays, so that a second run with keep_existing
// goes on where this one stopped. Symbolic links are followed to files, not to directories; what
// is neither file nor directory is refused.
Result<TransferTotals> transfer_tree(Session& session, const Endpoint& source,
                                     const Endpoint& target, const TransferOptions& options,
                                     std::size_t parallel, Progress& progress);

}  // namespace millrace::cli
