#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace {

// "<program>, process <pid> on <host name>": enough for an operator to find it from another host.
std::string describe_this_process(std::string_view program);

// What this process takes of the machine's memory now; 0 when the system does not tell.
std::uint64_t resident_bytes();

// For the beginning of main(): lets this process open a few thousand descriptors without a stop.
// The kernel's table of them begins small. When it grows in a process that has threads by then, who
// opens the next one waits for all CPUs to pass by, for 10 to 30 ms: at the 65th, the 257th, ...
void make_room_for_descriptors();

// How many descriptors this process may have open.
std::size_t descriptor_limit();

// For a process that keeps many files open: lets it have as many as anybody may allow it to. What
// it starts may have as many: not for one that runs programs of others, which may not be made for
// numbers above 1024.
void raise_descriptor_limit();

}  // namespace millrace
