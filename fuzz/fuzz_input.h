#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

// What libFuzzer hands over, as text.
inline std::string_view fuzz_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A broken promise is a finding, also where no sanitizer would notice.
inline void fuzz_require(bool promise) {
  if (!promise) std::abort();
}
