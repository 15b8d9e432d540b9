#include "daemon/control_routes.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "objectstore/s3/uri.h"
#include "objectstore/store_url_parameters.h"

namespace millrace {
namespace {

// "/a/b" has the components "a" and "b".
std::vector<std::string> components_of(std::string_view path) {
  std::vector<std::string> components;
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t end = path.find('/');
    components.emplace_back(path.substr(0, end));
    path = end == std::string_view::npos ? std::string_view() : path.substr(end);
  }
  return components;
}

bool is_parameter(std::string_view component) { return component.starts_with('{'); }

bool matches(const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return false;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (is_parameter(pattern[i]) ? path[i].empty() : pattern[i] != path[i]) return false;
  }
  return true;
}

// Any bytes that a file's name may have, control characters too: one can be a directory's path.
Result<std::string> component_of(std::string_view text) {
  MR_ASSIGN_OR_RETURN(std::string component, s3::decode_uri_component(text));
  if (component.contains('\0')) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("'{}' has %00 in it, which is in no name", text));
  }
  return component;
}

Result<std::map<std::string, std::string>> query_of(const std::string& text) {
  std::map<std::string, std::string> query;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    const std::size_t equals = std::min(part.find('='), part.size());
    MR_ASSIGN_OR_RETURN(std::string name, percent_decode(part.substr(0, equals), text));
    MR_ASSIGN_OR_RETURN(std::string value,
                        percent_decode(part.substr(std::min(equals + 1, part.size())), text));
    if (!query.emplace(std::move(name), std::move(value)).second) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("'{}' is given twice", part.substr(0, equals)));
    }
  }
  return query;
}

// "by&run" are the fields "by" and "run".
std::vector<std::string> query_names(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    names.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return names;
}

Status check_query(const std::map<std::string, std::string>& query,
                   const ControlRoutes::Listed& route) {
  for (const auto& [name, value] : query) {
    if (std::ranges::find(route.query, name) != route.query.end()) continue;
    const std::string known = route.query.empty()
                                  ? "has no fields"
                                  : fmt::format("may have: {}", fmt::join(route.query, ", "));
    return {StatusCode::kInvalidArgument,
            fmt::format("there is no field '{}' in the query of {} {}, which {}", name,
                        http_method_name(route.method), route.path, known)};
  }
  return {};
}

Result<Json> body_of(const std::string& text) {
  if (text.empty()) return Json(nullptr);
  Json body = Json::parse(text, nullptr, false);
  if (!body.is_object()) {
    return failure(StatusCode::kInvalidArgument, "the body of the request is no JSON object");
  }
  return body;
}

HttpAnswer http_answer(ControlAnswer answer) {
  if (!answer.text_type.empty()) {
    return text_answer(answer.status, std::move(answer.text_type), std::move(answer.text));
  }
  if (answer.document.is_null()) {
    return {.status = 204, .headers = {}, .body = Slice()};
  }
  return text_answer(answer.status, "application/json",
                     answer.document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace

void ControlRoutes::add(HttpMethod method, std::string_view pattern, ControlHandler handler) {
  add_waiting(
      method, pattern,
      [this, handler = std::move(handler)](ControlRequest request, Completion<ControlAnswer> done) {
        request.context = request.context.with_deadline(clock_.now() + timeout_);
        answer(handler, request, std::move(done));
      });
}

void ControlRoutes::add_asking(HttpMethod method, std::string_view pattern,
                               ControlHandler handler) {
  add_waiting(method, pattern,
              [this, handler = std::make_shared<const ControlHandler>(std::move(handler))](
                  ControlRequest request, Completion<ControlAnswer> done) {
                request.context = request.context.with_deadline(clock_.now() + timeout_);
                const auto owed = std::make_shared<Completion<ControlAnswer>>(std::move(done));
                Status taken = work_.submit([handler, owed, request = std::move(request)] {
                  answer(*handler, request, std::move(*owed));
                });
                if (!taken.ok()) owed->complete(failure(std::move(taken)));
              });
}

void ControlRoutes::answer(const ControlHandler& handler, const ControlRequest& request,
                           Completion<ControlAnswer> done) {
  Result<Json> document = handler(request);
  if (document) {
    done.complete(json_control_answer(*std::move(document)));
  } else {
    done.complete(failure(std::move(document).error()));
  }
}

void ControlRoutes::add_waiting(HttpMethod method, std::string_view pattern,
                                WaitingControlHandler handler) {
  const std::size_t mark = std::min(pattern.find('?'), pattern.size());
  const std::string_view path = pattern.substr(0, mark);
  const std::string_view query = pattern.substr(std::min(mark + 1, pattern.size()));
  routes_.push_back(
      {.listed = {.method = method, .path = std::string(path), .query = query_names(query)},
       .components = components_of(path),
       .handler = std::move(handler)});
}

std::vector<ControlRoutes::Listed> ControlRoutes::list() const {
  std::vector<Listed> routes;
  for (const Route& route : routes_)
    routes.push_back(route.listed);
  return routes;
}

ControlRoutes::Match ControlRoutes::find(HttpMethod method,
                                         const std::vector<std::string>& components) const {
  Match match;
  for (const Route& route : routes_) {
    if (!matches(route.components, components)) continue;
    if (route.listed.method == method) return {.route = &route, .allowed = {}};
    match.allowed.emplace_back(http_method_name(route.listed.method));
  }
  return match;
}

void ControlRoutes::handle(HttpCall call, Completion<HttpAnswer> done) {
  const std::vector<std::string> path = components_of(call.request.path);
  const bool head = call.request.method == HttpMethod::kHead;
  const HttpMethod method = head ? HttpMethod::kGet : call.request.method;
  const Match match = find(method, path);
  if (match.route == nullptr && !match.allowed.empty()) {
    HttpAnswer answer = json_error_answer(
        {405,
         {StatusCode::kUnsupported,
          fmt::format("there is no {} {}", http_method_name(method), call.request.path)}});
    answer.headers.push_back({"Allow", fmt::format("{}", fmt::join(match.allowed, ", "))});
    done.complete(std::move(answer));
    return;
  }
  if (match.route == nullptr) {
    done.complete(failure(StatusCode::kNotFound, fmt::format("there is no {}", call.request.path)));
    return;
  }
  ControlRequest request{.context = std::move(call.context), .method = method};
  const auto refuse = [&](Status why) { done.complete(failure(std::move(why))); };
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::string& name = match.route->components[i];
    if (!is_parameter(name)) continue;
    Result<std::string> value = component_of(path[i]);
    if (!value) return refuse(value.error());
    request.parameters[name.substr(1, name.size() - 2)] = *std::move(value);
  }
  auto query = query_of(call.request.query);
  if (!query) return refuse(query.error());
  if (Status known = check_query(*query, match.route->listed); !known.ok()) {
    return refuse(std::move(known));
  }
  request.query = *std::move(query);
  auto body = body_of(call.request.body);
  if (!body) return refuse(body.error());
  request.body = *std::move(body);
  match.route->handler(
      std::move(request),
      Completion<ControlAnswer>(inline_executor(),
                                [answer = std::move(done)](Result<ControlAnswer> given) mutable {
                                  if (given) {
                                    answer.complete(http_answer(*std::move(given)));
                                  } else {
                                    answer.complete(failure(std::move(given).error()));
                                  }
                                }));
}

}  // namespace millrace
