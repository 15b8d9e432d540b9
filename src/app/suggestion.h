#pragma once

#include <span>
#include <string>
#include <string_view>

namespace millrace {

// The candidate that `word` was probably meant to be, or empty when none is near: "stroe" is
// "store".
std::string nearest_word(std::string_view word, std::span<const std::string> candidates);

// ", did you mean 'store'?" or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

}  // namespace millrace
