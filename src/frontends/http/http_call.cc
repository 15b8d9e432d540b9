#include "frontends/http/http_call.h"

#include <utility>

namespace millrace {

HttpAnswer text_answer(int status, std::string content_type, std::string text) {
  HttpAnswer answer;
  answer.status = status;
  answer.headers.push_back({"Content-Type", std::move(content_type)});
  answer.body = Slice::from_string(std::move(text));
  return answer;
}

HttpAnswer json_error_answer(const HttpRefusal& refusal) {
  return text_answer(refusal.status, "application/json", json_error_body(refusal.why));
}

}  // namespace millrace
