#pragma once

#include <string>
#include <string_view>

namespace millrace {

// Paths as plain strings with '/' between components. Nothing here touches a disk or resolves "..".

// "a" and "b" give "a/b"; an empty directory or one that ends in '/' adds no second slash.
std::string join_path(std::string_view directory, std::string_view name);

// The directory part: "a/b" gives "a", "a" gives ".", "/a" and "/" give "/". Trailing slashes are
// ignored.
std::string_view parent_path(std::string_view path);

// The last component, without trailing slashes: "a/b/" gives "b". Empty for "/" and "".
std::string_view base_name(std::string_view path);

}  // namespace millrace
