#include "app/config_file.h"
#include "fuzz/fuzz_input.h"

// A refused file is refused with a sentence that names it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entries = millrace::parse_config(fuzz_text(data, size), "config.yaml");
  if (!entries) {
    fuzz_require(entries.error().message().find("config.yaml") != std::string::npos);
  }
  return 0;
}
