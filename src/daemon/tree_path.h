#pragma once

#include <string>

#include "base/request_context.h"
#include "base/status.h"

namespace millrace {

class Gateway;

// What a user names, as a path of the tree: "imagenet@v2", "imagenet@current" (the version that it
// stands for now), "imagenet", a path already, or nothing for all of it. Blocks. kNotFound when
// there is no such version; paths and datasets are taken as they are.
Result<std::string> tree_path(const RequestContext& context, Gateway& gateway,
                              const std::string& source);

}  // namespace millrace
