#include "platform/file_error.h"

#include <cerrno>
#include <system_error>

#include <fmt/format.h>

namespace millrace {

StatusCode file_error_code(int error) {
  switch (error) {
    case ENOENT:
      return StatusCode::kNotFound;
    case EACCES:
    case EPERM:
      return StatusCode::kPermissionDenied;
    case EEXIST:
    case ENOTEMPTY:
      return StatusCode::kConflict;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
      return StatusCode::kResourceExhausted;
    default:
      return StatusCode::kIoError;
  }
}

Status file_error(int error, std::string_view action, std::string_view path) {
  return {file_error_code(error),
          fmt::format("cannot {} '{}': {}", action, path, std::generic_category().message(error))};
}

}  // namespace millrace
