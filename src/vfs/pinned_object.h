#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace millrace {

// True for what reads of an object answer that was deleted or replaced.
inline bool is_gone(const Status& status) {
  return status.code() == StatusCode::kNotFound || status.code() == StatusCode::kPreconditionFailed;
}

// The same as every open file says it: kPreconditionFailed, for the name may well be there.
inline Status gone(const Status& status) {
  return {StatusCode::kPreconditionFailed, status.message()};
}

// How much of a file is cached, in a word.
inline std::string cached_word(std::uint64_t cached_bytes, std::uint64_t size) {
  if (cached_bytes == size) return "yes";
  return cached_bytes == 0 ? "no" : "part";
}

}  // namespace millrace
