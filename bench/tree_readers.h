#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/run_figures.h"

namespace millrace::bench {

// The paths of a tree's regular files below its root, in the order of their names, or shuffled in
// an order that is the same in each run.
std::vector<std::string> tree_files(const std::string& root, std::uint64_t files_max);
std::vector<std::string> shuffled(std::vector<std::string> files);

// Opens, reads to the end and closes each file below `root`, by `readers` threads of this process;
// the amount is the files. Throws std::runtime_error when one cannot be read or is not `file_bytes`
// long.
RunFigures read_files(const std::string& root, const std::vector<std::string>& files,
                      std::uint64_t file_bytes, unsigned readers);

// Reads a file of that length from its beginning to its end by one thread; the amount is its bytes.
RunFigures read_file(const std::string& path, std::uint64_t file_bytes);
// As far as it comes in about that time; the amount is what was read.
RunFigures read_file_for(const std::string& path, std::uint64_t file_bytes,
                         std::chrono::seconds time_max);

}  // namespace millrace::bench
