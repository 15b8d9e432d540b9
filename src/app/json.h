#pragma once

#include <nlohmann/json.hpp>

namespace millrace {

// What programs get to read. Fields come out in the order in which they were put in.
using Json = nlohmann::ordered_json;

}  // namespace millrace
