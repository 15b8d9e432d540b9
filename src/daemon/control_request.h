#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "app/json.h"
#include "base/completion.h"
#include "base/request_context.h"
#include "base/status.h"
#include "platform/http_client.h"

namespace millrace {

// What somebody asks of the daemon. Everything is decoded.
struct ControlRequest {
  // Who asks ("uid:1000"), until when, and whether still.
  RequestContext context;
  HttpMethod method = HttpMethod::kGet;
  // The {parts} of the route's pattern, by their names. All of them are there.
  std::map<std::string, std::string> parameters = {};
  std::map<std::string, std::string> query = {};
  Json body = nullptr;  // An object, or null when there is none.

  const std::string& parameter(const std::string& name) const { return parameters.at(name); }
  // Empty when it was not given.
  std::string queried(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? std::string() : found->second;
  }
  // False when it was not given; kInvalidArgument for what is neither yes nor no.
  Result<bool> queried_flag(const std::string& name) const;
};

// What a route answers: a document, or text of another kind. Nothing at all is 204.
struct ControlAnswer {
  int status = 200;
  Json document = nullptr;
  std::string text = {};
  std::string text_type = {};  // Not empty: `text` is the answer.
};

inline ControlAnswer json_control_answer(Json document, int status = 200) {
  return {.status = status, .document = std::move(document)};
}

// Answers before it returns; may block, until the context's deadline.
using ControlHandler = std::function<Result<Json>(const ControlRequest& request)>;
// Answers when it can, from any thread: for those who wait for something that may take hours. The
// context has no deadline then, and is cancelled when the client goes.
using WaitingControlHandler =
    std::function<void(ControlRequest request, Completion<ControlAnswer> done)>;

}  // namespace millrace
