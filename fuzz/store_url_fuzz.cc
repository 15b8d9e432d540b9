#include "fuzz/fuzz_input.h"
#include "objectstore/store_url.h"

// A URL that is accepted is written back as text that means the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const std::string_view text = fuzz_text(data, size);
  const auto url = parse_store_url(text);
  if (url) {
    fuzz_require(!url->root.empty());
    const auto again = parse_store_url(url->to_string());
    fuzz_require(again.has_value() && *again == *url);
  } else {
    fuzz_require(!url.error().message().empty());
  }
  (void)parse_object_url(text);
  return 0;
}
