#pragma once

#include <string>
#include <vector>

namespace millrace::cli {

// The whole program: reads the command line, loads the settings, runs the command, reports what
// went wrong. Returns the exit code. Called once, on the main thread, before any other thread
// exists.
int run(std::vector<std::string> arguments);

}  // namespace millrace::cli
