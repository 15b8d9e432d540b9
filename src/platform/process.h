#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

// "<program>, process <pid> on <host name>": enough for an operator to find it from another host.
std::string describe_this_process(std::string_view program);

// What this process takes of the machine's memory now; 0 when the system does not tell.
std::uint64_t resident_bytes();

}  // namespace millrace
