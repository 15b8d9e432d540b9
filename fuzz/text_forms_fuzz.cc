#include "base/base64.h"
#include "base/hex.h"
#include "base/time_format.h"
#include "base/units.h"
#include "fuzz/fuzz_input.h"

// The small forms that come from headers, settings and flags: sizes, durations, dates, encodings.
// What is accepted survives being written and read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace millrace;
  const std::string_view text = fuzz_text(data, size);
  if (const auto bytes = parse_size(text)) (void)format_size(*bytes);
  if (const auto duration = parse_duration(text)) {
    fuzz_require(parse_duration(format_duration(*duration)).has_value());
  }
  if (const auto share = parse_percentage(text)) fuzz_require(share->of(1000) <= 1000);
  (void)parse_size_or_percentage(text);
  if (const auto time = parse_http_date(text)) {
    fuzz_require(parse_http_date(format_http_date(*time)) == *time);
  }
  (void)parse_iso8601(text);
  if (const auto decoded = base64_decode(text)) {
    fuzz_require(base64_decode(base64_encode(*decoded)).has_value());
  }
  if (const auto decoded = from_hex(text)) fuzz_require(to_hex(*decoded).size() == text.size());
  return 0;
}
