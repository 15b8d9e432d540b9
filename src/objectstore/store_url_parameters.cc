#include "objectstore/store_url_parameters.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include <fmt/format.h>

namespace millrace {
namespace {

bool is_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_host(std::string_view host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    return std::ranges::all_of(host, [](char c) { return is_alphanumeric(c) || c == ':'; });
  }
  return !host.empty() && std::ranges::all_of(host, [](char c) {
    return is_alphanumeric(c) || c == '-' || c == '.' || c == '_';
  });
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

// scheme://host[:port], with or without a '/' at the end. No path: a bucket behind one cannot be
// signed for.
bool is_endpoint(std::string_view text) {
  if (text.starts_with("https://")) {
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
  } else {
    return false;
  }
  if (text.ends_with('/')) text.remove_suffix(1);
  const auto bracket = text.rfind(']');
  const auto colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon == std::string_view::npos) return is_host(text);
  return is_host(text.substr(0, colon)) && is_port(text.substr(colon + 1));
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_alphanumeric(c) || c == '-' || c == '_' || c == '.';
  });
}

bool is_absolute_path(std::string_view text) { return text.starts_with('/'); }
bool is_boolean(std::string_view text) { return text == "true" || text == "false"; }
bool is_addressing(std::string_view text) { return text == "auto" || is_boolean(text); }
bool is_checksum(std::string_view text) { return text == "crc32c" || text == "none"; }
bool is_profile(std::string_view text) { return !text.empty(); }

struct ParameterRule {
  StoreUrl::Scheme scheme;
  std::string_view name;
  bool (*accepts)(std::string_view value);
  std::string_view expected;
};

constexpr StoreUrl::Scheme kS3 = StoreUrl::Scheme::kS3;
constexpr std::array kParameterRules = {
    ParameterRule{kS3, "endpoint", is_endpoint,
                  "an address and a port from 1 to 65535, such as http://127.0.0.1:9000 or "
                  "https://storage.example.com"},
    ParameterRule{kS3, "region", is_name, "a region's name, such as us-east-1"},
    ParameterRule{kS3, "path_style", is_addressing, "auto, true or false"},
    ParameterRule{kS3, "profile", is_profile, "the name of a profile in ~/.aws/credentials"},
    ParameterRule{kS3, "ca_bundle", is_absolute_path,
                  "the absolute path of a PEM file, such as /etc/ssl/certs/company.pem"},
    ParameterRule{kS3, "checksum", is_checksum, "crc32c or none"},
    ParameterRule{kS3, "anonymous", is_boolean, "true or false"},
};

std::string known_names(StoreUrl::Scheme scheme) {
  std::string names;
  for (const ParameterRule& rule : kParameterRules) {
    if (rule.scheme != scheme) continue;
    if (!names.empty()) names += ", ";
    names += rule.name;
  }
  return names;
}

Status check_parameter(StoreUrl::Scheme scheme, const std::string& name, const std::string& value,
                       std::string_view url) {
  const auto* const rule = std::ranges::find_if(kParameterRules, [&](const ParameterRule& r) {
    return r.scheme == scheme && r.name == name;
  });
  if (rule == kParameterRules.end()) {
    const std::string known = known_names(scheme);
    return {StatusCode::kInvalidArgument,
            known.empty()
                ? fmt::format("'{}' has the parameter '{}', but this kind of store takes none: "
                              "remove everything from the '?' on",
                              url, name)
                : fmt::format("'{}' has the unknown parameter '{}': expected one of {}", url, name,
                              known)};
  }
  if (!rule->accepts(value)) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' has '{}={}': expected {}", url, name, value, rule->expected)};
  }
  return {};
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Result<std::string> percent_decode(std::string_view text, std::string_view url) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    const int value = high * 16 + low;
    if (high < 0 || low < 0 || value < 0x20 || value == 0x7f) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("'{}' has a '%' that begins no printable character: expected two "
                                 "hexadecimal digits after it, such as %20 for a blank or %25 "
                                 "for '%' itself",
                                 url));
    }
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kPlain = "-._~/:@,+=!$'()*;";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    // Bytes of UTF-8 stay too: nothing here misreads them, and names in other scripts stay legible.
    if (is_alphanumeric(c) || kPlain.contains(c) || static_cast<unsigned char>(c) >= 0x80) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

Result<std::map<std::string, std::string>> parse_store_parameters(StoreUrl::Scheme scheme,
                                                                  std::string_view query,
                                                                  std::string_view url) {
  std::map<std::string, std::string> parameters;
  while (!query.empty()) {
    const auto end = std::min(query.find('&'), query.size());
    const std::string_view item = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    const auto equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("'{}' has '{}' among its parameters: expected name=value pairs "
                                 "with '&' between them, such as ?region=us-east-1",
                                 url, item));
    }
    const std::string name(item.substr(0, equals));
    MR_ASSIGN_OR_RETURN(std::string value, percent_decode(item.substr(equals + 1), url));
    MR_RETURN_IF_ERROR(check_parameter(scheme, name, value, url));
    if (!parameters.emplace(name, value).second) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("'{}' gives the parameter '{}' twice: keep one", url, name));
    }
  }
  return parameters;
}

}  // namespace millrace
