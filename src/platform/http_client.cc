#include "platform/http_client.h"

#include <strings.h>

#include <utility>

namespace millrace {

std::string_view http_method_name(HttpMethod method) {
  switch (method) {
    case HttpMethod::kGet:
      return "GET";
    case HttpMethod::kHead:
      return "HEAD";
    case HttpMethod::kPut:
      return "PUT";
    case HttpMethod::kPost:
      return "POST";
    case HttpMethod::kDelete:
      return "DELETE";
  }
  return "GET";
}

void HttpHeaders::add(std::string name, std::string value) {
  headers_.push_back({std::move(name), std::move(value)});
}

namespace {

const HttpHeader* find_header(const std::vector<HttpHeader>& headers, std::string_view name) {
  for (const HttpHeader& header : headers) {
    if (header.name.size() == name.size() &&
        ::strncasecmp(header.name.data(), name.data(), name.size()) == 0) {
      return &header;
    }
  }
  return nullptr;
}

}  // namespace

std::string_view HttpHeaders::get(std::string_view name) const {
  const HttpHeader* header = find_header(headers_, name);
  return header ? std::string_view(header->value) : std::string_view();
}

bool HttpHeaders::has(std::string_view name) const {
  return find_header(headers_, name) != nullptr;
}

Result<HttpResponse> HttpClient::perform(const RequestContext& context, HttpRequest request) {
  Waiter<HttpResponse> waiter;
  send(context, std::move(request), waiter.completion());
  return waiter.wait();
}

}  // namespace millrace
