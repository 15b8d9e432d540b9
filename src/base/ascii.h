#pragma once

#include <string>
#include <string_view>

namespace millrace {

// Lower-cases A to Z and leaves all other bytes alone, whatever the locale says.
std::string lower_case(std::string_view text);

}  // namespace millrace
