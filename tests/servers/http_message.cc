// The parts of HTTP that are only text: fields, percent escapes, the head of a request.
#include <algorithm>
#include <cctype>

#include "tests/servers/http_server.h"
#include "tests/servers/http_session.h"

namespace millrace::testing {
namespace {

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

HttpQuery parse_query(std::string_view raw) {
  HttpQuery query;
  while (!raw.empty()) {
    const std::string_view pair = raw.substr(0, raw.find('&'));
    raw.remove_prefix(std::min(raw.size(), pair.size() + 1));
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view value = equals < pair.size() ? pair.substr(equals + 1) : "";
    query.emplace_back(percent_decode(pair.substr(0, equals), true), percent_decode(value, true));
  }
  return query;
}

bool parse_request_line(std::string_view line, HttpRequest& request) {
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return false;
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return false;
  request.method = line.substr(0, first);
  request.target = line.substr(first + 1, last - first - 1);
  if (!is_token(request.method) || !request.target.starts_with('/')) return false;
  // Whatever is neither printable nor ASCII must be escaped in a target.
  if (!std::all_of(request.target.begin(), request.target.end(),
                   [](char c) { return c > ' ' && c < 0x7f; })) {
    return false;
  }
  const size_t question = std::min(request.target.find('?'), request.target.size());
  request.raw_path = request.target.substr(0, question);
  request.raw_query = request.target.substr(std::min(question + 1, request.target.size()));
  request.path = percent_decode(request.raw_path);
  request.query = parse_query(request.raw_query);
  // One place decides about keep-alive, so an old client is turned into one that says "close".
  if (version == "HTTP/1.0") request.headers.add("Connection", "close");
  return true;
}

}  // namespace

const std::string* HttpHeaders::find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (equal_ignoring_case(field.first, name)) return &field.second;
  }
  return nullptr;
}

std::string HttpHeaders::get(std::string_view name) const {
  const std::string* value = find(name);
  return value ? *value : std::string();
}

size_t HttpHeaders::count(std::string_view name) const {
  return static_cast<size_t>(std::count_if(fields_.begin(), fields_.end(), [&](const Field& f) {
    return equal_ignoring_case(f.first, name);
  }));
}

void HttpHeaders::set(std::string_view name, std::string value) {
  remove(name);
  add(name, std::move(value));
}

void HttpHeaders::add(std::string_view name, std::string value) {
  fields_.emplace_back(std::string(name), std::move(value));
}

void HttpHeaders::remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& f) { return equal_ignoring_case(f.first, name); });
}

std::optional<std::string> HttpRequest::query_value(std::string_view name) const {
  for (const auto& [key, value] : query) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
        hex_digit(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      out += plus_is_space && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::optional<HttpRequest> parse_request_head(std::string_view head) {
  HttpRequest request;
  bool first = true;
  while (!head.empty()) {
    const std::string_view line = head.substr(0, head.find("\r\n"));
    head.remove_prefix(std::min(head.size(), line.size() + 2));
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
      return std::nullopt;
    }
    if (first) {
      if (!parse_request_line(line, request)) return std::nullopt;
      first = false;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return std::nullopt;
    request.headers.add(line.substr(0, colon), std::string(trim(line.substr(colon + 1))));
  }
  if (first) return std::nullopt;
  return request;
}

}  // namespace millrace::testing
