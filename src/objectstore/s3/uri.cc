#include "objectstore/s3/uri.h"

#include <algorithm>
#include <array>

namespace millrace::s3 {
namespace {

constexpr std::array<bool, 256> make_unreserved() {
  std::array<bool, 256> table{};
  for (int c = '0'; c <= '9'; ++c)
    table[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c)
    table[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c)
    table[static_cast<std::size_t>(c)] = true;
  for (const char c : {'-', '_', '.', '~'})
    table[static_cast<unsigned char>(c)] = true;
  return table;
}

constexpr std::array<bool, 256> kUnreserved = make_unreserved();

std::string encode(std::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size() + 16);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (kUnreserved[byte] || (keep_slash && c == '/')) {
      out.push_back(c);
      continue;
    }
    out.push_back('%');
    out.push_back(kDigits[byte >> 4]);
    out.push_back(kDigits[byte & 15]);
  }
  return out;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string encode_uri_component(std::string_view text) { return encode(text, false); }
std::string encode_uri_path(std::string_view path) { return encode(path, true); }

Result<std::string> decode_uri_component(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_value(text[i + 2]) : -1;
    if (high < 0 || low < 0) {
      return failure(StatusCode::kInvalidArgument,
                     "'" + std::string(text) + "' has a '%' without two hexadecimal digits");
    }
    out.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return out;
}

std::string encode_query(Query query) {
  for (auto& [name, value] : query) {
    name = encode_uri_component(name);
    value = encode_uri_component(value);
  }
  std::ranges::sort(query);
  std::string out;
  for (const auto& [name, value] : query) {
    if (!out.empty()) out.push_back('&');
    out += name;
    out.push_back('=');
    out += value;
  }
  return out;
}

}  // namespace millrace::s3
