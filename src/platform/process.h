#pragma once

#include <string>
#include <string_view>

namespace millrace {

// "<program>, process <pid> on <host name>": enough for an operator to find it from another host.
std::string describe_this_process(std::string_view program);

}  // namespace millrace
