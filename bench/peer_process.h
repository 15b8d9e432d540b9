#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bench/run_figures.h"

namespace millrace::bench {

struct PeerRun {
  // The amount is the caller's to fill in. Memory is not measured: after a fork the kernel counts
  // our own pages as the child's peak.
  RunFigures figures;
  std::string output;  // What all the processes wrote, in no particular order.
};

// Runs commands at the same time, each to its end, and measures from the first start to the last
// end. Throws std::runtime_error with the output when one fails or takes over two minutes.
PeerRun run_peer(const std::vector<std::vector<std::string>>& commands,
                 const std::string& scratch_directory);

// Throws std::runtime_error that says what to do when the program is not installed. Returns its
// path: Debian's own in /usr/bin if there is one, because that is the version we compare with.
std::string require_program(std::string_view name);

}  // namespace millrace::bench
