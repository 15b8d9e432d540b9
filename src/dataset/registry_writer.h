#pragma once

#include <cstdint>
#include <string>

namespace millrace {

// Who writes to the registry: enough for an operator to find the process from another host.
struct WriterIdentity {
  std::string user = {};
  std::string host = {};
  std::uint64_t pid = 0;

  // "alice@node7, process 4711".
  std::string describe() const;

  bool operator==(const WriterIdentity&) const = default;
};

// The calling process. A user or a host without a name is given as its number or "unnamed".
WriterIdentity this_process_writer();

}  // namespace millrace
