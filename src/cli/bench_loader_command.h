#pragma once

#include "cli/command.h"

namespace millrace::cli {

// `millrace bench loader`.
void register_bench_loader(CommandLine& line, CLI::App& bench);

}  // namespace millrace::cli
