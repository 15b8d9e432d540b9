#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "objectstore/object.h"

// Keys as paths below the root of a FileObjectStore.
//
// A key is cut at '/', and each component becomes one name:
//   '%' anywhere  -> "%25"        "." and ".." as a whole -> "%2E", "%2E%2E"
//   an empty one  -> "%"          all else stays as it is
// so plain keys are plain paths that other tools read, the map is one to one, and all other names
// with a '%' are free: the store's own are "%tmp" and "%lock". What others put there under
// such names ("100%") is no object: it has no key, and listings leave it out with a warning.
namespace millrace::file_object_store {

inline constexpr std::string_view kTemporaryDirectory = "%tmp";
inline constexpr std::string_view kLockFile = "%lock";
// Of every Linux file system.
inline constexpr std::size_t kNameBytesMax = 255;

// The path below the root. kInvalidArgument for a key whose component does not fit into a name.
Result<std::string> path_of_key(const ObjectKey& key);

// The key component that a directory entry stands for; nothing when it is not ours.
std::optional<std::string> component_of_name(std::string_view name);

}  // namespace millrace::file_object_store
