#pragma once

#include <cstdint>

namespace millrace::testing {

// A port of 127.0.0.1 that nobody used a moment ago. Somebody may take it before a server does:
// then try again. Throws std::runtime_error when there is none.
std::uint16_t free_port();

bool accepts_connections(std::uint16_t port);

}  // namespace millrace::testing
