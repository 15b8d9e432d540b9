#pragma once

#include <string>

namespace millrace::bench {

// By which TCP paces itself here.
std::string congestion_control();

// Moves this process, and what it starts from now on, into a network of its own that has nothing
// but loopback, where TCP paces itself by this congestion control. Without the right to do that
// everything stays as it is on this machine, and a line says so. Throws std::runtime_error when
// the kernel has no such congestion control. Before any thread.
void enter_own_network(const std::string& congestion);

}  // namespace millrace::bench
