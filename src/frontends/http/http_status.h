#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace millrace {

// The one place that says which HTTP status stands for which failure. The body of an answer has
// the code's own name, so that a client of ours gets back what was meant.
int http_status_of(StatusCode code);

// "Not Found".
std::string_view http_reason(int status);

// Why a request is refused before anybody looked at what it asks for.
struct HttpRefusal {
  int status = 400;
  Status why;
};

// {"error": {"code": "not_found", "message": "..."}}, and a line break.
std::string json_error_body(const Status& why);

}  // namespace millrace
