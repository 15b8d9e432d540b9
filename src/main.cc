#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "cli/mount_options.h"
#include "cli/run.h"
#include "platform/process.h"

int main(int argc, char** argv) {
  millrace::make_room_for_descriptors();
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    // mount(8) calls its helpers by name.
    if (argc > 0 && std::string_view(argv[0]).ends_with("mount.millrace")) {
      arguments = millrace::cli::mount_helper_arguments(arguments);
    }
    return millrace::cli::run(std::move(arguments));
  } catch (const std::exception& error) {
    // Nothing of ours throws; a library may, when memory runs out.
    fmt::print(stderr, "millrace: unexpected failure: {}\n", error.what());
    return 1;
  }
}
