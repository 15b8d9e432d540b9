#pragma once

#include <functional>

namespace millrace {

// One unit of work for an executor. Move-only, so that it can own what it works on.
using Task = std::move_only_function<void()>;

}  // namespace millrace
