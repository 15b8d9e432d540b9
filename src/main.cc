#include <exception>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "cli/run.h"

int main(int argc, char** argv) {
  try {
    return millrace::cli::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception& error) {
    // Nothing of ours throws; a library may, when memory runs out.
    fmt::print(stderr, "millrace: unexpected failure: {}\n", error.what());
    return 1;
  }
}
